//! Rules 6, 10, 15, 18, 19 and 22 step by step: readers, restarts and dropped trees during a large
//! commit whose runs are not part of the trunk yet.

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::transaction::TransactionOptions;
use crate::tree::Tree;
use frondb_background::Background;
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, MessageKind, Result};
use frondb_testkit::{CrashMode, MemoryDevice};

use super::private_runs::{PrivateMessage, PrivatePart};
use crate::db::Db;

fn open(device: &MemoryDevice) -> Db {
    TestDb::on(Arc::new(device.clone())).open().unwrap()
}

fn create(db: &Db, name: &str) -> Tree {
    db.create_tree(name, TreeOptions::default()).unwrap()
}

/// Puts of `0..n` in three runs.
fn part(tree: &Tree, n: u64, value: &[u8]) -> PrivatePart {
    let put = |i: u64| PrivateMessage::Point(MessageKind::Put, key(i), value.into());
    PrivatePart { tree: tree.clone(), messages: (0..n).map(put).collect(), runs: 3, base: false }
}

fn key(i: u64) -> Vec<u8> {
    format!("{i:05}").into_bytes()
}

fn commit(db: &Db, parts: &[PrivatePart], durability: Durability) {
    db.commit_private(parts, &Batch::new(), durability).unwrap();
}

fn put(db: &Db, tree: &Tree, key: &[u8], durability: Durability) {
    let mut batch = Batch::new();
    batch.put(tree, key, b"batch");
    db.write(&batch, durability).unwrap();
}

fn count(_db: &Db, tree: &Tree) -> u64 {
    let mut cursor = tree.cursor().unwrap();
    let (mut n, mut there) = (0, cursor.first().unwrap());
    while there {
        n += 1;
        there = cursor.next().unwrap();
    }
    n
}

/// A reader that has taken its version before a commit sees neither the commit's runs nor later
/// messages: a later message may depend on the runs.
#[test]
fn later_messages_go_above_the_runs() {
    let db = open(&MemoryDevice::new());
    let tree = create(&db, "t");
    db.block_flushes(&tree, true);
    let before = tree.core.version();
    commit(&db, &[part(&tree, 9, b"run")], Durability::NoSync);
    put(&db, &tree, b"later", Durability::NoSync);
    assert!(before.active.is_empty());
    put(&db, &tree, &key(3), Durability::NoSync);
    let frozen: Vec<bool> =
        tree.core.version().frozen.iter().map(|slot| slot.attached().is_some()).collect();
    assert_eq!(frozen, [true]);
    commit(&db, &[part(&tree, 3, b"newer")], Durability::NoSync);
    let frozen: Vec<bool> =
        tree.core.version().frozen.iter().map(|slot| slot.attached().is_some()).collect();
    assert_eq!(frozen, [true, false, true]);
    let value = |i| tree.get(&key(i)).unwrap().unwrap();
    assert_eq!([value(2), value(3), value(4)], [&b"newer"[..], b"batch", b"run"]);
    db.block_flushes(&tree, false);
    db.flush().unwrap();
    assert_eq!([value(2), value(3), value(4)], [&b"newer"[..], b"batch", b"run"]);
    assert_eq!((count(&db, &tree), db.stats().attaches), (10, 2));
}

/// Rules 10 and 19: the log keeps a commit's record until the edit that attaches its runs is
/// durable, whichever call determines the beginning of the needed log.
#[test]
fn the_record_stays_while_the_runs_wait() {
    let keeps: [fn(&Background); 2] = [
        |background| background.trim_log().unwrap(),
        |background| assert!(background.rotate_manifest(true).unwrap()),
    ];
    for keep in keeps {
        let device = MemoryDevice::new();
        let db = open(&device);
        let (a, b) = (create(&db, "a"), create(&db, "b"));
        db.block_flushes(&a, true);
        commit(&db, &[part(&a, 50, b"run"), part(&b, 60, b"run")], Durability::Sync);
        put(&db, &b, b"later", Durability::Sync);
        db.shared().background.freeze(&b.core);
        db.shared().background.run_pending();
        keep(&db.shared().background);
        assert_eq!(db.stats().attaches, 1, "only one of them is part of its tree");
        drop(db);

        let device = device.crash(CrashMode::LoseUnsynced);
        let db = open(&device);
        let (a, b) = (db.open_tree("a").unwrap(), db.open_tree("b").unwrap());
        assert_eq!((count(&db, &a), count(&db, &b)), (50, 61));
        db.checkpoint().unwrap();
        assert_eq!(db.stats().attaches, 1, "the other is once, and is not again");
        assert_eq!((count(&db, &a), count(&db, &b)), (50, 61));
        assert_eq!(db.leaked_bytes(), 0);
    }
}

