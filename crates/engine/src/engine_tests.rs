//! Rules that a history reaches by chance only, each held by a test that asks for the one step it
//! is about: an edit that lets the log go, a snapshot of the manifest, an install, a choice of
//! the scheduler.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use frondb_commit::LargestIds;
use std::collections::HashMap;

use frondb_core::budget::Part;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::{self, Executor, JoinHandle, Priority, ThreadExecutor};
use frondb_core::prng::Prng;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{NodeId, SeqNo};
use frondb_device::{CrashMode, Device, MemoryDevice, OpenOptions};
use frondb_space::{Class, Extent};
use frondb_testkit::functions::AppendEach;
use frondb_trunk::install::{Change, Made, Place};
use frondb_trunk::plan::{Plan, Planned, Reason};

use super::*;
use crate::layout::LOG_DIR;
use frondb_background::jobs::Running;
use frondb_background::jobs::flush::FlushJob;
use frondb_background::jobs::install::dead_runs;
use frondb_background::jobs::merge::{Begun, MergeJob};
use frondb_background::priority::FLUSH;
use frondb_background::replan;
use frondb_background::{Queue, Task};
use frondb_core::Error;
use frondb_tree::HintSink;
use frondb_tree::InstallState;

/// What makes durable how far the log is needed.
type Keep = fn(&Background);

const KEEPS: [(&str, Keep); 2] = [
    ("an edit", |background| background.trim_log().unwrap()),
    ("a snapshot of the manifest", |background| assert!(background.rotate_manifest(true).unwrap())),
];

fn open(device: &MemoryDevice) -> Result<Engine> {
    open_reserving(device, 0)
}

fn open_reserving(device: &MemoryDevice, reserve_bytes: u64) -> Result<Engine> {
    open_with(device, EngineOptions { reserve_bytes, ..EngineOptions::default() })
}

/// With a function "append" for updates.
fn open_updating(device: &MemoryDevice) -> Result<Engine> {
    let mut options = EngineOptions { reserve_bytes: 0, ..EngineOptions::default() };
    options.update_fns.register(Arc::new(AppendEach));
    open_with(device, options)
}

fn open_with(device: &MemoryDevice, options: EngineOptions) -> Result<Engine> {
    let options = EngineOptions {
        memory_bytes: EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        background_threads: 0,
        ..options
    };
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let device: SharedDevice = Arc::new(device.clone());
    Engine::open(device, None, options, clock, &ThreadExecutor::shared())
}

fn create(engine: &Engine, name: &str) -> Tree {
    engine.create_tree(name, TreeOptions::default()).unwrap()
}

fn put(engine: &Engine, tree: &Tree, key: &str, durability: Durability) {
    let mut batch = Batch::new();
    batch.put(tree, key.as_bytes(), b"value");
    engine.write(&batch, durability).unwrap();
}

fn has(engine: &Engine, tree: &str, key: &str) -> bool {
    let tree = engine.open_tree(tree).unwrap();
    engine.get(&tree, key.as_bytes(), None).unwrap().is_some()
}

/// Rules 6 and 8: nothing needs the unsynced end of the log, and power loss takes it. Wherever the
/// manifest says that the log begins, what is committed next is read by the next recovery, and has
/// SeqNos of its own.
#[test]
fn the_log_goes_on_where_power_loss_has_cut_it() {
    for (how, keep) in KEEPS {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        create(&engine, "stays");
        let goes = create(&engine, "goes");
        put(&engine, &goes, "synced", Durability::Sync);
        for key in 0..100 {
            put(&engine, &goes, &format!("unsynced {key}"), Durability::NoSync);
        }
        engine.drop_tree("goes").unwrap();
        keep(engine.background());
        let device = device.crash(CrashMode::LoseUnsynced);
        drop(engine);

        let engine = open(&device).unwrap();
        let stays = engine.open_tree("stays").unwrap();
        put(&engine, &stays, "synced", Durability::Sync);
        let device = device.crash(CrashMode::LoseUnsynced);
        assert!(has(&open(&device).unwrap(), "stays", "synced"), "lost after {how}");
    }
}

/// The last segment of the log.
fn last_segment(device: &MemoryDevice) -> String {
    let mut segments = device.list(LOG_DIR).unwrap();
    segments.retain(|name| name.ends_with(".wal"));
    segments.sort();
    format!("{LOG_DIR}/{}", segments.pop().unwrap())
}

