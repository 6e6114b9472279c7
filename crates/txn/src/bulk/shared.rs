//! [`LoadShared`]: the state that a bulk load and its writers share, including the entries that the
//! writers have handed over.

use frondb_commit::{Attachment, Calls};
use frondb_core::budget::Budget;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, ProcessCounter};
use frondb_core::{Error, ErrorKind, Result, SeqNo, TreeId};
use frondb_run::{Spool, SpoolWriter};
use frondb_space::{Extent, Space};
use frondb_tree::{TreeCore, extents_of};
use frondb_writeset::SortBuffer;

use super::options::{BulkOptions, Duplicate};
use crate::context::{KeepOpen, Transactions};

/// Ids of loads in this process.
static LOADS: ProcessCounter = ProcessCounter::new(1);

/// Least memory for the buffers of a writer, bytes. A smaller buffer is not worth a spool.
pub(super) const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// Most memory for the buffers of a load, bytes. Offsets in a buffer have 32 bits.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

pub(crate) struct LoadShared {
    pub(super) txns: Arc<Transactions>,
    pub(super) calls: Arc<Calls>,
    pub(super) space: Arc<Space>,
    pub(super) budget: Arc<Budget>,
    _open: KeepOpen,
    /// Distinguishes the loads of this process.
    pub(super) id: u64,
    pub(super) options: BulkOptions,
    /// Number of live writers, which share the memory.
    pub(super) writers: AtomicU64,
    pub(super) cancelled: AtomicBool,
    /// Number of buffers written as spools.
    pub(super) spilled: AtomicU64,
    /// The last number that was given to a source: to a spool, or to a buffer at the begin of its
    /// merge. Of two entries with the same key, the entry of the source with the larger number
    /// wins.
    pub(super) numbers: AtomicU64,
    pub(crate) gathered: Mutex<Gathered>,
}

/// The results of the writers: the spools that they have written so far, and the last buffers of
/// finished writers.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(super) trees: Vec<GatheredTree>,
    /// Duplicate entries that the writers found.
    pub(super) duplicates: u64,
    /// The smallest duplicate key of the tree with the smallest id.
    pub(crate) duplicate: Option<Duplicate>,
    /// Set if a writer with entries was dropped before it handed them over, for example after an
    /// error.
    pub(super) broken: Option<Error>,
    pub(super) finished: bool,
}

pub(crate) struct GatheredTree {
    pub(super) tree: Arc<TreeCore>,
    /// Spools with their numbers.
    pub(super) spools: Vec<(SeqNo, Arc<Spool>)>,
    /// The last buffers of the writers, newer than all spools.
    pub(super) buffers: Vec<SortBuffer>,
    pub(super) values: Vec<Vec<Extent>>,
}

impl Gathered {
    /// Records a duplicate key. Keeps the smallest one, so that the key that the load returns as
    /// duplicate does not depend on the amount of memory.
    pub(super) fn note_duplicate(&mut self, tree: TreeId, key: Option<Box<[u8]>>) {
        let Some(key) = key else { return };
        let new = Duplicate { tree, key };
        if self.duplicate.as_ref().is_none_or(|least| new < *least) {
            self.duplicate = Some(new);
        }
    }

    pub(super) fn tree(&mut self, tree: &Arc<TreeCore>) -> &mut GatheredTree {
        let known = self.trees.iter().position(|known| Arc::ptr_eq(&known.tree, tree));
        let at = known.unwrap_or_else(|| {
            let (spools, buffers, values) = (Vec::new(), Vec::new(), Vec::new());
            self.trees.push(GatheredTree { tree: Arc::clone(tree), spools, buffers, values });
            self.trees.len() - 1
        });
        &mut self.trees[at]
    }
}

impl LoadShared {
    /// Creates a load without entries. The numbers of its sources begin above `number`.
    pub(crate) fn new(
        txns: &Arc<Transactions>,
        options: BulkOptions,
        open: KeepOpen,
        number: u64,
    ) -> Arc<Self> {
        txns.loads.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            txns: Arc::clone(txns),
            calls: Arc::clone(&txns.calls),
            space: Arc::clone(&txns.space),
            budget: Arc::clone(&txns.reads.budget),
            _open: open,
            id: LOADS.next(),
            options,
            writers: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            spilled: AtomicU64::new(0),
            numbers: AtomicU64::new(number),
            gathered: Mutex::default(),
        })
    }

    /// Returns the bytes of memory for the buffers of one writer.
    pub(super) fn writer_bytes(&self) -> u64 {
        let all = match self.options.memory_bytes {
            0 => self.default_bytes(),
            bytes => bytes,
        };
        let all = all.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX);
        (all / self.writers.load(Ordering::Relaxed).max(1)).max(BUFFER_BYTES_MIN)
    }

    /// Returns the bytes of memory for sorting and merging in this load: an equal share for each
    /// load in progress, because every connection of a server may load a table at the same time.
    pub(super) fn default_bytes(&self) -> u64 {
        let all = self.txns.shares.now().bulk_bytes();
        all / self.txns.loads.load(Ordering::Relaxed).max(1)
    }

    /// Takes the results of the writers, and the number of duplicates that the writers found.
    /// Succeeds only once.
    ///
    /// # Errors
    /// `Invalid` if a writer is not finished, or the load was finished before; `Cancelled`.
    pub(crate) fn take_gathered(&self) -> Result<(Vec<GatheredTree>, u64)> {
        let mut gathered = self.gathered.lock();
        if self.writers.load(Ordering::Acquire) > 0 {
            return Err(Error::invalid("a writer of the load is not finished"));
        }
        if std::mem::replace(&mut gathered.finished, true) {
            return Err(Error::invalid("the load is already finished"));
        }
        self.check_cancelled()?;
        if let Some(error) = gathered.broken.clone() {
            return Err(error);
        }
        Ok((std::mem::take(&mut gathered.trees), gathered.duplicates))
    }

    /// Frees the runs of a failed load. Keeps them if the database is poisoned: the log may then
    /// contain the commit, and recovery may need the runs.
    pub(super) fn release(&self, parts: &[Attachment]) {
        if self.txns.health.check_unpoisoned().is_ok() {
            self.txns.parts.release(parts);
        }
    }

    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        Ok(())
    }

    pub(super) fn next_number(&self) -> SeqNo {
        SeqNo(self.numbers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(super) fn spool_writer(&self, tree: &TreeCore, raw_bytes: u64) -> SpoolWriter {
        let runs = Arc::clone(&self.txns.reads.runs);
        SpoolWriter::new(runs, tree.options().trunk.run_codec, raw_bytes)
    }
}

impl Drop for LoadShared {
    fn drop(&mut self) {
        self.txns.loads.fetch_sub(1, Ordering::Relaxed);
        let space = &self.space;
        for tree in self.gathered.get_mut().trees.drain(..) {
            tree.give_back(space);
        }
        // By now, the space of the spools is free, and all other space of a failed load.
        self.txns.background.gave_back();
    }
}

impl GatheredTree {
    pub(super) fn give_back(&self, space: &Space) {
        self.values.iter().flatten().for_each(|extent| space.release(*extent));
    }
}

/// Frees the extents of large values whose references were dropped.
pub(super) fn free_values(
    space: &Space,
    values: &mut Vec<Vec<Extent>>,
    references: &[Box<[u8]>],
) -> Result<()> {
    let gone = extents_of(references)?;
    if !gone.is_empty() {
        values.retain(|value| !gone.iter().any(|gone| gone.first() == value.first()));
        gone.iter().flatten().for_each(|extent| space.release(*extent));
    }
    Ok(())
}
