//! The maintained totals equal the sums over all trees after random writes, flushes, merges and
//! drops.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use frondb_commit::Durability;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{MemoryDevice, SharedDevice};
use frondb_records::TreeOptions;
use frondb_tree::{TreeSizes, TreeTotals};
use frondb_txn::{BulkOptions, TransactionOptions};

use crate::engine::Engine;
use crate::options::EngineOptions;
use crate::stats::EngineStats;
use crate::{Batch, Tree};

fn open(device: &MemoryDevice) -> Arc<Engine> {
    let options = EngineOptions {
        memory_bytes: EngineOptions::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        background_threads: 0,
        reserve_bytes: 0,
        ..EngineOptions::default()
    };
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let device: SharedDevice = Arc::new(device.clone());
    Arc::new(Engine::open(device, None, options, clock, &ThreadExecutor::shared()).unwrap())
}

/// Asserts that the totals are right, and returns the numbers of trees and messages.
fn check(engine: &Engine, what: &str) -> (u64, u64) {
    let txns = &engine.txns;
    let totals = TreeTotals::default();
    for tree in txns.background.jobs.trees.all() {
        totals.change(TreeSizes::default(), TreeSizes::of(&tree.version()));
    }
    let (found, expected) = (engine.catalog.totals(), totals.read());
    assert_eq!(found, expected, "after {what}");
    let stats = engine.stats();
    let EngineStats { nodes, leaves, views, entries, .. } = stats;
    let EngineStats { raw_bytes, run_bytes, packed_bytes, frozen_memtables, .. } = stats;
    let reported = TreeSizes {
        nodes,
        leaves,
        views,
        entries,
        raw_bytes,
        run_bytes,
        packed_bytes,
        frozen_memtables,
    };
    assert_eq!(reported, expected, "the statistics after {what}");
    assert_eq!(stats.trees, txns.background.jobs.trees.len() as u64, "after {what}");
    (stats.trees, expected.entries)
}

fn write(engine: &Engine, tree: &Tree, prng: &mut Prng, count: u64) {
    let mut batch = Batch::new();
    for _ in 0..count {
        let key = prng.below(20_000).to_be_bytes();
        if prng.chance(1, 4) {
            batch.delete(tree, &key);
        } else {
            batch.put(tree, &key, &[7; 100]);
        }
    }
    engine.write(&batch, Durability::NoSync).unwrap();
}

#[test]
fn sums_are_those_of_the_trees() {
    let seed = 41;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let device = MemoryDevice::new();
    let mut engine = open(&device);
    let (mut most_trees, mut most_entries, mut drops, mut made) = (0, 0, 0, 0);
    for round in 0..300 {
        let names = engine.list_trees();
        let any = (!names.is_empty()).then(|| names[prng.index(names.len())].clone());
        let what = match (prng.below(20), any) {
            (0..3, _) | (_, None) => {
                made += 1;
                engine.create_tree(&format!("t{made}"), TreeOptions::default()).unwrap();
                "a new tree"
            }
            (3, Some(name)) => {
                // Sometimes a flush is due when the tree is dropped.
                engine.drop_tree(&name).unwrap();
                drops += 1;
                "a drop"
            }
            (4, Some(_)) => {
                engine.flush().unwrap();
                "a flush"
            }
            (5, Some(_)) => {
                engine.close().unwrap();
                drop(engine);
                engine = open(&device);
                "a reopen"
            }
            (6, Some(_)) => {
                drop(engine);
                engine = open(&device);
                "a crash"
            }
            (7, Some(name)) => {
                let tree = engine.open_tree(&name).unwrap();
                let load = engine.bulk_load(BulkOptions::default()).unwrap();
                let mut writer = load.writer();
                for key in 0..2000_u64 {
                    writer.put(&tree, &key.to_be_bytes(), &[1; 50]).unwrap();
                }
                writer.finish().unwrap();
                load.finish(&mut |_| true).unwrap();
                "a bulk load"
            }
            (8, Some(name)) => {
                // Large enough to spill to private runs before the commit.
                let tree = engine.open_tree(&name).unwrap();
                let txn = engine.begin(TransactionOptions::default()).unwrap();
                for key in 0..8000_u64 {
                    txn.put(&tree, &key.to_be_bytes(), &[2; 100]).unwrap();
                }
                txn.commit().unwrap();
                "a large transaction"
            }
            (9..12, Some(_)) => {
                while engine.run_one(true) {}
                "idle work"
            }
            (_, Some(name)) => {
                let tree = engine.open_tree(&name).unwrap();
                write(&engine, &tree, &mut prng, 500);
                "writes"
            }
        };
        let (trees, entries) = check(&engine, &format!("{what}, round {round}"));
        (most_trees, most_entries) = (most_trees.max(trees), most_entries.max(entries));
    }
    assert!(
        most_trees > 3 && most_entries > 10_000 && drops > 3,
        "{most_trees} {most_entries} {drops}"
    );
}