/// Flips a bit of the key where the log has it.
fn damage(device: &MemoryDevice, key: &str) {
    let file = device.open(&last_segment(device), OpenOptions::WRITE).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    let at = bytes.windows(key.len()).position(|bytes| bytes == key.as_bytes()).unwrap();
    file.write_at(at as u64, &[bytes[at] ^ 1]).unwrap();
    file.sync().unwrap();
}

/// Rule 9: a bad record below an Lsn that the manifest knows to be durable is damage, also where no
/// later record of the log says so; without that knowledge it is a torn tail, which is reported.
#[test]
fn a_bad_record_below_what_the_manifest_knows_is_corruption() {
    let nothing: Keep = |_| {};
    // The mark beside the log knows it too, where it is.
    for (how, keep) in KEEPS.into_iter().chain([("nothing", nothing), ("the mark", nothing)]) {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        // What power loss may leave of the mark: the one that the log began with.
        let mut blank = vec![0; 4160];
        let mark = device.open("wal/LOG.mark", OpenOptions::READ).unwrap();
        mark.read_exact_at(0, &mut blank).unwrap();
        let tree = create(&engine, "t");
        put(&engine, &tree, "the last key", Durability::Sync);
        keep(engine.background());
        drop((tree, engine));
        damage(&device, "the last key");
        if how != "the mark" {
            let mark = device.open("wal/LOG.mark", OpenOptions::WRITE).unwrap();
            mark.write_at(0, &blank).unwrap();
        }
        match (how, open(&device)) {
            ("nothing", Ok(engine)) => {
                assert!(engine.recovery().log_tail.is_some(), "the cut is reported");
                assert!(!has(&engine, "t", "the last key"));
            }
            ("nothing", Err(error)) => panic!("{error}"),
            (_, Ok(_)) => panic!("{how}: a record that was durable is lost without a word"),
            (_, Err(error)) => assert_eq!(error.kind(), ErrorKind::Corruption, "{how}: {error}"),
        }
    }
}

/// The largest ids and SeqNo given out.
fn given_out(engine: &Engine) -> (u32, u64, u64, SeqNo) {
    let txns = &engine.txns;
    let LargestIds { tree, run, node, .. } = txns.ids.largest();
    (tree, run, node, txns.reads.oracle.last_reserved())
}

/// Rules 7 and 8: ids and SeqNos are never given out again, although what had the largest is gone
/// and the manifest that named it too. The log may still have records of a dropped tree: they must
/// not become rows of another.
#[test]
fn ids_go_on_where_they_ended() {
    for log_is_needed in [true, false] {
        let device = MemoryDevice::new();
        let engine = open(&device).unwrap();
        let stays = create(&engine, "stays");
        put(&engine, &stays, "a row", Durability::Sync);
        let goes = create(&engine, "goes");
        let id = goes.id();
        for round in 0..3 {
            put(&engine, &goes, &format!("in a run {round}"), Durability::Sync);
            assert!(engine.background().freeze(goes.core()));
            engine.background().run_pending();
        }
        put(&engine, &goes, "in the log", Durability::Sync);
        drop(goes);
        engine.drop_tree("goes").unwrap();
        if !log_is_needed {
            engine.flush().unwrap();
            engine.background().trim_log().unwrap();
        }
        let before = given_out(&engine);
        assert!(before.1 >= 3, "runs were made");
        assert!(engine.background().rotate_manifest(true).unwrap());
        drop((stays, engine));

        let engine = open(&device).unwrap();
        assert_eq!(engine.recovery().records > 0, log_is_needed);
        let after = given_out(&engine);
        assert!(after.0 >= before.0, "trees: {after:?} after {before:?}");
        assert!(after.1 >= before.1, "runs: {after:?} after {before:?}");
        assert!(after.2 >= before.2, "nodes: {after:?} after {before:?}");
        assert!(after.3 >= before.3, "SeqNos: {after:?} after {before:?}");
        assert!(create(&engine, "new").id() > id);
        drop(engine);
        let engine = open(&device).unwrap();
        assert!(has(&engine, "stays", "a row"));
        assert!(!has(&engine, "new", "in the log"), "a row of a dropped tree came back");
    }
}

/// Rule 8: a flush of which nothing is left makes no run, and its SeqNos are used up all the same:
/// what came later at one of them would be taken for flushed, and not be replayed.
#[test]
fn a_flush_that_leaves_nothing_uses_its_seqnos_up() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let tree = create(&engine, "t");
    let mut batch = Batch::new();
    for row in 0..10u8 {
        batch.put(&tree, &[row], b"");
        batch.delete(&tree, &[row]);
    }
    engine.write(&batch, Durability::Sync).unwrap();
    engine.flush().unwrap();
    assert_eq!(engine.txns.ids.largest().run, 0, "no run was made");
    engine.background().trim_log().unwrap();
    let before = given_out(&engine);
    drop((tree, engine));

    let engine = open(&device).unwrap();
    assert!(given_out(&engine).3 >= before.3);
    let tree = engine.open_tree("t").unwrap();
    put(&engine, &tree, "later", Durability::Sync);
    drop((tree, engine));
    assert!(has(&open(&device).unwrap(), "t", "later"), "a synced row is lost");
}