/// Rule 6: the runs of a commit become part of a tree only after the commit's record is durable.
/// Otherwise a power loss could leave the commit in one tree and not in the other.
#[test]
fn the_record_is_durable_before_the_runs_are_attached() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let (a, b) = (create(&db, "a"), create(&db, "b"));
    db.block_flushes(&a, true);
    commit(&db, &[part(&a, 50, b"run"), part(&b, 60, b"run")], Durability::NoSync);
    assert_eq!(db.stats().attaches, 1);
    drop(db);
    let db = open(&device.crash(CrashMode::LoseUnsynced));
    let (a, b) = (db.open_tree("a").unwrap(), db.open_tree("b").unwrap());
    assert_eq!((count(&db, &a), count(&db, &b)), (50, 60));
}

/// Rule 22: under snapshot isolation, a write conflicts with a large commit that has changed the
/// same row since the snapshot, whether or not the commit's runs are in the trunk yet.
#[test]
fn rows_of_attached_runs_were_changed_since_the_snapshot() {
    let db = Arc::new(open(&MemoryDevice::new()));
    let tree = create(&db, "t");
    db.block_flushes(&tree, true);
    let options = TransactionOptions::new().snapshot_isolation(true);
    let before = [(); 2].map(|()| {
        let transaction = db.begin(options.clone()).unwrap();
        transaction.take_snapshot().unwrap();
        transaction
    });
    commit(&db, &[part(&tree, 9, b"run")], Durability::NoSync);
    for (transaction, attaches) in before.iter().zip(0..) {
        assert_eq!(db.stats().attaches, attaches);
        let kind = |result: Result<()>| result.map_err(|error| error.kind());
        let range = |lo, hi| transaction.delete_range(&tree, &key(lo), Some(&key(hi)));
        assert_eq!(kind(transaction.put(&tree, &key(3), b"x")), Err(ErrorKind::Conflict));
        assert_eq!(kind(range(8, 20)), Err(ErrorKind::Conflict));
        assert_eq!(kind(range(9, 20)), Ok(()));
        assert_eq!(kind(transaction.put(&tree, &key(9), b"x")), Ok(()));
        transaction.rollback().unwrap();
        db.block_flushes(&tree, false);
        db.flush().unwrap();
    }
}

#[test]
fn dropping_a_tree_drops_its_waiting_runs() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let (stays, goes) = (create(&db, "stays"), create(&db, "goes"));
    let large = vec![7; 100_000];
    db.block_flushes(&stays, true);
    db.block_flushes(&goes, true);
    commit(&db, &[part(&goes, 3, &large), part(&stays, 3, &large)], Durability::Sync);
    // Runs of a part that has not been committed yet.
    let txns = &db.shared().txns;
    let pending = part(&goes, 5, b"pending").write(txns).unwrap();
    txns.parts.add(99, std::slice::from_ref(&pending)).unwrap();
    db.drop_tree("goes").unwrap();
    let failed = db.commit_private(&[part(&goes, 3, b"")], &Batch::new(), Durability::Sync);
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::NotFound);
    txns.parts.abandon(99, &[pending]);
    assert!(db.shared().edits.pending().parts.values().all(|part| part.tree == stays.id()));
    assert_eq!(db.leaked_bytes(), 0);
    drop(db);

    let db = open(&device.crash(CrashMode::LoseUnsynced));
    let stays = db.open_tree("stays").unwrap();
    assert_eq!(count(&db, &stays), 3);
    db.flush().unwrap();
    assert_eq!(stays.get(&key(1)).unwrap(), Some(large));
    assert_eq!(db.leaked_bytes(), 0);
}

