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
use frondb_tree::{Cursor, CursorOptions, Snapshot, TreeCore};
use frondb_writeset::BaseRuns;

use super::{Core, Transaction, TransactionState};
use crate::bulk::{
    BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, LoadShared, Merging,
};

/// The writes of one statement of a transaction to empty trees. One thread at a time may use it.
/// Dropping it before [`finish`](Self::finish) discards its entries.
pub struct BulkStatement {
    core: Arc<Core>,
    shared: Arc<LoadShared>,
    writer: Option<BulkWriter>,
    trees: Vec<Arc<TreeCore>>,
    /// The statement's entries get numbers above this one.
    number: u64,
}

impl Transaction {
    /// Begins a statement that writes many entries to `trees`, if the trees are empty. The
    /// statement locks the whole trees and sorts the entries outside of the trees. An entry then
    /// needs neither a lock of its own nor space in the log.
    ///
    /// Returns `None` if that is not possible: a tree has an entry, in the newest committed state,
    /// in the transaction's own writes or in the data that its plain reads see; another transaction
    /// has locks on a tree; or, under snapshot isolation, a tree was changed since the snapshot.
    /// The call does not wait for locks. If the call returns `None` because of another
    /// transaction's lock or commit, this transaction may keep locks on whole trees.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if a
    /// tree was dropped; `Corruption`, `Io`, `Poisoned`, `Closed`.
    pub fn begin_bulk(&self, trees: &[Arc<TreeCore>]) -> Result<Option<BulkStatement>> {
        let core = &self.core;
        let mut state = core.active()?;
        let txns = &core.txns;
        txns.reads.health.check_writable()?;
        for tree in trees {
            tree.check(txns.reads.engine)?;
        }
        let snapshot = match core.options.snapshot_isolation {
            true => core.read_snapshot(&mut state)?,
            false => state.snapshot.clone().or_else(|| state.statement.clone()),
        };
        if !core.are_empty(&mut state, trees, snapshot.as_ref())? {
            return Ok(None);
        }
        for tree in trees {
            if !core.try_lock_tree(&mut state, tree)? {
                return Ok(None);
            }
        }
        // A commit may have come between the first check and the locks.
        if !core.are_empty(&mut state, trees, snapshot.as_ref())? {
            return Ok(None);
        }
        let last = |tree: &Arc<TreeCore>| state.writes.tree(tree.id).last_number();
        let number = trees.iter().map(last).max().unwrap_or(0);
        let open = Arc::clone(&core._open);
        let shared = LoadShared::new(txns, BulkOptions::default(), open, number);
        let writer = Some(BulkWriter::new(Arc::clone(&shared)));
        let (core, trees) = (Arc::clone(core), trees.to_vec());
        Ok(Some(BulkStatement { core, shared, writer, trees, number }))
    }
}

impl BulkStatement {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, for a tree that the statement does not write,
    /// or after [`finish`](Self::finish); `NotFound` if the tree was dropped; `NoSpace`, `Io`,
    /// `Closed`: the statement can only be dropped.
    pub fn put(&mut self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.trees.iter().any(|known| Arc::ptr_eq(known, tree)) {
            return Err(Error::invalid(format!(
                "the bulk statement does not write tree {:?}",
                tree.name()
            )));
        }
        self.writer.as_mut().ok_or_else(finished)?.put(tree, key, value)
    }

    /// Sorts the entries and makes them writes of the transaction, which sees them from now on. Of
    /// several entries with the same key, the last one counts. Calls `progress` from time to time;
    /// if it returns false, stops with `Cancelled`.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or has written to one of the trees meanwhile;
    /// `NotFound` if a tree was dropped; `Cancelled`; `NoSpace`, `Io`, `Closed`. After an error the
    /// transaction is as before the statement, and the statement can only be dropped.
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

    /// The smallest key that was put twice, in the earliest created tree that has one; `None`
    /// before [`finish`](Self::finish), and if there is none.
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
            if self.options.snapshot_isolation && self.txns.reads.health.while_open(changed)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a committed state of the tree is empty: that of a snapshot, or the newest one.
    fn is_empty_at(&self, tree: &Arc<TreeCore>, snapshot: Option<Snapshot>) -> Result<bool> {
        let options = CursorOptions { snapshot, ..CursorOptions::default() };
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
