//! A database on a full disk stays usable. Deleting single rows, which a user tries first, succeeds
//! down to the last row, even if memtables with rows for which there is no space come before the
//! deletes. Afterwards there is space, and writes succeed without a reopen.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{Batch, Codec, Db, Durability, Error, ErrorKind, Options, Tree, TreeOptions};
use frondb_core::clock::{SharedClock, SystemClock};
use frondb_simulator::setup::clock;
use frondb_testkit::MemoryDevice;

const VALUE_BYTES: usize = 500;
const BATCH: u64 = 50;

fn open(device: &MemoryDevice, threads: usize) -> Db {
    let options = Options::new()
        .memory_bytes(16 << 20)
        .write_buffer_bytes(1 << 20)
        .background_threads(threads)
        .reserve_bytes(4 << 20);
    let clock: SharedClock = if threads == 0 { clock() } else { SystemClock::shared() };
    TestDb::on(Arc::new(device.clone())).options(options).clock(clock).open().unwrap()
}

fn scattered(row: u64) -> [u8; 8] {
    row.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Fills the disk with equally many rows in two trees. Returns the number of acknowledged rows of
/// each tree, and the error that ended the loop.
fn fill(db: &Db, victim: &Tree, other: &Tree) -> (u64, Error) {
    let mut rows = 0;
    let mut batch = Batch::new();
    loop {
        batch.clear();
        for row in rows..rows + BATCH {
            batch.put(victim, &scattered(row), &[row as u8; VALUE_BYTES]);
            batch.put(other, &row.to_be_bytes(), &[row as u8; VALUE_BYTES]);
        }
        match db.write(&batch, Durability::NoSync) {
            Ok(()) => rows += BATCH,
            Err(error) => return (rows, error),
        }
    }
}

fn count(tree: &Tree) -> u64 {
    let mut cursor = tree.cursor().unwrap();
    let mut count = 0;
    while cursor.next().unwrap() {
        count += 1;
    }
    count
}

fn delete_all(capacity: u64, threads: usize) {
    let device = MemoryDevice::new();
    let db = open(&device, threads);
    let options = || TreeOptions::new().codec(Codec::None);
    let victim = db.create_tree("victim", options()).unwrap();
    let other = db.create_tree("other", options()).unwrap();
    device.set_capacity(capacity);
    let (rows, error) = fill(&db, &victim, &other);
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert_eq!(count(&other), rows, "reads succeed on a full disk");

    for row in 0..rows {
        let deleted = victim.delete(&scattered(row));
        assert!(deleted.is_ok(), "{threads} threads, row {row} of {rows}: {deleted:?}");
    }
    db.flush().unwrap();
    db.wait_settled().unwrap();
    other.put(&rows.to_be_bytes(), b"goes on").unwrap();
    db.close().unwrap();
    drop((victim, other, db));

    let db = open(&device, threads);
    assert_eq!(count(&db.open_tree("victim").unwrap()), 0);
    assert_eq!(count(&db.open_tree("other").unwrap()), rows + 1);
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

#[test]
fn rows_can_be_deleted_from_a_full_disk() {
    for kib in [24 << 10, 25 << 10, (26 << 10) + 512] {
        delete_all(kib << 10, 0);
    }
}

#[test]
fn rows_can_be_deleted_from_a_full_disk_in_the_background() {
    for kib in [24 << 10, 25 << 10, (26 << 10) + 512] {
        delete_all(kib << 10, 2);
    }
}
