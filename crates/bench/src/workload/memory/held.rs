//! The cases that load and read an open database. The cursors and snapshots that a case keeps must
//! not make the database use more memory than the option allows.
//!
//! ```text
//!  held cursors     opened and moved during the load, left alone until its end, then moved again
//!  held snapshots   taken during the load, kept until its end
//!  small options    load, points, scans
//!  filters          rows so small that filters and block indexes are larger than the cache may be,
//!                   read by many threads at the same time
//! ```
//!
//! All memory of the process counts: program text that is paged in, stacks, the heap of this
//! workload (one batch, and a key for each reader). Each thread that reads counts as a connection
//! and may use 32 KiB in addition to the memory option. Held cursors and snapshots get no
//! additional memory.

use std::fs;

use frondb::{Batch, Cursor, Db, Durability, Options, Snapshot, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::super::Spec;
use super::shared::{BATCH_ROWS, MIB, RATIO_MAX, account, key};
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement};

/// Bytes that a connection may use in addition: the used part of its stack, and its heap.
const CONNECTION_BYTES: u64 = 32 << 10;

/// The objects that a case keeps open while it loads.
#[derive(Clone, Copy)]
enum Held {
    Nothing,
    Cursors(u64),
    Snapshots(u64),
}

struct Case {
    name: &'static str,
    memory_mib: u64,
    /// Rows, in tenths of the workload's rows.
    tenths: u64,
    value_bytes: usize,
    held: Held,
    /// Threads that read points and scan after the load.
    readers: u64,
}

impl Case {
    /// Returns the memory without the allowance of the connections, as a multiple of the memory
    /// option. `bytes` is the memory above that of the empty process.
    fn ratio(&self, bytes: u64) -> f64 {
        let beside = self.readers * CONNECTION_BYTES;
        bytes.saturating_sub(beside) as f64 / (self.memory_mib << 20) as f64
    }
}

const fn case(name: &'static str, memory_mib: u64, tenths: u64, held: Held) -> Case {
    Case { name, memory_mib, tenths, value_bytes: 100, held, readers: 0 }
}

const CASES: [Case; 8] = [
    case("10 cursors, 64 MiB", 64, 10, Held::Cursors(10)),
    case("1,000 cursors, 64 MiB", 64, 16, Held::Cursors(1000)),
    case("1,000 cursors, 16 MiB", 16, 10, Held::Cursors(1000)),
    case("100 snapshots, 64 MiB", 64, 10, Held::Snapshots(100)),
    Case { readers: 4, ..case("load and reads, 16 MiB", 16, 10, Held::Nothing) },
    Case { readers: 4, ..case("load and reads, 32 MiB", 32, 10, Held::Nothing) },
    Case { value_bytes: 8, readers: 16, ..case("filters, 16 MiB", 16, 33, Held::Nothing) },
    Case { value_bytes: 8, readers: 64, ..case("filters, 32 MiB", 32, 33, Held::Nothing) },
];

/// Returns the names of the cases, in the order in which they run.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Point reads of each reader if there are four. The total is the same for other numbers of
/// readers.
const POINTS: u64 = 30_000;
/// Scans of each reader if there are four, as for [`POINTS`], and the entries of each scan.
const SCANS: (u64, u64) = (300, 1000);

pub(super) fn run(spec: &Spec, progress: &Progress) -> Result<Measurement> {
    let unknown =
        || Error::Usage(format!("the workload memory has no case {:?}", spec.variant.name));
    let case = CASES.iter().find(|case| case.name == spec.variant.name).ok_or_else(unknown)?;
    let doing = || format!("create {}", spec.dir.display());
    if let Some(parent) = spec.dir.parent() {
        fs::create_dir_all(parent).map_err(Error::io(doing()))?;
    }
    let rows = (spec.rows * case.tenths / 10).max(BATCH_ROWS);
    let empty = process::resident_bytes()?;
    let options = Options::new().create_new(true).memory_bytes(case.memory_mib << 20);
    let db = Db::open(&spec.dir, options).map_err(Error::engine)?;
    let tree = db.create_tree("t", TreeOptions::new()).map_err(Error::engine)?;
    let held = load(&db, &tree, case, rows, spec.seed, progress)?;
    let loaded = process::resident_bytes()?;
    move_on(held)?;
    read(&tree, case, rows, spec.seed, progress)?;
    let stats = db.stats();
    let account = if spec.stats { account(&db) } else { String::new() };
    db.close().map_err(Error::engine)?;
    let peak = process::resident_peak_bytes()?.saturating_sub(empty);
    let mib = |bytes: u64| bytes as f64 / MIB;
    let figure = |what: &str, value: f64, unit: &str| {
        Figure::plain(format!("{}: {what}", case.name), value, unit)
    };
    let figures = vec![
        figure("peak / option", case.ratio(peak), "x").at_most(RATIO_MAX, None),
        figure("connections, 32 KiB each", case.readers as f64, "threads"),
        figure("peak above empty", mib(peak), "MiB"),
        figure("after the load", mib(loaded.saturating_sub(empty)), "MiB"),
        figure("memory_used, peak", mib(stats.memory_peak), "MiB"),
    ];
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        variant: case.name.to_owned(),
        rows: Some(rows),
        rss_empty_bytes: Some(empty),
        rss_peak_bytes: Some(process::resident_peak_bytes()?),
        stats: account,
        figures,
        ..Measurement::default()
    })
}

