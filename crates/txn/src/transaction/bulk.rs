//! [`BulkStatement`]: a bulk load whose result becomes writes of a transaction instead of a commit.
//!
//! ```text
//!  Transaction::begin_bulk  the trees are empty, and locked as a whole
//!  put                      sort buffers and spools, as in a bulk load
//!  finish                   one merge a tree --> base runs --> private runs of the transaction
//!  commit, prepare          like the private runs of a large transaction (rules 18 and 19)
//! ```
//!
//! Each entry costs no lock, no lookup in the tree and no space in the log.

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

/// Many writes of a [`Transaction`] to empty trees, with less work than single writes. The
/// statement locks whole trees instead of keys, sorts the entries in a part of the memory and on
/// disk, and writes them once, as bases. After [`finish`](Self::finish) the entries are ordinary
/// writes of the transaction: only the transaction sees them, a rollback to a savepoint older than
/// the statement undoes them, and they are committed, prepared or rolled back with the transaction.
///
/// A `BulkLoad` does the same without a transaction, and also for trees that are not empty.
///
/// One thread at a time may use a statement. While it is in progress, the transaction must not
/// write to the statement's trees by other means.
pub struct BulkStatement {
    core: Arc<Core>,
    shared: Arc<LoadShared>,
    writer: Option<BulkWriter>,
    trees: Vec<Arc<TreeCore>>,
    /// The statement's entries get message numbers above this one.
    number: u64,
}

impl Transaction {
    /// Begins a [`BulkStatement`] that writes to `trees`. Locks the whole trees until the
    /// transaction ends.
    ///
    /// Returns `None` if that is not possible; the caller then uses single writes. The reasons: a
    /// tree has an entry, in the newest committed state or in the transaction's snapshot; the
    /// transaction has a write to a tree, even a delete, or an overlay for it; another transaction
    /// has locks on a tree; or, under snapshot isolation, a tree was changed since the snapshot.
    /// The call does not wait for locks. If the reason is a lock or a commit of another
    /// transaction, the call may leave locks on whole trees.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if a
    /// tree was dropped; `TooManyLocks`, `Corruption`, `Io`, `Poisoned`, `Closed`.
    pub fn begin_bulk(&self, trees: &[&impl AsTree]) -> Result<Option<BulkStatement>> {
        self.core.begin_bulk(trees.iter().map(|tree| Arc::clone(tree.core())).collect())
    }
}

impl Core {
    fn begin_bulk(self: &Arc<Self>, trees: Vec<Arc<TreeCore>>) -> Result<Option<BulkStatement>> {
        let mut state = self.active()?;
        let txns = &self.txns;
        txns.health.check_writable()?;
        for tree in &trees {
            tree.check(txns.reads.engine)?;
        }
        let snapshot = state.snapshot.clone().or_else(|| state.statement.clone());
        if !self.are_empty(&mut state, &trees, snapshot.as_ref())? {
            return Ok(None);
        }
        for tree in &trees {
            if !self.try_lock_tree(&mut state, tree)? {
                return Ok(None);
            }
        }
        // Check again: another transaction may have committed between the first check and the
        // locks.
        if !self.are_empty(&mut state, &trees, snapshot.as_ref())? {
            return Ok(None);
        }
        let last = |tree: &Arc<TreeCore>| state.writes.tree(tree.id).last_number();
        let number = trees.iter().map(last).max().unwrap_or(0);
        let open = Arc::clone(&self._open);
        let shared = LoadShared::new(txns, BulkOptions::default(), open, number);
        let writer = Some(BulkWriter::new(Arc::clone(&shared)));
        let core = Arc::clone(self);
        Ok(Some(BulkStatement { core, shared, writer, trees, number }))
    }
}

impl BulkStatement {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB. If a key is put twice, the last
    /// value wins, and [`finish`](Self::finish) counts the duplicate.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, for a tree that was not given to
    /// `begin_bulk`, or after [`finish`](Self::finish); `NotFound` if the tree was dropped;
    /// `NoSpace`, `Io`, `Closed`, after which the statement can only be dropped.
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
    /// milliseconds. If `progress` returns false, `finish` fails with `Cancelled`.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or has meanwhile written to one of the trees by other
    /// means, or if the statement was finished before; `NotFound` if a tree was dropped;
    /// `Cancelled`; `NoSpace`, `Io`, `Closed`. After an error, the transaction has the writes that
    /// it had before the statement, and the statement can only be dropped.
    pub fn finish(&mut self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        self.writer.take().ok_or_else(finished)?.finish()?;
        let (trees, duplicates) = self.shared.take_gathered()?;
        let mut merging = Merging::new(&self.shared, progress, trees);
        merging.count_duplicates(duplicates)?;
        let report = merging.merge_all()?;
        // After an error, `merging` still has the parts, and frees them.
        self.take_parts(&mut merging.parts, report.entries)?;
        Ok(report)
    }

    /// Adds all parts to the transaction's writes; after an error, none.
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
        let txns = &self.core.txns;
        txns.bulk_statements.fetch_add(1, Ordering::Relaxed);
        let written = state.writes.written();
        state.entry.set_messages(written);
        Ok(())
    }

    /// Returns the smallest key that was put twice in the first tree with such a key, in the order
    /// in which the trees were created. `None` if no key was put twice. Before
    /// [`finish`](Self::finish), not all duplicates are known.
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.shared.gathered.lock().duplicate.clone()
    }
}

impl Core {
    /// Whether no read of the transaction, plain or locking, could find an entry in the trees, and
    /// the transaction has not written to them. `false` also if, under snapshot isolation, a tree
    /// was changed since the snapshot.
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
            // For an entry that is only in the snapshot, plain reads would need an overlay.
            if !self.is_empty_at(tree, Some(snapshot.clone()))? {
                return Ok(false);
            }
            let changed = || range_changed_since(&self.txns.reads, tree, b"", None, snapshot.seq());
            if self.conflicts_since(state).is_some() && self.txns.health.while_open(changed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the tree is empty at `snapshot`; with `None`, in the newest committed state.
    fn is_empty_at(&self, tree: &Arc<TreeCore>, snapshot: Option<Snapshot>) -> Result<bool> {
        let options = snapshot.iter().fold(CursorOptions::new(), CursorOptions::at);
        Ok(!Cursor::over(&self.txns.reads, tree, options)?.first()?)
    }

    /// Locks the whole tree unless another transaction has locks on it. Returns whether it did.
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