/// Rule 8: the SeqNo up to which a tree is flushed is exact, and stays so when the manifest is
/// written anew after a reopening: a message is in runs or replayed, and never both. (An update
/// that is folded into a value of a run would otherwise count twice.)
#[test]
fn the_flushed_seqno_outlives_reopening() {
    let device = MemoryDevice::new();
    let mut engine = open(&device).unwrap();
    let (pin, tree) = (create(&engine, "pins the log"), create(&engine, "t"));
    put(&engine, &pin, "first", Durability::Sync);
    put(&engine, &tree, "k", Durability::Sync);
    assert!(engine.background().freeze(tree.core()));
    engine.background().run_pending();
    drop((pin, tree));
    for _ in 0..3 {
        assert!(engine.background().rotate_manifest(true).unwrap());
        drop(engine);
        engine = open(&device).unwrap();
        assert_eq!(engine.recovery().messages, 1, "only what is in no run is replayed");
    }
    assert!(has(&engine, "t", "k") && has(&engine, "pins the log", "first"));
}

/// Extents of the runs and large values that recovery of `device` would find in the manifest.
fn named(device: &MemoryDevice) -> Vec<Extent> {
    let engine = open(device).unwrap();
    let mut named = Vec::new();
    for tree in engine.txns.background.jobs.trees.all() {
        named.extend(tree.install.lock().values.values().flatten().copied());
        tree.version().trunk.for_each(&mut |node| {
            node.views().for_each(|view| named.extend(view.run.meta().extents.iter().copied()));
        });
    }
    named
}

/// Flushes, merges, and drops of rows, large values and a tree.
fn let_much_go(engine: &Engine) {
    let trees = ["stays", "goes"].map(|name| create(engine, name));
    for round in 0..4u8 {
        for tree in &trees {
            let mut batch = Batch::new();
            for row in 0..50u8 {
                batch.put(tree, &[row], &[round; 1000]);
            }
            // The first is gone before it ever reaches a run.
            for value in [round + 100, round] {
                batch.put(tree, b"large", &[value; 100_000]);
            }
            engine.write(&batch, Durability::NoSync).unwrap();
        }
        engine.flush().unwrap();
        while engine.run_one(true) {}
        if round % 2 == 1 {
            engine.checkpoint().unwrap();
        }
    }
    drop(trees);
    engine.drop_tree("goes").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(&engine.open_tree("stays").unwrap(), b"", None);
    engine.write(&batch, Durability::NoSync).unwrap();
    engine.flush().unwrap();
    while engine.run_one(true) {}
    engine.checkpoint().unwrap();
}

/// Rule 7: an extent is free only when the edit that dropped it is durable and no superblock
/// reaches one that names it. Before every call of a history, what power loss at that moment
/// would leave must name no extent that the running engine holds for free: another thread could
/// write it now.
#[test]
fn nothing_is_free_that_recovery_would_read() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let space = Arc::clone(&engine.txns.reads.runs.space);
    let looks = Arc::new(AtomicU64::new(0));
    let (looked, counted) = (device.clone(), Arc::clone(&looks));
    device.set_observer(Some(Arc::new(move |point| {
        let free = space.free_extents();
        for mode in [CrashMode::LoseUnsynced, CrashMode::KeepAll] {
            for extent in named(&looked.crash(mode)) {
                counted.fetch_add(1, Ordering::Relaxed);
                let meets = |free: &&Extent| {
                    free.file == extent.file && free.page < extent.end() && extent.page < free.end()
                };
                let met = free.iter().find(meets);
                assert!(met.is_none(), "at point {point}, {mode:?}: {extent} is named and free");
            }
        }
    })));
    let_much_go(&engine);
    device.set_observer(None);
    assert!(looks.load(Ordering::Relaxed) > 500, "{looks:?} extents: the test tests nothing");
    let used = engine.txns.reads.runs.space.stats().used_bytes;
    assert!(used < 100_000, "{used} bytes are in use and nothing is left");
}