/// The objects that the load has kept open.
#[derive(Default)]
struct Holding {
    cursors: Vec<Cursor>,
    snapshots: Vec<Snapshot>,
}

fn load(
    db: &Db,
    tree: &Tree,
    case: &Case,
    rows: u64,
    seed: u64,
    progress: &Progress,
) -> Result<Holding> {
    let mut prng = Prng::new(seed);
    let mut holding = Holding::default();
    let mut batch = Batch::new();
    let mut value = vec![0; case.value_bytes];
    let count = match case.held {
        Held::Nothing => 0,
        Held::Cursors(count) | Held::Snapshots(count) => count,
    };
    for row in 0..rows {
        prng.fill(&mut value);
        batch.put(tree, &key(row, seed), &value);
        if batch.len() as u64 == BATCH_ROWS {
            db.write(&batch, Durability::NoSync).map_err(Error::engine)?;
            batch.clear();
        }
        let due = (row + 1) * count / rows;
        match case.held {
            Held::Nothing => {}
            Held::Cursors(_) if due > holding.cursors.len() as u64 => {
                holding.cursors.push(opened(tree, prng.below(row + 1), seed)?);
            }
            Held::Snapshots(_) if due > holding.snapshots.len() as u64 => {
                holding.snapshots.push(db.snapshot().map_err(Error::engine)?);
            }
            _ => {}
        }
    }
    db.write(&batch, Durability::NoSync).map_err(Error::engine)?;
    progress.say("loaded");
    Ok(holding)
}

/// Opens a cursor at a row, moves it over 20 entries and reads their values.
fn opened(tree: &Tree, row: u64, seed: u64) -> Result<Cursor> {
    let mut cursor = tree.cursor().map_err(Error::engine)?;
    let mut found = cursor.seek(&key(row, seed)).map_err(Error::engine)?;
    for _ in 0..20 {
        if found {
            cursor.value().map_err(Error::engine)?;
            found = cursor.next().map_err(Error::engine)?;
        }
    }
    Ok(cursor)
}

/// Moves every cursor over 20 more entries.
fn move_on(mut holding: Holding) -> Result<()> {
    for cursor in &mut holding.cursors {
        for _ in 0..20 {
            if !cursor.next().map_err(Error::engine)? {
                break;
            }
        }
    }
    Ok(())
}

fn read(tree: &Tree, case: &Case, rows: u64, seed: u64, progress: &Progress) -> Result<()> {
    if case.readers == 0 {
        return Ok(());
    }
    let (missing, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for reader in 0..case.readers {
            let (missing, failed) = (&missing, &failed);
            scope.spawn(move || {
                let mut prng = Prng::new(seed + reader);
                let points = POINTS * 4 / case.readers;
                let result = read_points(tree, points, rows, seed, &mut prng, missing)
                    .and_then(|()| read_scans(tree, case, rows, seed, &mut prng));
                failed.fetch_or(result.is_err(), Ordering::Relaxed);
            });
        }
    });
    progress.say("read");
    if failed.load(Ordering::Relaxed) {
        return Err(Error::Wrong("a read failed".to_owned()));
    }
    match missing.load(Ordering::Relaxed) {
        0 => Ok(()),
        missing => Err(Error::Wrong(format!("{missing} rows were not found"))),
    }
}

fn read_points(
    tree: &Tree,
    points: u64,
    rows: u64,
    seed: u64,
    prng: &mut Prng,
    missing: &AtomicU64,
) -> Result<()> {
    for _ in 0..points {
        let found = tree.get(&key(prng.below(rows), seed)).map_err(Error::engine)?;
        missing.fetch_add(u64::from(found.is_none()), Ordering::Relaxed);
        // The lookup of a missing key uses the filter of every run on its path.
        tree.get(&key(rows + prng.below(rows), seed)).map_err(Error::engine)?;
    }
    Ok(())
}

fn read_scans(tree: &Tree, case: &Case, rows: u64, seed: u64, prng: &mut Prng) -> Result<()> {
    for _ in 0..SCANS.0 * 4 / case.readers {
        let mut cursor = tree.cursor().map_err(Error::engine)?;
        let mut found = cursor.seek(&key(prng.below(rows), seed)).map_err(Error::engine)?;
        for _ in 0..SCANS.1 {
            if !found {
                break;
            }
            found = cursor.next().map_err(Error::engine)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_allowed_its_memory_and_no_more() {
        let of = |readers| Case { readers, ..case("test", 16, 10, Held::Nothing) };
        assert_eq!(of(0).ratio(16 << 20), 1.0);
        assert_eq!(of(64).ratio(18 << 20), 1.0);
        assert_eq!(of(64).ratio(1 << 20), 0.0);
    }

    #[test]
    fn cases_have_no_less_memory_than_is_accepted() {
        for case in &CASES {
            assert!(case.memory_mib >= 16, "{}", case.name);
            assert!(case.name.ends_with(&format!(" {} MiB", case.memory_mib)), "{}", case.name);
        }
    }
}
