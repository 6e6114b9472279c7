//! The cases that have very many of something that is small: locks of a transaction, trees.
//!
//! ```text
//!  locks of trees   one transaction writes rows in random order to each of several trees
//!  idle trees       thousands of trees, each of which got one row and is not used any more
//! ```

use std::fs;

use frondb::{Db, Options, SyncMode, TransactionOptions, TreeOptions};
use frondb_core::prng::Prng;

use super::super::Spec;
use super::shared::{MIB, RATIO_MAX, account};
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement};

#[derive(Clone, Copy)]
enum Many {
    /// Locks in so many trees.
    Locks(u64),
    Trees,
}

struct Case {
    name: &'static str,
    memory_mib: u64,
    many: Many,
}

const CASES: [Case; 3] = [
    Case { name: "locks of 2 trees, 64 MiB", memory_mib: 64, many: Many::Locks(2) },
    Case { name: "locks of 4 trees, 64 MiB", memory_mib: 64, many: Many::Locks(4) },
    Case { name: "10,000 idle trees, 16 MiB", memory_mib: 16, many: Many::Trees },
];

/// Trees for each row of the workload: 10,000 of 3 M.
const ROWS_OF_A_TREE: u64 = 300;

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Runs a case of this file; `None` if it is not one.
pub(super) fn run(spec: &Spec, progress: &Progress) -> Option<Result<Measurement>> {
    let case = CASES.iter().find(|case| case.name == spec.variant.name)?;
    Some(measure(spec, case, progress))
}

fn measure(spec: &Spec, case: &Case, progress: &Progress) -> Result<Measurement> {
    if let Some(parent) = spec.dir.parent() {
        fs::create_dir_all(parent).map_err(Error::io("create the directory"))?;
    }
    let empty = process::resident_bytes()?;
    let options = Options::new().create_new(true).memory_bytes(case.memory_mib << 20);
    let db = Db::open(&spec.dir, options.sync(SyncMode::Never)).map_err(Error::engine)?;
    let rows = match case.many {
        Many::Locks(trees) => lock(&db, trees, spec)?,
        Many::Trees => make_trees(&db, spec.rows / ROWS_OF_A_TREE)?,
    };
    progress.say("done");
    let stats = db.stats();
    let account = if spec.stats { account(&db) } else { String::new() };
    db.close().map_err(Error::engine)?;
    let peak = process::resident_peak_bytes()?;
    let above = peak.saturating_sub(empty);
    let figure = |what: &str, value: f64, unit: &str| {
        Figure::plain(format!("{}: {what}", case.name), value, unit)
    };
    let ratio = above as f64 / (case.memory_mib << 20) as f64;
    Ok(Measurement {
        engine: FRONDB.name.to_owned(),
        workload: spec.workload.name().to_owned(),
        variant: case.name.to_owned(),
        rows: Some(rows),
        rss_empty_bytes: Some(empty),
        rss_peak_bytes: Some(peak),
        stats: account,
        figures: vec![
            figure("peak / option", ratio, "x").at_most(RATIO_MAX, None),
            figure("peak above empty", above as f64 / MIB, "MiB"),
            figure("memory_used, peak", stats.memory_peak as f64 / MIB, "MiB"),
            figure("lock escalations", stats.lock_escalations as f64, ""),
        ],
        ..Measurement::default()
    })
}

/// Writes a third of the workload's rows to each tree in one transaction, which is rolled back.
fn lock(db: &Db, trees: u64, spec: &Spec) -> Result<u64> {
    let make = |n: u64| db.create_tree(&format!("t{n}"), TreeOptions::new());
    let trees = (0..trees).map(make).collect::<frondb::Result<Vec<_>>>().map_err(Error::engine)?;
    let txn = db.begin(TransactionOptions::new()).map_err(Error::engine)?;
    let (mut prng, rows) = (Prng::new(spec.seed), spec.rows / 3);
    for _ in 0..rows {
        for tree in &trees {
            let key = prng.next_u64().to_be_bytes();
            txn.put(tree, &key, b"12345678").map_err(Error::engine)?;
        }
    }
    txn.rollback().map_err(Error::engine)?;
    Ok(rows * trees.len() as u64)
}

fn make_trees(db: &Db, trees: u64) -> Result<u64> {
    for n in 0..trees {
        let tree = db.create_tree(&format!("t{n:07}"), TreeOptions::new());
        let tree = tree.map_err(Error::engine)?;
        tree.put(&n.to_be_bytes(), &[0; 40]).map_err(Error::engine)?;
    }
    Ok(trees)
}
