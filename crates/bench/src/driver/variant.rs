//! Measures one variant of a workload: all engines in turn, in rounds.

use super::args::BenchArgs;
use super::plan::{rounds, spec};
use super::{Rounds, child, note, size};
use crate::engine::EngineKind;
use crate::error::Result;
use crate::report::Measurement;
use crate::workload::{Part, Spec, TOKUDB, Variant, Workload};

/// Measures all engines that have the codec of the variant and returns the median of each.
pub(super) fn measure_variant(
    args: &BenchArgs,
    variant: &Variant,
    kinds: &[&'static EngineKind],
    limit: &dyn Fn(u64) -> Option<u64>,
) -> Result<Vec<Measurement>> {
    let able: Vec<_> = kinds.iter().filter(|kind| kind.codecs.contains(&variant.codec)).collect();
    // No engine has all codecs that `compression` compares.
    let expected = args.workload != Workload::Compression;
    for kind in kinds.iter().filter(|kind| expected && !kind.codecs.contains(&variant.codec)) {
        note(&format!("{} has no codec {}: skipped", kind.name, variant.codec));
    }
    let title = format!("{}: rows a second", args.workload.name());
    let chart = args.common.chart.as_deref().map(|path| (path, title));
    let rounds = Rounds { count: rounds(args), chart };
    let medians = rounds.run(
        &able,
        |kind| kind.name,
        |kind, is_last| {
            let measured =
                measure_one(args, &spec(args, variant, kind), limit, args.keep && is_last)?;
            if let Some(error) = &measured.error {
                note(&format!("{}: {error}", kind.name));
            }
            if !measured.stats.is_empty() {
                note(&measured.stats);
            }
            Ok(vec![measured])
        },
    )?;
    Ok(medians.into_iter().next().unwrap_or_default())
}

/// Measures one engine in one process, or in two if the load has its own memory limit.
fn measure_one(
    args: &BenchArgs,
    spec: &Spec,
    limit: &dyn Fn(u64) -> Option<u64>,
    keep: bool,
) -> Result<Measurement> {
    if spec.engine == TOKUDB.name {
        // Only TokuDB's codec is measured, without an engine. The codec has no memory option from
        // which a limit would follow.
        return child::measure(spec, None, keep);
    }
    let Some(memory_bytes) = args.load_memory.filter(|_| args.workload == Workload::Reads) else {
        return child::measure(spec, limit(spec.memory_bytes), keep);
    };
    let load = Spec { part: Part::Load, memory_bytes, stats: false, ..spec.clone() };
    let loaded = child::measure(&load, limit(memory_bytes), true)?;
    let (None, Some(rows)) = (&loaded.error, loaded.rows) else {
        child::remove(&spec.dir)?;
        return Ok(loaded);
    };
    let reads = Spec { part: Part::Reads, rows, ..spec.clone() };
    let read = child::measure(&reads, limit(spec.memory_bytes), keep)?;
    Ok(Measurement {
        settings: format!("{}; loaded with {}", read.settings, size::show(memory_bytes)),
        error: read.error,
        answers_digest: read.answers_digest,
        disk_bytes: read.disk_bytes,
        data_to_memory: read.data_to_memory,
        rss_empty_bytes: read.rss_empty_bytes,
        rss_peak_bytes: read.rss_peak_bytes,
        reads: read.reads,
        stats: read.stats,
        ..loaded
    })
}
