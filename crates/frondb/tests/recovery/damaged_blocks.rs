//! A block that cannot be decoded fails the statements that need it and nothing else: background work
//! leaves it alone and says so once, also after a restart; other leaves and other trees go on.

use frondb::{
    Batch, Codec, Db, Durability, ErrorKind, Event, OptimizeOptions, Options, Tree, TreeOptions,
};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_testkit::TempDir;

use crate::support;

const ROWS: u64 = 5_000;
/// The row whose value is damaged, and the rows that may share its block.
const DAMAGED: u64 = ROWS / 2 + 45;
const BLOCK_ROWS: u64 = 400;

fn key(n: u64) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// A value that no other row of the tree has had.
fn value(tree: &str, n: u64, round: u64) -> Vec<u8> {
    format!("{tree} {n:08} {round:04}, ").repeat(5).into_bytes()
}

fn small_leaves() -> TreeOptions {
    TreeOptions::new().codec(Codec::None).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (64 << 10, 64 << 10);
        shape.slice_bytes_min = 4 << 10;
    })
}

fn put(db: &Db, tree: &Tree, rows: impl Iterator<Item = u64>, round: u64) {
    let (mut batch, name) = (Batch::new(), tree.name());
    rows.for_each(|n| batch.put(tree, &key(n), &value(&name, n, round)));
    db.write(&batch, Durability::Sync).unwrap();
}

fn settle(db: &Db) {
    db.flush().unwrap();
    db.wait_settled().unwrap();
}

/// Opens the database; the counter gets the jobs that fail.
fn open(dir: &TempDir, threads: usize) -> (Db, Arc<AtomicU64>) {
    let options = Options::new().memory_bytes(32 << 20).background_threads(threads);
    let db = Db::open(dir.path(), options).unwrap();
    let failures = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&failures);
    db.set_event_listener(Some(Arc::new(move |event: &Event<'_>| {
        if let Event::JobFailed(error) = event {
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.message().contains("tree \"bad\", keys"), "{error}");
            counter.fetch_add(1, Ordering::Relaxed);
        }
    })));
    (db, failures)
}

/// Two trees of the same rows; a bit of one block of the first is flipped in its file.
fn damaged(name: &str) -> TempDir {
    let dir = TempDir::new(name);
    let (db, _) = open(&dir, 0);
    for name in ["bad", "good"] {
        let tree = db.create_tree(name, small_leaves()).unwrap();
        put(&db, &tree, 0..ROWS, 0);
        settle(&db);
        tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    }
    db.close().unwrap();
    let path = dir.path().join("data-0000.fdb");
    let mut bytes = std::fs::read(&path).unwrap();
    let value = value("bad", DAMAGED, 0);
    let places: Vec<usize> = (0..bytes.len().saturating_sub(value.len()))
        .filter(|&at| bytes[at] == value[0] && bytes[at..].starts_with(&value))
        .collect();
    // Also where an earlier copy lies in free space.
    assert!(!places.is_empty());
    places.iter().for_each(|at| bytes[at + 3] ^= 1);
    std::fs::write(&path, bytes).unwrap();
    dir
}

/// Writes to all leaves of both trees, but not to the damaged row, with flushes and merges after each round.
fn load(db: &Db, rounds: std::ops::Range<u64>) {
    let trees = ["bad", "good"].map(|name| db.open_tree(name).unwrap());
    for round in rounds {
        for tree in &trees {
            put(db, tree, (round % 40..ROWS).step_by(50), round);
        }
        settle(db);
    }
}

fn check_rows(db: &Db, rounds: u64) {
    let [bad, good] = ["bad", "good"].map(|name| db.open_tree(name).unwrap());
    let error = bad.get(&key(DAMAGED)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    for n in 0..ROWS {
        let last = (1..rounds).rev().find(|round| n % 50 == round % 40).unwrap_or(0);
        assert_eq!(good.get(&key(n)).unwrap(), Some(value("good", n, last)));
        if n.abs_diff(DAMAGED) > BLOCK_ROWS {
            assert_eq!(bad.get(&key(n)).unwrap(), Some(value("bad", n, last)), "row {n}");
        }
    }
}

#[test]
fn background_work_leaves_a_damaged_block_alone_and_goes_on() {
    for threads in [0, 2] {
        let dir = damaged("damaged-block");
        let (db, failures) = open(&dir, threads);
        load(&db, 1..40);
        assert_eq!(failures.load(Ordering::Relaxed), 1, "the damage is told of once");
        let stats = db.stats();
        assert_eq!((stats.damaged_runs, stats.job_failures, stats.poisoned), (1, 1, 0));
        check_rows(&db, 40);
        // Merges beside the damage keep the number of runs in bounds.
        let runs = |name: &str| db.open_tree(name).unwrap().stats().unwrap().views;
        let (bad, good) = (runs("bad"), runs("good"));
        assert!(bad <= good + 30, "{bad} runs beside {good}");
        db.close().unwrap();

        // After a restart all of it holds again.
        let (db, failures) = open(&dir, threads);
        load(&db, 40..60);
        check_rows(&db, 60);
        assert_eq!(failures.load(Ordering::Relaxed), 1);
        let bad = db.open_tree("bad").unwrap();
        for _ in 0..2 {
            let report = bad.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
            assert_eq!((report.failed, report.failures.len()), (1, 1), "{report:?}");
            let failed = &report.failures[0];
            assert!(failed.lo <= key(DAMAGED));
            assert!(failed.hi.as_ref().is_none_or(|hi| *hi > key(DAMAGED)));
            let text = failed.to_string();
            assert!(text.contains("keys from \"0000") && text.contains("data-0000.fdb"), "{text}");
        }
        assert_eq!(failures.load(Ordering::Relaxed), 1);

        // A dropped tree takes its damage with it.
        db.drop_tree("bad").unwrap();
        settle(&db);
        let good = db.open_tree("good").unwrap();
        put(&db, &good, 0..ROWS, 60);
        settle(&db);
        assert!(db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
        assert_eq!(support::rows(&good).len() as u64, ROWS);
        db.close().unwrap();
    }
}

#[test]
fn a_range_delete_over_the_damage_removes_it() {
    let dir = damaged("damaged-deleted");
    let (db, _) = open(&dir, 0);
    load(&db, 1..3);
    let bad = db.open_tree("bad").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(&bad, b"", None);
    db.write(&batch, Durability::Sync).unwrap();
    settle(&db);
    assert!(support::rows(&bad).is_empty());
    put(&db, &bad, 0..ROWS, 3);
    settle(&db);
    assert!(db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
    let report = bad.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    assert_eq!(report.failed, 0, "{report:?}");
    db.close().unwrap();
}
