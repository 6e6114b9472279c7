//! Rule 19 step by step: a restart finds prepared transactions, whichever call has freed log before
//! the restart, and their names and trees stay reserved.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::tree::Tree;
use frondb_background::{Background, LogPins};
use frondb_commit::Batch;
use frondb_commit::{Commit, Durability};
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Lsn, MessageKind, Result};
use frondb_records::{encode_op, encode_prepare_head, encode_section_head};
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_txn::prepared::{self, Written};

use crate::db::Db;
use crate::tests::attach::private_runs::{PrivateMessage, PrivatePart};

fn open(device: &MemoryDevice) -> Db {
    try_open(device).unwrap()
}

fn try_open(device: &MemoryDevice) -> Result<Db> {
    TestDb::on(Arc::new(device.clone())).open()
}

fn crash(device: &MemoryDevice) -> (MemoryDevice, Db) {
    let device = device.crash(CrashMode::LoseUnsynced);
    let db = open(&device);
    (device, db)
}

fn part(tree: &Tree, keys: &[&str]) -> PrivatePart {
    let put =
        |key: &&str| PrivateMessage::Point(MessageKind::Put, key.as_bytes().into(), b"run".into());
    let messages = keys.iter().map(put).collect();
    PrivatePart { tree: tree.clone(), messages, runs: 2, base: false }
}

fn batch(tree: &Tree, keys: &[&str]) -> Batch {
    let mut batch = Batch::new();
    keys.iter().for_each(|key| batch.put(tree, key.as_bytes(), b"record"));
    batch
}

fn prepare(db: &Db, xid: &str, parts: &[PrivatePart], batch: &Batch) -> Result<()> {
    db.prepare_private(xid.as_bytes(), parts, batch, Durability::Sync)
}

fn value(db: &Db, tree: &str, key: &str) -> Option<String> {
    let tree = db.open_tree(tree).unwrap();
    let value = tree.get(key.as_bytes()).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

/// Writes to a separate tree until the log is long.
fn fill_log(db: &Db) {
    let tree = db.create_tree("filler", TreeOptions::default()).unwrap();
    while !db.shared().background.log_is_long() {
        let mut batch = Batch::new();
        batch.put(&tree, b"key", &[1; 60_000]);
        db.write(&batch, Durability::Sync).unwrap();
        db.flush().unwrap();
    }
}

/// A call that frees log that a prepare has pinned.
type Unpin = fn(&Db);

const UNPINS: [(&str, Unpin); 5] = [
    ("nothing", |_| {}),
    ("an edit that lets the log go", |db| db.shared().background.trim_log().unwrap()),
    ("a checkpoint", |db| db.checkpoint().unwrap()),
    ("a snapshot of the manifest behind a move", |db| {
        let txns = &db.shared().txns;
        txns.prepared.unpin(Lsn::MAX).unwrap();
        assert!(db.shared().background.rotate_manifest(true).unwrap());
    }),
    ("a long log", |db| {
        fill_log(db);

        db.shared().background.shorten_log().unwrap();
        db.shared().background.trim_log().unwrap();
        let kept = db.shared().log.replay_bytes();
        assert!(kept < db.shared().shares.now().write_buffer_bytes(), "{kept} bytes are pinned");
    }),
];

#[test]
fn a_restart_finds_what_was_prepared_and_its_writes() {
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let db = open(&device);
        let a = db.create_tree("a", TreeOptions::default()).unwrap();
        let b = db.create_tree("b", TreeOptions::default()).unwrap();
        for xid in ["commit", "roll back", "wait"] {
            let keys: Vec<String> = ["k", "l"].map(|key| format!("{key} {xid}")).into();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            // The record's messages are newer than the messages in the runs.
            let record = batch(&a, &keys[..1]);
            prepare(&db, xid, &[part(&a, &keys), part(&b, &keys)], &record).unwrap();
        }
        prepare(&db, "writes nothing", &[], &Batch::new()).unwrap();
        unpin(&db);
        drop(db);

        let (device, db) = crash(&device);
        let names = ["commit", "roll back", "wait", "writes nothing"];
        assert!(db.prepared().iter().map(|xid| &**xid).eq(names.map(str::as_bytes)), "{how}");
        assert_eq!(value(&db, "a", "k commit"), None, "{how}");
        let mut written = BTreeSet::new();
        prepared::for_each_write(&db.shared().prepared, b"wait", &mut |tree, what| {
            let first = match what {
                Written::Key(first) | Written::Range(first, _) => first,
                Written::Tree(_) => b"",
            };
            written.insert((tree.id, first.to_vec()));
            Ok(())
        })
        .unwrap();
        assert!(written.iter().any(|(_, key)| key == b"k wait"), "{how}: {written:?}");
        assert_eq!(written.iter().map(|(tree, _)| tree).collect::<BTreeSet<_>>().len(), 2);
        db.commit_prepared(b"commit", Durability::Sync).unwrap();
        db.rollback_prepared(b"roll back").unwrap();
        db.rollback_prepared(b"writes nothing").unwrap();
        drop(db);

        for close in [false, true] {
            let (_, db) = crash(&device);
            assert!(db.prepared().iter().map(|xid| &**xid).eq([&b"wait"[..]]), "{how}");
            for (tree, key, expected) in [
                ("a", "k commit", Some("record")),
                ("a", "l commit", Some("run")),
                ("b", "k commit", Some("run")),
                ("a", "k roll back", None),
                ("b", "l roll back", None),
                ("a", "k wait", None),
            ] {
                assert_eq!(value(&db, tree, key).as_deref(), expected, "{how}: {tree} {key}");
            }
            if close {
                db.commit_prepared(b"wait", Durability::Sync).unwrap();
                db.close().unwrap();
                assert_eq!(db.leaked_bytes(), 0, "{how}");
            }
        }
    }
}

