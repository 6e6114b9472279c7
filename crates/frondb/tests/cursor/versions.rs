//! Rule 12: only cursors pin versions, and not for long. An install takes the version away from a
//! cursor that does not move. A cursor that moves takes the newest version at its next leaf once
//! its own version is older than a second. So the space of replaced data is freed although the
//! cursor is still in use, and the cursor still shows its snapshot. A snapshot pins no version.

use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{Batch, Codec, Db, Durability, Options, Tree, TreeOptions};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;

const ROWS: u32 = 20_000;
const VALUE_BYTES: usize = 200;
/// Approximate size of all rows.
const DATA_BYTES: u64 = ROWS as u64 * VALUE_BYTES as u64;

fn open(clock: &Arc<ManualClock>) -> Db {
    let options = Options::small().memory_bytes(16 << 20);
    let clock: SharedClock = Arc::clone(clock) as SharedClock;
    let device = Arc::new(MemoryDevice::new());
    TestDb::on(device).options(options).clock(clock).open().unwrap()
}

/// Creates a tree whose rows need several leaves.
fn create(db: &Db) -> Tree {
    let options = TreeOptions::new().codec(Codec::None).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (256 << 10, 256 << 10);
        shape.slice_bytes_min = 16 << 10;
    });
    db.create_tree("t", options).unwrap()
}

/// Writes every row and merges all rows into the base; returns the bytes in use afterwards.
fn write_all(db: &Db, tree: &Tree, value: u8) -> u64 {
    let mut batch = Batch::new();
    for row in 0..ROWS {
        batch.put(tree, &row.to_be_bytes(), &[value; VALUE_BYTES]);
        if batch.len() == 1000 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    while db.run_one(true) {}
    db.stats().data_used_bytes
}

#[test]
fn a_cursor_releases_replaced_data() {
    let clock = Arc::new(ManualClock::stepping());
    let db = open(&clock);
    let tree = create(&db);
    write_all(&db, &tree, 1);
    assert!(tree.stats().unwrap().leaves >= 8);
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.next().unwrap());
    // New runs hold the rows of the cursor's snapshot and the new rows. The replaced runs were
    // freed although the cursor did not move.
    let used = write_all(&db, &tree, 2);
    assert!(used < DATA_BYTES * 24 / 10, "{used} bytes in use");

    clock.advance(Duration::from_secs(2));
    for row in 1..ROWS {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), row.to_be_bytes());
        assert_eq!(cursor.value().unwrap(), [1; VALUE_BYTES], "row {row} of another state");
        if row == ROWS / 4 {
            let now = db.stats().data_used_bytes;
            assert!(now <= used, "{used} bytes in use, then {now}");
        }
    }
    assert!(!cursor.next().unwrap());
}

#[test]
fn a_snapshot_pins_no_version() {
    let db = open(&Arc::new(ManualClock::stepping()));
    let tree = create(&db);
    write_all(&db, &tree, 1);
    let snapshot = db.snapshot().unwrap();
    let used = write_all(&db, &tree, 2);
    assert!(used < DATA_BYTES * 24 / 10, "{used} bytes in use");
    let old = tree.get_at(&7u32.to_be_bytes(), &snapshot).unwrap().unwrap();
    assert_eq!(old, [1; VALUE_BYTES]);
}

/// A hot row keeps one message for each snapshot that still reads it, and no messages in between.
/// So a long dump does not keep everything that is written while it runs.
#[test]
fn a_long_snapshot_keeps_one_version_of_a_hot_row() {
    let db = open(&Arc::new(ManualClock::stepping()));
    let tree = create(&db);
    write_all(&db, &tree, 1);
    let dump = db.snapshot().unwrap();
    let once = write_all(&db, &tree, 2);
    for value in 3..8 {
        write_all(&db, &tree, value);
    }
    let used = db.stats().data_used_bytes;
    assert!(used < once * 2, "{used} bytes in use, {once} after the first time");
    drop(dump);
}
