//! [`BulkStatement`]: a bulk load whose result becomes part of a transaction's writes instead of a
//! commit.
//!
//! ```text
//!  Transaction::begin_bulk  the trees are empty, and locked as a whole
//!  put                      sort buffers and spools, as in a bulk load
//!  finish                   one merge a tree --> base runs --> private runs of the transaction
//!  commit, prepare          as for the private runs of a large transaction (rules 18 and 19)
//! ```
//!
//! An entry needs no lock, no lookup in the tree, and no space in the log.

use frondb_commit::{Attachment, check_trees};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};
use frondb_locks::{LockMode, LockWait};
use frondb_tree::get::range_changed_since;
use frondb_tree::{AsTree, Cursor, CursorOptions, Snapshot, TreeCore};
use frondb_writeset::BaseRuns;

use super::{Core, Transaction, TransactionState};
use crate::bulk::{
    BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, LoadShared, Merging,
};

/// Many writes of a [`Transaction`] to trees that are empty, with less work than single writes:
/// whole trees are locked instead of keys, and the entries are sorted in a part of the memory and
/// on disk, and written once to their place. After [`finish`](Self::finish) they are ordinary
/// writes of the transaction: only the transaction sees them, a savepoint that is older than the
/// statement undoes them, and they are committed, prepared or rolled back with the transaction.
///
/// A `BulkLoad` does the same with a commit of its own, and also for trees that
/// are not empty.
///
/// One thread at a time may use a statement. While it is in progress, the transaction must not
/// write to its trees by other means.
pub struct BulkStatement {
    core: Arc<Core>,
    shared: Arc<LoadShared>,
    writer: Option<BulkWriter>,
    trees: Vec<Arc<TreeCore>>,
    /// The statement's entries get numbers above this one.
    number: u64,
}

impl Transaction {
    /// Begins a [`BulkStatement`] that writes to `trees`. Locks these trees as a whole until the
    /// transaction ends.
    ///
    /// Returns `None` if that is not possible, so that the caller uses single writes: a tree has an
    /// entry, in the newest committed state, in the transaction's own writes or in its snapshot;
    /// another transaction has locks on a tree; or, under snapshot isolation, a tree was changed
    /// since the snapshot. The call does not wait for locks. If the call returns `None` because of
    /// another transaction's lock or commit, locks on whole trees may remain.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if a
    /// tree was dropped; `Corruption`, `Io`, `Poisoned`, `Closed`.
    pub fn begin_bulk(&self, trees: &[&impl AsTree]) -> Result<Option<BulkStatement>> {
        self.core.begin_bulk(trees.iter().map(|tree| Arc::clone(tree.core())).collect())
    }
}

impl Core {
    fn begin_bulk(self: &Arc<Self>, trees: Vec<Arc<TreeCore>>) -> Result<Option<BulkStatement>> {
        let core = self;
        let mut state = core.active()?;
        let txns = &core.txns;
        txns.health.check_writable()?;
        for tree in &trees {
            tree.check(txns.reads.engine)?;
        }
        let snapshot = match core.has_snapshot_isolation() {
            true => core.read_snapshot(&mut state)?,
            false => state.snapshot.clone().or_else(|| state.statement.clone()),
        };
        if !core.are_empty(&mut state, &trees, snapshot.as_ref())? {
            return Ok(None);
        }
        for tree in &trees {
            if !core.try_lock_tree(&mut state, tree)? {
                return Ok(None);
            }
        }
        // A commit may have come between the first check and the locks.
        if !core.are_empty(&mut state, &trees, snapshot.as_ref())? {
            return Ok(None);
        }
        let last = |tree: &Arc<TreeCore>| state.writes.tree(tree.id).last_number();
        let number = trees.iter().map(last).max().unwrap_or(0);
        let open = Arc::clone(&core._open);
        let shared = LoadShared::new(txns, BulkOptions::default(), open, number);
        let writer = Some(BulkWriter::new(Arc::clone(&shared)));
        let core = Arc::clone(core);
        Ok(Some(BulkStatement { core, shared, writer, trees, number }))
    }
}

