//! Rule 10: a memtable is logged again, so that old log can be freed.

use crate::options::TreeOptions;
use frondb_background::jobs::flush::FlushJob;
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::sync::Arc;
use frondb_testkit::{CrashMode, MemoryDevice};

use super::{create, has, open, open_updating, put};
use crate::options::Options;
use crate::testing::TestDb;

/// Rule 10: the record of a memtable that is logged again replaces the earlier records of this
/// memtable only. An earlier flush of the tree is visible already but may not be durable yet, so
/// recovery still needs the records of its messages.
#[test]
fn a_relog_replaces_no_older_memtable() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let (tree, txns) = (create(&db, "t"), &db.shared().txns);
    put(&db, &tree, "flushed", Durability::Sync);
    assert!(db.shared().background.freeze(&tree.core));
    let mut flush = FlushJob::begin(&txns.background.jobs, &tree.core).unwrap().unwrap();
    while !flush.step().unwrap() {}
    let not_settled = flush.install(&txns.background.jobs).unwrap();
    put(&db, &tree, "logged again", Durability::Sync);
    db.shared().committer.exclusive(|latch| latch.relog(&tree.core)).unwrap();
    assert_eq!(txns.committer.relogs(), 1);
    db.shared().wal.sync().unwrap();
    let device = device.crash(CrashMode::LoseUnsynced);
    drop(not_settled);

    let db = open(&device).unwrap();
    assert_eq!(db.recovery().messages, 3, "the second row twice");
    assert!(has(&db, "t", "flushed") && has(&db, "t", "logged again"));
}

/// Rule 10: a relog record has all messages of the memtable, range deletes included. Recovery uses
/// the record in place of the earlier ones, whether the log still has these or not.
#[test]
fn a_relog_has_each_message_once() {
    for trims_log in [false, true] {
        let device = MemoryDevice::new();
        let db = open_updating(&device).unwrap();
        let options = TreeOptions { update_fn: Some(("append".into(), 1)), ..Default::default() };
        let tree = db.create_tree("t", options).unwrap();
        for key in ["gone", "kept"] {
            put(&db, &tree, key, Durability::Sync);
        }
        db.flush().unwrap();
        let mut batch = Batch::new();
        batch.delete_range(&tree, b"g", Some(b"h"));
        [b"1", b"2", b"3"].iter().for_each(|operand| batch.update(&tree, b"sum", *operand));
        db.write(&batch, Durability::Sync).unwrap();
        for _ in 0..2 {
            db.shared().committer.exclusive(|latch| latch.relog(&tree.core)).unwrap();
            db.shared().wal.sync().unwrap();
            if trims_log {
                db.shared().background.trim_log().unwrap();
            }
        }
        let db = open_updating(&device.crash(CrashMode::LoseUnsynced)).unwrap();
        let tree = db.open_tree("t").unwrap();
        let read = || [b"gone", b"kept", &b"sum"[..]].map(|key| tree.get(key).unwrap());
        let expected = [None, Some(b"value".to_vec()), Some(b"123".to_vec())];
        assert_eq!(read(), expected);
        db.flush().unwrap();
        while db.run_one(true) {}
        assert_eq!(read(), expected, "from a run");
    }
}

/// Rule 10: after a memtable was logged again, the log may no longer have its first records. So a
/// recovery with a smaller write buffer must not flush the tree before it has read the relog
/// record.
#[test]
fn recovery_does_not_flush_a_part_of_a_relogged_memtable() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let (tree, other) = (create(&db, "t"), create(&db, "other"));
    put(&db, &tree, "first", Durability::Sync);
    // Once the tree is logged again, the needed part of the log begins with the next record.
    put(&db, &other, "other", Durability::Sync);
    for number in 0..40 {
        let mut batch = Batch::new();
        batch.put(&tree, format!("later {number}").as_bytes(), &[7; 4000]);
        db.write(&batch, Durability::Sync).unwrap();
    }
    db.shared().committer.exclusive(|latch| latch.relog(&tree.core)).unwrap();
    db.shared().wal.sync().unwrap();
    db.shared().background.trim_log().unwrap();
    let device = device.crash(CrashMode::LoseUnsynced);
    drop(db);

    let options = Options { write_buffer_bytes: 64 << 10, ..Options::small() };
    let db = TestDb::on(Arc::new(device.clone())).options(options).open().unwrap();
    assert!(has(&db, "other", "other") && has(&db, "t", "later 0"));
    assert!(has(&db, "t", "first"), "only the relog has the key");
}