/// Rule 1: a run that several nodes hold views of is dead with the last of them, and not before;
/// one that no node took is dead at once.
#[test]
fn a_run_is_dead_with_its_last_view() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let tree = create(&engine, "t");
    put(&engine, &tree, "k", Durability::NoSync);
    engine.flush().unwrap();
    let version = tree.core().version();
    let run = Arc::clone(&version.trunk.root.views().next().unwrap().run);
    let id = run.meta().id;
    let mut install = InstallState { views: HashMap::from([(id, 3)]), ..InstallState::default() };
    let mut dead = |delta: i64, made: &[Made]| {
        let trunk = version.trunk.clone();
        let views = (delta != 0).then_some((id, delta)).into_iter().collect();
        let change = Change { trunk, images: Vec::new(), dropped: Vec::new(), root: None, views };
        let dead = dead_runs(&mut install, &change, &version, made);
        let ids: Vec<_> = dead.iter().map(|run| run.meta().id).collect();
        (ids, install.views.get(&id).copied())
    };
    assert_eq!(dead(-1, &[]), (vec![], Some(2)), "two views are left");
    assert_eq!(dead(1, &[]), (vec![], Some(3)), "a split made another");
    assert_eq!(dead(-2, &[]), (vec![], Some(1)));
    assert_eq!(dead(-1, &[]), (vec![id], None), "that was the last");
    let (lo, place) = (Arc::from(*b""), Place::Slice);
    let made = Made { run: Arc::clone(&run), lo, hi: None, place };
    assert_eq!(dead(0, &[made]), (vec![id], None), "nobody took it");
}

/// Rules 12 and 17: a point read has a version and no snapshot. The large values that its version
/// refers to stay as they are until it is gone, although no later reader can see them.
#[test]
fn a_large_value_outlives_the_versions_that_refer_to_it() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let tree = create(&engine, "t");
    let large = vec![7; 100 << 10];
    let mut batch = Batch::new();
    batch.put(&tree, b"k", &large);
    engine.write(&batch, Durability::NoSync).unwrap();
    engine.flush().unwrap();
    let used = || engine.txns.reads.runs.space.stats().used_bytes;
    let read = tree.core().version();
    put(&engine, &tree, "k", Durability::NoSync);
    engine.flush().unwrap();
    while engine.run_one(true) {}
    assert!(tree.core().install.lock().values.is_empty(), "a merge has dropped the reference");
    assert!(used() > large.len() as u64, "whoever is at it may still read it");
    drop(read);
    assert!(used() < large.len() as u64, "nobody is");
}

fn planned(node: NodeId, rank: u8) -> Planned {
    let plan = Plan::Rewrite(if rank == 4 { Reason::ScanDebt } else { Reason::Runs }, 1);
    Planned { node, plan, work_bytes: 1, priority: rank, frees_space: false }
}

/// Rule 3: what scans have paid for gets a quarter of the steps, however much else there is to do.
#[test]
fn what_scans_paid_for_gets_a_quarter_of_the_steps() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(create(&engine, "t").core()), Queue::default());
    let (steps, mut of_scans) = (4000, 0);
    for _ in 0..steps {
        for (node, rank) in [(NodeId(1), 2), (NodeId(2), 4)] {
            work.set_plan(&tree, node, Some(planned(node, rank)));
        }
        let Some(Task::Plan(_, planned)) = work.try_next() else { panic!("nothing is due") };
        work.stepped(planned.priority);
        of_scans += u64::from(planned.priority == 4);
        work.end_plan(tree.id, planned.node);
    }
    assert!((steps / 4..steps / 3).contains(&of_scans), "{of_scans} of {steps} steps");
}

/// Rule 3: the scheduler chooses anew at each step, so a long job makes way for a flush.
#[test]
fn a_long_job_makes_way_for_what_is_more_urgent() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(create(&engine, "t").core()), Queue::default());
    let rewrite = 3;
    assert!(!work.stepped(rewrite), "nothing waits");
    work.set_plan(&tree, NodeId(1), Some(planned(NodeId(1), rewrite)));
    work.set_plan(&tree, NodeId(2), Some(planned(NodeId(2), 4)));
    assert!(!work.stepped(rewrite), "what waits is no more urgent");
    work.add_flush(&tree);
    assert!(work.stepped(rewrite), "a flush waits");
    assert!(!work.stepped(FLUSH), "a flush goes on");
}

