//! Rules 6 to 9 and 25: where the log begins and ends, its spare segments, and the ids and SeqNos
//! after a recovery.

use std::time::Duration;

use frondb_background::OptimizeOptions;
use frondb_commit::Batch;
use frondb_commit::{Commit, Durability, LargestIds, Messages};
use frondb_core::clock::ManualClock;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, SeqNo};
use frondb_device::{Device, OpenOptions};
use frondb_testkit::{CrashMode, MemoryDevice};

use super::{KEEPS, Keep, create, has, open, put, put_rows};
use crate::db::Db;
use crate::open::layout::LOG_DIR;
use crate::options::Options;
use crate::testing::TestDb;

/// The messages of a logged record must reach the memtables. If they cannot, the database is
/// poisoned, so that readers never see a later commit without this one.
#[test]
fn a_logged_commit_whose_messages_cannot_be_decoded_poisons_the_database() {
    let db = open(&MemoryDevice::new()).unwrap();
    let tree = create(&db, "t");
    put(&db, &tree, "before", Durability::Sync);
    let garbage = Messages { tree: &tree.core, bytes: &[0xff], count: 1 };
    let commit = Commit { txn: 0, attachments: &[], sections: &[garbage] };
    let error = db.shared().committer.commit(commit, &mut Vec::new()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    let error = tree.put("after", "").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    assert!(has(&db, "t", "before"));
}

/// Rules 6 and 8: a power loss cuts off the unsynced end of the log, which recovery does not need
/// because it has only messages of a dropped tree. Wherever the needed log begins according to the
/// manifest, the next recovery reads the later commits, and these commits have SeqNos that were not
/// used before.
#[test]
fn commits_after_a_cut_log_are_recovered() {
    for (how, keep) in KEEPS {
        let device = MemoryDevice::new();
        let db = open(&device).unwrap();
        create(&db, "stays");
        let goes = create(&db, "goes");
        put(&db, &goes, "synced", Durability::Sync);
        for key in 0..100 {
            put(&db, &goes, &format!("unsynced {key}"), Durability::NoSync);
        }
        db.drop_tree("goes").unwrap();
        keep(&db.shared().background);
        let device = device.crash(CrashMode::LoseUnsynced);
        drop(db);

        let db = open(&device).unwrap();
        let stays = db.open_tree("stays").unwrap();
        put(&db, &stays, "synced", Durability::Sync);
        let device = device.crash(CrashMode::LoseUnsynced);
        assert!(has(&open(&device).unwrap(), "stays", "synced"), "lost after {how}");
    }
}

/// Returns the last segment of the log.
fn last_segment(device: &MemoryDevice) -> String {
    let mut segments = device.list(LOG_DIR).unwrap();
    segments.retain(|name| name.ends_with(".wal"));
    segments.sort();
    format!("{LOG_DIR}/{}", segments.pop().unwrap())
}

/// Flips a bit of `key` in the last segment of the log.
fn damage(device: &MemoryDevice, key: &str) {
    let file = device.open(&last_segment(device), OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let at = bytes.windows(key.len()).position(|bytes| bytes == key.as_bytes()).unwrap();
    file.write_at(at as u64, &[bytes[at] ^ 1]).unwrap();
    file.sync().unwrap();
}

/// Rule 9: a bad record below the Lsn that the manifest or the mark names as durable is corruption,
/// even if it is the last record of the log. If neither names such an Lsn, the record is a torn
/// tail, which the recovery reports.
#[test]
fn a_bad_record_below_the_durable_lsn_is_corruption() {
    let nothing: Keep = |_| {};
    // The mark in the log's directory also names the durable Lsn.
    for (how, keep) in KEEPS.into_iter().chain([("nothing", nothing), ("the mark", nothing)]) {
        let device = MemoryDevice::new();
        let db = open(&device).unwrap();
        // Keep the mark that the new log has before any commit. A power loss may leave this mark.
        let mut blank = vec![0; 4160];
        let mark = device.open("wal/LOG.mark", OpenOptions::READ).unwrap();
        mark.read_exact_at(0, &mut blank).unwrap();
        let tree = create(&db, "t");
        put(&db, &tree, "the last key", Durability::Sync);
        keep(&db.shared().background);
        drop((tree, db));
        damage(&device, "the last key");
        if how != "the mark" {
            let mark = device.open("wal/LOG.mark", OpenOptions::WRITE).unwrap();
            mark.write_at(0, &blank).unwrap();
        }
        match (how, open(&device)) {
            ("nothing", Ok(db)) => {
                assert!(db.recovery().log_tail.is_some(), "the cut is reported");
                assert!(!has(&db, "t", "the last key"));
            }
            ("nothing", Err(error)) => panic!("{error}"),
            (_, Ok(_)) => panic!("{how}: a record that was durable is lost without an error"),
            (_, Err(error)) => assert_eq!(error.kind(), ErrorKind::Corruption, "{how}: {error}"),
        }
    }
}

/// Returns the largest ids and SeqNo that were assigned.
fn largest_assigned(db: &Db) -> (u32, u64, u64, SeqNo) {
    let txns = &db.shared().txns;
    let LargestIds { tree, run, node, .. } = txns.ids.largest();
    (tree, run, node, txns.reads.oracle.last_reserved())
}

/// Rules 7 and 8: ids and SeqNos are never assigned twice, even if the object with the largest id
/// and the manifest that named it no longer exist. The log may still have records of a dropped
/// tree: these records must not become rows of a new tree.
#[test]
fn ids_are_never_assigned_twice() {
    for log_is_needed in [true, false] {
        let device = MemoryDevice::new();
        let db = open(&device).unwrap();
        let stays = create(&db, "stays");
        put(&db, &stays, "a row", Durability::Sync);
        let goes = create(&db, "goes");
        let id = goes.id();
        for round in 0..3 {
            put(&db, &goes, &format!("in a run {round}"), Durability::Sync);
            assert!(db.shared().background.freeze(&goes.core));
            db.shared().background.run_pending();
        }
        put(&db, &goes, "in the log", Durability::Sync);
        drop(goes);
        db.drop_tree("goes").unwrap();
        if !log_is_needed {
            db.flush().unwrap();
            db.shared().background.trim_log().unwrap();
        }
        let before = largest_assigned(&db);
        assert!(before.1 >= 3, "runs were made");
        assert!(db.shared().background.rotate_manifest(true).unwrap());
        drop((stays, db));

        let db = open(&device).unwrap();
        assert_eq!(db.recovery().records > 0, log_is_needed);
        let after = largest_assigned(&db);
        assert!(after.0 >= before.0, "trees: {after:?} after {before:?}");
        assert!(after.1 >= before.1, "runs: {after:?} after {before:?}");
        assert!(after.2 >= before.2, "nodes: {after:?} after {before:?}");
        assert!(after.3 >= before.3, "SeqNos: {after:?} after {before:?}");
        assert!(create(&db, "new").id() > id);
        drop(db);
        let db = open(&device).unwrap();
        assert!(has(&db, "stays", "a row"));
        assert!(!has(&db, "new", "in the log"), "a row of a dropped tree came back");
    }
}

/// Rule 8: a flush whose messages cancel out writes no run, but its SeqNos stay used. Otherwise a
/// later message could get such a SeqNo, and recovery would skip the message as flushed.
#[test]
fn an_empty_flush_uses_up_its_seqnos() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let tree = create(&db, "t");
    let mut batch = Batch::new();
    for row in 0..10u8 {
        batch.put(&tree, &[row], b"");
        batch.delete(&tree, &[row]);
    }
    db.write(&batch, Durability::Sync).unwrap();
    db.flush().unwrap();
    assert_eq!(db.shared().txns.ids.largest().run, 0, "no run was made");
    db.shared().background.trim_log().unwrap();
    let before = largest_assigned(&db);
    drop((tree, db));

    let db = open(&device).unwrap();
    assert!(largest_assigned(&db).3 >= before.3);
    let tree = db.open_tree("t").unwrap();
    put(&db, &tree, "later", Durability::Sync);
    drop((tree, db));
    assert!(has(&open(&device).unwrap(), "t", "later"), "a synced row is lost");
}

/// Rule 8: the flushed SeqNo of a tree is exact, even in a manifest that is rewritten after a
/// reopen. So each message is either in a run or replayed, never both. Otherwise an update that was
/// already folded into a value of a run would be applied twice.
#[test]
fn the_flushed_seqno_survives_reopening() {
    let device = MemoryDevice::new();
    let mut db = open(&device).unwrap();
    let (pin, tree) = (create(&db, "pins the log"), create(&db, "t"));
    put(&db, &pin, "first", Durability::Sync);
    put(&db, &tree, "k", Durability::Sync);
    assert!(db.shared().background.freeze(&tree.core));
    db.shared().background.run_pending();
    drop((pin, tree));
    for _ in 0..3 {
        assert!(db.shared().background.rotate_manifest(true).unwrap());
        drop(db);
        db = open(&device).unwrap();
        assert_eq!(db.recovery().messages, 1, "only what is in no run is replayed");
    }
    assert!(has(&db, "t", "k") && has(&db, "pins the log", "first"));
}

/// Rule 25: the log keeps at most two spare segments under load, and none when the db is idle.
#[test]
fn an_idle_engine_keeps_no_spare_segments() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let tree = create(&db, "t");
    let spares = || {
        let names = device.list(LOG_DIR).unwrap();
        names.iter().filter(|name| name.ends_with(".spare")).count()
    };
    let mut most = 0;
    for row in 0..4000u64 {
        let mut batch = Batch::new();
        batch.put(&tree, &row.to_be_bytes(), &[7; 1000]);
        db.write(&batch, Durability::NoSync).unwrap();
        most = most.max(spares());
    }
    db.flush().unwrap();
    db.shared().background.trim_log().unwrap();
    most = most.max(spares());
    assert!((1..=2).contains(&most), "{most} spares");
    db.shared().background.idle_maintenance();
    assert_eq!(spares(), 0);
}

