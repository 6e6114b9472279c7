//! A database with one tree, below the directory of the child; removed at the end of its part.

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
pub(super) const BATCH_ROWS: u64 = 1_000;

/// Rows that are looked up after the writes.
const PROBES: u64 = 1_000;

pub(super) struct Store {
    pub(super) db: Db,
    pub(super) tree: Tree,
    dir: PathBuf,
}

impl Store {
    pub(super) fn create(spec: &Spec, name: &str) -> Result<Self> {
        let dir = spec.dir.join(name);
        fs::create_dir_all(&dir).map_err(Error::io(format!("create {}", dir.display())))?;
        let options = Options::new().create_new(true).memory_bytes(spec.memory_bytes);
        let db = Db::open(&dir, options).map_err(Error::engine)?;
        let tree = db.create_tree("rows", TreeOptions::new()).map_err(Error::engine)?;
        Ok(Self { db, tree, dir })
    }

    /// Begins a transaction at repeatable read.
    pub(super) fn begin(&self, durability: Durability) -> Result<Transaction> {
        let options =
            TransactionOptions::new().isolation(Isolation::RepeatableRead).durability(durability);
        self.db.begin(options).map_err(Error::engine)
    }

    /// Writes a batch, not synced.
    pub(super) fn write(&self, batch: &Batch) -> Result<()> {
        self.db.write(batch, Durability::NoSync).map_err(Error::engine)
    }

    /// Writes the next `count` of `rows` in batches of 1,000, not synced.
    pub(super) fn load(&self, rows: &mut Rows, count: u64) -> Result<()> {
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

    /// Waits until the database is settled; returns how long that took.
    pub(super) fn settle(&self) -> Result<Duration> {
        settle_until(&|| Ok(self.db.is_settled()), &|| self.db.sync().map_err(Error::engine))
    }

    /// Looks up some of the rows `0..rows` of a seed. If one is missing, all figures are worthless.
    pub(super) fn check(&self, seed: u64, rows: u64) -> Result<()> {
        for n in 0..PROBES.min(rows) {
            let number = n * (rows / PROBES.min(rows));
            if !self.tree.exists(&key(seed, number)).map_err(Error::engine)? {
                return Err(Error::Wrong(format!("row {number} was committed and is not found")));
            }
        }
        Ok(())
    }

    pub(super) fn remove(self) -> Result<()> {
        self.db.close().map_err(Error::engine)?;
        let dir = self.dir;
        fs::remove_dir_all(&dir).map_err(Error::io(format!("remove {}", dir.display())))?;
        dir.parent().map_or(Ok(()), disk::sync_file_system)
    }
}
