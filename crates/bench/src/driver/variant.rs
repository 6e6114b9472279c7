//! The measurements of one variant of a workload: all engines in turn, in rounds.

use std::fs;
use std::path::Path;

use super::args::BenchArgs;
use super::plan::{rounds, spec};
use super::progress::note;
use super::{child, size};
use crate::engine::EngineKind;
use crate::error::{Error, Result};
use crate::report::{self, Measurement};
use crate::workload::{Part, Spec, TOKUDB, Variant, Workload};

/// The medians of all engines that have the codec of the variant.
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
    let count = rounds(args);
    let mut rounds: Vec<Vec<Measurement>> = able.iter().map(|_| Vec::new()).collect();
    for round in 0..count {
        for (kind, results) in able.iter().zip(&mut rounds) {
            note(&format!("round {} of {count}: {}", round + 1, kind.name));
            let keep = args.keep && round + 1 == count;
            let measured = measure_one(args, &spec(args, variant, kind), limit, keep)?;
            if let Some(error) = &measured.error {
                note(&format!("{}: {error}", kind.name));
            }
            if !measured.stats.is_empty() {
                note(&measured.stats);
            }
            results.push(measured);
        }
    }
    if let Some(path) = &args.chart {
        draw(path, args.workload, &rounds)?;
    }
    rounds.iter().map(|rounds| report::median(rounds)).collect()
}

/// Measures one engine in one process, or in two if the load has its own memory limit.
fn measure_one(
    args: &BenchArgs,
    spec: &Spec,
    limit: &dyn Fn(u64) -> Option<u64>,
    keep: bool,
) -> Result<Measurement> {
    if spec.engine == TOKUDB.name {
        // Its encoder takes as much memory as it needs; there is nothing to compare.
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

/// Checks that engines with the same rows have given the same answers.
pub(super) fn check_answers(results: &[Measurement]) -> Result<()> {
    for (one, other) in results.iter().zip(results.iter().skip(1)) {
        let differ = |a: &Option<String>, b: &Option<String>| a.is_some() && b.is_some() && a != b;
        let what = match () {
            () if one.rows != other.rows => continue,
            () if differ(&one.fullscan_digest, &other.fullscan_digest) => "full scan",
            () if differ(&one.answers_digest, &other.answers_digest) => "reads",
            () => continue,
        };
        return Err(Error::Wrong(format!(
            "{} and {} gave different answers to the same {what}",
            one.engine, other.engine
        )));
    }
    Ok(())
}

fn draw(path: &Path, workload: Workload, rounds: &[Vec<Measurement>]) -> Result<()> {
    let firsts: Vec<_> = rounds.iter().filter_map(|rounds| rounds.first()).collect();
    let series: Vec<_> = firsts.iter().map(|m| (m.engine.as_str(), m.series.as_slice())).collect();
    let svg = report::rows_chart(&format!("{}: rows a second", workload.name()), &series)?;
    fs::write(path, svg).map_err(Error::io(format!("write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_with_different_answers_are_found() {
        let with = |engine: &str, rows, digest: Option<&str>| Measurement {
            engine: engine.to_owned(),
            rows: Some(rows),
            fullscan_digest: digest.map(str::to_owned),
            ..Measurement::default()
        };
        assert!(check_answers(&[with("a", 1, Some("x")), with("b", 1, Some("x"))]).is_ok());
        assert!(check_answers(&[with("a", 1, Some("x")), with("b", 2, Some("y"))]).is_ok());
        assert!(check_answers(&[with("a", 1, Some("x")), with("b", 1, None)]).is_ok());
        assert!(check_answers(&[with("a", 1, Some("x")), with("b", 1, Some("y"))]).is_err());
        let answered = |answers: &str| Measurement {
            answers_digest: Some(answers.to_owned()),
            ..with("a", 1, None)
        };
        assert!(check_answers(&[answered("x"), answered("x")]).is_ok());
        assert!(check_answers(&[answered("x"), answered("y")]).is_err());
    }
}
