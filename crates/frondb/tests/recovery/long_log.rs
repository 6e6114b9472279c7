//! A log with more messages than the memtables may hold, because it was written with more memory or
//! could not be flushed. Recovery replays it in steps, in every kind of open, and even if recovery
//! itself is interrupted.

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, Options, TransactionOptions, TreeOptions};
use frondb_core::Result;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{PosixDevice, SharedDevice};
use frondb_testkit::{Crash, CrashTest, TempDir, for_each_crash_point};
use frondb_testkit::{CrashMode, MemoryDevice};

use crate::support::contents;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;
type Found = BTreeMap<String, Rows>;

fn options(write_buffer: u64) -> Options {
    let options = Options::small().memory_bytes(8 << 20);
    options.write_buffer_bytes(write_buffer)
}

fn open(device: SharedDevice, options: Options) -> Result<Db> {
    TestDb::on(device).options(options).open()
}

/// Makes commits of every kind in a few trees without a flush; returns the database and its
/// expected contents. The write buffer has space for all of them.
fn write(device: SharedDevice, seed: u64, steps: u64) -> Result<(Db, Found)> {
    let db = open(device, options(4 << 20))?;
    let names = ["a", "b", "c"];
    for name in names {
        db.create_tree(name, TreeOptions::new())?;
    }
    let trees = names.map(|name| db.open_tree(name).unwrap());
    let mut found: Found = names.iter().map(|name| ((*name).to_owned(), Rows::new())).collect();
    let mut prng = Prng::new(seed);
    for step in 0..steps {
        let at = prng.index(3);
        let (tree, rows) = (&trees[at], found.get_mut(names[at]).unwrap());
        let key = |prng: &mut Prng| prng.below(300).to_be_bytes().to_vec();
        match prng.below(20) {
            0 => {
                let mut batch = Batch::new();
                let (lo, hi) = (key(&mut prng), key(&mut prng));
                if lo < hi {
                    batch.delete_range(tree, &lo, Some(&hi));
                    db.write(&batch, Durability::Sync)?;
                    rows.retain(|key, _| *key < lo || *key >= hi);
                }
            }
            1 => {
                let value = vec![step as u8; 70_000];
                let key = key(&mut prng);
                tree.put(&key, &value)?;
                rows.insert(key, value);
            }
            2 => {
                let xid = step.to_be_bytes();
                let txn = db.begin(TransactionOptions::default())?;
                let key = key(&mut prng);
                txn.put(tree, &key, b"prepared")?;
                txn.prepare(&xid)?;
                if prng.chance(1, 3) {
                    db.rollback_prepared(&xid)?;
                } else {
                    db.commit_prepared(&xid, Durability::Sync)?;
                    rows.insert(key, b"prepared".to_vec());
                }
            }
            3 => {
                let key = key(&mut prng);
                tree.delete(&key)?;
                rows.remove(&key);
            }
            _ => {
                let mut batch = Batch::new();
                for _ in 0..4 {
                    let (key, value) = (key(&mut prng), vec![step as u8; 400]);
                    batch.put(tree, &key, &value);
                    rows.insert(key, value);
                }
                db.write(&batch, Durability::Sync)?;
            }
        }
    }
    Ok((db, found))
}

/// Returns the peak size of memtables.
fn memtable_peak(db: &Db) -> u64 {
    db.memory_parts().into_iter().find(|part| part.0 == "memtable").unwrap().2
}

const BUFFER: u64 = 64 << 10;
/// Largest allowed peak: the buffer, one more record, and the rounding of memtables.
const PEAK_MAX: u64 = BUFFER * 2;

#[test]
fn memtables_of_a_recovery_stay_within_the_write_buffer() {
    let seed = frondb_testkit::seed::from_env("FRONDB_SEED", 1);
    println!("FRONDB_SEED={seed}");
    let device = Arc::new(MemoryDevice::new());
    let (db, found) = write(Arc::clone(&device) as _, seed, 800).unwrap();
    assert!(memtable_peak(&db) > 8 * BUFFER, "{}", memtable_peak(&db));
    drop(db);
    let killed = Arc::new(device.crash(CrashMode::KeepAll));
    for read_only in [true, false] {
        let db = open(Arc::clone(&killed) as _, options(BUFFER).read_only(read_only)).unwrap();
        assert!(memtable_peak(&db) <= PEAK_MAX, "{}", memtable_peak(&db));
        assert!(contents(&db) == found);
        let report = db.verify(&mut |_, _, _| true).unwrap();
        assert!(report.faults.is_empty(), "{:?}", report.faults);
        db.close().unwrap();
    }
    // Commits that were flushed are not replayed again.
    let db = open(killed, options(BUFFER)).unwrap();
    assert!(contents(&db) == found);
    db.checkpoint().unwrap();
    while db.run_one(true) {}
    db.close().unwrap();
}

/// The recovery of a read-only open writes to a temporary file and not to the database.
#[test]
fn a_long_log_is_read_without_a_change() {
    let seed = frondb_testkit::seed::from_env("FRONDB_SEED", 2);
    println!("FRONDB_SEED={seed}");
    let dir = TempDir::new("long-log");
    let device = || Arc::new(PosixDevice::open(dir.path()).unwrap()) as SharedDevice;
    let (db, found) = write(device(), seed, 800).unwrap();
    drop(db);
    let files = |device: SharedDevice| {
        let mut names = device.list("").unwrap();
        names.extend(device.list("wal").unwrap());
        names
    };
    let before = files(device());
    for _ in 0..2 {
        let db = open(device(), options(BUFFER).read_only(true)).unwrap();
        assert!(memtable_peak(&db) <= PEAK_MAX, "{}", memtable_peak(&db));
        assert!(contents(&db) == found);
        db.close().unwrap();
    }
    assert_eq!(files(device()), before);
}

#[test]
fn a_recovery_is_interrupted_anywhere() {
    let seed = frondb_testkit::seed::from_env("FRONDB_SEED", 3);
    println!("FRONDB_SEED={seed}");
    let steps = 60;
    let whole = write(Arc::new(MemoryDevice::new()), seed, steps).unwrap().1;
    // With the smallest buffer, the second open flushes several times.
    let history = |memory: Arc<MemoryDevice>| {
        let written = write(Arc::clone(&memory) as _, seed, steps);
        let is_whole = written.is_ok();
        drop(written);
        if is_whole {
            let _ = open(memory, options(16 << 10));
        }
        is_whole
    };
    let check = |crash: Crash, is_whole: &bool| {
        let db = open(Arc::clone(&crash.device) as _, options(16 << 10)).unwrap();
        assert!(!*is_whole || contents(&db) == whole);
        drop(db);
        let db = open(Arc::clone(&crash.device) as _, options(1 << 20)).unwrap();
        assert!(!*is_whole || contents(&db) == whole);
        db.checkpoint().unwrap();
        while db.run_one(true) {}
        let report = db.verify(&mut |_, _, _| true).unwrap();
        assert!(report.faults.is_empty(), "{:?}", report.faults);
    };
    let report = for_each_crash_point(CrashTest::new(300, seed), history, check);
    println!("{report}");
    assert!(report.points > 100, "{report}");
}
