//! Every write of a database belongs to exactly one cause. The tests compare the sums with the
//! writes that the device has seen, over histories with all kinds of writes. The totals survive a
//! close; a crash loses only the last minutes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use std::time::Duration;

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::transaction::TransactionOptions;
use frondb_commit::Durability;
use frondb_core::clock::ManualClock;
use frondb_core::prng::Prng;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::wear::{WriteCause, WriteSums, Writes};
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};
use frondb_device::{Device, OpenOptions};
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_txn::BulkOptions;

use super::*;
use crate::options::Options;
use crate::tree::Tree;
use frondb_commit::Batch;

/// Writes that the device has seen: to the log, to data files, and to all other files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Seen {
    log: Writes,
    data: Writes,
    other: Writes,
}

#[derive(Clone, Debug, Default)]
struct Watcher(Arc<Mutex<Seen>>);

impl Interceptor for Watcher {
    fn before(&self, call: &Call<'_>) -> Verdict {
        if call.operation == Operation::Write {
            let mut seen = self.0.lock();
            let part = match call.name {
                name if name.starts_with("wal/") => &mut seen.log,
                name if name.starts_with("data-") => &mut seen.data,
                _ => &mut seen.other,
            };
            part.bytes += call.len;
            part.requests += 1;
        }
        Verdict::Pass
    }
}

/// Sums the causes by kind of file, as the device sees the writes.
fn by_file(sums: &WriteSums) -> Seen {
    let sum = |causes: &[WriteCause]| {
        causes.iter().fold(Writes::default(), |sum, &cause| Writes {
            bytes: sum.bytes + sums.of(cause).bytes,
            requests: sum.requests + sums.of(cause).requests,
        })
    };
    let seen = Seen {
        log: sum(&[WriteCause::Log]),
        data: sum(&[
            WriteCause::Flush,
            WriteCause::Merge,
            WriteCause::Relocation,
            WriteCause::PrivateRuns,
            WriteCause::LargeValues,
        ]),
        other: sum(&[WriteCause::Manifest]),
    };
    let all = [seen.log, seen.data, seen.other];
    assert_eq!(sums.total().bytes, all.iter().map(|part| part.bytes).sum::<u64>());
    assert_eq!(sums.total().requests, all.iter().map(|part| part.requests).sum::<u64>());
    seen
}

/// A database on a device that counts writes, with a clock that the test advances.
struct Setup {
    device: MemoryDevice,
    watcher: Watcher,
    clock: Arc<ManualClock>,
    memory_bytes: u64,
    db: Option<Db>,
}

impl Setup {
    fn new(memory_bytes: u64) -> Self {
        let mut setup = Self {
            device: MemoryDevice::new(),
            watcher: Watcher::default(),
            clock: Arc::new(ManualClock::stepping()),
            memory_bytes,
            db: None,
        };
        setup.open();
        setup
    }

    fn watched(&self) -> SharedDevice {
        Arc::new(Intercepted::wrap(Arc::new(self.device.clone()), self.watcher.clone()))
    }

    fn open_with(&self, read_only: bool) -> Result<Db> {
        let options = Options { memory_bytes: self.memory_bytes, read_only, ..Options::small() };
        TestDb::on(self.watched()).options(options).clock(self.clock.clone()).open()
    }

    fn open(&mut self) {
        // Also drops a database that was not closed, before the next one is opened.
        self.db = None;
        *self.watcher.0.lock() = Seen::default();
        self.db = Some(self.open_with(false).unwrap());
    }

    /// Continues with the state that a power failure leaves.
    fn crash(&mut self, mode: CrashMode) {
        self.device = self.device.crash(mode);
        self.open();
    }

    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn tree(&self, name: &str) -> Tree {
        match self.db().open_tree(name) {
            Ok(tree) => tree,
            Err(_) => self.db().create_tree(name, TreeOptions::default()).unwrap(),
        }
    }

    fn seen(&self) -> Seen {
        *self.watcher.0.lock()
    }

    fn put(&self, key: u64, bytes: usize) {
        let mut batch = Batch::new();
        batch.put(&self.tree("t"), &key.to_be_bytes(), &vec![7; bytes]);
        self.db().write(&batch, Durability::NoSync).unwrap();
    }

    fn since_open(&self) -> WriteSums {
        self.db().shared().wear.since_open()
    }

    fn recorded(&self) -> Wear {
        recorded_in(&self.watched()).unwrap().unwrap()
    }
}

