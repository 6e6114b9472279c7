//! The overlay of a transaction: corrections that its plain reads see instead of the snapshot's
//! rows, and that its own writes replace (rule 22). The overlay is never committed, and locking
//! reads do not see it.
//!
//! ```text
//!  own writes    the transaction's writes
//!  overlay       corrections of the snapshot: entries that it lacks, entries to leave out
//!  snapshot      committed data as of the first read; at read committed, of the statement
//! ```
//!
//! The reason: a write replaces the newest row, not the snapshot's row. A program with derived
//! trees (indexes) writes to them the difference between the newest row and its new row. But plain
//! reads of an index see the snapshot's entries, so they also need the difference between the
//! snapshot's row and the newest row. The overlay has that difference.
//! [`outdated`](Transaction::outdated) says for which rows the difference exists.
//!
//! An overlay belongs to one snapshot, and ends with the snapshot or the transaction. A rollback to
//! a savepoint undoes corrections as it undoes writes. The overlay needs no locks, because no other
//! transaction ever sees it.

use frondb_core::sync::{Arc, MutexGuard};
use frondb_core::{Error, MessageKind, Result, SeqNo};
use frondb_merge::Lookup;
use frondb_tree::get::{changed_since, get_under};
use frondb_tree::{AsTree, TreeCore};
use frondb_writeset::{OwnWrites, WriteSet};

use super::{Core, Overlay, Transaction, TransactionState};
use crate::options::Isolation;

impl Transaction {
    /// Returns the value that `key` has at the snapshot of this transaction's plain reads, if
    /// another transaction has committed a write of `key` since that snapshot; `Some(None)` if the
    /// key had no value. `None` if plain reads see the newest commit, if they have no snapshot yet,
    /// if the overlay has the key, and under snapshot isolation. Ignores the transaction's own
    /// writes.
    ///
    /// For a caller that keeps derived trees, such as indexes, and is about to write a key that it
    /// has locked. Such a caller writes the difference between the newest value and the new value
    /// to the derived trees. Plain reads of this transaction also need the difference between the
    /// value at the snapshot and the newest value; the caller adds that difference with
    /// [`overlay_put`](Self::overlay_put) and [`overlay_delete`](Self::overlay_delete). Takes
    /// almost no time if no transaction has committed to the tree since the snapshot.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn outdated(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Option<Vec<u8>>>> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        let Some(at) = self.core.snapshot_taken(&state) else { return Ok(None) };
        if self.core.conflicts_since(&state).is_some() {
            return Ok(None);
        }
        let txns = &self.core.txns;
        if !txns.health.while_open(|| changed_since(&txns.reads, tree, key, at))? {
            return Ok(None);
        }
        let mut lookup = Lookup::new();
        self.core.look_into_overlay(&mut state, tree, key, Some(at), &mut lookup)?;
        if !lookup.wants_more() {
            return Ok(None);
        }
        txns.health.while_open(|| get_under(&txns.reads, tree, key, Some(at), lookup)).map(Some)
    }

    /// Makes later plain reads see this value of `key` instead of the value at their snapshot,
    /// unless the transaction writes the key itself. The value is neither locked nor committed, and
    /// locking reads do not see it. It exists as long as the snapshot; a rollback to a savepoint
    /// undoes it.
    ///
    /// # Errors
    /// `Invalid` if plain reads have no snapshot yet, and at serializable; otherwise as
    /// [`put`](Self::put) without the errors of locking.
    pub fn overlay_put(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (tree, key, value) = (tree.core(), key.as_ref(), value.as_ref());
        let mut state = self.core.begin_overlay(tree, key, value)?;
        self.core.put(&mut state, tree, key, value, Target::Overlay)
    }

    /// Makes later plain reads find no value of `key`; otherwise like
    /// [`overlay_put`](Self::overlay_put).
    ///
    /// # Errors
    /// As [`overlay_put`](Self::overlay_put).
    pub fn overlay_delete(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<()> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.begin_overlay(tree, key, b"")?;
        let delete = MessageKind::Delete;
        self.core
            .write_to(&mut state, tree, Target::Overlay, |writes| writes.write(delete, key, b""));
        Ok(())
    }
}

/// The destination of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The write set, which the transaction commits.
    Commit,
    Overlay,
}

impl Core {
    /// Returns the SeqNo of the snapshot of plain reads; `None` if there is no snapshot yet, and at
    /// serializable.
    fn snapshot_taken(&self, state: &TransactionState) -> Option<SeqNo> {
        let snapshot = match self.isolation() {
            Isolation::Serializable => None,
            level if level.reads_newest() => state.statement.as_ref(),
            _ => state.snapshot.as_ref(),
        };
        snapshot.map(frondb_tree::Snapshot::seq)
    }

    /// Checks a write to the overlay, makes room for the write, and begins an overlay if there is
    /// none at the current snapshot.
    fn begin_overlay(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        value: &[u8],
    ) -> Result<MutexGuard<'_, TransactionState>> {
        let mut state = self.begin_write(tree, key, value)?;
        let at = self.snapshot_taken(&state);
        let at = at.ok_or_else(|| Error::invalid("an overlay needs a snapshot: take one first"))?;
        if state.overlay.as_ref().is_none_or(|overlay| overlay.at != at) {
            self.end_overlay(&mut state);
            let writes = state.writes.overlay();
            state.overlay = Some(Box::new(Overlay { at, writes }));
        }
        Ok(state)
    }

    /// Discards the overlay, because its snapshot ends.
    pub(super) fn end_overlay(&self, state: &mut TransactionState) {
        let Some(mut overlay) = state.overlay.take() else { return };
        // No log record refers to the overlay's runs and large values, so discarding them is safe.
        overlay.writes.discard(&self.txns.spill);
    }

    /// Adds the overlay's messages for `key` to the lookup, if the overlay belongs to the snapshot
    /// `at`.
    pub(super) fn look_into_overlay(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
        lookup: &mut Lookup,
    ) -> Result<()> {
        let budget = &self.txns.spill.index_budget;
        match state.overlay_at(at).and_then(|overlay| overlay.find(tree.id)) {
            Some(writes) if lookup.wants_more() => writes.get(key, lookup, budget),
            _ => Ok(()),
        }
    }

    /// Returns the overlay's messages for a tree, for a cursor, if the overlay belongs to the
    /// snapshot `at`.
    pub(super) fn overlay_of(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        at: SeqNo,
    ) -> Result<Option<OwnWrites>> {
        let spill = &self.txns.spill;
        let writes = state.overlay_at(Some(at)).and_then(|overlay| overlay.find(tree.id));
        writes.map(|writes| writes.own(spill)).transpose()
    }
}

impl TransactionState {
    fn overlay_at(&mut self, at: Option<SeqNo>) -> Option<&mut WriteSet> {
        let overlay = self.overlay.as_deref_mut()?;
        (Some(overlay.at) == at).then_some(&mut overlay.writes)
    }

    /// Returns the approximate memory of the write set and the overlay, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        let overlay = self.overlay.as_ref().map_or(0, |overlay| overlay.writes.memory_bytes());
        self.writes.memory_bytes() + overlay
    }

    /// Adds a tree to `trees`, if it is not there yet.
    pub(super) fn remember(&mut self, tree: &Arc<TreeCore>) {
        let is_last = self.trees.last().is_some_and(|last| Arc::ptr_eq(last, tree));
        if !is_last && !self.trees.iter().any(|known| Arc::ptr_eq(known, tree)) {
            self.trees.push(Arc::clone(tree));
        }
    }
}
