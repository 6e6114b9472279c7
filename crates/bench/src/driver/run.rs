//! `run`: a demonstration that runs the main workload once: an iiBench load with live progress,
//! then point reads and scans; then the same rows into a B-tree with the same memory; then a page of
//! figures and a chart of both in the report folder.
//!
//! `run` is the workload `iibench` of `bench` with one round, short reads and a time limit on each
//! load, so that it ends within three minutes on a slow machine too. The B-tree only loads: within
//! the limit it writes fewer rows, and reads of less data would compare nothing.

use std::fs;
use std::path::Path;

use super::args::RunArgs;
use super::args::prepare_dir;
use super::progress::{note, print};
use super::{Registry, child, size};
use crate::engine::Codec;
use crate::error::{Error, Result};
use crate::measure::cgroup::Cgroup;
use crate::measure::machine;
use crate::report::{self, Measurement};
use crate::workload::{Part, ReadSeconds, Spec, Workload};

const READS: ReadSeconds = ReadSeconds { warmup: 3.0, points: 6.0, scan10: 6.0, scan1000: 6.0 };

pub(super) fn run(registry: &Registry, args: &RunArgs) -> Result<()> {
    prepare_dir(&args.dir)?;
    let specs = specs(registry, args)?;
    note(&format!(
        "iiBench: {} rows of 156 bytes into one primary and three secondary trees, {} of memory, \
         {} rows a commit, synced at the end; each load ends after {} s",
        report::count(args.rows as f64),
        size::show(args.memory),
        report::count(specs[0].batch_rows as f64),
        args.limit_seconds
    ));
    let limit = memory_limit(args.memory);
    let mut measured = Vec::with_capacity(specs.len());
    for spec in &specs {
        let engine = child::measure(spec, limit, false)?;
        match &engine.error {
            Some(error) if measured.is_empty() => return Err(Error::Child(error.clone())),
            Some(error) => note(&format!("{} has no figures: {error}", engine.engine)),
            None => {}
        }
        measured.push(engine);
    }
    let machine = machine::describe();
    let text = report::summary(&measured, &machine);
    write_report(&args.report, &measured, &machine, &text)?;
    print(&format!(
        "\n{text}\nThe chart of rows a second over time: {}\n",
        args.report.join("index.html").display()
    ))
}

/// Returns the plan of each engine: the first one loads and reads, the others only load.
fn specs(registry: &Registry, args: &RunArgs) -> Result<Vec<Spec>> {
    let reads = if args.short_reads { ReadSeconds::reference(0.001) } else { READS };
    let spec = |(place, engine): (usize, &String)| {
        Ok(Spec {
            engine: registry.find(engine)?.name.to_owned(),
            workload: Workload::Iibench,
            part: if place == 0 { Part::Whole } else { Part::Load },
            variant: Workload::Iibench.variants(Codec::Standard).swap_remove(0),
            rows: args.rows,
            batch_rows: 1_000,
            memory_bytes: args.memory,
            seed: args.seed,
            dir: args.dir.join("data"),
            limit_s: Some(args.limit_seconds),
            reads,
            read_threads: Vec::new(),
            paced_rows_per_s: 0.0,
            stats: false,
            progress: true,
        })
    };
    args.engines.iter().enumerate().map(spec).collect()
}

/// Returns 1.5 times the memory, or `None` if this process cannot create a cgroup. `run` needs no
/// root: without a cgroup, only the memory option limits the engine.
fn memory_limit(memory: u64) -> Option<u64> {
    let limit = memory / 2 * 3;
    match Cgroup::create(limit) {
        Ok(_) => Some(limit),
        Err(_) => {
            note("cannot create a memory cgroup here: running without one");
            None
        }
    }
}

/// Writes the files of the report: a page with the chart in it, the chart, the text and the
/// figures.
fn write_report(dir: &Path, measured: &[Measurement], machine: &str, text: &str) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::io(format!("create {}", dir.display())))?;
    let lines: Vec<_> = measured.iter().map(|m| (m.engine.as_str(), m.series.as_slice())).collect();
    let chart = report::rows_chart(
        "iiBench: rows inserted in each second, with three secondary indexes",
        &lines,
    )?;
    let json = serde_json::to_string_pretty(measured).map_err(Error::engine)? + "\n";
    let page = report::html(measured, machine, &chart);
    let files = [
        ("index.html", page.as_str()),
        ("rows.svg", chart.as_str()),
        ("summary.txt", text),
        ("figures.json", json.as_str()),
    ];
    for (name, content) in files {
        let path = dir.join(name);
        fs::write(&path, content).map_err(Error::io(format!("write {}", path.display())))?;
    }
    Ok(())
}