/// Performs one random operation that writes.
fn step(setup: &Setup, prng: &mut Prng) -> &'static str {
    let db = setup.db();
    let tree = setup.tree(["a", "b", "c"][prng.index(3)]);
    let value = |prng: &mut Prng, len: u64| {
        let mut value = vec![0; len as usize];
        prng.fill(&mut value);
        value
    };
    match prng.below(12) {
        0 => {
            db.flush().unwrap();
            "a flush"
        }
        1 => {
            let load = db.bulk_load(BulkOptions::default()).unwrap();
            let mut writer = load.writer();
            for key in 0..prng.below(20_000) {
                writer.put(&tree, &(key * 7919 % 20_011).to_be_bytes(), &[1; 50]).unwrap();
            }
            writer.finish().unwrap();
            load.finish(&mut |_| true).unwrap();
            "a bulk load"
        }
        2 | 3 => {
            let txn = db.begin(TransactionOptions::default()).unwrap();
            for key in 0..prng.below(9000) {
                txn.put(&tree, &key.to_be_bytes(), &value(prng, 100)).unwrap();
            }
            if prng.chance(1, 3) {
                txn.rollback().unwrap();
            } else {
                txn.commit().unwrap();
            }
            "a transaction"
        }
        4 => {
            let mut batch = Batch::new();
            batch.put(&tree, b"large", &value(prng, 70_000));
            db.write(&batch, Durability::Sync).unwrap();
            "a large value"
        }
        5 => {
            while db.run_one(true) {}
            "idle work"
        }
        6 => {
            db.checkpoint().unwrap();
            "a checkpoint"
        }
        7 if prng.chance(1, 2) => {
            // The files of the backup are elsewhere; the database writes only the backup's name.
            let target: SharedDevice = Arc::new(MemoryDevice::new());
            let backup = db.shared().begin_backup(|| Ok(target), None, 0).unwrap();
            backup.copy(&mut |_, _| true).unwrap();
            "a backup"
        }
        7 if prng.chance(1, 2) => {
            db.drop_tree(tree.name().as_str()).unwrap();
            "a drop"
        }
        _ => {
            let mut batch = Batch::new();
            for _ in 0..500 {
                batch.put(&tree, &prng.below(20_000).to_be_bytes(), &value(prng, 100));
            }
            db.write(&batch, Durability::NoSync).unwrap();
            "a batch"
        }
    }
}

#[test]
fn every_write_belongs_to_one_cause() {
    let seed = 76;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let mut setup = Setup::new(Options::MEMORY_BYTES_MIN_WITHOUT_THREADS);
    let mut causes = WriteSums::default();
    for round in 0..400 {
        setup.clock.advance(Duration::from_secs(prng.below(90)));
        let what = match prng.below(25) {
            0 => {
                setup.db().close().unwrap();
                causes = causes.plus(&setup.since_open());
                assert_eq!(by_file(&setup.since_open()), setup.seen(), "a close, round {round}");
                setup.open();
                "a reopen"
            }
            1 => {
                causes = causes.plus(&setup.since_open());
                setup.crash(CrashMode::Random(round));
                "a crash"
            }
            _ => step(&setup, &mut prng),
        };
        assert_eq!(by_file(&setup.since_open()), setup.seen(), "{what}, round {round}");
        let total = setup.db().wear().total.sums.total();
        assert!(total.bytes >= setup.since_open().total().bytes, "{what}, round {round}");
        let stats = setup.db().stats();
        assert_eq!(stats.written_bytes, setup.since_open().total().bytes);
        assert_eq!(stats.write_requests, setup.since_open().total().requests);
        assert!(stats.wal_written_bytes <= setup.seen().log.bytes, "{what}");
    }
    // All causes but relocation occur in this history; the next test covers relocation.
    let absent = |cause: &WriteCause| causes.of(*cause).requests == 0;
    let absent: Vec<_> = WriteCause::ALL.into_iter().filter(absent).collect();
    assert_eq!(absent, [WriteCause::Relocation]);
}

#[test]
fn runs_that_are_moved_count_as_relocation() {
    let mut setup = Setup::new(64 << 20);
    let (dropped, kept) = (setup.tree("dropped"), setup.tree("kept"));
    let mut prng = Prng::new(5);
    // Leave enough free space below the kept rows that moving their runs pays off.
    for (tree, rows) in [(&dropped, 1600_u64), (&kept, 40)] {
        for row in 0..rows {
            let mut value = vec![0; 60 << 10];
            prng.fill(&mut value);
            let mut batch = Batch::new();
            batch.put(tree, &row.to_be_bytes(), &value);
            setup.db().write(&batch, Durability::NoSync).unwrap();
        }
        setup.db().checkpoint().unwrap();
    }
    setup.db().drop_tree("dropped").unwrap();
    drop((dropped, kept));
    setup.open();
    setup.db().close().unwrap();
    let sums = setup.since_open();
    assert!(sums.of(WriteCause::Relocation).bytes >= 40 * (60 << 10), "{sums:?}");
    assert_eq!(by_file(&sums), setup.seen());
    assert_eq!(setup.db().stats().relocation_bytes, sums.of(WriteCause::Relocation).bytes);
}