/// After one restart and after two, the extents of parts that were pending and never committed are
/// free.
#[test]
fn uncommitted_parts_are_free_after_a_restart() {
    let mut device = MemoryDevice::new();
    let db = open(&device);
    let tree = create(&db, "t");
    let txns = &db.shared().txns;
    let attachment = part(&tree, 500, &[1; 500]).write(txns).unwrap();
    txns.parts.add(txns.ids.next_txn(), &[attachment]).unwrap();
    let used = db.shared().runs.space.stats().used_bytes;
    assert!(used > 8_000, "{used}");
    drop(db);
    for rotate in [false, true] {
        device = device.crash(CrashMode::KeepAll);
        let db = open(&device);
        assert_eq!((db.leaked_bytes(), db.stats().data_used_bytes), (0, 0));
        let tree = db.open_tree("t").unwrap();
        assert_eq!(count(&db, &tree), 0);
        if rotate {
            assert!(db.shared().background.rotate_manifest(true).unwrap());
        }
    }
    let db = open(&device.crash(CrashMode::KeepAll));
    let tree = db.open_tree("t").unwrap();
    commit(&db, &[part(&tree, 500, &[2; 500])], Durability::Sync);
    assert_eq!((count(&db, &tree), db.leaked_bytes()), (500, 0));
}

#[test]
fn an_estimate_counts_runs_above_the_trunk() {
    let db = open(&MemoryDevice::new());
    let tree = create(&db, "t");
    db.block_flushes(&tree, true);
    // First delete all rows, like a load that replaces a table.
    let mut load = part(&tree, 3000, &[1; 100]);
    load.messages.insert(0, PrivateMessage::DeleteRange(Vec::new(), None));
    commit(&db, &[load], Durability::NoSync);
    let estimate = |lo, hi| tree.estimate(&key(lo), Some(&key(hi))).unwrap();
    for (lo, hi) in [(0, 3000), (1000, 2000)] {
        let found = estimate(lo, hi);
        let expected = hi - lo;
        assert!((expected * 8 / 10..expected * 12 / 10).contains(&found.entries), "{found:?}");
        let part = tree.stats().unwrap().disk_bytes * expected / 3000;
        assert!((part * 8 / 10..=part * 12 / 10).contains(&found.disk_bytes), "{found:?}");
    }
    put(&db, &tree, b"x", Durability::NoSync);
    let mut batch = Batch::new();
    batch.delete_range(&tree, &key(0), Some(&key(1000)));
    db.write(&batch, Durability::NoSync).unwrap();
    let left = estimate(0, 3000).entries;
    assert!((1600..2400).contains(&left), "{left}");
}

/// Rule 15: while the db is not idle, a tombstone run is compacted even if it is a very small part
/// of the tree.
#[test]
fn a_tombstone_run_is_compacted() {
    let db = open(&MemoryDevice::new());
    let tree = create(&db, "t");
    let message = |kind| {
        move |i: u64| PrivateMessage::Point(kind, (i as u32).to_be_bytes().to_vec(), Vec::new())
    };
    let of = |messages: Vec<PrivateMessage>, base| {
        commit(
            &db,
            &[PrivatePart { tree: tree.clone(), messages, runs: 1, base }],
            Durability::NoSync,
        );
    };
    of((0..800_000).map(message(MessageKind::Put)).collect(), true);
    while db.run_one(true) {}
    of((400_000..440_000).map(message(MessageKind::Delete)).collect(), false);
    while db.run_one(false) {}
    let left = tree.stats().unwrap().deletes;
    assert!(left < frondb_trunk::plan::TOMBSTONE_RUN / 2, "{left} deletes are left");
    assert_eq!(count(&db, &tree), 760_000);
}
