//! The results as JSON. Times are in seconds, sizes in bytes, rates per second; null means unknown.

use frondb::device::{Model, Operation, Point};
use serde_json::{Value, json};

use super::findings::{Findings, WearFindings, YEARS};

/// Makes the object that the command prints.
pub(super) fn object(findings: &Findings) -> Value {
    let measured = &findings.measured;
    let model = |operation| {
        findings.models.iter().find(|model| model.operation == operation).map(model_object)
    };
    let blocks = findings.blocks.as_ref().map(|blocks| {
        let costs = blocks.costs.iter().map(|cost| {
            json!({
                "block_bytes": cost.block_bytes,
                "disk_bytes": cost.disk_bytes,
                "point_seconds": cost.point_seconds,
                "range_seconds_per_mib": cost.range_seconds,
            })
        });
        json!({
            "block_bytes": blocks.block_bytes,
            "half_power_bytes": blocks.half_power_bytes,
            "compression": blocks.compression,
            "costs": costs.collect::<Vec<Value>>(),
        })
    });
    let slices = findings.slices.as_ref().map(|slices| {
        json!({
            "slice_bytes_min": slices.slice_bytes,
            "half_power_bytes": slices.half_power_bytes,
            "default_share": slices.default_share,
        })
    });
    json!({
        "directory": findings.dir.display().to_string(),
        "seconds": measured.seconds,
        "file_bytes": measured.file_bytes,
        "caching": measured.caching.name(),
        "processor_wait": measured.processor_wait,
        "reads": model(Operation::Read),
        "writes": model(Operation::Write),
        "sequential_write_bytes_per_second": measured.sequential_write_bytes_per_second,
        "syncs": measured.syncs.syncs,
        "sync_seconds_p50": measured.syncs.seconds_p50,
        "sync_seconds_p99": measured.syncs.seconds_p99,
        "blocks": blocks,
        "slices": slices,
        "endurance": findings.wear.as_ref().map(wear_object),
        "points": measured.points.iter().map(point_object).collect::<Vec<Value>>(),
    })
}

fn model_object(model: &Model) -> Value {
    let lines = model.lines.iter().map(|of_threads| {
        let line = of_threads.line.as_ref();
        json!({
            "threads": of_threads.threads,
            "startup_seconds": line.map(|line| line.startup_seconds),
            "bytes_per_second": line.map(|line| line.bytes_per_second),
            "half_power_bytes": line.and_then(|line| line.half_power_bytes()),
            "r_squared": line.map(|line| line.r_squared),
            "worst_residual": line.map(|line| line.worst_residual),
            "fits": line.map(|line| line.is_good()),
        })
    });
    json!({
        "lines": lines.collect::<Vec<Value>>(),
        "half_power_bytes": model.half_power_bytes(),
        "requests_at_once": model.parallelism.map(|found| found.requests),
        "requests_at_once_reached": model.parallelism.map(|found| found.is_reached),
        "limit_requests_per_second": model.limits.requests_per_second,
        "limit_bytes_per_second": model.limits.bytes_per_second,
        "fits": model.is_good(),
    })
}

fn point_object(point: &Point) -> Value {
    json!({
        "operation": point.operation.name(),
        "bytes": point.bytes,
        "threads": point.threads,
        "requests": point.requests,
        "requests_per_second": point.requests_per_second(),
        "bytes_per_second": point.bytes_per_second(),
        "seconds_p50": point.seconds_p50,
        "seconds_p99": point.seconds_p99,
    })
}

fn wear_object(found: &WearFindings) -> Value {
    let days = found.endurance.as_ref().map(|endurance| {
        let days = endurance
            .days
            .iter()
            .map(|(factor, days)| json!({ "amplification": factor, "days": days }));
        days.collect::<Vec<Value>>()
    });
    let rates = found
        .rates
        .iter()
        .map(|(factor, rate)| json!({ "amplification": factor, "bytes_per_second": rate }));
    json!({
        "written_bytes": found.wear.written_bytes,
        "used": found.wear.used,
        "left_bytes": found.left_bytes,
        "bytes_per_day": found.endurance.as_ref().map(|endurance| endurance.bytes_per_day),
        "lifetimes": days,
        "years": YEARS,
        "background_rates": rates.collect::<Vec<Value>>(),
    })
}
