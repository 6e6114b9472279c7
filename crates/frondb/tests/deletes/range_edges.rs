//! A range delete that was just committed is in a memtable, while the rows that it hides are in
//! runs. A reader skips these rows in one step and not one by one. So after the lower half of a
//! tree was deleted, the first key is found as fast as before.

use frondb::{Batch, Codec, Cursor, Db, Durability, Options, TreeOptions};
use frondb_testkit::TempDir;

const ROWS: u64 = 60_000;
/// Most entries that a reader may step over: those in partly hidden blocks, and rows of runs that
/// also hold newer entries.
const STEPS_MAX: u64 = 64;

fn loaded(dir: &TempDir) -> (Db, frondb::Tree) {
    let options = Options::new().memory_bytes(64 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    // Small leaves, so that some are partly hidden and some completely.
    let shape = TreeOptions::new().codec(Codec::None).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (256 << 10, 256 << 10);
        shape.slice_bytes_min = 16 << 10;
    });
    let tree = db.create_tree("t", shape).unwrap();
    let mut batch = Batch::new();
    for row in 0..ROWS {
        let scattered = row * 7919 % ROWS;
        batch.put(&tree, &scattered.to_be_bytes(), &[7; 40]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    db.wait_settled().unwrap();
    (db, tree)
}

fn at(cursor: &Cursor) -> Option<u64> {
    cursor.is_valid().then(|| u64::from_be_bytes(cursor.key().try_into().unwrap()))
}

/// Rule 15: rows that a range delete hides in its own memtable form a tombstone run, as single
/// deletes do.
#[test]
fn a_memtable_that_hides_many_of_its_own_rows_is_flushed() {
    let dir = TempDir::new("range-own");
    let options = Options::new().memory_bytes(64 << 20).background_threads(0);
    let db = Db::open(dir.path(), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    for row in 0..ROWS {
        batch.put(&tree, &row.to_be_bytes(), &[7; 40]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    tree.delete_range(b"", Some(&1000u64.to_be_bytes())).unwrap();
    assert_eq!(db.stats().flushes, 0, "a thousand hidden rows are no long tombstone run");
    tree.delete_range(b"", Some(&(ROWS - 1).to_be_bytes())).unwrap();
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(at(&cursor), Some(ROWS - 1));
    drop(cursor);
    let stats = db.stats();
    assert_eq!((stats.flushes, stats.tombstones_skipped), (1, 0));
}

#[test]
fn rows_hidden_by_an_unflushed_range_delete_are_skipped() {
    let dir = TempDir::new("range-edges");
    let (db, tree) = loaded(&dir);
    assert!(tree.stats().unwrap().leaves > 4);
    let before = db.snapshot().unwrap();
    let (from, to) = (ROWS / 10, ROWS * 6 / 10);
    tree.delete_range(b"", Some(&from.to_be_bytes())).unwrap();
    tree.delete_range(&from.to_be_bytes(), Some(&to.to_be_bytes())).unwrap();
    // Put the key at which the range deletes meet; the put is newer than both.
    tree.put(&from.to_be_bytes(), b"new").unwrap();
    let flushes = db.stats().flushes;

    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(at(&cursor), Some(from));
    assert!(cursor.next().unwrap());
    assert_eq!(at(&cursor), Some(to));
    assert!(cursor.prev().unwrap());
    assert_eq!(at(&cursor), Some(from));
    assert!(!cursor.prev().unwrap());
    assert!(cursor.seek(&(from + 1).to_be_bytes()).unwrap());
    assert_eq!(at(&cursor), Some(to));
    assert!(cursor.seek_for_prev(&(to - 1).to_be_bytes()).unwrap());
    assert_eq!(at(&cursor), Some(from));
    drop(cursor);
    let stats = db.stats();
    assert_eq!(stats.flushes, flushes, "the deletes are in memory, or the test tests nothing");
    assert!(stats.tombstones_skipped <= STEPS_MAX, "{}", stats.tombstones_skipped);

    // A reader at an older snapshot sees all rows.
    let mut old = tree.cursor_with(frondb::CursorOptions::new().at(&before)).unwrap();
    let mut rows = 0;
    while old.next().unwrap() {
        assert_eq!(at(&old), Some(rows));
        rows += 1;
    }
    assert_eq!(rows, ROWS);
}
