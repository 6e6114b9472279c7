//! Random histories of batches, commits with private runs and prepared transactions, compared with
//! a model. The histories include blocked flushes, snapshots, flushes, checkpoints, and reopens
//! after a close or a kill. `FRONDB_SEED` and `FRONDB_ROUNDS` set the first seed and the number of
//! histories.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::seed;
use frondb_testkit::{CrashMode, MemoryDevice};

use super::model::{Author, Expected};
use super::world::World;
use frondb_commit::Durability;

const STEPS: u64 = 120;

/// How often each case occurred in all histories. A case that never occurs is not tested.
type Counts = BTreeMap<&'static str, u64>;

const MET: [&str; 8] = [
    "attached",
    "read above the trunk",
    "read at a snapshot",
    "a tree of three levels",
    "recovered above the trunk",
    "recovered prepared",
    "committed after a restart",
    "checkpoint with prepared",
];

fn count(counts: &mut Counts, what: &'static str, n: u64) {
    *counts.entry(what).or_default() += n;
}

fn note_state(world: &World, counts: &mut Counts) {
    let frozen = world.db.stats().frozen_memtables;
    count(counts, "read above the trunk", u64::from(frozen > 0));
    count(counts, "read at a snapshot", world.snapshots.len() as u64);
    for tree in &world.trees {
        let height = tree.stats().unwrap().height;
        count(counts, "a tree of three levels", u64::from(height > 2));
    }
}

fn step(world: &mut World, author: &mut Author, names: &mut u64) {
    let durability = *author.prng.pick(&[Durability::Sync, Durability::NoSync]).unwrap();
    let prepared: Vec<Vec<u8>> = world.expected.prepared.keys().cloned().collect();
    match author.prng.below(100) {
        0..25 => {
            let changes = author.record();
            world.write(&changes, durability).unwrap();
        }
        25..50 => {
            let txn = author.txn();
            world.commit(&txn, durability).unwrap();
        }
        50..58 => {
            *names += 1;
            let txn = author.txn();
            world.prepare(format!("xid {names}").as_bytes(), &txn).unwrap();
        }
        58..64 => {
            if let Some(xid) = author.prng.pick(&prepared) {
                world.commit_prepared(xid, durability).unwrap();
            }
        }
        64..66 => {
            if let Some(xid) = author.prng.pick(&prepared) {
                world.rollback_prepared(xid).unwrap();
            }
        }
        66..72 => world.take_snapshot(),
        72..76 => {
            if !world.snapshots.is_empty() {
                let at = author.prng.index(world.snapshots.len());
                world.snapshots.swap_remove(at);
            }
        }
        76..86 => {
            let (tree, blocked) = (author.prng.index(2), author.prng.chance(2, 3));
            world.block(tree, blocked);
        }
        86..92 => world.flush().unwrap(),
        92..95 => world.checkpoint().unwrap(),
        _ => while world.db.run_one(true) {},
    }
}

fn history(seed: u64, counts: &mut Counts) {
    let device = MemoryDevice::new();
    let keys = [40, 300, 3000][seed as usize % 3];
    let mut author = Author::new(seed, keys, [20, 600][seed as usize % 2], 60);
    let mut check = Prng::new(seed);
    let mut names = 0;
    let mut device = Arc::new(device);
    let mut world = World::open(Arc::clone(&device) as _, Expected::default()).unwrap();
    let mut recovered: BTreeSet<Vec<u8>> = BTreeSet::new();
    for i in 0..STEPS {
        let before = world.expected.prepared.len();
        let checkpoints = world.db.stats().manifest_rotations;
        step(&mut world, &mut author, &mut names);
        if world.db.stats().manifest_rotations > checkpoints {
            count(counts, "checkpoint with prepared", before as u64);
        }
        let decided = recovered.iter().any(|xid| !world.expected.prepared.contains_key(xid));
        count(counts, "committed after a restart", u64::from(decided));
        recovered.retain(|xid| world.expected.prepared.contains_key(xid));
        if i % 4 == 0 {
            note_state(&world, counts);
            world.check(&mut check);
        }
        if author.prng.chance(1, 12) {
            count(counts, "attached", world.db.stats().attaches);
            let expected = if author.prng.chance(1, 2) {
                world.close().unwrap()
            } else {
                // As after `kill -9`: the kernel keeps all written data.
                let expected = world.expected.clone();
                drop(world);
                device = Arc::new(device.crash(CrashMode::KeepAll));
                expected
            };
            world = World::open(Arc::clone(&device) as _, expected).unwrap();
            let frozen = world.db.stats().frozen_memtables;
            count(counts, "recovered above the trunk", u64::from(frozen > 0));
            recovered = world.expected.prepared.keys().cloned().collect();
            count(counts, "recovered prepared", recovered.len() as u64);
            world.check(&mut check);
        }
    }
    world.checkpoint().unwrap();
    world.snapshots.clear();
    while world.db.run_one(true) {}
    world.check(&mut check);
    assert_eq!(world.db.leaked_bytes(), 0);
}

#[test]
fn readers_see_what_was_committed() {
    let first = seed::from_env("FRONDB_SEED", 1);
    let rounds = seed::from_env("FRONDB_ROUNDS", 40);
    let mut counts = Counts::new();
    for seed in first..first + rounds {
        println!("FRONDB_SEED={seed} FRONDB_ROUNDS=1");
        history(seed, &mut counts);
    }
    println!("{counts:#?}");
    if rounds >= 20 {
        let missing = MET.iter().filter(|what| counts.get(**what).is_none_or(|n| *n == 0));
        assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&str>::new(), "never happened");
    }
}
