//! The results as tables for people.

use std::fmt::Write as _;

use frondb::device::{Caching, Limits, Model, Point};

use super::findings::{Findings, WearFindings, YEARS};
use super::table::Table;
use super::units::{bandwidth, binary, bytes, count, lifetime, percent, time};

/// Formats the headline, and all tables except the table of the points, as text.
pub(super) fn text(findings: &Findings) -> String {
    let mut text = format!("{}\n", headline(findings));
    for table in tables(findings) {
        let _ = write!(text, "\n{}", table.text());
    }
    text.truncate(text.trim_end().len());
    text
}

/// Describes the measurement: what was measured, and how.
pub(super) fn headline(findings: &Findings) -> String {
    let measured = &findings.measured;
    let how = match measured.caching {
        Caching::Bypassed => "direct I/O; the system counted the reads at the device",
        Caching::Unverified => "direct I/O; the system does not count the reads at the device",
        Caching::Outgrown => "no direct I/O; the file has twice the memory",
        Caching::Cached => {
            "NOT THE DEVICE: the file system serves reads from memory; use a file of twice the \
             memory (--size), or another directory"
        }
    };
    let busy = match measured.processor_wait {
        share if share > PROCESSOR_WAIT_MAX => format!(
            "\nthe machine is busy: threads waited {} of their time for a processor, so the times are too \
             long",
            percent(share)
        ),
        _ => String::new(),
    };
    format!(
        "{}: a file of {}, {:.0} s\n{how}{busy}",
        findings.dir.display(),
        binary(measured.file_bytes),
        measured.seconds
    )
}

/// If threads waited for a processor for more than this share of the time, the page says that the
/// measured times are too long.
const PROCESSOR_WAIT_MAX: f64 = 0.05;

/// Makes all tables except the table of the points.
pub(super) fn tables(findings: &Findings) -> Vec<Table> {
    let mut tables: Vec<Table> =
        findings.models.iter().map(|model| model_table(findings, model)).collect();
    tables.push(commit_table(findings));
    tables.extend(block_table(findings));
    tables.extend(findings.wear.as_ref().map(wear_table));
    tables
}

/// Makes the table of all measured points.
pub(super) fn points_table(points: &[Point]) -> Table {
    let row = |point: &Point| {
        vec![
            point.operation.name().to_owned(),
            point.threads.to_string(),
            binary(point.bytes),
            count(point.requests_per_second()),
            bandwidth(point.bytes_per_second()),
            time(point.seconds_p50),
            time(point.seconds_p99),
        ]
    };
    Table {
        title: "points".to_owned(),
        head: vec!["", "threads", "size", "requests/s", "bytes/s", "median", "p99"],
        rows: points.iter().map(row).collect(),
        notes: Vec::new(),
    }
}

fn model_table(findings: &Findings, model: &Model) -> Table {
    let rows = model.lines.iter().map(|of_threads| {
        let mut row = vec![of_threads.threads.to_string()];
        match of_threads.line {
            Some(line) => row.extend([
                time(line.startup_seconds),
                bandwidth(line.bytes_per_second),
                line.half_power_bytes().map_or_else(|| "-".to_owned(), bytes),
                format!("{:.3}", line.r_squared),
                percent(line.worst_residual),
            ]),
            None => row.extend(["-"; 5].map(str::to_owned)),
        }
        let smallest = findings
            .measured
            .points
            .iter()
            .filter(|p| p.operation == model.operation && p.threads == of_threads.threads)
            .min_by_key(|point| point.bytes);
        row.extend(match smallest {
            Some(point) => [
                count(point.requests_per_second()),
                time(point.seconds_p50),
                time(point.seconds_p99),
            ],
            None => ["-"; 3].map(str::to_owned),
        });
        row.push(match of_threads.line {
            Some(line) if line.is_good() => String::new(),
            Some(_) => "the line does not fit".to_owned(),
            None if model.limits.is_any() => "the limits decide".to_owned(),
            None => "too few points".to_owned(),
        });
        row
    });
    Table {
        title: format!("random {}s: T = S + B/W", model.operation.name()),
        head: vec!["threads", "S", "W", "S*W", "R2", "worst", "requests/s", "median", "p99", ""],
        rows: rows.collect(),
        notes: model_notes(model),
    }
}

