//! Stowing (`crates/tree/src/tree/stowing.rs`): a tree that nothing uses takes few bytes, and
//! opening it restores its contents.

use crate::tree::Tree;
use frondb_commit::Durability;
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, NodeId};
use frondb_run::RunMeta;
use frondb_testkit::{CrashMode, MemoryDevice};
use frondb_tree::CursorOptions;
use frondb_tree::{State, TreeCore};
use frondb_trunk::NodeImage;

use super::{create, open, put};
use crate::db::Db;

/// Makes a tree with a flushed row.
fn flushed(db: &Db, name: &str) -> Tree {
    let tree = create(db, name);
    put(db, &tree, "key", Durability::Sync);
    db.flush().unwrap();
    while db.run_one(true) {}
    tree
}

fn get(_db: &Db, tree: &Tree) -> bool {
    tree.get(b"key").unwrap().is_some()
}

/// Tries to stow all trees, and returns whether `tree` is stowed then.
fn stows(db: &Db, tree: &Tree) -> bool {
    let _ = db.stow_trees();
    tree.core.is_stowed()
}

#[test]
fn a_tree_is_stowed_only_while_nothing_uses_it() {
    let db = open(&MemoryDevice::new()).unwrap();
    let new = create(&db, "new");
    assert!(new.core.is_stowed(), "as it is created");
    let tree = flushed(&db, "t");
    assert!(tree.core.is_stowed(), "when its flush is settled");
    assert!(get(&db, &tree) && !tree.core.is_stowed(), "a read opens it");
    assert!(stows(&db, &tree));

    let version = tree.core.version();
    assert!(!stows(&db, &tree), "a reader has its version");
    let root = Arc::clone(&version.trunk.root);
    drop(version);
    assert!(!stows(&db, &tree), "someone has its node");
    let run = Arc::clone(&root.views().next().unwrap().run);
    drop(root);
    assert!(!stows(&db, &tree), "someone has its run: another handle of it could be killed");
    drop(run);
    assert!(stows(&db, &tree));

    let hold = Arc::clone(&tree.core.version().hold);
    assert!(!stows(&db, &tree), "large values are kept for a reader");
    drop(hold);
    let mut cursor = tree.cursor_with(CursorOptions::default()).unwrap();
    assert!(stows(&db, &tree), "the cursor has no version yet");
    assert!(cursor.next().unwrap());
    assert!(!stows(&db, &tree), "the cursor reads");
    drop(cursor);
    assert!(stows(&db, &tree));

    let root = tree.core.version().trunk.root.id;
    tree.core.install.lock().claimed.insert(root);
    assert!(!stows(&db, &tree), "a job works on its node");
    tree.core.install.lock().claimed.remove(&root);
    tree.core.install.lock().flushing = true;
    assert!(!stows(&db, &tree), "a flush is under way");
    tree.core.install.lock().flushing = false;
    let install = tree.core.install.lock();
    let _ = tree.core.version();
    assert!(!stows(&db, &tree), "an install is under way: stowing does not wait for it");
    drop(install);
    assert!(stows(&db, &tree));

    put(&db, &tree, "other", Durability::Sync);
    assert!(!stows(&db, &tree), "it has a message in its memtable");
    db.flush().unwrap();
    while db.run_one(true) {}
    assert!(stows(&db, &tree) && get(&db, &tree));
}

/// A tree stays open if work is due, or becomes due when snapshots end. Otherwise the planner would
/// not find the work.
#[test]
fn a_tree_with_work_or_damage_is_not_stowed() {
    let db = open(&MemoryDevice::new()).unwrap();
    let (tree, _snapshot) = (flushed(&db, "t"), db.snapshot().unwrap());
    let hints = |tree: &Tree| Arc::clone(&tree.core.version().trunk.root.hints);
    hints(&tree).optimize.store(1, Ordering::Relaxed);
    assert!(!stows(&db, &tree), "an optimize waits for its leaf");
    hints(&tree).optimize.store(0, Ordering::Relaxed);
    assert!(stows(&db, &tree));
    hints(&tree).damage.note_failure(&Error::invalid("a job failed"));
    assert!(!stows(&db, &tree), "what is noted would be forgotten");
}

