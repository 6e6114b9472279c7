//! Scans of rows in a memtable pay for the memtable's flush, so that a table that is read and
//! hardly written is soon read from blocks.

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

const ROWS: u64 = 2_000;
/// More scans of all rows than are needed to pay for a flush.
const SCANS_MAX: u64 = 200;
/// Fewer scans than are needed to pay for a flush.
const SCANS_MIN: u64 = 100;

fn open() -> (Db, Tree) {
    let options = Options::new().memory_bytes(32 << 20).background_threads(0);
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options).still().open().unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    put(&db, &tree, 1, 0);
    (db, tree)
}

/// Writes each row whose number is a multiple of `part`.
fn put(db: &Db, tree: &Tree, part: u64, round: u8) {
    let mut batch = Batch::new();
    for row in (0..ROWS).step_by(part as usize) {
        batch.put(tree, &row.to_be_bytes(), &[round; 100]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// Reads all rows, and then does the background work that is due.
fn scan(db: &Db, tree: &Tree, round: impl Fn(u64) -> u8) {
    let mut cursor = tree.cursor().unwrap();
    for row in 0..ROWS {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), row.to_be_bytes());
        assert_eq!(cursor.value().unwrap(), [round(row); 100]);
    }
    assert!(!cursor.next().unwrap());
    drop(cursor);
    while db.run_one(false) {}
}

fn memtable_entries(tree: &Tree) -> u64 {
    tree.stats().unwrap().memtable_entries
}

#[test]
fn scans_pay_for_a_flush_of_what_they_read() {
    let (db, tree) = open();
    for _ in 0..SCANS_MIN {
        scan(&db, &tree, |_| 0);
    }
    assert_eq!(memtable_entries(&tree), ROWS, "it is not paid yet");
    for _ in SCANS_MIN..SCANS_MAX {
        scan(&db, &tree, |_| 0);
    }
    assert_eq!(memtable_entries(&tree), 0);
    assert_eq!(db.stats().flushes, 1);
    // The memtable is empty now, so more scans cause no more work.
    for _ in 0..SCANS_MAX {
        scan(&db, &tree, |_| 0);
    }
    assert_eq!(db.stats().flushes, 1);
}

#[test]
fn scans_of_updated_rows_pay_for_those_alone() {
    let (db, tree) = open();
    db.flush().unwrap();
    let flushes = db.stats().flushes;
    put(&db, &tree, 4, 1);
    let round = |row: u64| u8::from(row.is_multiple_of(4));
    for _ in 0..SCANS_MAX {
        scan(&db, &tree, round);
    }
    assert_eq!(memtable_entries(&tree), ROWS / 4, "a quarter of the rows pays a quarter");
    for _ in 0..4 * SCANS_MAX {
        scan(&db, &tree, round);
    }
    assert_eq!(memtable_entries(&tree), 0);
    assert_eq!(db.stats().flushes, flushes + 1);
}

/// If the cache is full, reading from a memtable saves I/O, so scans pay for no flush.
#[test]
fn scans_beyond_memory_pay_for_nothing() {
    let options = Options::new().memory_bytes(16 << 20).background_threads(0);
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options).still().open().unwrap();
    let (tree, large) = (
        db.create_tree("t", TreeOptions::new()).unwrap(),
        db.create_tree("large", TreeOptions::new()).unwrap(),
    );
    let (mut batch, mut prng) = (Batch::new(), Prng::new(1));
    for row in 0..200_000u64 {
        // The values do not compress; otherwise the blocks would fit into the cache.
        let value: Vec<u8> = (0..13).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
        batch.put(&large, &row.to_be_bytes(), &value);
        if row % 1000 == 999 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    while db.run_one(false) {}
    let mut cursor = large.cursor().unwrap();
    while cursor.next().unwrap() {}
    drop(cursor);
    put(&db, &tree, 1, 0);
    for _ in 0..SCANS_MAX {
        scan(&db, &tree, |_| 0);
    }
    assert_eq!(memtable_entries(&tree), ROWS);
}

#[test]
fn lookups_and_one_long_scan_pay_for_nothing() {
    let (db, tree) = open();
    for _ in 0..SCANS_MIN {
        for row in 0..ROWS {
            assert!(tree.get(&row.to_be_bytes()).unwrap().is_some());
        }
    }
    scan(&db, &tree, |_| 0);
    assert_eq!(memtable_entries(&tree), ROWS);
}
