//! `bench`: measures engines in turn, in rounds, each time in a new child process.
//!
//! Rounds are the outer loop, so that a machine that gets slower in the course of an hour gets
//! slower for every engine alike.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::args::BenchArgs;
use super::child;
use super::compression::compression;
use super::order::Order;
use super::plan::{memory_bytes, rounds, spec, variants};
use super::progress::note;
use super::{Registry, size};
use crate::engine::EngineKind;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::disk;
use crate::report::{self, Measurement};
use crate::workload::reads::limits;
use crate::workload::{KERNEL, Part, Spec, TOKUDB, Variant, Workload};

pub(super) fn bench(registry: &Registry, args: &BenchArgs) -> Result<()> {
    let kinds = match args.workload {
        Workload::Merge => vec![&KERNEL],
        Workload::Compression => {
            let named = args.engines.as_deref().unwrap_or(registry.default_engines);
            registry.select(named)?.into_iter().chain([&TOKUDB]).collect()
        }
        // Only FronDB has these transactions and this memory option. `fsync` is about our own log;
        // other engines run it if they are named.
        Workload::Fsync
        | Workload::Txn
        | Workload::Hot
        | Workload::Queue
        | Workload::Far
        | Workload::Backup
        | Workload::Memory
            if args.engines.is_none() =>
        {
            registry.select("frondb")?
        }
        _ => registry.select(args.engines.as_deref().unwrap_or(registry.default_engines))?,
    };
    prepare_dir(&args.dir)?;
    for path in [&args.json, &args.chart].into_iter().flatten() {
        check_writable(path)?;
    }
    if cfg!(debug_assertions) {
        note("warning: this is a debug build; its figures mean nothing");
    }
    // The merge kernel takes as much memory as it needs, and a cgroup would hide what `memory`
    // measures.
    let limited = !args.no_cgroup && !matches!(args.workload, Workload::Merge | Workload::Memory);
    let limit = |memory: u64| limited.then_some(memory / 2 * 3);
    let variants = variants(args);
    if args.print_orders {
        return print_orders(args, &variants, &kinds);
    }
    let mut results = Vec::new();
    if args.workload == Workload::Compression {
        results = compression(args, &variants, &kinds, &limit)?;
    } else {
        for variant in &variants {
            let mut medians = measure_variant(args, variant, &kinds, &limit)?;
            if let Some(ratio) = variant.data_ratio {
                judge_reads(ratio, &mut medians, &results);
            }
            if args.workload != Workload::Memory {
                show(registry, &medians)?;
            }
            check_answers(&medians)?;
            results.extend(medians);
        }
    }
    if args.workload == Workload::Memory {
        let figures = results.iter().flat_map(|result| result.figures.clone());
        print(&report::figures("memory", &figures.collect::<Vec<_>>()))?;
    }
    print_settings(args, &results)?;
    if let Some(path) = &args.json {
        write_json(path, args.workload, &results)?;
    }
    match results.iter().find_map(|result| result.error.as_ref().map(|e| (&result.engine, e))) {
        Some((engine, error)) => Err(Error::Child(format!("{engine}: {error}"))),
        None => Ok(()),
    }
}

/// Adds the figures with limits of `reads` to the measurement that they are about.
fn judge_reads(ratio: u64, medians: &mut [Measurement], earlier: &[Measurement]) {
    let figures = limits(ratio, medians, earlier);
    if let Some(own) = medians.iter_mut().find(|m| m.engine == FRONDB.name) {
        own.figures = figures;
    }
}

/// Prints the tables of one variant.
fn show(registry: &Registry, medians: &[Measurement]) -> Result<()> {
    let baseline = medians
        .iter()
        .position(|m| m.engine == registry.baseline)
        .unwrap_or(medians.len().saturating_sub(1));
    print(&report::table(medians, baseline))?;
    let cases = report::read_tables(medians, baseline);
    if !cases.is_empty() {
        print(&format!("\n{cases}\n"))?;
    }
    for m in medians.iter().filter(|m| !m.figures.is_empty()) {
        print(&report::figures(&m.workload, &m.figures))?;
    }
    Ok(())
}

/// Writes the report: an object for each engine and variant, or for `txn`, `hot`, `queue`, `far` and
/// `backup`, which have one, its figures.
fn write_json(path: &Path, workload: Workload, results: &[Measurement]) -> Result<()> {
    let text = match results {
        [only]
            if matches!(
                workload,
                Workload::Txn | Workload::Hot | Workload::Queue | Workload::Far | Workload::Backup
            ) =>
        {
            serde_json::to_string_pretty(&only.figures)
        }
        _ => serde_json::to_string_pretty(results),
    };
    let text = text.map_err(Error::engine)? + "\n";
    fs::write(path, text).map_err(Error::io(format!("write {}", path.display())))
}

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
            let measured = measure_one(args, &spec(args, variant, kind)?, limit, keep)?;
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

/// Measures one engine: in one process, or if the load has a memory of its own, in two.
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

/// Checks before hours of measuring that a report can be written. An existing file keeps its
/// content.
fn check_writable(path: &Path) -> Result<()> {
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    file.map(drop).map_err(Error::io(format!("write {}", path.display())))
}

/// Creates the directory if it is missing, and refuses one that lies in memory.
pub fn prepare_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::io(format!("create {}", dir.display())))?;
    disk::refuse_memory(dir)
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

fn print_orders(args: &BenchArgs, variants: &[Variant], kinds: &[&EngineKind]) -> Result<()> {
    for variant in variants {
        for kind in kinds.iter().filter(|kind| kind.codecs.contains(&variant.codec)) {
            let order = Order { spec: spec(args, variant, kind)?, cgroup: None };
            let command = order.command()?;
            let words: Vec<_> = std::iter::once(command.get_program())
                .chain(command.get_args())
                .map(|word| format!("'{}'", word.to_string_lossy()))
                .collect();
            print(&(words.join(" ") + "\n"))?;
        }
    }
    Ok(())
}

fn print_settings(args: &BenchArgs, results: &[Measurement]) -> Result<()> {
    let mut text = format!("medians of {} rounds, seed {}", rounds(args), args.seed);
    if !matches!(args.workload, Workload::Merge | Workload::Memory) {
        let held =
            if args.no_cgroup { "no cgroup" } else { "limited to 1.5 times that by a cgroup" };
        text.push_str(&format!(", {} of memory, {held}", size::show(memory_bytes(args))));
    }
    if !matches!(
        args.workload,
        Workload::Merge
            | Workload::Durable
            | Workload::Fsync
            | Workload::Txn
            | Workload::Hot
            | Workload::Queue
            | Workload::Memory
    ) {
        text.push_str(&format!(", {} rows a commit", args.batch));
    }
    text.push('\n');
    let mut shown: Vec<&str> = Vec::new();
    for settings in results.iter().map(|result| result.settings.as_str()) {
        if !settings.is_empty() && !shown.contains(&settings) {
            text.push_str(&format!("  {settings}\n"));
            shown.push(settings);
        }
    }
    print(&text)
}

/// Writes to standard output.
pub(super) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::io("print"))
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
