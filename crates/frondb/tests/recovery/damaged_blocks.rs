//! Data that cannot be decoded or read from the device fails the calls that need it, and nothing
//! else. Background work leaves such data unchanged, and reports the damage once after each open.
//! Other leaves and other trees continue.

use std::path::Path;

use frondb::testing::TestDb;
use frondb::{
    Batch, Codec, Db, Durability, ErrorKind, Event, OptimizeOptions, Options, Tree, TreeOptions,
};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_device::PosixDevice;
use frondb_testkit::Faults;
use frondb_testkit::TempDir;
use frondb_testkit::functions::Append;

use crate::support;

const ROWS: u64 = 5_000;
/// The row whose value is damaged, and the number of rows that may share a block or a page with it.
const DAMAGED: u64 = ROWS / 2 + 45;
const BLOCK_ROWS: u64 = 800;
const FILE: &str = "data-0000.fdb";

fn key(n: u64) -> Vec<u8> {
    format!("{n:08}").into_bytes()
}

/// Returns the value of row `n` in round `round`, which no other row or round has.
fn value(tree: &str, n: u64, round: u64) -> Vec<u8> {
    format!("{tree} {n:08} {round:04}, ").repeat(5).into_bytes()
}

fn small_leaves() -> TreeOptions {
    TreeOptions::new().codec(Codec::None).update_fn("append", 1).shape(|shape| {
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

/// Counts the jobs that fail. Each must fail because of damage of this kind in tree `bad`.
fn count_failures(db: &Db, kind: ErrorKind) -> Arc<AtomicU64> {
    let failures = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&failures);
    db.set_event_listener(Some(Arc::new(move |event: &Event<'_>| {
        if let Event::JobFailed(error) = event {
            assert_eq!(error.kind(), kind);
            assert!(error.place().is_some(), "{error}");
            assert!(error.message().contains("tree \"bad\", keys"), "{error}");
            counter.fetch_add(1, Ordering::Relaxed);
        }
    })));
    failures
}

fn options(threads: usize) -> Options {
    Options::new().memory_bytes(32 << 20).background_threads(threads).update_fn(Append)
}

/// Opens the database; returns it with a counter of failed jobs.
fn open(dir: &TempDir, threads: usize) -> (Db, Arc<AtomicU64>) {
    let db = Db::open(dir.path(), options(threads)).unwrap();
    let failures = count_failures(&db, ErrorKind::Corruption);
    (db, failures)
}

/// Creates the trees `bad` and `good` with the same rows. Row [`DAMAGED`] of `bad` has the value
/// `of_row`. Returns all offsets of this value in the data file, including old copies in free
/// space.
fn loaded(name: &str, of_row: &[u8]) -> (TempDir, Vec<usize>) {
    let dir = TempDir::new(name);
    let (db, _) = open(&dir, 0);
    for name in ["bad", "good"] {
        let tree = db.create_tree(name, small_leaves()).unwrap();
        put(&db, &tree, 0..ROWS, 0);
        if name == "bad" {
            tree.put(key(DAMAGED), of_row).unwrap();
        }
        settle(&db);
        tree.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
    }
    db.close().unwrap();
    let file = std::fs::read(dir.path().join(FILE)).unwrap();
    let places: Vec<usize> = (0..file.len().saturating_sub(of_row.len()))
        .filter(|&at| file[at] == of_row[0] && file[at..].starts_with(of_row))
        .collect();
    assert!(!places.is_empty());
    (dir, places)
}

/// Flips a bit at each of these offsets of the file.
fn damage(dir: &TempDir, places: &[usize]) {
    let path = dir.path().join(FILE);
    let mut bytes = std::fs::read(&path).unwrap();
    places.iter().for_each(|at| bytes[at + 3] ^= 1);
    std::fs::write(&path, bytes).unwrap();
}

/// Creates two trees with the same rows, and flips a bit in row [`DAMAGED`] of `bad` in the data
/// file.
fn damaged(name: &str) -> TempDir {
    let (dir, places) = loaded(name, &value("bad", DAMAGED, 0));
    damage(&dir, &places);
    dir
}

/// Writes to all leaves of both trees, but not to the damaged row. Flushes and merges after each
/// round.
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
    assert!(bad.get(&key(DAMAGED)).unwrap_err().place().is_some());
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
        // Merges beside the damage keep the number of runs bounded.
        let runs = |name: &str| db.open_tree(name).unwrap().stats().unwrap().views;
        let (bad, good) = (runs("bad"), runs("good"));
        assert!(bad <= good + 30, "{bad} runs beside {good}");
        db.close().unwrap();

        // After a restart the same holds.
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

        // Dropping a tree removes its damage too.
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
    assert_eq!(db.stats().damaged_runs, 0);
    db.close().unwrap();
}

