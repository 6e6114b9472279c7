//! Bulk load: several threads add entries in any order to one or several trees, and one atomic
//! commit makes all of them visible.
//!
//! ```text
//!  writer --> sort buffers --> full: the largest is sorted and written as a spool
//!  writer --> ...                 |
//!  finish: all spools and buffers of a tree --merge--> base runs, one a leaf, written once
//!          --> one commit attaches the runs of all trees (rules 18 and 19)
//! ```
//!
//! The manifest has nothing of a load before its commit: a crash, a cancellation and a drop leave
//! the trees as they were and free the space. Readers and writers of the trees proceed during the
//! load; the commit locks whole trees for a moment.
//!
//! | file | role |
//! |---|---|
//! | `merging.rs` | the merges of `finish` |
//! | `new_trees.rs` | trees that come with the load |

use frondb_catalog::Catalog;
use std::time::Duration;

use frondb_core::budget::{Part, Reservation};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, ProcessCounter};
use frondb_core::{Error, ErrorKind, Lsn, Result, SeqNo, TreeId};
use frondb_locks::{LockMode, LockWait, Locker};
use frondb_run::{Spool, SpoolWriter};
use frondb_space::{Extent, Space};
use frondb_writeset::SortBuffer;

use super::merging::Merging;
use super::new_trees;
use crate::context::Transactions;
use crate::transaction::KeepOpen;
use frondb_background::Load;
use frondb_commit::Attachment;
use frondb_commit::Commit;
use frondb_commit::Durability;
use frondb_commit::NewTree;
use frondb_commit::write_value;
use frondb_tree::{Tree, TreeCore, extents_of};

/// Ids of loads in this process.
static LOADS: ProcessCounter = ProcessCounter::new(1);

/// Smallest buffer, bytes; a smaller one is not worth a spool.
const BUFFER_BYTES_MIN: u64 = 256 << 10;
/// Longest try to lock the trees. During a try, other transactions wait for new locks.
const LOCK_SLICE: Duration = Duration::from_millis(100);
/// Largest buffer, bytes: offsets in a buffer have 32 bits.
const BUFFER_BYTES_MAX: u64 = 1 << 30;

/// What a load does with duplicate keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Duplicates {
    /// The last entry of a writer wins; between several writers any entry may win.
    #[default]
    Replace,
    /// The load fails with `Exists`. Keys that a tree had before the load are no duplicates.
    Fail,
}

/// The options of a bulk load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkOptions {
    /// What to do with duplicate keys. Default `Replace`.
    pub duplicates: Duplicates,
    /// Memory for sorting in all writers together, bytes. Default 0: a quarter of the memory
    /// budget.
    pub memory_bytes: u64,
    /// The durability that [`BulkLoad::finish`] waits for. Default `Sync`.
    pub durability: Durability,
    /// How long [`BulkLoad::finish`] tries to lock trees on which transactions hold locks.
    /// Default one minute.
    pub lock_timeout: Duration,
}

impl Default for BulkOptions {
    fn default() -> Self {
        let duplicates = Duplicates::default();
        let lock_timeout = Duration::from_secs(60);
        Self { duplicates, memory_bytes: 0, durability: Durability::Sync, lock_timeout }
    }
}

/// The progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkProgress {
    /// Entries merged so far.
    pub done: u64,
    /// Entries to merge in all passes.
    pub total: u64,
}

/// The results of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkReport {
    /// Entries loaded, without duplicates.
    pub entries: u64,
    /// Duplicate entries that were dropped; not counted in `entries`.
    pub duplicates: u64,
    /// Bytes of loaded keys and values, without large values.
    pub raw_bytes: u64,
    /// Sorted runs written to the disk because the memory for sorting was full.
    pub sorted_runs: u64,
}

/// A duplicate key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Duplicate {
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: Box<[u8]>,
}

/// A bulk load in progress. Any thread may use it. Dropping it before [`finish`](Self::finish)
/// undoes the load.
pub struct BulkLoad {
    pub(super) shared: Arc<LoadShared>,
}

