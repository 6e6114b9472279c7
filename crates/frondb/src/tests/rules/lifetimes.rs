//! Rules 1, 7, 12 and 17: when a run, an extent and a large value may be freed.

use std::collections::HashMap;

use frondb_background::jobs::install::dead_runs;
use frondb_commit::Batch;
use frondb_commit::Durability;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_space::Extent;
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_tree::InstallState;
use frondb_trunk::install::{Change, Place, PlacedRun};

use super::{create, open, put};
use crate::db::Db;

/// Returns the extents of the runs and large values that the manifest names after a recovery of
/// `device`.
fn named(device: &MemoryDevice) -> Vec<Extent> {
    let db = open(device).unwrap();
    let mut named = Vec::new();
    for tree in db.shared().background.jobs.trees.all() {
        named.extend(tree.install.lock().values.iter().flatten().copied());
        tree.version().trunk.for_each(&mut |node| {
            node.views().for_each(|view| named.extend(view.run.meta().extents.iter().copied()));
        });
    }
    named
}

/// Writes, flushes, merges and deletes rows and large values, and drops a tree.
fn free_many_extents(db: &Db) {
    let trees = ["stays", "goes"].map(|name| create(db, name));
    for round in 0..4u8 {
        for tree in &trees {
            let mut batch = Batch::new();
            for row in 0..50u8 {
                batch.put(tree, &[row], &[round; 1000]);
            }
            // The second put replaces the first before both are flushed.
            for value in [round + 100, round] {
                batch.put(tree, b"large", &[value; 100_000]);
            }
            db.write(&batch, Durability::NoSync).unwrap();
        }
        db.flush().unwrap();
        while db.run_one(true) {}
        if round % 2 == 1 {
            db.checkpoint().unwrap();
        }
    }
    drop(trees);
    db.drop_tree("goes").unwrap();
    let mut batch = Batch::new();
    batch.delete_range(&db.open_tree("stays").unwrap(), b"", None);
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    while db.run_one(true) {}
    db.checkpoint().unwrap();
}

/// Rule 7: an extent is free only when the edit that dropped it is durable and no superblock leads
/// to an edit that names it. The test stops before every device call of a history, and reads the
/// manifest that a power loss at that moment would leave. This manifest must not name an extent
/// that the db considers free, because another thread could overwrite the extent.
#[test]
fn no_extent_that_recovery_would_read_is_free() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let space = Arc::clone(&db.shared().runs.space);
    let checks = Arc::new(AtomicU64::new(0));
    let (looked, counted) = (device.clone(), Arc::clone(&checks));
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
    free_many_extents(&db);
    device.set_observer(None);
    assert!(checks.load(Ordering::Relaxed) > 500, "{checks:?} extents: the test tests nothing");
    let used = db.shared().runs.space.stats().used_bytes;
    assert!(used < 100_000, "{used} bytes are in use and nothing is left");
}

/// Rule 1: a run with views in several nodes is dead when the last view is dropped, and not before.
/// A new run without views is dead immediately.
#[test]
fn a_run_is_dead_with_its_last_view() {
    let db = open(&MemoryDevice::new()).unwrap();
    let tree = create(&db, "t");
    put(&db, &tree, "k", Durability::NoSync);
    db.flush().unwrap();
    let version = tree.core.version();
    let run = Arc::clone(&version.trunk.root.views().next().unwrap().run);
    let id = run.meta().id;
    let mut install =
        InstallState { views: HashMap::from([(id, 3)]).into(), ..InstallState::default() };
    let mut dead = |delta: i64, new_runs: &[PlacedRun]| {
        let trunk = version.trunk.clone();
        let views = (delta != 0).then_some((id, delta)).into_iter().collect();
        let change = Change { trunk, images: Vec::new(), dropped: Vec::new(), root: None, views };
        let dead = dead_runs(&mut install, &change, &version, new_runs);
        let ids: Vec<_> = dead.iter().map(|run| run.meta().id).collect();
        (ids, install.views.of(&version.trunk).get(&id).copied())
    };
    assert_eq!(dead(-1, &[]), (vec![], Some(2)), "two views are left");
    assert_eq!(dead(1, &[]), (vec![], Some(3)), "a split made another");
    assert_eq!(dead(-2, &[]), (vec![], Some(1)));
    assert_eq!(dead(-1, &[]), (vec![id], None), "that was the last");
    let (lo, place) = (Arc::from(*b""), Place::Slice);
    let placed = PlacedRun { run: Arc::clone(&run), lo, hi: None, place };
    assert_eq!(dead(0, &[placed]), (vec![id], None), "no node references it");
}

/// Rules 12 and 17: a point read holds a version and no snapshot. The large values to which the
/// version refers stay on disk until the version is dropped, although no later reader can see them.
#[test]
fn a_large_value_outlives_the_versions_that_refer_to_it() {
    let db = open(&MemoryDevice::new()).unwrap();
    let tree = create(&db, "t");
    let large = vec![7; 100 << 10];
    let mut batch = Batch::new();
    batch.put(&tree, b"k", &large);
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    let used = || db.shared().runs.space.stats().used_bytes;
    let read = tree.core.version();
    put(&db, &tree, "k", Durability::NoSync);
    db.flush().unwrap();
    while db.run_one(true) {}
    assert!(tree.core.install.lock().values.is_empty(), "a merge has dropped the reference");
    assert!(used() > large.len() as u64, "a reader of the old version may still read it");
    drop(read);
    assert!(used() < large.len() as u64, "no reader holds the old version");
}