/// Rule 10: between the end of a flush and the chores that let go of the log there is always
/// something due, or the commits that wait for a shorter log would go on.
#[test]
fn the_chores_are_due_with_the_end_of_a_flush() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (Arc::clone(create(&engine, "t").core()), Queue::default());
    work.add_flush(&tree);
    let Some(Task::Flush(flushed)) = work.try_next() else { panic!("a flush is due") };
    assert_eq!((work.due().running, work.due().maintenance), (1, false));
    work.end_flush_with_maintenance(&flushed, false);
    assert_eq!((work.due().running, work.due().maintenance), (0, true));
}

/// Rule 10: a memtable that is logged again takes the place of what was logged of it before, and of
/// nothing else: a flush before it, which readers see already, may not be durable yet.
#[test]
fn what_is_logged_again_replaces_no_older_memtable() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let (tree, txns) = (create(&engine, "t"), &engine.txns);
    put(&engine, &tree, "flushed", Durability::Sync);
    assert!(engine.background().freeze(tree.core()));
    let mut flush = FlushJob::begin(&txns.background.jobs, tree.core()).unwrap().unwrap();
    while !flush.step().unwrap() {}
    let not_settled = flush.install(&txns.background.jobs).unwrap();
    put(&engine, &tree, "logged again", Durability::Sync);
    engine.txns.committer.exclusive(|latch| latch.relog(tree.core())).unwrap();
    assert_eq!(txns.committer.relogs(), 1);
    txns.background.jobs.log.wal.sync().unwrap();
    let device = device.crash(CrashMode::LoseUnsynced);
    drop(not_settled);

    let engine = open(&device).unwrap();
    assert_eq!(engine.recovery().messages, 3, "the second row twice");
    assert!(has(&engine, "t", "flushed") && has(&engine, "t", "logged again"));
}

/// Rule 10: what is logged again is all that the memtable holds, range deletes too, and it stands
/// in the place of what was logged before, whether the log still has that or not.
#[test]
fn what_is_logged_again_is_there_whole_and_once() {
    for trims in [false, true] {
        let device = MemoryDevice::new();
        let engine = open_updating(&device).unwrap();
        let options = TreeOptions { update_fn: Some(("append".into(), 1)), ..Default::default() };
        let tree = engine.create_tree("t", options).unwrap();
        let txns = &engine.txns;
        for key in ["gone", "kept"] {
            put(&engine, &tree, key, Durability::Sync);
        }
        engine.flush().unwrap();
        let mut batch = Batch::new();
        batch.delete_range(&tree, b"g", Some(b"h"));
        [b"1", b"2", b"3"].iter().for_each(|operand| batch.update(&tree, b"sum", *operand));
        engine.write(&batch, Durability::Sync).unwrap();
        for _ in 0..2 {
            engine.txns.committer.exclusive(|latch| latch.relog(tree.core())).unwrap();
            txns.background.jobs.log.wal.sync().unwrap();
            if trims {
                engine.background().trim_log().unwrap();
            }
        }
        let engine = open_updating(&device.crash(CrashMode::LoseUnsynced)).unwrap();
        let tree = engine.open_tree("t").unwrap();
        let read =
            || [b"gone", b"kept", &b"sum"[..]].map(|key| engine.get(&tree, key, None).unwrap());
        let expected = [None, Some(b"value".to_vec()), Some(b"123".to_vec())];
        assert_eq!(read(), expected);
        engine.flush().unwrap();
        while engine.run_one(true) {}
        assert_eq!(read(), expected, "from a run");
    }
}

/// Rule 10: a memtable that was logged again may have lost the beginning of what was logged of it
/// first, so a recovery with a smaller write buffer must not flush the rest before it comes to
/// the new record.
#[test]
fn what_is_logged_again_is_not_flushed_in_part_by_a_recovery() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let (tree, other) = (create(&engine, "t"), create(&engine, "other"));
    put(&engine, &tree, "first", Durability::Sync);
    // The log is needed from here on, when the tree has been logged again.
    put(&engine, &other, "other", Durability::Sync);
    for number in 0..40 {
        let mut batch = Batch::new();
        batch.put(&tree, format!("later {number}").as_bytes(), &[7; 4000]);
        engine.write(&batch, Durability::Sync).unwrap();
    }
    let txns = &engine.txns;
    engine.txns.committer.exclusive(|latch| latch.relog(tree.core())).unwrap();
    txns.background.jobs.log.wal.sync().unwrap();
    engine.background().trim_log().unwrap();
    let device = device.crash(CrashMode::LoseUnsynced);
    drop(engine);

    let options = EngineOptions { write_buffer_bytes: 64 << 10, ..EngineOptions::default() };
    let engine = open_with(&device, options).unwrap();
    assert!(has(&engine, "other", "other") && has(&engine, "t", "later 0"));
    assert!(has(&engine, "t", "first"), "what only the new record has");
}

