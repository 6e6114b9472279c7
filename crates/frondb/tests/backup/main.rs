//! Backups: made while others write, restored, continued, damaged and abandoned.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod begun;
mod chain;
mod crashes;
mod damage;
mod directories;
mod failures;
mod full;

use std::collections::BTreeMap;

use frondb::{BackupOptions, BackupReport, Batch, Db, Durability, Result, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;

use support::Rows;

/// The rows of all trees.
type Model = BTreeMap<String, Rows>;

/// A database without background threads, with its expected contents.
struct Store {
    device: MemoryDevice,
    db: Db,
    model: Model,
    prng: Prng,
}

impl Store {
    fn new(seed: u64) -> Self {
        let device = MemoryDevice::new();
        let db = support::open_small(Arc::new(device.clone()));
        Self { device, db, model: Model::new(), prng: Prng::new(seed) }
    }

    /// Opens the database on a device that has one.
    fn of(device: MemoryDevice, model: Model, seed: u64) -> Self {
        let db = support::open_small(Arc::new(device.clone()));
        Self { device, db, model, prng: Prng::new(seed) }
    }

    fn tree(&mut self, name: &str) -> Tree {
        self.model.entry(name.to_owned()).or_default();
        self.db.open_tree(name).unwrap_or_else(|_| {
            let options = TreeOptions::new().update_fn("append", 1);
            self.db.create_tree(name, options).unwrap()
        })
    }

    /// Commits `times` batches of 20 random messages of every kind but range deletes, and sometimes
    /// a range delete.
    fn change(&mut self, name: &str, times: u64) {
        let tree = self.tree(name);
        for _ in 0..times {
            let prng = &mut self.prng;
            let rows = self.model.get_mut(name).unwrap();
            let mut batch = Batch::new();
            for _ in 0..20 {
                let key = (prng.below(3000) as u32).to_be_bytes();
                let value = vec![prng.below(256) as u8; 20 + prng.below(300) as usize];
                match prng.below(100) {
                    0..80 => {
                        batch.put(&tree, &key, &value);
                        rows.insert(key.to_vec(), value);
                    }
                    80..90 => {
                        batch.delete(&tree, &key);
                        rows.remove(&key[..]);
                    }
                    90..98 => {
                        batch.update(&tree, &key, &value[..3]);
                        rows.entry(key.to_vec()).or_default().extend_from_slice(&value[..3]);
                    }
                    _ => {
                        let large = vec![value[0]; 70_000];
                        batch.put(&tree, &key, &large);
                        rows.insert(key.to_vec(), large);
                    }
                }
            }
            self.db.write(&batch, Durability::NoSync).unwrap();
        }
        if self.prng.chance(1, 8) {
            let lo = (self.prng.below(3000) as u32).to_be_bytes();
            let hi = (u32::from_be_bytes(lo) + 50).to_be_bytes();
            tree.delete_range(&lo, Some(&hi)).unwrap();
            let rows = self.model.get_mut(name).unwrap();
            rows.retain(|key, _| **key < lo[..] || **key >= hi[..]);
        }
    }

    fn settle(&self) {
        self.db.flush().unwrap();
        while self.db.run_one(true) {}
    }

    fn check(&self) {
        assert!(support::contents(&self.db) == self.model, "the database that was copied");
        let report = self.db.verify(&mut |_, _, _| true).unwrap();
        assert!(report.faults.is_empty(), "{:?}", report.faults);
    }
}

fn empty() -> SharedDevice {
    Arc::new(MemoryDevice::new())
}

/// Makes a backup while no other call runs; returns its device and report.
fn backup(db: &Db, since: Option<&SharedDevice>) -> (SharedDevice, BackupReport) {
    let target = empty();
    let options = BackupOptions::new();
    let report = db.backup_to(&target, since, &options, &mut |_, _| true).unwrap();
    (target, report)
}

/// Restores a database from backups, opens it and returns it.
fn restore(chain: &[SharedDevice]) -> Result<Db> {
    let target = empty();
    Db::restore_from(chain, &target, &mut |_, _| true)?;
    Ok(support::open_small(target))
}

/// Checks that a chain of backups has these rows and no damage.
fn check_restored(chain: &[SharedDevice], model: &Model, when: &str) {
    for backup in chain {
        let contents = Db::verify_backup_in(backup, &mut |_, _| true).unwrap();
        assert!(contents.faults.is_empty(), "{when}: {:?}", contents.faults);
    }
    let db = restore(chain).unwrap();
    assert!(support::contents(&db) == *model, "{when}: other rows");
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{when}: {:?}", report.faults);
    // The restored database works like any other.
    db.flush().unwrap();
    while db.run_one(true) {}
    assert!(support::contents(&db) == *model, "{when}: other rows after merges");
    db.close().unwrap();
}
