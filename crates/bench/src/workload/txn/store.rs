//! A database with one tree, below the directory of the child. Each part of the workload removes
//! its database at its end.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use frondb::{
    Batch, Db, Durability, Isolation, Options, Transaction, TransactionOptions, Tree, TreeOptions,
};

use super::super::Spec;
use super::super::settle::settle_until;
use super::rows::{Rows, key};
use crate::error::{Error, Result};
use crate::measure::disk;

/// Rows of a batch in loads.
pub(in crate::workload) const BATCH_ROWS: u64 = 1_000;

/// Rows that are looked up after the writes.
const PROBES: u64 = 1_000;

pub(in crate::workload) struct Store {
    pub(in crate::workload) db: Db,
    pub(in crate::workload) tree: Tree,
    dir: PathBuf,
}

impl Store {
    pub(in crate::workload) fn create(spec: &Spec, name: &str) -> Result<Self> {
        let dir = spec.dir.join(name);
        fs::create_dir_all(&dir).map_err(Error::io(format!("create {}", dir.display())))?;
        let options = Options::new().create_new(true).memory_bytes(spec.memory_bytes);
        let db = Db::open(&dir, options).map_err(Error::engine)?;
        let tree = db.create_tree("rows", TreeOptions::new()).map_err(Error::engine)?;
        Ok(Self { db, tree, dir })
    }

    /// Begins a transaction at repeatable read.
    pub(in crate::workload) fn begin(&self, durability: Durability) -> Result<Transaction> {
        let options =
            TransactionOptions::new().isolation(Isolation::RepeatableRead).durability(durability);
        self.db.begin(options).map_err(Error::engine)
    }

    /// Writes a batch, not synced.
    pub(in crate::workload) fn write(&self, batch: &Batch) -> Result<()> {
        self.db.write(batch, Durability::NoSync).map_err(Error::engine)
    }

    /// Writes the next `count` of `rows` in batches of 1,000, not synced.
    pub(in crate::workload) fn load(&self, rows: &mut Rows, count: u64) -> Result<()> {
        let mut batch = Batch::new();
        let mut left = count;
        while left > 0 {
            batch.clear();
            for _ in 0..left.min(BATCH_ROWS) {
                let (key, value) = rows.next();
                batch.put(&self.tree, &key, value);
            }
            left -= left.min(BATCH_ROWS);
            self.write(&batch)?;
        }
        Ok(())
    }

    /// Writes rows `0..count` with this value and their numbers as keys, ascending, not synced.
    pub(in crate::workload) fn load_ascending(&self, count: u64, value: &[u8]) -> Result<()> {
        let mut batch = Batch::new();
        for from in (0..count).step_by(BATCH_ROWS as usize) {
            batch.clear();
            for n in from..count.min(from + BATCH_ROWS) {
                batch.put(&self.tree, &n.to_be_bytes(), value);
            }
            self.write(&batch)?;
        }
        Ok(())
    }

    /// Waits until the database is settled; returns how long that took.
    pub(in crate::workload) fn settle(&self) -> Result<Duration> {
        settle_until(&mut || Ok(self.db.is_settled()), &|| self.db.sync().map_err(Error::engine))
    }

    /// Looks up some of the rows `0..rows` of a seed. A missing row is an error, because the
    /// figures of an engine that loses rows are worthless.
    pub(in crate::workload) fn check(&self, seed: u64, rows: u64) -> Result<()> {
        for n in 0..PROBES.min(rows) {
            let number = n * (rows / PROBES.min(rows));
            if !self.tree.exists(&key(seed, number)).map_err(Error::engine)? {
                return Err(Error::Wrong(format!("row {number} was committed and is not found")));
            }
        }
        Ok(())
    }

    pub(in crate::workload) fn remove(self) -> Result<()> {
        self.db.close().map_err(Error::engine)?;
        let dir = self.dir;
        fs::remove_dir_all(&dir).map_err(Error::io(format!("remove {}", dir.display())))?;
        dir.parent().map_or(Ok(()), disk::sync_file_system)
    }
}
