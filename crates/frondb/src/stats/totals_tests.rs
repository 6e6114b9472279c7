//! The totals that the catalog maintains, and the statistics that report them, equal the sums over
//! all trees after random writes, flushes, merges and drops.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

use crate::options::TreeOptions;
use crate::testing::TestDb;
use crate::transaction::TransactionOptions;
use frondb_commit::Durability;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_tree::{TreeSizes, TreeTotals};
use frondb_txn::BulkOptions;

use crate::db::Db;
use crate::stats::EngineStats;
use crate::tree::Tree;
use frondb_commit::Batch;

fn open(device: &MemoryDevice) -> Db {
    TestDb::on(Arc::new(device.clone())).open().unwrap()
}

/// Asserts that the totals are right, and returns the numbers of trees and messages.
fn check(db: &Db, what: &str) -> (u64, u64) {
    let trees = &db.shared().trees;
    let totals = TreeTotals::default();
    for tree in trees.all() {
        totals.change(TreeSizes::default(), TreeSizes::of(&tree.version()));
    }
    let (found, expected) = (db.shared().catalog.totals(), totals.read());
    assert_eq!(found, expected, "after {what}");
    let stats = db.stats();
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
    assert_eq!(stats.trees, trees.len() as u64, "after {what}");
    (stats.trees, expected.entries)
}

fn write(db: &Db, tree: &Tree, prng: &mut Prng, count: u64) {
    let mut batch = Batch::new();
    for _ in 0..count {
        let key = prng.below(20_000).to_be_bytes();
        if prng.chance(1, 4) {
            batch.delete(tree, &key);
        } else {
            batch.put(tree, &key, &[7; 100]);
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

#[test]
fn sums_are_those_of_the_trees() {
    let seed = 41;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let device = MemoryDevice::new();
    let mut db = open(&device);
    let (mut most_trees, mut most_entries, mut drops, mut made) = (0, 0, 0, 0);
    for round in 0..300 {
        let names = db.list_trees();
        let any = (!names.is_empty()).then(|| names[prng.index(names.len())].clone());
        let what = match (prng.below(20), any) {
            (0..3, _) | (_, None) => {
                made += 1;
                db.create_tree(&format!("t{made}"), TreeOptions::default()).unwrap();
                "a new tree"
            }
            (3, Some(name)) => {
                // Sometimes a flush is due when the tree is dropped.
                db.drop_tree(&name).unwrap();
                drops += 1;
                "a drop"
            }
            (4, Some(_)) => {
                db.flush().unwrap();
                "a flush"
            }
            (5, Some(_)) => {
                db.close().unwrap();
                drop(db);
                db = open(&device);
                "a reopen"
            }
            (6, Some(_)) => {
                drop(db);
                db = open(&device);
                "a crash"
            }
            (7, Some(name)) => {
                let tree = db.open_tree(&name).unwrap();
                let load = db.bulk_load(BulkOptions::default()).unwrap();
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
                let tree = db.open_tree(&name).unwrap();
                let txn = db.begin(TransactionOptions::default()).unwrap();
                for key in 0..8000_u64 {
                    txn.put(&tree, &key.to_be_bytes(), &[2; 100]).unwrap();
                }
                txn.commit().unwrap();
                "a large transaction"
            }
            (9..12, Some(_)) => {
                while db.run_one(true) {}
                "idle work"
            }
            (_, Some(name)) => {
                let tree = db.open_tree(&name).unwrap();
                write(&db, &tree, &mut prng, 500);
                "writes"
            }
        };
        let (trees, entries) = check(&db, &format!("{what}, round {round}"));
        (most_trees, most_entries) = (most_trees.max(trees), most_entries.max(entries));
    }
    assert!(
        most_trees > 3 && most_entries > 10_000 && drops > 3,
        "{most_trees} {most_entries} {drops}"
    );
}
