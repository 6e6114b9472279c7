//! [`BulkLoad`]: a bulk load from begin to finish.

use frondb_catalog::Catalog;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, ProcessCounter};
use frondb_core::{Error, Result};

use super::merging::Merging;
use super::new_trees;
use super::options::{BulkOptions, BulkProgress, BulkReport, Duplicate};
use super::shared::{BUFFER_BYTES_MIN, LoadShared};
use super::writer::BulkWriter;
use crate::context::Transactions;
use crate::transaction::KeepOpen;

/// Ids of loads in this process.
static LOADS: ProcessCounter = ProcessCounter::new(1);

/// Largest buffer, bytes: offsets in a buffer have 32 bits.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// A bulk load in progress. Any thread may use it. Dropping it before [`finish`](Self::finish)
/// undoes the load.
pub struct BulkLoad {
    pub(super) shared: Arc<LoadShared>,
}

impl Transactions {
    /// Begins a bulk load, which creates its new trees in `catalog` and holds `open` as long as
    /// it lives.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn bulk_load(
        self: &Arc<Self>,
        options: BulkOptions,
        catalog: Arc<Catalog>,
        open: KeepOpen,
    ) -> Result<BulkLoad> {
        let txns = self;
        txns.reads.health.check()?;
        txns.reads.health.check_writable()?;
        let default = txns.background.jobs.shares.now().bulk_bytes();
        let bytes = if options.memory_bytes == 0 { default } else { options.memory_bytes };
        let shared = LoadShared {
            txns: Arc::clone(self),
            catalog,
            _open: open,
            id: LOADS.next(),
            options,
            buffer_bytes: bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX),
            writers: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            spilled: AtomicU64::new(0),
            numbers: AtomicU64::new(0),
            gathered: Mutex::default(),
            new_trees: Mutex::default(),
        };
        Ok(BulkLoad { shared: Arc::new(shared) })
    }
}

impl BulkLoad {
    /// A new writer, one for each thread that adds entries. All writers share the memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        BulkWriter::new(Arc::clone(&self.shared))
    }

    /// Cancels the load from any thread: current and later calls fail with `Cancelled`.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Release);
    }

    /// A duplicate key, if there was any. After a successful [`finish`](Self::finish), the
    /// smallest duplicate of the earliest created tree that has one; after a load that failed
    /// with `Exists`, any duplicate.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.shared.gathered.lock().duplicate.clone()
    }

    /// Merges the entries of all writers and commits them atomically to all trees, as durable as
    /// the options require. Calls `progress` from time to time, and cancels the load when it
    /// returns false.
    ///
    /// # Errors
    /// `Invalid` if a writer is not finished, or the load is finished already; `Cancelled`;
    /// `Exists` for a duplicate key under [`Duplicates::Fail`](super::Duplicates::Fail); `NotFound` if a tree was dropped;
    /// `LockTimeout` or `Deadlock` if transactions kept the trees locked until the timeout;
    /// `NoSpace`, `Io`, `Poisoned`, `Closed`. After an error nothing is loaded; after `Poisoned`
    /// a reopened database may have the load.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        let shared = &self.shared;
        let (trees, duplicates) = {
            let mut gathered = shared.gathered.lock();
            if shared.writers.load(Ordering::Acquire) > 0 {
                return Err(Error::invalid("a writer of the load is not finished"));
            }
            if std::mem::replace(&mut gathered.finished, true) {
                return Err(Error::invalid("the load is already finished"));
            }
            shared.check_cancelled()?;
            if let Some(error) = gathered.broken.clone() {
                return Err(error);
            }
            (std::mem::take(&mut gathered.trees), gathered.duplicates)
        };
        let mut merging = Merging::new(shared, progress, trees);
        merging.count_duplicates(duplicates)?;
        let report = merging.merge_all()?;
        let mut parts = std::mem::take(&mut merging.parts);
        let new = std::mem::take(&mut *shared.new_trees.lock());
        new_trees::complete(&mut parts, &new);
        match shared.commit(&parts, &new, &report, &mut || merging.progress(0)) {
            Ok(None) => Ok(report),
            // The runs belong to the trees from here on, whatever the result of the wait.
            Ok(Some(end)) => {
                shared.txns.wait_durable(end, shared.options.durability).map(|()| report)
            }
            Err(error) => {
                let txns = &shared.txns;
                // If the log may have the commit, recovery may need the runs: keep them.
                if txns.reads.health.check_unpoisoned().is_ok() {
                    txns.parts.release(&parts);
                }
                Err(error)
            }
        }
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        self.cancel();
    }
}