#[test]
fn names_and_trees_are_kept() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    prepare(&db, "x", &[], &batch(&tree, &["k"])).unwrap();
    let kind = |result: Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(prepare(&db, "x", &[part(&tree, &["l"])], &Batch::new())), ErrorKind::Exists);
    assert_eq!(kind(prepare(&db, "", &[], &Batch::new())), ErrorKind::Invalid);
    assert_eq!(kind(prepare(&db, &"x".repeat(257), &[], &Batch::new())), ErrorKind::Invalid);
    assert_eq!(kind(db.commit_prepared(b"y", Durability::Sync)), ErrorKind::NotFound);
    assert_eq!(kind(db.rollback_prepared(b"y")), ErrorKind::NotFound);
    assert_eq!(kind(db.drop_tree("t")), ErrorKind::Busy);
    db.commit_prepared(b"x", Durability::Sync).unwrap();
    assert_eq!(kind(db.commit_prepared(b"x", Durability::Sync)), ErrorKind::NotFound);
    assert_eq!(value(&db, "t", "k").as_deref(), Some("record"));
    db.drop_tree("t").unwrap();
    assert_eq!(kind(prepare(&db, "z", &[part(&tree, &["l"])], &Batch::new())), ErrorKind::NotFound);
    db.checkpoint().unwrap();
    assert_eq!(db.leaked_bytes(), 0);
}

/// A prepared transaction commits without a sync, and then a tree to which it has written is
/// dropped durably. After a power loss the transaction must not be prepared again.
#[test]
fn a_dropped_tree_does_not_bring_back_who_wrote_to_it() {
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let db = open(&device);
        let [kept, gone] =
            ["kept", "gone"].map(|name| db.create_tree(name, TreeOptions::default()).unwrap());
        prepare(&db, "record", &[], &batch(&gone, &["k"])).unwrap();
        prepare(&db, "runs", &[part(&gone, &["l"])], &batch(&kept, &["k"])).unwrap();
        unpin(&db);
        // Commit without a flush, because a flush would make the log durable.
        let txns = &db.shared().txns;
        for xid in [&b"record"[..], b"runs"] {
            prepared::commit(&txns.prepared, xid, None).unwrap();
        }
        db.drop_tree("gone").unwrap();
        // Crash while the database is open: after the drop of the tree, nothing becomes durable.
        let device = device.crash(CrashMode::LoseUnsynced);
        drop(db);
        let db = open(&device);
        assert_eq!(db.prepared(), Vec::<Vec<u8>>::new(), "{how}");
        assert_eq!(value(&db, "kept", "k").as_deref(), Some("record"), "{how}");
        assert!(!db.list_trees().contains(&"gone".into()), "{how}");
        db.checkpoint().unwrap();
        assert_eq!(db.leaked_bytes(), 0, "{how}");
    }
}

/// Rule 23: an index build is refused while a prepared transaction has written to its table, also
/// after a restart. It does not matter whether the writes are in a log record or in private runs,
/// or whether the manifest has the transaction. Builds on other trees proceed.
#[test]
fn a_build_waits_for_no_prepared_transaction() {
    let refused = |db: &Db| {
        ["record", "runs", "neither"].map(|name| {
            let tree = db.open_tree(name).unwrap();
            let snapshot = db.snapshot_behind_writers(&[&tree], Duration::ZERO);
            snapshot.err().map(|error| error.kind())
        })
    };
    let busy = [Some(ErrorKind::Busy), Some(ErrorKind::Busy), None];
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let db = open(&device);
        let [record, runs, _, other] = ["record", "runs", "neither", "other"]
            .map(|name| db.create_tree(name, TreeOptions::default()).unwrap());
        prepare(&db, "1", &[part(&other, &["k"])], &Batch::new()).unwrap();
        prepare(&db, "2", &[], &batch(&record, &["k"])).unwrap();
        prepare(&db, "3", &[part(&runs, &["k"])], &Batch::new()).unwrap();
        assert_eq!(refused(&db), busy);
        unpin(&db);
        assert_eq!(refused(&db), busy, "{how}");
        drop(db);
        let (_, db) = crash(&device);
        assert_eq!(refused(&db), busy, "{how}, after a restart");
        db.rollback_prepared(b"2").unwrap();
        db.commit_prepared(b"3", Durability::Sync).unwrap();
        assert_eq!(refused(&db), [None; 3], "{how}, after the ends");
    }
}