/// Returns the bytes of the files in the log's directory whose names end with `ends`.
fn log_bytes(device: &MemoryDevice, ends: &str) -> u64 {
    let names = device.list(LOG_DIR).unwrap();
    let len = |name: &String| {
        let file = device.open(&format!("{LOG_DIR}/{name}"), OpenOptions::READ).unwrap();
        file.len().unwrap()
    };
    names.iter().filter(|name| name.ends_with(ends)).map(len).sum()
}

/// Rule 25: a busy database reuses the files of its log, however little data it has. An idle one
/// keeps no file for reuse, also when a checkpoint releases segments after the idle maintenance.
#[test]
fn only_a_busy_database_keeps_spare_segments() {
    let device = MemoryDevice::new();
    let clock = Arc::new(ManualClock::stepping());
    let segment = 3 << 20;
    let options = Options { log_segment_bytes: segment, ..Options::small() };
    let opening = TestDb::on(Arc::new(device.clone())).options(options);
    let db = opening.clock(clock.clone()).open().unwrap();
    let tree = create(&db, "t");
    let load = |rows: std::ops::Range<u64>| {
        let mut most = 0;
        for row in rows.step_by(100) {
            put_rows(&db, &tree, row..row + 100);
            db.shared().background.run_pending();
            most = most.max(log_bytes(&device, ".spare"));
        }
        most
    };
    assert!(load(0..15_000) > segment, "two segments are kept");
    clock.advance(Duration::from_secs(2));
    db.shared().background.idle_maintenance();
    assert_eq!(log_bytes(&device, ".spare"), 0);

    put_rows(&db, &tree, 15_000..30_000);
    db.shared().background.run_pending();
    clock.advance(Duration::from_secs(2));
    db.flush().unwrap();
    db.shared().background.trim_log().unwrap();
    assert_eq!(log_bytes(&device, ".spare"), 0);
    assert!(load(30_000..45_000) > segment, "and kept again");
}

