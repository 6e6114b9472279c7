//! Random histories of batches, commits with private runs and prepared transactions against a model,
//! with sources kept above the trunk, snapshots, flushes, checkpoints, clean and other reopenings.
//! `FRONDB_SEED` and `FRONDB_ROUNDS` choose others.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

mod support;

use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{CrashMode, MemoryDevice};
use frondb_engine::Durability;
use frondb_testkit::seed;
use support::model::Author;
use support::{Expected, World};

const STEPS: u64 = 120;

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
                world.roll_back_prepared(xid).unwrap();
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
        _ => while world.engine.run_one(true) {},
    }
}

fn history(seed: u64) {
    let device = MemoryDevice::new();
    let keys = [40, 300][seed as usize % 2];
    let mut author = Author::new(seed, keys, [20, 400][seed as usize / 2 % 2], 60);
    let mut check = Prng::new(seed);
    let mut names = 0;
    let mut device = Arc::new(device);
    let mut world = World::open(Arc::clone(&device) as _, Expected::default()).unwrap();
    for i in 0..STEPS {
        step(&mut world, &mut author, &mut names);
        if i % 4 == 0 {
            world.check(&mut check);
        }
        if author.prng.chance(1, 12) {
            let expected = if author.prng.chance(1, 2) {
                world.close().unwrap()
            } else {
                // As kill -9: what the kernel has is there.
                let expected = world.expected.clone();
                drop(world);
                device = Arc::new(device.crash(CrashMode::KeepAll));
                expected
            };
            world = World::open(Arc::clone(&device) as _, expected).unwrap();
            world.check(&mut check);
        }
    }
    world.checkpoint().unwrap();
    world.snapshots.clear();
    while world.engine.run_one(true) {}
    world.check(&mut check);
    assert_eq!(world.engine.leaked_bytes(), 0);
}

#[test]
fn readers_see_what_was_committed() {
    let first = seed::from_env("FRONDB_SEED", 1);
    for seed in first..first + seed::from_env("FRONDB_ROUNDS", 40) {
        println!("FRONDB_SEED={seed} FRONDB_ROUNDS=1");
        history(seed);
    }
}