/// Writes to all leaves for a while. The damage is reported once, and everything else continues.
fn check_left_alone(db: &Db, failures: &AtomicU64) {
    load(db, 1..40);
    assert_eq!(failures.load(Ordering::Relaxed), 1, "the damage is told of once");
    let stats = db.stats();
    assert_eq!((stats.job_failures, stats.poisoned), (1, 0));
    assert!(stats.damaged_runs > 0);
    check_rows(db, 40);
}

#[test]
fn background_work_leaves_an_unreadable_sector_alone_until_an_optimize() {
    for threads in [0, 2] {
        let (dir, places) = loaded("unreadable", &value("bad", DAMAGED, 0));
        let sectors = places.iter().map(|at| format!("unreadable {FILE} offset={at}\n"));
        let script = sectors.collect::<String>().parse().unwrap();
        let device =
            Arc::new(Faults::over(Arc::new(PosixDevice::open(dir.path()).unwrap()), &script));
        let db = TestDb::on(device.clone()).options(options(threads)).open().unwrap();
        let failures = count_failures(&db, ErrorKind::Io);
        check_left_alone(&db, &failures);

        let bad = db.open_tree("bad").unwrap();
        let report = bad.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
        assert_eq!(report.failed, 1, "{report:?}");
        let text = report.failures[0].to_string();
        assert!(text.contains("keys from \"0000") && text.contains(FILE), "{text}");

        // The device can read the data again.
        device.set_script(&"".parse().unwrap());
        let report = bad.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
        assert_eq!(report.failed, 0, "{report:?}");
        assert_eq!(db.stats().damaged_runs, 0);
        assert_eq!(bad.get(&key(DAMAGED)).unwrap(), Some(value("bad", DAMAGED, 0)));
        assert!(db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
        db.close().unwrap();
    }
}

/// Copies the files of a database in the state that a crash leaves.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), to).unwrap()),
            _ => {}
        }
    }
}

/// Recovery also flushes and merges. It leaves data that it cannot read as it is.
#[test]
fn recovery_leaves_what_it_cannot_read_alone() {
    for is_unreadable in [false, true] {
        let (dir, places) = loaded("unreadable-recovery", &value("bad", DAMAGED, 0));
        let crashed = TempDir::new("unreadable-crashed");
        let (db, _) = open(&dir, 0);
        for round in 1..6 {
            for tree in ["bad", "good"].map(|name| db.open_tree(name).unwrap()) {
                put(&db, &tree, (0..ROWS).filter(|n| *n != DAMAGED), round);
            }
        }
        copy(dir.path(), crashed.path());
        db.close().unwrap();
        let sectors = places.iter().map(|at| format!("unreadable {FILE} offset={at}\n"));
        let script = if is_unreadable { sectors.collect::<String>() } else { String::new() };
        if !is_unreadable {
            damage(&crashed, &places);
        }
        let device = PosixDevice::open(crashed.path()).unwrap();
        let device = Arc::new(Faults::over(Arc::new(device), &script.parse().unwrap()));
        let options = options(0).memory_bytes(4 << 20);
        let db = TestDb::on(device).options(options).open().unwrap();
        let stats = db.stats();
        assert_eq!((stats.damaged_runs, stats.poisoned), (1, 0), "unreadable: {is_unreadable}");
        let good = db.open_tree("good").unwrap();
        assert_eq!(support::rows(&good).len() as u64, ROWS);
        assert_eq!(good.get(key(7)).unwrap(), Some(value("good", 7, 5)));
        db.close().unwrap();
    }
}

/// Background work moves references to large values, and does not read the values.
#[test]
fn a_damaged_large_value_fails_the_reads_that_need_it() {
    let large: Vec<u8> = (0..50_000u32).flat_map(u32::to_be_bytes).collect();
    for threads in [0, 2] {
        let (dir, places) = loaded("damaged-large", &large);
        damage(&dir, &places);
        let (db, failures) = open(&dir, threads);
        let bad = db.open_tree("bad").unwrap();
        bad.update(key(DAMAGED), b"more").unwrap();
        load(&db, 1..40);
        let report = bad.optimize(OptimizeOptions::new(), &mut |_, _| true).unwrap();
        assert_eq!((report.failed, failures.load(Ordering::Relaxed)), (0, 0), "{report:?}");
        assert_eq!(db.stats().poisoned, 0);
        check_rows(&db, 40);
        db.close().unwrap();
    }
}