/// Rule 25: at most two spare segments of the log are kept under load, and none when idle.
#[test]
fn an_idle_engine_keeps_no_spare_segments() {
    let device = MemoryDevice::new();
    let engine = open(&device).unwrap();
    let tree = create(&engine, "t");
    let spares = || {
        let names = device.list(LOG_DIR).unwrap();
        names.iter().filter(|name| name.ends_with(".spare")).count()
    };
    let mut most = 0;
    for row in 0..4000u64 {
        let mut batch = Batch::new();
        batch.put(&tree, &row.to_be_bytes(), &[7; 1000]);
        engine.write(&batch, Durability::NoSync).unwrap();
        most = most.max(spares());
    }
    engine.flush().unwrap();
    engine.background().trim_log().unwrap();
    most = most.max(spares());
    assert!((1..=2).contains(&most), "{most} spares");
    engine.background().idle_maintenance();
    assert_eq!(spares(), 0);
}

/// A tree with rows that do not compress, on a disk that has no space but the reserve.
fn full_disk(device: &MemoryDevice, rows: u64) -> (Engine, Tree) {
    let engine = open_reserving(device, 4 << 20).unwrap();
    let tree = create(&engine, "t");
    put_rows(&engine, &tree, 0..rows);
    engine.flush().unwrap();
    engine.wait_settled().unwrap();
    fill_disk(&engine, device);
    (engine, tree)
}

fn put_rows(engine: &Engine, tree: &Tree, rows: impl Iterator<Item = u64>) {
    let mut prng = Prng::new(1);
    for row in rows {
        let mut value = vec![0; 1000];
        prng.fill(&mut value);
        let mut batch = Batch::new();
        batch.put(tree, &row.to_be_bytes(), &value);
        engine.write(&batch, Durability::NoSync).unwrap();
    }
}

fn delete_row(engine: &Engine, tree: &Tree, row: u64) {
    let mut batch = Batch::new();
    batch.delete(tree, &row.to_be_bytes());
    engine.write(&batch, Durability::NoSync).unwrap();
}

/// Takes all space but the reserve. Returns what who wants more is told.
fn fill_disk(engine: &Engine, device: &MemoryDevice) -> Error {
    device.set_capacity(device.used_bytes());
    let space = &engine.txns.reads.runs.space;
    let error = loop {
        if let Err(error) = space.acquire(1, Class::Base) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    error
}

/// Rule 25: flushes and merges that free space use the reserve of a full disk, and no others do.
#[test]
fn what_frees_space_uses_the_reserve_of_a_full_disk() {
    let device = MemoryDevice::new();
    let rows = 2000;
    let (engine, tree) = full_disk(&device, rows);
    (0..rows).for_each(|row| delete_row(&engine, &tree, row));
    engine.flush().unwrap();
    engine.wait_settled().unwrap();
    put(&engine, &tree, "there is space", Durability::Sync);
    engine.flush().unwrap();

    let (engine, tree) = full_disk(&MemoryDevice::new(), rows);
    put(&engine, &tree, "there is none", Durability::Sync);
    assert_eq!(engine.flush().unwrap_err().kind(), ErrorKind::NoSpace);
}

/// Rule 25: rows that found no space may fill the memory to its limit. Deletes, the way out, find
/// room beyond it.
#[test]
fn rows_are_deleted_from_a_full_disk_with_full_memory() {
    let (device, rows) = (MemoryDevice::new(), 1600);
    let engine = open_reserving(&device, 4 << 20).unwrap();
    let tree = create(&engine, "t");
    put(&engine, &tree, "takes the reserve", Durability::Sync);
    engine.flush().unwrap();
    engine.set_memory_bytes(16 << 20).unwrap();
    // Not ascending: that would be flushed early.
    put_rows(&engine, &tree, (0..rows).rev());
    fill_disk(&engine, &device);
    engine.set_memory_bytes(EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS).unwrap();
    assert_eq!(engine.stats().disk_full, 1);
    (0..rows).for_each(|row| delete_row(&engine, &tree, row));
    engine.flush().unwrap();
    engine.wait_settled().unwrap();
    put(&engine, &tree, "there is space", Durability::Sync);
}

/// Rule 25: deletes are flushed early on a full disk, but not each in a flush of its own: what
/// describes so many runs takes more space than they free.
#[test]
fn deletes_are_flushed_early_one_memtable_at_a_time() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let [one, two] = ["one", "two"].map(|name| create(&engine, name));
    delete_row(&engine, &one, 1);
    (0..9).for_each(|row| delete_row(&engine, &two, row));
    let frozen = |tree: &Tree| tree.core().version().frozen.len();
    engine.background().freeze_deletes();
    engine.background().freeze_deletes();
    assert_eq!((frozen(&one), frozen(&two)), (0, 1), "the larger, once");
}