/// After the commit of a prepared transaction, its messages may be only in the log record of the
/// prepare, so the log must keep this record.
#[test]
fn a_committed_transaction_keeps_its_prepare_record() {
    let keeps: [fn(&Background); 2] = [
        |background| background.trim_log().unwrap(),
        |background| assert!(background.rotate_manifest(true).unwrap()),
    ];
    for keep in keeps {
        let device = MemoryDevice::new();
        let db = open(&device);
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        prepare(&db, "x", &[], &batch(&tree, &["k"])).unwrap();
        db.commit_prepared(b"x", Durability::Sync).unwrap();
        keep(&db.shared().background);
        drop(db);
        let (_, db) = crash(&device);
        assert_eq!(value(&db, "t", "k").as_deref(), Some("record"));
    }
}

/// The log may still have the prepare record of a transaction whose rollback is in the manifest.
/// Recovery must skip the record.
#[test]
fn a_rollback_in_the_manifest_counts_while_the_log_has_the_prepare() {
    for rotate in [false, true] {
        let device = MemoryDevice::new();
        let db = open(&device);
        let pins = db.create_tree("pins", TreeOptions::default()).unwrap();
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        db.write(&batch(&pins, &["first"]), Durability::Sync).unwrap();
        prepare(&db, "x", &[part(&tree, &["l"])], &batch(&tree, &["k"])).unwrap();
        let txns = &db.shared().txns;
        txns.prepared.unpin(Lsn::MAX).unwrap();
        db.rollback_prepared(b"x").unwrap();
        if rotate {
            assert!(db.shared().background.rotate_manifest(true).unwrap());
        }
        drop(db);
        let (_, db) = crash(&device);
        assert_eq!(db.prepared(), Vec::<Vec<u8>>::new(), "rotated: {rotate}");
        assert_eq!(value(&db, "pins", "first").as_deref(), Some("record"));
        assert_eq!(db.leaked_bytes(), 0);
    }
}

/// An earlier prepare that failed on a full disk may have had more parts, and the edit that dropped
/// these may be lost.
#[test]
fn pending_runs_of_an_earlier_attempt_are_ignored() {
    type Then = fn(&Db, Commit<'_>);
    let prepare: Then = |db, commit| {
        let txns = &db.shared().txns;
        let end = prepared::prepare(&txns.prepared, b"x", commit, &mut Vec::new()).unwrap();
        db.shared().wal.sync_to(end).unwrap();
    };
    let tries: [(&str, Then, bool); 3] = [
        (
            "committed",
            |db, commit| {
                let committed = db.shared().committer.commit(commit, &mut Vec::new());
                db.shared().wal.sync_to(committed.unwrap().end).unwrap();
            },
            false,
        ),
        ("prepared", prepare, false),
        ("prepared and moved", prepare, true),
    ];
    for (how, then, moved) in tries {
        let device = MemoryDevice::new();
        let db = open(&device);
        let tree = db.create_tree("t", TreeOptions::default()).unwrap();
        let txns = &db.shared().txns;
        let write = |keys: &[&str]| part(&tree, keys).write(txns).unwrap();
        let (a, b, c) = (write(&["a"]), write(&["b", "bb"]), write(&["c", "cc", "ccc"]));
        txns.parts.add(5, &[a, b]).unwrap();
        let again = [c];
        txns.parts.add(5, &again).unwrap();
        then(&db, Commit { txn: 5, attachments: &again, sections: &[] });
        if moved {
            txns.prepared.unpin(Lsn::MAX).unwrap();
        }
        drop(db);

        let (_, db) = crash(&device);
        if how != "committed" {
            db.commit_prepared(b"x", Durability::Sync).unwrap();
        }
        assert_eq!(value(&db, "t", "ccc").as_deref(), Some("run"), "{how}");
        assert_eq!(value(&db, "t", "a"), None, "{how}");
        assert_eq!(value(&db, "t", "bb"), None, "{how}");
        db.checkpoint().unwrap();
        assert_eq!(db.leaked_bytes(), 0, "{how}");
    }
}

/// A record with a valid checksum may contain bytes that no database writes.
#[test]
fn a_prepared_message_with_a_bad_reference_to_a_value_is_damage() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let tree = db.create_tree("t", TreeOptions::default()).unwrap();
    let (mut head, mut message) = (Vec::new(), Vec::new());
    encode_op(&mut message, MessageKind::PutRef, b"key", b"no reference");
    encode_prepare_head(&mut head, 77, b"forged", &[], 1);
    encode_section_head(&mut head, tree.id(), 1, message.len());
    let wal = &db.shared().wal;
    wal.append(&[&head, &message]).unwrap();
    wal.sync().unwrap();
    drop(db);
    let error = try_open(&device.crash(CrashMode::LoseUnsynced)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}
