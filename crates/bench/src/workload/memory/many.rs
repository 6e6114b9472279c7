//! The cases with very many small objects: row locks of transactions, and trees.
//!
//! ```text
//!  locks of trees   transactions take locks in random order in each of several trees, in turn
//!    writes         on the rows that they write
//!    reads          on rows that they read for sharing
//!    gaps           on gaps, because the rows that they read for sharing do not exist
//!  idle trees       thousands of trees, each of which got one row and is not used any more
//! ```

use std::fs;

use frondb::{
    Batch, Db, Durability, Options, SyncMode, TransactionOptions, Tree, TreeOptions, Wait,
};

use super::super::Spec;
use super::shared::{self, BATCH_ROWS, MIB, RATIO_MAX, account};
use crate::driver::Progress;
use crate::engines::frondb::FRONDB;
use crate::error::{Error, Result};
use crate::measure::process;
use crate::report::{Figure, Measurement};

#[derive(Clone, Copy)]
enum Many {
    /// `transactions` transactions take locks in `trees` trees.
    Locks {
        trees: u64,
        transactions: u64,
        by: By,
    },
    Trees,
}

/// The operation that takes the locks.
#[derive(Clone, Copy, PartialEq)]
enum By {
    Writes,
    Reads,
    Gaps,
}

/// Creates a case of locks with a memory option of 64 MiB.
const fn locks(name: &'static str, trees: u64, transactions: u64, by: By) -> Case {
    Case { name, memory_mib: 64, many: Many::Locks { trees, transactions, by } }
}

struct Case {
    name: &'static str,
    memory_mib: u64,
    many: Many,
}

const CASES: [Case; 6] = [
    locks("locks of 2 trees, 64 MiB", 2, 1, By::Writes),
    locks("locks of 4 trees, 64 MiB", 4, 1, By::Writes),
    locks("locks of 8 transactions in 2 trees, 64 MiB", 2, 8, By::Writes),
    locks("locks of reads in 2 trees, 64 MiB", 2, 1, By::Reads),
    locks("locks of gaps in 2 trees, 64 MiB", 2, 1, By::Gaps),
    Case { name: "10,000 idle trees, 16 MiB", memory_mib: 16, many: Many::Trees },
];

/// Rows of the workload for each tree: 3 M rows give 10,000 trees.
const ROWS_OF_A_TREE: u64 = 300;

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|case| case.name)
}

/// Runs the case of the variant; `None` if this file has no such case.
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
        Many::Locks { trees, transactions, by } => lock(&db, trees, transactions, by, spec)?,
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

/// Takes locks on a third of the workload's rows in each tree, in transactions that are rolled
/// back. Returns the number of locks. Each transaction has its own range of keys, so that none
/// waits for another.
fn lock(db: &Db, trees: u64, transactions: u64, by: By, spec: &Spec) -> Result<u64> {
    let make = |n: u64| db.create_tree(&format!("t{n}"), TreeOptions::new());
    let trees = (0..trees).map(make).collect::<frondb::Result<Vec<_>>>().map_err(Error::engine)?;
    let rows = spec.rows / 3;
    if by != By::Writes {
        fill(db, &trees, rows, spec.seed)?;
    }
    let begin = |_| db.begin(TransactionOptions::new()).map_err(Error::engine);
    let txns = (0..transactions).map(begin).collect::<Result<Vec<_>>>()?;
    for row in 0..rows {
        let txn = &txns[(row % transactions) as usize];
        let mut key = [(row % transactions) as u8; 18];
        key[1..17].copy_from_slice(&shared::key(row, spec.seed));
        // Filled keys end with 0, so a key that ends with 1 lies in the gap after one of them.
        key[17] = u8::from(by == By::Gaps);
        for tree in &trees {
            let done = match by {
                By::Writes => txn.put(tree, key, b"12345678"),
                By::Reads | By::Gaps => txn.get_for_share(tree, key, Wait::Timeout).map(drop),
            };
            done.map_err(Error::engine)?;
        }
    }
    txns.iter().try_for_each(frondb::Transaction::rollback).map_err(Error::engine)?;
    Ok(rows * trees.len() as u64)
}

/// Writes the rows on which, or beside which, one transaction takes its locks.
fn fill(db: &Db, trees: &[Tree], rows: u64, seed: u64) -> Result<()> {
    for first in (0..rows).step_by(BATCH_ROWS as usize) {
        let mut batch = Batch::new();
        for row in first..rows.min(first + BATCH_ROWS) {
            let mut key = [0; 18];
            key[1..17].copy_from_slice(&shared::key(row, seed));
            trees.iter().for_each(|tree| batch.put(tree, key, b"12345678"));
        }
        db.write(&batch, Durability::NoSync).map_err(Error::engine)?;
    }
    Ok(())
}

fn make_trees(db: &Db, trees: u64) -> Result<u64> {
    for n in 0..trees {
        let tree = db.create_tree(&format!("t{n:07}"), TreeOptions::new());
        let tree = tree.map_err(Error::engine)?;
        tree.put(&n.to_be_bytes(), &[0; 40]).map_err(Error::engine)?;
    }
    Ok(trees)
}