/// Rule 25: a job that waits does not go on while the disk is full. It is begun anew then, or it
/// would keep what it has written, and its node from what frees space.
#[test]
fn what_waits_when_the_disk_is_full_is_taken_back() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let tree = create(&engine, "t");
    let (txns, background) = (&engine.txns, engine.background());
    let work = &background.queue;
    put_rows(&engine, &tree, 0..300);
    engine.flush().unwrap();
    (0..250).for_each(|row| delete_row(&engine, &tree, row));
    assert!(engine.background().freeze(tree.core()));
    let mut flush = FlushJob::begin(&txns.background.jobs, tree.core()).unwrap().unwrap();
    while !flush.step().unwrap() {}
    let touched =
        flush.install(&txns.background.jobs).unwrap().settle(&txns.background.jobs).unwrap();
    replan(&txns.background.jobs, work, tree.core(), &touched);
    let merge = next_plan(work).expect("a merge is due");
    let Begun::Job(merge) =
        MergeJob::begin(&txns.background.jobs, tree.core(), merge).unwrap().unwrap()
    else {
        panic!("a merge has something to do");
    };
    work.park(Running::Merge(merge));
    let claimed = || tree.core().install.lock().claimed.len();
    assert_eq!(claimed(), 1);

    engine.background().fail(&Error::new(ErrorKind::NoSpace, "no space"));
    assert_eq!(claimed(), 0);
    assert!(next_plan(work).is_some_and(|planned| planned.frees_space));
}

/// The next merge that may run; what else is due is forgotten.
fn next_plan(work: &Queue) -> Option<Planned> {
    loop {
        if let Task::Plan(_, planned) = work.try_next()? {
            return Some(planned);
        }
    }
}

/// Calls something until the disk is full, and once more when the engine has looked for space.
fn until_space_is_lent(engine: &Engine, call: &mut dyn FnMut() -> Result<()>) {
    let error = loop {
        if let Err(error) = call() {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    let has_reserve = || {
        (
            engine.background().jobs.log.wal.has_reserve(),
            engine.background().jobs.edits.manifest.has_reserve(),
        )
    };
    assert!(has_reserve() == (true, false) || has_reserve() == (false, true));
    engine.txns.reads.health.set_full(Some(error));
    engine.background().try_space();
    call().unwrap();
    assert_eq!(has_reserve(), (true, true));
}

/// Rule 25: log and manifest get a part of the reserve when they have used up their own.
#[test]
fn the_reserve_is_lent_to_the_log_and_the_manifest() {
    let (engine, tree) = full_disk(&MemoryDevice::new(), 100);
    let mut batch = Batch::new();
    batch.put(&tree, b"key", &[7; 1000]);
    until_space_is_lent(&engine, &mut || engine.write(&batch, Durability::NoSync));

    let (engine, _) = full_disk(&MemoryDevice::new(), 100);
    let mut trees = 0;
    until_space_is_lent(&engine, &mut || {
        trees += 1;
        engine.create_tree(&format!("{trees:0>200}"), TreeOptions::default()).map(drop)
    });
}

/// Rule 25: a job that is set aside just when the disk is found full is not parked, or it would
/// keep what it has written.
#[test]
fn no_job_is_parked_behind_a_full_disk() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (tree, work) = (create(&engine, "t"), &engine.background().queue);
    put(&engine, &tree, "key", Durability::Sync);
    assert!(engine.background().freeze(tree.core()));
    let Some(Task::Flush(core)) = work.try_next() else { panic!("no flush is due") };
    let job = FlushJob::begin(&engine.txns.background.jobs, &core).unwrap().unwrap();
    assert!(work.hold(|| {}).is_empty());
    let job = work.park(Running::Flush(Box::new(job)));
    let job = job.expect("it takes space, and nothing may");
    work.release(|| {});
    assert!(work.park(job).is_none());
    engine.flush().unwrap();
    assert_eq!(tree.core().version().frozen.len(), 0);
}

/// Rule 15: a reader that finds a tombstone run must not wait for the end of a long job before the run is
/// planned.
#[test]
fn a_hint_of_a_reader_is_planned_between_two_steps_of_a_job() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (long, read) = (create(&engine, "long"), create(&engine, "read"));
    put_rows(&engine, &long, 0..400);
    let background = engine.background();
    assert!(background.freeze(long.core()));
    let Some(Task::Flush(flush)) = background.queue.try_next() else { panic!("no flush is due") };
    background.queue.post(read.core(), read.core().version().trunk.root.id);
    background.perform(Task::Flush(flush));
    assert!(background.queue.take_hints().is_empty(), "the hint waits for the next task");
    assert_eq!(long.core().version().frozen.len(), 0);
}