/// Returns the contents of a tree: the root node, the metadata of the runs, the number of flushes,
/// and the hints of the root.
fn contents(tree: &TreeCore) -> (NodeImage, Vec<RunMeta>, u64, Option<[u64; 10]>) {
    let version = tree.version();
    let root = &version.trunk.root;
    let runs = root.views().map(|view| view.run.meta().clone()).collect();
    (NodeImage::of(root), runs, version.flushes, root.hints.numbers())
}

#[test]
fn an_opened_tree_is_what_it_was() {
    let db = open(&MemoryDevice::new()).unwrap();
    let tree = flushed(&db, "t");
    for n in 0..3 {
        put(&db, &tree, &format!("more {n}"), Durability::Sync);
        db.flush().unwrap();
    }
    let hints = Arc::clone(&tree.core.version().trunk.root.hints);
    hints.run_debt.store(3, Ordering::Relaxed);
    hints.held_by.store(u64::MAX, Ordering::Relaxed);
    drop(hints);
    let trunk = || db.shared().budget.used_by(Part::Trunk);
    let (before, open_bytes) = (contents(&tree.core), trunk());
    let totals = db.shared().catalog.totals();
    assert!(before.1.len() > 1 && before.2 > 3);
    assert!(stows(&db, &tree));
    assert!(trunk() < open_bytes - 1000, "{} of {open_bytes} bytes", trunk());
    assert_eq!(db.shared().catalog.totals(), totals, "a stowed tree counts as before");
    assert_eq!(contents(&tree.core), before);
    assert_eq!((trunk(), db.shared().catalog.totals()), (open_bytes, totals));
}

/// Rules 7 and 8: the manifest describes a stowed tree like an open one, and the space of its run
/// is released once, when the tree is dropped.
#[test]
fn a_stowed_tree_is_in_the_manifest_and_can_be_dropped() {
    let device = MemoryDevice::new();
    let db = open(&device).unwrap();
    let used = |db: &Db| db.shared().runs.space.stats().used_bytes;
    let empty = used(&db);
    let tree = flushed(&db, "t");
    let before = contents(&tree.core);
    assert!(stows(&db, &tree) && used(&db) > empty);
    assert!(db.shared().background.rotate_manifest(true).unwrap());
    assert!(tree.core.is_stowed(), "the snapshot has not opened it");
    let crashed = device.crash(CrashMode::LoseUnsynced);
    let again = open(&crashed).unwrap();
    let found = again.open_tree("t").unwrap();
    assert!(found.core.is_stowed(), "as it is restored");
    assert!(get(&again, &found));
    let (node, runs, ..) = contents(&found.core);
    assert_eq!((node, runs), (before.0, before.1));

    assert!(stows(&db, &tree));
    db.drop_tree("t").unwrap();
    drop(tree);
    while db.run_one(true) {}
    assert_eq!(used(&db), empty);
}

/// A program that opens 5,000 trees one after another leaves only one or two thousand of them open.
#[test]
fn trees_that_are_not_used_any_more_are_stowed_again() {
    let db = open(&MemoryDevice::new()).unwrap();
    let trees: Vec<Tree> = (0..5000).map(|n| create(&db, &format!("{n}"))).collect();
    let is_open = |tree: &&Tree| matches!(tree.core.state(), State::Open(_));
    let mut most = 0;
    for (n, tree) in trees.iter().enumerate() {
        assert_eq!(tree.core.version().trunk.root.totals.leaves, 1);
        if n % 100 == 0 {
            while db.run_one(false) {}
            most = most.max(trees.iter().filter(is_open).count());
        }
    }
    assert!((1000..2400).contains(&most), "{most} trees were open");
    assert!(trees.iter().all(|tree| tree.core.version().trunk.root.id > NodeId(0)));
}
