//! A table far larger than the memory. The workload writes the table with the given memory, then
//! opens it again with little memory and reads rows by primary key. Shows how long opening takes,
//! and the cost of a point read of data a thousand times the memory. A load with so little memory
//! would take days.

use std::fs;
use std::path::Path;
use std::time::Instant;

use frondb::{Db, Options, Tree};
use frondb_core::prng::Prng;

use super::Spec;
use super::load::silent_load;
use super::settle::settle_until;
use super::timed::timed;
use crate::driver::Progress;
use crate::engine::Engine;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::disk::{self, Device, allocated_bytes};
use crate::measure::process;
use crate::report::{Figure, Measurement};
use crate::rows::{PRIMARY, TABLE_TREES, TableRow, probes};

/// Rows if their number is not given: on disk about a thousand times [`READ_MIB`].
pub(crate) const ROWS: u64 = 270_000_000;
/// Memory of the reads, MiB: the least that the engine accepts.
const READ_MIB: u64 = 16;
/// Floor of the figure "opening", seconds.
const OPEN_MAX_S: f64 = 0.3;

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let describe = FRONDB.describe;
    fs::create_dir_all(&spec.dir).map_err(Error::io("create the directory"))?;
    let rows = load(spec, progress)?;
    disk::sync_file_system(&spec.dir)?;
    let mut figures = vec![
        Figure::plain("rows", rows as f64, ""),
        Figure::plain(
            "data on disk to memory of the reads",
            allocated_bytes(&spec.dir)? as f64 / (READ_MIB << 20) as f64,
            "x",
        ),
        Figure::plain("manifest", manifest_bytes(&spec.dir)? as f64 / 1e6, "MB"),
    ];
    progress.say("opening with little memory");
    let (begin, cpu) = (Instant::now(), process::cpu_time()?);
    let options = Options::new().memory_bytes(READ_MIB << 20);
    let db = Db::open(&spec.dir, options).map_err(Error::engine)?;
    let opened = begin.elapsed().as_secs_f64();
    let cpu = (process::cpu_time()? - cpu).as_secs_f64();
    figures.push(Figure::plain("opening", opened, "s").at_most(OPEN_MAX_S, None));
    figures.push(Figure::plain("opening, CPU", cpu, "s"));
    progress.say("background work that the smaller memory demands");
    let io = process::io()?;
    let settling = settle_until(&mut || Ok(db.is_settled()), &|| db.sync().map_err(Error::engine))?;
    let written = (process::io()?.written_bytes - io.written_bytes) as f64 / 1e6;
    figures.push(Figure::plain("settling after it", settling.as_secs_f64(), "s"));
    figures.push(Figure::plain("settling after it, written", written, "MB"));
    let tree = db.open_tree(TABLE_TREES[PRIMARY].name).map_err(Error::engine)?;
    progress.say("reading: points by primary key");
    points(spec, &tree, rows, &mut figures)?;
    drop(tree);
    db.close().map_err(Error::engine)?;
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        settings: format!("{}; {READ_MIB} MiB for the reads", describe(&spec.engine_options())),
        rows: Some(rows),
        figures,
        ..Measurement::default()
    })
}

/// Writes the table, waits until the engine is settled, and closes it. Returns the number of rows.
fn load(spec: &Spec, progress: &Progress) -> Result<u64> {
    let options = spec.engine_options();
    let engine: Box<dyn Engine> = (FRONDB.open)(&spec.dir, &options)?;
    let rows = silent_load(engine.as_ref(), spec, spec.rows, progress, &mut |batch, id| {
        TableRow::new(spec.seed, id, 0).insert(batch);
    })?;
    engine.close()?;
    match rows {
        0 => Err(Error::Usage("the time limit ended the load before its first batch".to_owned())),
        rows => Ok(rows),
    }
}

/// Returns the bytes of all manifest files in a database's directory.
fn manifest_bytes(dir: &Path) -> Result<u64> {
    let doing = || format!("measure {}", dir.display());
    let mut total = 0;
    for entry in fs::read_dir(dir).map_err(Error::io(doing()))? {
        let entry = entry.map_err(Error::io(doing()))?;
        if entry.file_name().as_encoded_bytes().starts_with(b"MANIFEST") {
            total += entry.metadata().map_err(Error::io(doing()))?.len();
        }
    }
    Ok(total)
}

/// Measures point reads of random rows by one thread, after a warm-up.
fn points(spec: &Spec, tree: &Tree, rows: u64, figures: &mut Vec<Figure>) -> Result<()> {
    let device = Device::under(&spec.dir);
    let requests = || device.as_ref().and_then(Device::counters).map(|counters| counters.read_ops);
    let mut prng = Prng::new(spec.seed ^ 0x5EED_0F4E_AD5A_0300);
    let mut point = || {
        let key = probes::primary(&mut prng, rows);
        match tree.get(&key).map_err(Error::engine)? {
            Some(_) => Ok(()),
            None => Err(Error::Wrong("a row that was written is not found".to_owned())),
        }
    };
    timed(spec.reads.warmup, &mut point)?;
    let (cpu, io, before) = (process::cpu_time()?, process::io()?, requests());
    let timed = timed(spec.reads.points, &mut point)?;
    let each = |total: f64| total / timed.latency.count().max(1) as f64;
    let cpu = each((process::cpu_time()? - cpu).as_secs_f64() * 1e6);
    let after = process::io()?;
    let kib = each((after.read_bytes - io.read_bytes) as f64 / 1024.0);
    let written = (after.written_bytes - io.written_bytes) as f64 / 1e6;
    figures.push(Figure::plain("points", timed.per_s, "1/s"));
    figures.push(Figure::plain("points, CPU", cpu, "us"));
    figures.push(Figure::plain("points, read", kib, "KiB").at_most(16.0, Some(8.0)));
    // If this figure is not zero, background work ran, and its reads are in the figures of the
    // points.
    figures.push(Figure::plain("written during the points", written, "MB"));
    if let Some((before, after)) = before.zip(requests()) {
        let requests = Figure::plain("points, device reads", each((after - before) as f64), "");
        figures.push(requests.at_most(1.2, None));
    }
    Ok(())
}