/// Rule 25: an idle database, and a database that was just optimized, takes only the space of its
/// data, of the log that memtables need, and of garbage too small to be worth a change of the
/// manifest.
#[test]
fn an_idle_database_takes_the_space_of_its_data() {
    for optimizes in [false, true] {
        let device = MemoryDevice::new();
        let clock = Arc::new(ManualClock::stepping());
        let options = Options { log_segment_bytes: 16 << 20, ..Options::small() };
        let opening = TestDb::on(Arc::new(device.clone())).options(options);
        let db = opening.clock(clock.clone()).open().unwrap();
        let tree = create(&db, "t");
        put_rows(&db, &tree, 0..10_000);
        put_rows(&db, &tree, 0..10_000);
        let log = log_bytes(&device, ".wal");
        assert!(log > 4 << 20, "{log}");
        clock.advance(Duration::from_secs(2));
        if optimizes {
            tree.optimize(OptimizeOptions::default(), &mut |_, _| true).unwrap();
        } else {
            db.flush().unwrap();
            db.shared().background.run_pending();
            db.shared().background.idle_maintenance();
        }
        let log = log_bytes(&device, "");
        let reserve = 1 << 20;
        assert!(log <= reserve + (64 << 10), "{log} bytes of log");
        let data = db.stats().data_used_bytes;
        assert!(data >= 10_000_000);
        let all = device.used_bytes();
        // The log and the manifest allocate some space ahead.
        assert!(all <= data + data / 16 + 2 * reserve, "{all} bytes for {data} of data");

        // Later writes are logged, and recovered after a kill.
        put(&db, &tree, "next", Durability::Sync);
        drop((tree, db));
        let db = open(&device.crash(CrashMode::LoseUnsynced)).unwrap();
        assert!(has(&db, "t", "next"));
    }
}