/// An executor whose threads do nothing: a database with workers that are always busy.
#[derive(Debug)]
struct BusyThreads;

impl Executor for BusyThreads {
    fn spawn(&self, name: &str, _: Priority, _: executor::Task) -> Result<JoinHandle> {
        Ok(JoinHandle::new(name, || Ok(())))
    }
}

/// Rule 15: the commit that makes a tombstone run leaves the probe to a worker. So it reads no
/// block, and a probe that is slow stalls no commit.
#[test]
fn a_commit_of_deletes_reads_no_block() {
    let options = EngineOptions { reserve_bytes: 0, background_threads: 1, ..Default::default() };
    let device: SharedDevice = Arc::new(MemoryDevice::new());
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let engine = Engine::open(device, None, options, clock, &(Arc::new(BusyThreads) as _)).unwrap();
    let (tree, background) = (create(&engine, "rows"), engine.background());
    put_rows(&engine, &tree, 0..4000);
    assert!(background.freeze(tree.core()));
    background.run_pending();

    let mut batch = Batch::new();
    (0..3000_u64).for_each(|key| batch.delete(&tree, &key.to_be_bytes()));
    let before = engine.stats();
    engine.write(&batch, Durability::NoSync).unwrap();
    let after = engine.stats();
    assert_eq!((after.cache_hits, after.cache_misses), (before.cache_hits, before.cache_misses));
    assert!(!engine.is_settled(), "the probe is due");

    background.run_pending();
    assert!(engine.stats().cache_misses > after.cache_misses, "the probe has read the rows");
    let skipped = engine.stats().tombstones_skipped;
    let mut cursor = engine.cursor(&tree, CursorOptions::default()).unwrap();
    assert!(cursor.first().unwrap());
    assert_eq!(cursor.key(), 3000_u64.to_be_bytes());
    assert_eq!(engine.stats().tombstones_skipped, skipped);
}

/// Rule 24: what the process takes beside what its parts charge is charged ahead.
#[test]
fn the_allocator_is_charged_ahead() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let budget = &engine.txns.reads.budget;
    let other = budget.used_by(Part::Other);
    assert!(other >= budget.total() / 16, "{other} of {} bytes", budget.total());
}

/// Rule 24: so is what the program holds for the engine's sake, as far as the engine can spare it.
#[test]
fn what_the_program_holds_beside_is_charged_up_to_a_share() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let budget = &engine.txns.reads.budget;
    let alone = budget.used_by(Part::Other);
    engine.set_outside_memory_bytes(1000).unwrap();
    assert_eq!(budget.used_by(Part::Other), alone + 1000);
    engine.set_outside_memory_bytes(u64::MAX).unwrap();
    assert_eq!(budget.used_by(Part::Other), alone + budget.total() / 8);
    // What it said still counts when the memory is another.
    engine.set_memory_bytes(2 * budget.total()).unwrap();
    let most = budget.used_by(Part::Other);
    engine.set_outside_memory_bytes(0).unwrap();
    assert_eq!(most - budget.used_by(Part::Other), budget.total() / 8);
}

/// Rule 24: memtables and jobs charge their memory for as long as they take it.
#[test]
fn a_memtable_and_its_flush_charge_their_memory() {
    let engine = open(&MemoryDevice::new()).unwrap();
    let (tree, txns) = (create(&engine, "t"), &engine.txns);
    let used = |part| txns.reads.budget.used_by(part);
    let (memtable, work) = (used(Part::Memtable), used(Part::Work));
    put(&engine, &tree, "key", Durability::Sync);
    assert!(used(Part::Memtable) > memtable);
    assert!(engine.background().freeze(tree.core()));
    let mut flush = FlushJob::begin(&txns.background.jobs, tree.core()).unwrap().unwrap();
    assert!(used(Part::Work) > work);
    while !flush.step().unwrap() {}
    let _ = flush.install(&txns.background.jobs).unwrap().settle(&txns.background.jobs).unwrap();
    assert_eq!((used(Part::Memtable), used(Part::Work)), (memtable, work));
    let parts: u64 = Part::ALL.iter().map(|part| used(*part)).sum();
    assert_eq!(parts, txns.reads.budget.used());
}