pub(super) struct LoadShared {
    pub(super) txns: Arc<Transactions>,
    pub(super) catalog: Arc<Catalog>,
    _open: KeepOpen,
    /// Distinguishes the loads of this process.
    pub(super) id: u64,
    pub(super) options: BulkOptions,
    pub(super) buffer_bytes: u64,
    /// Number of live writers, which share the memory.
    pub(super) writers: AtomicU64,
    pub(super) cancelled: AtomicBool,
    /// Number of buffers written as spools.
    pub(super) spilled: AtomicU64,
    /// The last number given to a spool, or to a buffer when it is merged. Of two entries with
    /// the same key, the one with the larger number wins.
    pub(super) numbers: AtomicU64,
    pub(super) gathered: Mutex<Gathered>,
    pub(super) new_trees: Mutex<Vec<NewTree>>,
}

/// The results that writers have handed in.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) trees: Vec<GatheredTree>,
    /// Duplicate entries that the writers have found.
    pub(super) duplicates: u64,
    /// The smallest duplicate key of the tree with the smallest id.
    pub(super) duplicate: Option<Duplicate>,
    /// Set if a writer failed, or was dropped with entries that it had not handed in.
    pub(super) broken: Option<Error>,
    pub(super) finished: bool,
}

pub(super) struct GatheredTree {
    pub(super) tree: Arc<TreeCore>,
    /// Spools with their numbers.
    pub(super) spools: Vec<(SeqNo, Arc<Spool>)>,
    /// The last buffers of the writers: newer than all spools.
    pub(super) buffers: Vec<SortBuffer>,
    pub(super) values: Vec<Vec<Extent>>,
}

/// Adds entries to a load. One thread at a time may use it; each thread takes its own.
pub struct BulkWriter {
    pub(super) shared: Arc<LoadShared>,
    trees: Vec<(Arc<TreeCore>, SortBuffer, Vec<Vec<Extent>>)>,
    last: usize,
    /// Bytes added since the last memory check.
    bytes_since_check: u64,
    memory: Reservation,
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

impl BulkWriter {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long or a tree of another database; `NotFound` if
    /// the tree was dropped; `Cancelled`; `NoSpace`, `Io`, `Closed`: the load can only be dropped.
    pub fn put(&mut self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        let txns = &self.shared.txns;
        txns.reads.health.check_open()?;
        if tree.core().bulk_load() != self.shared.id {
            tree.check(txns.reads.engine)?;
        }
        self.shared.check_cancelled()?;
        if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "a key has at most {KEY_BYTES_MAX} bytes and a value {VALUE_BYTES_MAX}, not {} and {}",
                key.len(),
                value.len()
            )));
        }
        let at = self.place_of(tree);
        if value.len() <= VALUE_INLINE_BYTES_MAX {
            self.trees[at].1.put(key, value, false);
        } else {
            self.put_large(at, key, value)?;
        }
        self.bytes_since_check += (key.len() + value.len().min(VALUE_INLINE_BYTES_MAX)) as u64 + 24;
        if self.bytes_since_check >= BUFFER_BYTES_MIN / 4 { self.make_room() } else { Ok(()) }
    }

    fn place_of(&mut self, tree: &Tree) -> usize {
        let is =
            |at: usize| self.trees.get(at).is_some_and(|known| Arc::ptr_eq(&known.0, tree.core()));
        let next = self.last + 1;
        self.last = if is(self.last) {
            self.last
        } else if is(next) {
            next
        } else {
            let known = self.trees.iter().position(|known| Arc::ptr_eq(&known.0, tree.core()));
            known.unwrap_or_else(|| {
                self.trees.push((Arc::clone(tree.core()), SortBuffer::new(), Vec::new()));
                self.trees.len() - 1
            })
        };
        self.last
    }

    fn put_large(&mut self, at: usize, key: &[u8], value: &[u8]) -> Result<()> {
        let _call = self.shared.txns.calls.begin()?;
        let (_, buffer, values) = &mut self.trees[at];
        let space = &self.shared.txns.reads.runs.space;
        let mut extents = Vec::new();
        let reference = write_value(space, value, &mut extents).inspect_err(|_| {
            extents.iter().for_each(|extent| space.release(*extent));
        });
        let reference = reference?;
        values.push(extents);
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        buffer.put(key, &encoded, true);
        Ok(())
    }

    /// Writes the largest buffers to spools while this writer exceeds its share of the memory.
    fn make_room(&mut self) -> Result<()> {
        self.bytes_since_check = 0;
        let share = self.shared.buffer_bytes / self.shared.writers.load(Ordering::Relaxed).max(1);
        let share = share.max(BUFFER_BYTES_MIN);
        loop {
            let sum = |of: fn(&SortBuffer) -> u64| self.trees.iter().map(|(_, b, _)| of(b)).sum();
            self.memory.resize(sum(SortBuffer::memory_bytes));
            let used: u64 = sum(SortBuffer::used_bytes);
            let largest = (0..self.trees.len()).max_by_key(|&i| self.trees[i].1.used_bytes());
            let Some(largest) = largest.filter(|_| used > share) else { return Ok(()) };
            if self.trees[largest].1.is_empty() {
                return Ok(());
            }
            self.spill(largest)?;
        }
    }

    fn spill(&mut self, at: usize) -> Result<()> {
        self.sort(at)?;
        let _call = self.shared.txns.calls.begin()?;
        let alone = self.trees.len() == 1;
        let (tree, buffer, _) = &mut self.trees[at];
        let mut writer = self.shared.spool_writer(tree, buffer.raw_bytes());
        buffer.for_each(|key, kind, value| writer.add(key, kind, value))?;
        let spool = writer.finish()?;
        if alone {
            buffer.clear();
        } else {
            // Free the memory: the next full buffer may belong to another tree.
            *buffer = SortBuffer::new();
        }
        let number = self.shared.next_number();
        self.shared.spilled.fetch_add(1, Ordering::Relaxed);
        let spool = spool.map(|spool| (number, Arc::new(spool)));
        self.shared.gathered.lock().tree(tree).spools.extend(spool);
        Ok(())
    }

    /// Sorts a buffer, and frees the large values of duplicate entries.
    fn sort(&mut self, at: usize) -> Result<()> {
        let (tree, buffer, values) = &mut self.trees[at];
        let duplicates = buffer.sort();
        {
            let mut gathered = self.shared.gathered.lock();
            gathered.duplicates += duplicates.entries;
            gathered.note_duplicate(tree.id, duplicates.first);
        }
        give_up(&self.shared.txns.reads.runs.space, values, &duplicates.references)
    }

    /// Hands in the writer's entries. Dropping a writer with entries makes its load fail.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn finish(mut self) -> Result<()> {
        self.shared.check_cancelled()?;
        for at in 0..self.trees.len() {
            self.sort(at)?;
        }
        let mut gathered = self.shared.gathered.lock();
        for (tree, buffer, values) in self.trees.drain(..) {
            let place = gathered.tree(&tree);
            place.values.extend(values);
            if !buffer.is_empty() {
                place.buffers.push(buffer);
            }
        }
        Ok(())
    }
}

