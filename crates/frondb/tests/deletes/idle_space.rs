//! Deletes free their space without any command, even if nothing more is written. The deletes are
//! in a memtable that is far from full, and an idle engine flushes it.

use std::os::unix::fs::MetadataExt;

use frondb::{Batch, Codec, Db, Durability, Options, Tree, TreeOptions};
use frondb_testkit::TempDir;

/// Number of rows. Deletes of a third of the rows are too few for a long tombstone run (rule 15),
/// which would be flushed immediately.
const ROWS: u64 = 50_000;

fn loaded(dir: &TempDir) -> (Db, Tree) {
    let db = Db::open(dir.path(), Options::new().memory_bytes(64 << 20).background_threads(0));
    let db = db.unwrap();
    let tree = db.create_tree("t", TreeOptions::new().codec(Codec::None)).unwrap();
    let mut batch = Batch::new();
    for row in 0..ROWS {
        batch.put(&tree, &row.to_be_bytes(), &[7; 200]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    (db, tree)
}

/// Lets the engine become idle. Returns the bytes in use before and after.
fn fall_idle(db: &Db) -> (u64, u64) {
    let before = db.stats().data_used_bytes;
    while db.run_one(true) {}
    (before, db.stats().data_used_bytes)
}

/// Bytes that the data files take in the file system.
fn on_disk(dir: &TempDir) -> u64 {
    std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|name| name == "fdb"))
        .map(|entry| entry.metadata().unwrap().blocks() * 512)
        .sum()
}

#[test]
fn a_range_delete_gives_its_space_back() {
    let dir = TempDir::new("idle-range");
    let (db, tree) = loaded(&dir);
    tree.delete_range(b"", None).unwrap();
    let (before, after) = fall_idle(&db);
    assert!(before > ROWS * 200, "{before}");
    assert!(after < before / 10, "{before} bytes, then {after}");
}

/// Free space beyond the reserve for a full disk goes back to the file system.
#[test]
fn closed_files_take_the_data_and_the_reserve() {
    const RESERVE_BYTES: u64 = 24 << 20;
    let dir = TempDir::new("idle-allocated");
    let (db, tree) = loaded(&dir);
    for from in (ROWS..ROWS * 5).step_by(10_000) {
        let mut batch = Batch::new();
        for row in from..from + 10_000 {
            batch.put(&tree, &row.to_be_bytes(), &[7; 200]);
        }
        db.write(&batch, Durability::NoSync).unwrap();
        db.flush().unwrap();
    }
    fall_idle(&db);
    let (full, full_on_disk) = (db.stats(), on_disk(&dir));
    assert!(full_on_disk > ROWS * 5 * 200, "{full_on_disk}");
    tree.delete_range(&100u64.to_be_bytes(), Some(&(ROWS * 4).to_be_bytes())).unwrap();
    fall_idle(&db);
    let freed = db.stats();
    assert!(
        full_on_disk.abs_diff(full.data_allocated_bytes) < 1 << 20,
        "{full_on_disk} bytes, {full}"
    );
    assert!(freed.data_used_bytes < full.data_used_bytes / 4, "{freed}");
    // A close returns space as an idle worker does; this database has no workers.
    db.close().unwrap();
    let left = on_disk(&dir);
    assert!(left <= freed.data_used_bytes + RESERVE_BYTES + (1 << 20), "{left} bytes, {freed}");
}

#[test]
fn deletes_of_a_good_part_give_their_space_back() {
    let dir = TempDir::new("idle-rows");
    let (db, tree) = loaded(&dir);
    let mut batch = Batch::new();
    for row in 0..ROWS * 3 / 10 {
        batch.delete(&tree, &(row * 3).to_be_bytes());
    }
    db.write(&batch, Durability::NoSync).unwrap();
    let (before, after) = fall_idle(&db);
    assert!(after < before * 8 / 10, "{before} bytes, then {after}");
}

/// The deletes truncated the prefixes of leaves; no leaf was rewritten.
#[test]
fn deletes_from_the_left_give_their_space_back() {
    let dir = TempDir::new("idle-left");
    let (db, tree) = loaded(&dir);
    for from in (0..ROWS / 2).step_by(1_000) {
        let mut batch = Batch::new();
        (from..from + 1_000).for_each(|row| batch.delete(&tree, &row.to_be_bytes()));
        db.write(&batch, Durability::NoSync).unwrap();
    }
    assert!(db.stats().prefix_truncations > 0);
    assert_eq!(db.stats().rewrites, 0);
    let (before, after) = fall_idle(&db);
    assert!(after < before * 6 / 10, "{before} bytes, then {after}");
}

const LARGE: usize = 200 << 10;

/// Creates a database with large values, whose messages are all in memory or all on disk.
fn with_large_values(dir: &TempDir, flushed: bool) -> (Db, Tree) {
    let options = Options::new().memory_bytes(64 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for row in 0..100u64 {
        tree.put(&row.to_be_bytes(), &[row as u8; LARGE]).unwrap();
    }
    if flushed {
        db.flush().unwrap();
        db.wait_settled().unwrap();
    }
    (db, tree)
}

#[test]
fn deleted_large_values_give_their_space_back() {
    for flushed in [false, true] {
        let dir = TempDir::new("idle-large");
        let (db, tree) = with_large_values(&dir, flushed);
        for row in 0..50u64 {
            tree.delete(&row.to_be_bytes()).unwrap();
        }
        let (before, after) = fall_idle(&db);
        assert!(before >= 100 * LARGE as u64, "{before}");
        assert!(after < before * 6 / 10, "flushed: {flushed}, {before} bytes, then {after}");
        tree.delete_range(b"", None).unwrap();
        let (_, after) = fall_idle(&db);
        assert!(after < LARGE as u64, "flushed: {flushed}, {after} bytes are left");
    }
}

#[test]
fn overwritten_large_values_give_their_space_back() {
    for flushed in [false, true] {
        let dir = TempDir::new("idle-overwritten");
        let (db, tree) = with_large_values(&dir, flushed);
        for row in 0..100u64 {
            tree.put(&row.to_be_bytes(), b"short").unwrap();
        }
        let (before, after) = fall_idle(&db);
        assert!(after < before / 10, "flushed: {flushed}, {before} bytes, then {after}");
        assert_eq!(tree.get(&7u64.to_be_bytes()).unwrap().unwrap(), b"short");
    }
}

/// The messages are so small that they would not fill the write buffer for a long time.
#[test]
fn overwritten_large_values_give_their_space_back_under_load() {
    const VALUE_BYTES: u64 = 1 << 20;
    let dir = TempDir::new("load-large");
    let options = Options::new().memory_bytes(64 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let value = vec![7; VALUE_BYTES as usize];
    let (mut most, mut batch) = (0, Batch::new());
    for n in 0..200u64 {
        batch.clear();
        batch.put(&tree, &(n % 4).to_be_bytes(), &value);
        db.write(&batch, Durability::NoSync).unwrap();
        most = most.max(db.stats().data_used_bytes);
    }
    assert!(most < 150 * VALUE_BYTES, "{most} bytes for 4 values");
}

/// A few deleted rows are no reason for a flush.
#[test]
fn a_few_deletes_are_not_flushed() {
    let dir = TempDir::new("idle-few");
    let (db, tree) = loaded(&dir);
    for row in 0..10u64 {
        tree.delete(&row.to_be_bytes()).unwrap();
    }
    let flushes = db.stats().flushes;
    fall_idle(&db);
    assert_eq!(db.stats().flushes, flushes);
}
