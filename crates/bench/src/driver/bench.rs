//! `bench`: measures engines in turn, in rounds, each time in a new child process.

use std::path::Path;

use super::args::BenchArgs;
use super::compression::compression;
use super::order::Order;
use super::plan::{memory_bytes, rounds, spec, variants};
use super::variant::measure_variant;
use super::{Registry, check_answers, first_error, print, size, write_json};
use crate::engine::EngineKind;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::report::{self, Measurement};
use crate::workload::reads::limits;
use crate::workload::{KERNEL, TOKUDB, Variant, Workload};

pub(super) fn bench(registry: &Registry, args: &BenchArgs) -> Result<()> {
    let kinds = engines(registry, args)?;
    args.common.prepare()?;
    // The merge kernel has no memory option to limit. In `memory` a cgroup would kill the engine
    // for the very excess that the workload measures.
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
    if let Some(path) = &args.common.json {
        write_report(path, args.workload, &results)?;
    }
    first_error(&results)
}

/// Returns the engines to measure, and refuses those that the workload cannot measure.
fn engines(registry: &Registry, args: &BenchArgs) -> Result<Vec<&'static EngineKind>> {
    let select = |default| registry.select(args.engines.as_deref().unwrap_or(default));
    match args.workload {
        Workload::Compression => {
            Ok(select(registry.default_engines)?.into_iter().chain([&TOKUDB]).collect())
        }
        // Other engines run only if they are named.
        Workload::Fsync => select(FRONDB.name),
        workload if workload.is_of_frondb() => {
            let kinds = select(FRONDB.name)?;
            if let Some(other) = kinds.iter().find(|kind| kind.name != FRONDB.name) {
                return Err(Error::Usage(format!(
                    "the workload {} measures only {}, not {}: name no other engine",
                    workload.name(),
                    FRONDB.name,
                    other.name
                )));
            }
            Ok(if workload == Workload::Merge { vec![&KERNEL] } else { kinds })
        }
        _ => select(registry.default_engines),
    }
}

/// Adds the figures with floors and goals of `reads` to FronDB's measurement.
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

/// Writes the report: an object for each engine and variant. For `txn`, `hot`, `queue`, `far` and
/// `backup`, which have one measurement, the report is the list of its figures.
fn write_report(path: &Path, workload: Workload, results: &[Measurement]) -> Result<()> {
    match (workload, results) {
        (
            Workload::Txn | Workload::Hot | Workload::Queue | Workload::Far | Workload::Backup,
            [only],
        ) => write_json(path, &only.figures),
        _ => write_json(path, &results),
    }
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
    let mut text = format!("medians of {} rounds, seed {}", rounds(args), args.common.seed);
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