#[test]
fn totals_are_kept_over_a_close() {
    let mut setup = Setup::new(16 << 20);
    let since = setup.db().wear().since;
    let (mut written, mut user) = (Writes::default(), 0);
    for round in 0..5_u64 {
        for key in 0..300 {
            setup.put(round * 1000 + key, 1000);
        }
        user += 300 * 1000;
        setup.clock.advance(Duration::from_secs(600));
        setup.db().close().unwrap();
        let seen = setup.since_open().total();
        written.bytes += seen.bytes;
        written.requests += seen.requests;
        // The last superblock counts itself, so nothing is missing.
        let recorded = setup.recorded();
        assert_eq!(recorded.total.sums.total(), written, "round {round}");
        assert!(recorded.total.sums.user_bytes() >= user);
        assert_eq!((recorded.since, recorded.total.seconds), (since, 600 * (round + 1)));
        assert_eq!(setup.db().wear().total, recorded.total);
        setup.open();
        let wear = setup.db().wear();
        assert_eq!(wear.since, since);
        let opened = setup.since_open();
        assert_eq!(wear.total.sums.minus(&opened), recorded.total.sums);
        // The writes of the open are counted; the next superblock records them.
        assert_eq!(by_file(&opened), setup.seen());
    }
}

#[test]
fn a_read_only_open_counts_nothing() {
    let mut setup = Setup::new(16 << 20);
    setup.put(1, 1000);
    setup.clock.advance(Duration::from_secs(100));
    // The database is not closed, so that recovery has something to write.
    setup.db().checkpoint().unwrap();
    setup.put(2, 1000);
    let recorded = setup.recorded();
    setup.db = None;
    let before = setup.seen();
    let db = setup.open_with(true).unwrap();
    setup.clock.advance(Duration::from_secs(100));
    assert_eq!(db.wear(), recorded);
    db.close().unwrap();
    drop(db);
    assert_eq!(setup.seen(), before);
    assert_eq!(setup.recorded(), recorded);
}

#[test]
fn a_crash_loses_what_no_superblock_had() {
    let mut setup = Setup::new(16 << 20);
    for key in 0..100 {
        setup.put(key, 1000);
    }
    setup.db().checkpoint().unwrap();
    let at_checkpoint = setup.recorded().total.sums;
    assert!(at_checkpoint.total().bytes > 100 * 1000);
    setup.put(1000, 5000);
    assert!(setup.db().wear().total.sums.user_bytes() > at_checkpoint.user_bytes());
    setup.crash(CrashMode::LoseUnsynced);
    let after = setup.db().wear().total.sums;
    assert_eq!(after.minus(&setup.since_open()), at_checkpoint);
}

#[test]
fn the_last_hour_moves_on() {
    let mut setup = Setup::new(16 << 20);
    let minute = Duration::from_secs(60);
    let hour = |setup: &Setup| {
        let hour = setup.db().wear().last_hour;
        (hour.seconds, hour.sums.user_bytes() / 1000)
    };
    // 1,000 bytes a second for two hours, with a reopen; keys add a little.
    for i in 1..=120 {
        setup.clock.advance(minute);
        setup.put(i, 60_000);
        if i == 40 {
            setup.db().close().unwrap();
            setup.open();
        }
    }
    let (seconds, kilobytes) = hour(&setup);
    assert_eq!(seconds, 3600);
    assert!((3540..3660).contains(&kilobytes), "{kilobytes}");
    let rate = setup.db().wear().total;
    assert_eq!(rate.seconds, 7200);
    assert!((7200..7300).contains(&(rate.sums.user_bytes() / 1000)));
    // Half an hour without a write, and then one write.
    setup.clock.advance(30 * minute);
    setup.put(200, 60_000);
    let (_, kilobytes) = hour(&setup);
    assert!((1800..1950).contains(&kilobytes), "{kilobytes}");
    setup.clock.advance(61 * minute);
    assert_eq!(hour(&setup), (3600, 0));
}

#[test]
fn a_database_without_a_note_begins_now() {
    let setup = Setup::new(16 << 20);
    assert_eq!(setup.db().wear().total.seconds, 0);
    setup.put(1, 1000);
    setup.db().close().unwrap();
    // As written by an earlier version: zeros after the fields of each slot.
    let file = setup.device.open("SUPER", OpenOptions::WRITE).unwrap();
    for slot in [0_u64, 4096] {
        let mut bytes = vec![0; 4096];
        file.read_exact_at(slot, &mut bytes).unwrap();
        assert!(bytes[56..4088].iter().any(|byte| *byte != 0));
        bytes[56..4088].fill(0);
        let checksum = frondb_core::checksum::xxh3(&bytes[..4088]);
        bytes[4088..].copy_from_slice(&checksum.to_le_bytes());
        file.write_at(slot, &bytes).unwrap();
    }
    assert_eq!(recorded_in(&setup.watched()).unwrap(), None);
    let db = setup.open_with(false).unwrap();
    let total = db.wear().total;
    assert_eq!((total.seconds, total.sums.user_bytes()), (0, 0));
}