fn model_notes(model: &Model) -> Vec<String> {
    let mut notes = vec!["requests/s, median and p99 are of requests of 4 KiB".to_owned()];
    if let Some(found) = model.parallelism {
        let least = if found.is_reached { "" } else { "at least " };
        notes.push(format!("P: the device serves {least}{:.1} requests at once", found.requests));
    }
    let Limits { requests_per_second, bytes_per_second } = model.limits;
    if let Some(rate) = requests_per_second {
        notes.push(format!("limit: {} requests/s, whatever the number of threads", count(rate)));
    }
    if let Some(rate) = bytes_per_second {
        notes.push(format!("limit: {}, whatever the number of threads", bandwidth(rate)));
    }
    if let Some(knee) = model.limits.knee_bytes() {
        notes.push(format!("requests below {} cost as much as larger ones", bytes(knee)));
    }
    notes
}

fn commit_table(findings: &Findings) -> Table {
    let measured = &findings.measured;
    let syncs = &measured.syncs;
    Table {
        title: "writing in sequence".to_owned(),
        head: vec!["", "", ""],
        rows: vec![
            vec![
                "4 MiB writes".to_owned(),
                bandwidth(measured.sequential_write_bytes_per_second),
                String::new(),
            ],
            vec![
                "4 KiB write and sync".to_owned(),
                format!("{} median", time(syncs.seconds_p50)),
                format!("{} p99", time(syncs.seconds_p99)),
            ],
        ],
        notes: Vec::new(),
    }
}

fn block_table(findings: &Findings) -> Option<Table> {
    let blocks = findings.blocks.as_ref()?;
    let rows = blocks.costs.iter().map(|cost| {
        vec![
            binary(cost.block_bytes),
            bytes(cost.disk_bytes),
            time(cost.point_seconds),
            time(cost.range_seconds),
        ]
    });
    let mut notes = vec![format!(
        "block_bytes {}: the half-power point of {} on disk, times a compression of {:.2}",
        binary(blocks.block_bytes),
        bytes(blocks.half_power_bytes),
        blocks.compression
    )];
    if let Some(slices) = &findings.slices {
        notes.push(format!(
            "slice_bytes_min {}: slices of 256 KiB reach {} of the bandwidth",
            binary(slices.slice_bytes),
            percent(slices.default_share)
        ));
    }
    Some(Table {
        title: "blocks, with the time to decode them".to_owned(),
        head: vec!["block", "on disk", "point read", "range of 1 MiB"],
        rows: rows.collect(),
        notes,
    })
}

fn wear_table(found: &WearFindings) -> Table {
    let mut notes = Vec::new();
    let wear = &found.wear;
    if let Some(written) = wear.written_bytes {
        notes.push(format!("written so far: {}", bytes(written)));
    }
    if let Some(used) = wear.used {
        notes.push(format!("used by the device's own estimate: {}", percent(used)));
    }
    match (found.left_bytes, &found.endurance) {
        (None, _) => notes.push(
            "what is left is not known: the device is too new for an estimate; give --tbw"
                .to_owned(),
        ),
        (Some(left), None) => {
            notes.push(format!("left: {}; give --bytes-per-day for the lifetime", bytes(left)))
        }
        (Some(left), Some(endurance)) => notes.push(format!(
            "left: {}, at {} a day",
            bytes(left),
            bytes(endurance.bytes_per_day)
        )),
    }
    if found.left_bytes.is_some() {
        notes.push(format!(
            "to last {YEARS:.0} years, set background_bytes_per_second to the rate of the row, less what \
             the log writes"
        ));
    }
    let rows = found.rates.iter().map(|(factor, rate)| {
        let days = found.endurance.as_ref().and_then(|endurance| {
            endurance.days.iter().find(|(of, _)| of == factor).map(|(_, days)| lifetime(*days))
        });
        let days = days.unwrap_or_else(|| "-".to_owned());
        vec![factor.to_string(), days, count(*rate)]
    });
    Table {
        title: "endurance".to_owned(),
        head: vec!["amplification inside", "lifetime", "bytes/s for 5 years"],
        rows: rows.collect(),
        notes,
    }
}