impl Drop for BulkWriter {
    fn drop(&mut self) {
        self.shared.writers.fetch_sub(1, Ordering::Relaxed);
        if self.trees.is_empty() {
            return;
        }
        let space = &self.shared.txns.reads.runs.space;
        for extent in self.trees.drain(..).flat_map(|(_, _, values)| values).flatten() {
            space.release(extent);
        }
        let error = Error::new(ErrorKind::Cancelled, "a writer of the load was given up");
        self.shared.gathered.lock().broken.get_or_insert(error);
    }
}

impl Gathered {
    /// Keeps the smallest duplicate, so that the reported key does not depend on the amount of
    /// memory.
    pub(super) fn note_duplicate(&mut self, tree: TreeId, key: Option<Box<[u8]>>) {
        let Some(key) = key else { return };
        let new = Duplicate { tree, key };
        if self.duplicate.as_ref().is_none_or(|least| new < *least) {
            self.duplicate = Some(new);
        }
    }

    fn tree(&mut self, tree: &Arc<TreeCore>) -> &mut GatheredTree {
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
    pub(super) fn check_cancelled(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Cancelled, "the load was cancelled"));
        }
        Ok(())
    }

    pub(super) fn next_number(&self) -> SeqNo {
        SeqNo(self.numbers.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Locks all trees in short tries, because other transactions wait for new locks during a
    /// try. The load is the victim of every deadlock except in its last try, because it loses
    /// nothing.
    fn lock_trees(
        &self,
        locker: &mut Locker,
        parts: &[Attachment],
        report: &BulkReport,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<()> {
        let txns = &self.txns;
        let (begun, mut waited) = (txns.reads.now(), Duration::ZERO);
        loop {
            self.check_cancelled()?;
            go_on()?;
            let left = self.options.lock_timeout.saturating_sub(waited);
            let is_last = left <= LOCK_SLICE;
            if is_last {
                locker.add_work(report.entries);
            }
            let Err(error) = lock_all(locker, parts, left.min(LOCK_SLICE)) else { return Ok(()) };
            match error.kind() {
                // Count the slice: in tests the clock may stand still during a wait.
                ErrorKind::LockTimeout if !is_last => waited += LOCK_SLICE,
                // The other transactions proceed once these locks are released.
                ErrorKind::Deadlock if !is_last => {}
                _ => return Err(error),
            }
            locker.release_all();
            waited = waited.max(txns.reads.now().since(begun));
        }
    }

    pub(super) fn spool_writer(&self, tree: &TreeCore, raw_bytes: u64) -> SpoolWriter {
        let runs = Arc::clone(&self.txns.reads.runs);
        SpoolWriter::new(runs, tree.options.trunk.run_codec, raw_bytes)
    }
}

impl BulkLoad {
    /// A new writer, one for each thread that adds entries. All writers share the memory.
    #[must_use]
    pub fn writer(&self) -> BulkWriter {
        self.shared.writers.fetch_add(1, Ordering::Relaxed);
        BulkWriter {
            memory: self.shared.txns.reads.budget.reserve(Part::Work, 0),
            shared: Arc::clone(&self.shared),
            trees: Vec::new(),
            last: 0,
            bytes_since_check: 0,
        }
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
    /// the options ask. Calls `progress` from time to time, and cancels the load when it returns
    /// false.
    ///
    /// # Errors
    /// `Invalid` if a writer is not finished, or the load is finished already; `Cancelled`;
    /// `Exists` for a duplicate key under [`Duplicates::Fail`]; `NotFound` if a tree was dropped;
    /// `LockTimeout` or `Deadlock` if transactions kept the trees locked until the timeout;
    /// `NoSpace`, `Io`, `Poisoned`, `Closed`. After an error nothing is loaded; after `Poisoned`
    /// a reopened database may have the load.
    pub fn finish(&self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        let shared = &self.shared;
        let (trees, duplicates) = {
            let mut gathered = shared.gathered.lock();
            if shared.writers.load(Ordering::Acquire) > 0 {
                return Err(Error::invalid("a writer of the load has not been finished"));
            }
            if std::mem::replace(&mut gathered.finished, true) {
                return Err(Error::invalid("the load was finished"));
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

impl Drop for LoadShared {
    fn drop(&mut self) {
        let space = &self.txns.reads.runs.space;
        self.gathered.get_mut().trees.iter().for_each(|tree| tree.give_back(space));
    }
}

impl GatheredTree {
    pub(super) fn give_back(&self, space: &Space) {
        self.values.iter().flatten().for_each(|extent| space.release(*extent));
    }
}

impl LoadShared {
    /// Attaches all parts with one commit. Locks whole trees meanwhile, because the loaded keys
    /// may conflict with locks of transactions. Calls `go_on` between tries. Returns the log
    /// position to wait for; after an error nothing has changed.
    fn commit(
        &self,
        parts: &[Attachment],
        new: &[NewTree],
        report: &BulkReport,
        go_on: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Option<Lsn>> {
        if parts.is_empty() {
            return Ok(None);
        }
        let txns = &self.txns;
        let txn = txns.ids.next_txn();
        let mut locker = txns.locks.locker(txn);
        self.lock_trees(&mut locker, parts, report, go_on)?;
        let _call = self.txns.calls.begin()?;
        let load = Load { bytes: 0, messages: 0, frees_space: false, unpaced: false };
        txns.background.admit(load, &|| self.check_cancelled().is_err())?;
        let committed = self.catalog.commit_new(new, || {
            txns.parts.add_with(txn, parts, new)?;
            let commit = Commit { txn, attachments: parts, sections: &[] };
            txns.background
                .lending_space(false, || txns.committer.commit(commit, &mut Vec::new()))
                .inspect_err(|_| txns.parts.forget(txn, parts))
        })?;
        txns.background.committed(&committed, 0, 0);
        Ok(Some(committed.end))
    }
}

fn lock_all(locker: &mut Locker, parts: &[Attachment], timeout: Duration) -> Result<()> {
    for part in parts {
        let wait = LockWait::Upto(timeout);
        let locked = locker.lock_range(&part.tree.locks, b"", None, LockMode::Exclusive, wait);
        locked.map_err(|error| {
            error.context(format_args!("a bulk load into tree {:?}", part.tree.name.read()))
        })?;
    }
    Ok(())
}

/// Frees the extents of large values whose references were dropped.
pub(super) fn give_up(
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
