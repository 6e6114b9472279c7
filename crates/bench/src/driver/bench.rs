//! `bench`: measures engines in turn, in rounds, each time in a new child process.
//!
//! Rounds are the outer loop, so that a machine that gets slower in the course of an hour gets
//! slower for every engine alike.

use std::fs;
use std::path::Path;

use super::args::BenchArgs;
use super::compression::compression;
use super::order::Order;
use super::plan::{memory_bytes, rounds, spec, variants};
use super::progress::{note, print};
use super::variant::{check_answers, measure_variant};
use super::{Registry, size};
use crate::engine::EngineKind;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::disk;
use crate::report::{self, Measurement};
use crate::workload::reads::limits;
use crate::workload::{KERNEL, TOKUDB, Variant, Workload};

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

/// Writes the report: an object for each engine and variant, or for `txn`, `hot`, `queue`, `far`
/// and `backup`, which have one, its figures.
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

fn print_orders(args: &BenchArgs, variants: &[Variant], kinds: &[&EngineKind]) -> Result<()> {
    for variant in variants {
        for kind in kinds.iter().filter(|kind| kind.codecs.contains(&variant.codec)) {
            let order = Order { spec: spec(args, variant, kind), cgroup: None };
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