impl BulkStatement {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB. If a key is put twice, the last
    /// value counts, and [`finish`](Self::finish) reports it.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, for a tree that the statement was not begun
    /// with, or after [`finish`](Self::finish); `NotFound` if the tree was dropped; `NoSpace`,
    /// `Io`, `Closed`: the statement can only be dropped.
    pub fn put(
        &mut self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (tree, key, value) = (tree.core(), key.as_ref(), value.as_ref());
        if !self.trees.iter().any(|known| Arc::ptr_eq(known, tree)) {
            return Err(Error::invalid(format!(
                "the bulk statement does not write tree {:?}",
                tree.name()
            )));
        }
        self.writer.as_mut().ok_or_else(finished)?.put(tree, key, value)
    }

    /// Sorts the entries and makes them writes of the transaction. `progress` is called every few
    /// milliseconds; the call fails when it returns false.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, has written to one of the trees by other means in
    /// the meantime, or if the statement was finished before; `NotFound` if a tree was dropped;
    /// `Cancelled`; `NoSpace`, `Io`, `Closed`. After an error the writes of the transaction are as
    /// before the statement, and the statement can only be dropped.
    pub fn finish(&mut self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        self.writer.take().ok_or_else(finished)?.finish()?;
        let (trees, duplicates) = self.shared.take_gathered()?;
        let mut merging = Merging::new(&self.shared, progress, trees);
        merging.count_duplicates(duplicates)?;
        let report = merging.merge_all()?;
        // If the transaction does not take the parts, `merging` frees them.
        self.take_parts(&mut merging.parts, report.entries)?;
        Ok(report)
    }

    /// Makes the parts writes of the transaction: all of them, or none after an error.
    fn take_parts(&self, parts: &mut Vec<Attachment>, entries: u64) -> Result<()> {
        let mut state = self.core.active()?;
        check_trees(parts)?;
        for tree in &self.trees {
            let writes = state.writes.tree(tree.id);
            if !writes.is_empty() || writes.last_number() > self.number {
                return Err(Error::invalid(format!(
                    "the transaction has written to tree {:?}, which its bulk statement writes",
                    tree.name()
                )));
            }
        }
        for part in parts.drain(..) {
            let Attachment { tree, runs, values, numbers, .. } = part;
            state.writes.tree(tree.id).add_base(BaseRuns { runs, values, last: numbers });
            state.remember(&tree);
        }
        state.locker.add_work(entries);
        self.core.txns.bulk_statements.fetch_add(1, Ordering::Relaxed);
        let written = state.writes.written();
        state.entry.set_messages(written);
        Ok(())
    }

    /// The smallest key that was put twice, of the first tree that has one in the order in which
    /// the trees were created. `None` if there is none, and before [`finish`](Self::finish).
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.shared.gathered.lock().duplicate.clone()
    }
}

impl Core {
    /// Whether the trees have no entry that any kind of read of the transaction could find.
    fn are_empty(
        &self,
        state: &mut TransactionState,
        trees: &[Arc<TreeCore>],
        snapshot: Option<&Snapshot>,
    ) -> Result<bool> {
        for tree in trees {
            let id = tree.id;
            let in_overlay = |state: &mut TransactionState| {
                state.overlay.as_mut().is_some_and(|overlay| overlay.writes.find(id).is_some())
            };
            if state.writes.find(id).is_some() || in_overlay(state) {
                return Ok(false);
            }
            if !self.is_empty_at(tree, None)? {
                return Ok(false);
            }
            let Some(snapshot) = snapshot else { continue };
            // An entry that only the snapshot has would need the overlay.
            if !self.is_empty_at(tree, Some(snapshot.clone()))? {
                return Ok(false);
            }
            let changed = || range_changed_since(&self.txns.reads, tree, b"", None, snapshot.seq());
            if self.has_snapshot_isolation() && self.txns.health.while_open(changed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a committed state of the tree is empty: that of a snapshot, or the newest one.
    fn is_empty_at(&self, tree: &Arc<TreeCore>, snapshot: Option<Snapshot>) -> Result<bool> {
        let options = snapshot.iter().fold(CursorOptions::new(), CursorOptions::at);
        Ok(!Cursor::over(&self.txns.reads, tree, options)?.first()?)
    }

    /// Locks the whole tree unless another transaction has locks on it.
    fn try_lock_tree(&self, state: &mut TransactionState, tree: &Arc<TreeCore>) -> Result<bool> {
        let (mode, wait) = (LockMode::Exclusive, LockWait::NoWait);
        let locked = state.locker.lock_range(tree.locks(), b"", None, mode, wait);
        match self.locked(state, tree, locked) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Busy => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn finished() -> Error {
    Error::invalid("the bulk statement is already finished")
}

impl std::fmt::Debug for BulkStatement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BulkStatement")
    }
}
