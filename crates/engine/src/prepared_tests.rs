//! Rule 19 step by step: a restart finds prepared transactions, whichever call freed log before,
//! and their names and trees stay reserved.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use frondb_background::{Background, LogPins};
use frondb_commit::{Batch, Commit, Durability};
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::{ErrorKind, Lsn, MessageKind};
use frondb_device::{CrashMode, MemoryDevice, SharedDevice};
use frondb_records::{TreeOptions, encode_op, encode_prepare_head, encode_section_head};
use frondb_tree::Tree;
use frondb_txn::prepared::{self, Written};

use super::*;
use crate::attach_tests::private_runs::{PrivateMessage, PrivatePart};
use crate::engine::Engine;
use crate::options::EngineOptions;

fn open(device: &MemoryDevice) -> Engine {
    try_open(device).unwrap()
}

fn try_open(device: &MemoryDevice) -> Result<Engine> {
    let options = EngineOptions {
        memory_bytes: EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        background_threads: 0,
        reserve_bytes: 0,
        ..EngineOptions::default()
    };
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let device: SharedDevice = Arc::new(device.clone());
    Engine::open(device, None, options, clock, &ThreadExecutor::shared())
}

fn crash(device: &MemoryDevice) -> (MemoryDevice, Engine) {
    let device = device.crash(CrashMode::LoseUnsynced);
    let engine = open(&device);
    (device, engine)
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

fn prepare(engine: &Engine, xid: &str, parts: &[PrivatePart], batch: &Batch) -> Result<()> {
    engine.prepare_private(xid.as_bytes(), parts, batch, Durability::Sync)
}

fn value(engine: &Engine, tree: &str, key: &str) -> Option<String> {
    let tree = engine.open_tree(tree).unwrap();
    let value = engine.get(&tree, key.as_bytes(), None).unwrap();
    value.map(|value| String::from_utf8(value).unwrap())
}

/// Writes to a separate tree until the log is long.
fn fill_log(engine: &Engine) {
    let tree = engine.create_tree("filler", TreeOptions::default()).unwrap();
    while !engine.background().log_is_long() {
        let mut batch = Batch::new();
        batch.put(&tree, b"key", &[1; 60_000]);
        engine.write(&batch, Durability::Sync).unwrap();
        engine.flush().unwrap();
    }
}

/// A call that frees log which a prepare has pinned.
type Unpin = fn(&Engine);

const UNPINS: [(&str, Unpin); 5] = [
    ("nothing", |_| {}),
    ("an edit that lets the log go", |engine| engine.background().trim_log().unwrap()),
    ("a checkpoint", |engine| engine.checkpoint().unwrap()),
    ("a snapshot of the manifest behind a move", |engine| {
        let txns = &engine.txns;
        txns.prepared.unpin(Lsn::MAX).unwrap();
        assert!(engine.background().rotate_manifest(true).unwrap());
    }),
    ("a long log", |engine| {
        fill_log(engine);

        engine.background().shorten_log().unwrap();
        engine.background().trim_log().unwrap();
        let kept = engine.background().jobs.log.replay_bytes();
        assert!(
            kept < engine.background().jobs.shares.now().write_buffer_bytes(),
            "{kept} bytes are pinned"
        );
    }),
];

#[test]
fn a_restart_finds_what_was_prepared_and_its_writes() {
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let a = engine.create_tree("a", TreeOptions::default()).unwrap();
        let b = engine.create_tree("b", TreeOptions::default()).unwrap();
        for xid in ["commit", "roll back", "wait"] {
            let keys: Vec<String> = ["k", "l"].map(|key| format!("{key} {xid}")).into();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            // The record's messages are newer than those of the runs.
            let record = batch(&a, &keys[..1]);
            prepare(&engine, xid, &[part(&a, &keys), part(&b, &keys)], &record).unwrap();
        }
        prepare(&engine, "writes nothing", &[], &Batch::new()).unwrap();
        unpin(&engine);
        drop(engine);

        let (device, engine) = crash(&device);
        let names = ["commit", "roll back", "wait", "writes nothing"];
        assert!(engine.prepared().iter().map(|xid| &**xid).eq(names.map(str::as_bytes)), "{how}");
        assert_eq!(value(&engine, "a", "k commit"), None, "{how}");
        let mut written = BTreeSet::new();
        prepared::for_each_write(&engine.txns.prepared, b"wait", &mut |tree, what| {
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
        engine.commit_prepared(b"commit", Durability::Sync).unwrap();
        engine.roll_back_prepared(b"roll back").unwrap();
        engine.roll_back_prepared(b"writes nothing").unwrap();
        drop(engine);

        for close in [false, true] {
            let (_, engine) = crash(&device);
            assert!(engine.prepared().iter().map(|xid| &**xid).eq([&b"wait"[..]]), "{how}");
            for (tree, key, expected) in [
                ("a", "k commit", Some("record")),
                ("a", "l commit", Some("run")),
                ("b", "k commit", Some("run")),
                ("a", "k roll back", None),
                ("b", "l roll back", None),
                ("a", "k wait", None),
            ] {
                assert_eq!(value(&engine, tree, key).as_deref(), expected, "{how}: {tree} {key}");
            }
            if close {
                engine.commit_prepared(b"wait", Durability::Sync).unwrap();
                engine.close().unwrap();
                assert_eq!(engine.leaked_bytes(), 0, "{how}");
            }
        }
    }
}

#[test]
fn names_and_trees_are_kept() {
    let device = MemoryDevice::new();
    let engine = open(&device);
    let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
    prepare(&engine, "x", &[], &batch(&tree, &["k"])).unwrap();
    let kind = |result: Result<()>| result.unwrap_err().kind();
    assert_eq!(
        kind(prepare(&engine, "x", &[part(&tree, &["l"])], &Batch::new())),
        ErrorKind::Exists
    );
    assert_eq!(kind(prepare(&engine, "", &[], &Batch::new())), ErrorKind::Invalid);
    assert_eq!(kind(prepare(&engine, &"x".repeat(257), &[], &Batch::new())), ErrorKind::Invalid);
    assert_eq!(kind(engine.commit_prepared(b"y", Durability::Sync)), ErrorKind::NotFound);
    assert_eq!(kind(engine.roll_back_prepared(b"y")), ErrorKind::NotFound);
    assert_eq!(kind(engine.drop_tree("t")), ErrorKind::Busy);
    engine.commit_prepared(b"x", Durability::Sync).unwrap();
    assert_eq!(kind(engine.commit_prepared(b"x", Durability::Sync)), ErrorKind::NotFound);
    assert_eq!(value(&engine, "t", "k").as_deref(), Some("record"));
    engine.drop_tree("t").unwrap();
    assert_eq!(
        kind(prepare(&engine, "z", &[part(&tree, &["l"])], &Batch::new())),
        ErrorKind::NotFound
    );
    engine.checkpoint().unwrap();
    assert_eq!(engine.leaked_bytes(), 0);
}

/// A commit without a sync, and then a durable drop of a tree that the commit has written to.
#[test]
fn a_dropped_tree_does_not_bring_back_who_wrote_to_it() {
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let [kept, gone] =
            ["kept", "gone"].map(|name| engine.create_tree(name, TreeOptions::default()).unwrap());
        prepare(&engine, "record", &[], &batch(&gone, &["k"])).unwrap();
        prepare(&engine, "runs", &[part(&gone, &["l"])], &batch(&kept, &["k"])).unwrap();
        unpin(&engine);
        // Without a flush, because a flush would make the log durable.
        let txns = &engine.txns;
        for xid in [&b"record"[..], b"runs"] {
            prepared::commit(&txns.prepared, xid, None).unwrap();
        }
        engine.drop_tree("gone").unwrap();
        // Before the engine is dropped, which would make the log durable too.
        let device = device.crash(CrashMode::LoseUnsynced);
        drop(engine);
        let engine = open(&device);
        assert_eq!(engine.prepared(), Vec::<Box<[u8]>>::new(), "{how}");
        assert_eq!(value(&engine, "kept", "k").as_deref(), Some("record"), "{how}");
        assert!(!engine.list_trees().contains(&"gone".into()), "{how}");
        engine.checkpoint().unwrap();
        assert_eq!(engine.leaked_bytes(), 0, "{how}");
    }
}

/// Rule 23: an index build is refused while a prepared transaction has written to its table, in its
/// log record or in private runs, in the log or in the manifest, even after a restart. Builds on
/// other trees proceed.
#[test]
fn a_build_waits_for_no_prepared_transaction() {
    let refused = |engine: &Engine| {
        ["record", "runs", "neither"].map(|name| {
            let tree = engine.open_tree(name).unwrap();
            let snapshot = engine.snapshot_behind_writers(&[tree], Duration::ZERO);
            snapshot.err().map(|error| error.kind())
        })
    };
    let busy = [Some(ErrorKind::Busy), Some(ErrorKind::Busy), None];
    for (how, unpin) in UNPINS {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let [record, runs, _, other] = ["record", "runs", "neither", "other"]
            .map(|name| engine.create_tree(name, TreeOptions::default()).unwrap());
        prepare(&engine, "1", &[part(&other, &["k"])], &Batch::new()).unwrap();
        prepare(&engine, "2", &[], &batch(&record, &["k"])).unwrap();
        prepare(&engine, "3", &[part(&runs, &["k"])], &Batch::new()).unwrap();
        assert_eq!(refused(&engine), busy);
        unpin(&engine);
        assert_eq!(refused(&engine), busy, "{how}");
        drop(engine);
        let (_, engine) = crash(&device);
        assert_eq!(refused(&engine), busy, "{how}, after a restart");
        engine.roll_back_prepared(b"2").unwrap();
        engine.commit_prepared(b"3", Durability::Sync).unwrap();
        assert_eq!(refused(&engine), [None; 3], "{how}, after the ends");
    }
}

/// A commit's messages may be in the log record of its prepare only.
#[test]
fn what_is_committed_keeps_the_record_of_its_prepare() {
    let keeps: [fn(&Background); 2] = [
        |background| background.trim_log().unwrap(),
        |background| assert!(background.rotate_manifest(true).unwrap()),
    ];
    for keep in keeps {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
        prepare(&engine, "x", &[], &batch(&tree, &["k"])).unwrap();
        engine.commit_prepared(b"x", Durability::Sync).unwrap();
        keep(engine.background());
        drop(engine);
        let (_, engine) = crash(&device);
        assert_eq!(value(&engine, "t", "k").as_deref(), Some("record"));
    }
}

/// A record that recovery must skip stays in the log while another transaction pins the log.
#[test]
fn a_rollback_in_the_manifest_counts_while_the_log_has_the_prepare() {
    for rotate in [false, true] {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let pins = engine.create_tree("pins", TreeOptions::default()).unwrap();
        let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
        engine.write(&batch(&pins, &["first"]), Durability::Sync).unwrap();
        prepare(&engine, "x", &[part(&tree, &["l"])], &batch(&tree, &["k"])).unwrap();
        let txns = &engine.txns;
        txns.prepared.unpin(Lsn::MAX).unwrap();
        engine.roll_back_prepared(b"x").unwrap();
        if rotate {
            assert!(engine.background().rotate_manifest(true).unwrap());
        }
        drop(engine);
        let (_, engine) = crash(&device);
        assert_eq!(engine.prepared(), Vec::<Box<[u8]>>::new(), "rotated: {rotate}");
        assert_eq!(value(&engine, "pins", "first").as_deref(), Some("record"));
        assert_eq!(engine.leaked_bytes(), 0);
    }
}

/// A prepare that failed on a full disk may have had more parts, and the edit that dropped them
/// may be lost.
#[test]
fn what_an_earlier_try_had_pending_is_nothing() {
    type Then = fn(&Engine, Commit<'_>);
    let prepare: Then = |engine, commit| {
        let txns = &engine.txns;
        let end = prepared::prepare(&txns.prepared, b"x", commit, &mut Vec::new()).unwrap();
        txns.background.jobs.log.wal.sync_to(end).unwrap();
    };
    let tries: [(&str, Then, bool); 3] = [
        (
            "committed",
            |engine, commit| {
                let committed = engine.txns.committer.commit(commit, &mut Vec::new());
                engine.background().jobs.log.wal.sync_to(committed.unwrap().end).unwrap();
            },
            false,
        ),
        ("prepared", prepare, false),
        ("prepared and moved", prepare, true),
    ];
    for (how, then, moved) in tries {
        let device = MemoryDevice::new();
        let engine = open(&device);
        let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
        let txns = &engine.txns;
        let write = |keys: &[&str]| part(&tree, keys).write(txns).unwrap();
        let (a, b, c) = (write(&["a"]), write(&["b", "bb"]), write(&["c", "cc", "ccc"]));
        txns.parts.add(5, &[a, b]).unwrap();
        let again = [c];
        txns.parts.add(5, &again).unwrap();
        then(&engine, Commit { txn: 5, attachments: &again, sections: &[] });
        if moved {
            txns.prepared.unpin(Lsn::MAX).unwrap();
        }
        drop(engine);

        let (_, engine) = crash(&device);
        if how != "committed" {
            engine.commit_prepared(b"x", Durability::Sync).unwrap();
        }
        assert_eq!(value(&engine, "t", "ccc").as_deref(), Some("run"), "{how}");
        assert_eq!(value(&engine, "t", "a"), None, "{how}");
        assert_eq!(value(&engine, "t", "bb"), None, "{how}");
        engine.checkpoint().unwrap();
        assert_eq!(engine.leaked_bytes(), 0, "{how}");
    }
}

/// A record that passes its checksum may still have what no engine writes.
#[test]
fn a_prepared_message_with_a_bad_reference_to_a_value_is_damage() {
    let device = MemoryDevice::new();
    let engine = open(&device);
    let tree = engine.create_tree("t", TreeOptions::default()).unwrap();
    let (mut head, mut message) = (Vec::new(), Vec::new());
    encode_op(&mut message, MessageKind::PutRef, b"key", b"no reference");
    encode_prepare_head(&mut head, 77, b"forged", &[], 1);
    encode_section_head(&mut head, tree.id(), 1, message.len());
    let wal = &engine.background().jobs.log.wal;
    wal.append(&[&head, &message]).unwrap();
    wal.sync().unwrap();
    drop(engine);
    let error = try_open(&device.crash(CrashMode::LoseUnsynced)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}
