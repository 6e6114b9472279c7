//! Space is returned after a drop without any command: data at the end of the data file is moved
//! towards its beginning, and the file is truncated. The test loses power at every call of these
//! moves.
//!
//! Rule 7: the extents from which a run is moved are reused or cut off only when the edit that
//! names the run's new place is durable. So no crash point may lose a row.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use frondb::testing::TestDb;
use frondb::{Batch, Codec, Db, Durability, Event, Options, Result, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_device::SharedDevice;
use frondb_device::{Device, OpenOptions};
use frondb_testkit::faults::{Faults, Script};
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_testkit::{CrashTest, for_each_crash_point_from};
use std::sync::Arc;

const VALUE: usize = 60 << 10;
/// Rows of the dropped tree. They take more than the free space that stays in a file without being
/// reclaimed by moves: 64 MiB plus half of the space in use.
const DROPPED_ROWS: u64 = 1600;
const KEPT_ROWS: u64 = 40;

fn open(device: SharedDevice) -> Result<Db> {
    TestDb::on(device).options(Options::small().memory_bytes(64 << 20)).open()
}

fn value(row: u64) -> Vec<u8> {
    let mut value = vec![0; VALUE];
    Prng::new(row).fill(&mut value);
    value
}

fn fill(db: &Db, name: &str, rows: u64) -> Tree {
    let tree = db.create_tree(name, TreeOptions::new().codec(Codec::None)).unwrap();
    for row in 0..rows {
        let mut batch = Batch::new();
        batch.put(&tree, &row.to_be_bytes(), &value(row));
        db.write(&batch, Durability::NoSync).unwrap();
    }
    db.checkpoint().unwrap();
    tree
}

/// A data file with 100 MB of a dropped tree, followed by a tree that stays.
fn database() -> MemoryDevice {
    let device = MemoryDevice::new();
    let db = open(Arc::new(device.clone())).unwrap();
    fill(&db, "dropped", DROPPED_ROWS);
    fill(&db, "kept", KEPT_ROWS);
    db.drop_tree("dropped").unwrap();
    drop(db);
    device
}

fn data_bytes(device: &MemoryDevice) -> u64 {
    let files = device.list("").unwrap().into_iter().filter(|name| name.starts_with("data"));
    files.map(|name| device.open(&name, OpenOptions::READ).unwrap().len().unwrap()).sum()
}

fn check(device: &MemoryDevice) {
    let db = open(Arc::new(device.clone())).unwrap();
    assert_eq!(db.list_trees(), ["kept"]);
    let mut cursor = db.open_tree("kept").unwrap().cursor().unwrap();
    for row in 0..KEPT_ROWS {
        assert!(cursor.next().unwrap(), "row {row} is lost");
        assert_eq!(cursor.key(), row.to_be_bytes());
        assert!(cursor.value().unwrap() == value(row), "row {row} has another value");
    }
    assert!(!cursor.next().unwrap());
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

/// The part of the test that is crashed: recovery, and the idle maintenance of a close.
fn open_and_close(device: &MemoryDevice) {
    if let Ok(db) = open(Arc::new(device.clone())) {
        let _ = db.close();
    }
}

#[test]
fn no_row_is_lost_while_runs_move_down() {
    let whole = database();
    let before = data_bytes(&whole);
    let start = || whole.crash(CrashMode::KeepAll);
    let moved = start();
    open_and_close(&moved);
    check(&moved);
    let after = data_bytes(&moved);
    println!("{before} bytes of data files, {after} when closed");
    assert!(before > 96 << 20, "{before} bytes");
    assert!(after < 2 * KEPT_ROWS * VALUE as u64, "{after} bytes after closing");
    let report = for_each_crash_point_from(
        CrashTest::new(200, 1),
        start,
        |device| open_and_close(&device),
        |crash, ()| {
            check(&crash.device);
            if crash.point % 8 == 0 {
                // The next open and close complete unfinished moves.
                open_and_close(&crash.device);
                assert_eq!(data_bytes(&crash.device), after);
                check(&crash.device);
            }
        },
    );
    println!("{report}");
    assert_eq!(report.tried, report.points + 1, "every crash point was tried");
}

/// A run that cannot be read stays in place. This is reported once, the database continues, and a
/// later open that can read the run moves it.
#[test]
fn a_run_that_cannot_be_read_stays_where_it_is() {
    let memory = database();
    let faults = Faults::over(Arc::new(memory.clone()), &Script::default());
    let faults = Arc::new(faults);
    let db = open(faults.clone()).unwrap();
    let (failed, poisoned) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counters = (Arc::clone(&failed), Arc::clone(&poisoned));
    db.set_event_listener(Some(Arc::new(move |event: &Event<'_>| match event {
        Event::JobFailed(_) => drop(counters.0.fetch_add(1, Ordering::Relaxed)),
        Event::Poisoned(_) => drop(counters.1.fetch_add(1, Ordering::Relaxed)),
        _ => {}
    })));
    faults.set_script(&"fail read data count=all".parse().unwrap());
    db.close().unwrap();
    assert!(faults.injected() > 0, "no run was to be moved");
    assert!(failed.load(Ordering::Relaxed) > 0);
    // The device failed once for each run, so each run was tried once.
    assert_eq!(failed.load(Ordering::Relaxed), faults.injected());
    assert_eq!(poisoned.load(Ordering::Relaxed), 0);
    check(&memory);
    open_and_close(&memory);
    check(&memory);
    assert!(data_bytes(&memory) < 2 * KEPT_ROWS * VALUE as u64);
}
