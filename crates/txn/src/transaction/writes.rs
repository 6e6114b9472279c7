//! Writes of a transaction: lock the key, check for conflicts, add the message to the write set.

use frondb_commit::write_value;
use frondb_core::budget::Part;
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, MessageKind, Result, SeqNo};
use frondb_locks::{Acquired, LockMode};
use frondb_tree::get::{changed_since, range_changed_since};
use frondb_tree::{AsTree, TreeCore};
use frondb_writeset::TreeWrites;

use super::overlay::Target;
use super::{Core, Transaction, TransactionCursor, TransactionState, spill_of};
use crate::options::{TransactionCursorOptions, Wait};

/// Bytes written between two updates of the memory charge.
const CHARGE_CHECK_BYTES: u64 = 16 << 10;

/// A transaction with fewer bytes of writes and overlay in memory does not spill.
const SPILL_BYTES_MIN: u64 = 64 << 10;

/// Approximate overhead of a message in memory, bytes.
const MESSAGE_BYTES: u64 = 16;

impl Transaction {
    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, for a key or value that is too long, or for a tree
    /// of another database; `NotFound` if the tree was dropped; `LockTimeout`; `Deadlock`, after
    /// which the transaction is rolled back and can be tried again; `TooManyLocks` if this
    /// transaction has very many locks that cannot be joined to ranges, because locks of other
    /// transactions lie between them; `Conflict` under snapshot isolation, after which the caller
    /// should roll back and try again; `Cancelled`;
    /// `NoSpace` if a large value or a part of a large transaction cannot be written to disk; `Io`,
    /// `Poisoned`, `Closed`. Except after `Deadlock`, an error leaves the transaction's writes as
    /// they were.
    pub fn put(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (tree, key, value) = (tree.core(), key.as_ref(), value.as_ref());
        let mut state = self.core.begin_write(tree, key, value)?;
        self.core.lock_to_write(&mut state, tree, key)?;
        self.core.put(&mut state, tree, key, value, Target::Commit)
    }

    /// Sets the value of a `key` that has none.
    ///
    /// # Errors
    /// `Exists` if the key has a value, also if the value is newer than the snapshot; the key stays
    /// locked. `Corruption`; otherwise as [`put`](Self::put).
    pub fn insert(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (tree, key, value) = (tree.core(), key.as_ref(), value.as_ref());
        let mut state = self.core.begin_write(tree, key, value)?;
        let core = &self.core;
        core.lock_row(&mut state, tree, key, LockMode::Exclusive, Wait::Timeout)?;
        // Check under the lock, so that no other transaction can insert the key after the check
        // (rule 21).
        if core.exists(&mut state, tree, key, None)? {
            return Err(exists(tree));
        }
        core.check_unchanged(&mut state, tree, key)?;
        core.put(&mut state, tree, key, value, Target::Commit)
    }

    /// Inserts like [`insert`](Self::insert), but if the call has locked the key, `Exists` leaves
    /// the key locked in shared mode only. So other transactions can read the key with a shared
    /// lock, and their inserts of the key fail with `Exists` without waiting. For a caller that
    /// reports a duplicate and does not replace it (rule 21). Returns whether the call took a new
    /// exclusive lock.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_or_share(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        let (tree, key, value) = (tree.core(), key.as_ref(), value.as_ref());
        let mut state = self.core.begin_write(tree, key, value)?;
        let acquired = self.core.lock_to_insert(&mut state, tree, key)?;
        self.core.put(&mut state, tree, key, value, Target::Commit)?;
        Ok(!acquired.was_held)
    }

    /// Releases the new lock that [`insert_or_share`](Self::insert_or_share) took on `key`. For a
    /// caller that has undone that insert with [`roll_back_to`](Self::roll_back_to). Does nothing
    /// if the transaction still has a write of the key.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn release_undone(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<()> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        let own = self.core.own_lookup(&mut state, tree, key, None)?;
        if own.newest() == SeqNo(0) {
            state.unlock_row(tree, key);
        }
        Ok(())
    }

    /// Removes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<()> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.begin_write(tree, key, b"")?;
        self.core.lock_to_write(&mut state, tree, key)?;
        self.core.write(&mut state, tree, |writes| writes.write(MessageKind::Delete, key, b""));
        Ok(())
    }

    /// Sets the value of `key` and returns the value that it had.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_for_update`](Self::get_for_update).
    pub fn replace(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        self.exchange(tree, key.as_ref(), Some(value.as_ref()))
    }

    /// Removes `key` and returns the value that it had. If `key` has no value, nothing changes
    /// except that `key` is locked.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub fn take(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.exchange(tree, key.as_ref(), None)
    }

    fn exchange(
        &self,
        tree: &impl AsTree,
        key: &[u8],
        new: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>> {
        let old = self.get_for_update(tree, key, Wait::Timeout)?;
        match new {
            Some(value) => self.put(tree, key, value)?,
            None if old.is_some() => self.delete(tree, key)?,
            None => {}
        }
        Ok(old)
    }

    /// Removes the first entry of the newest data, not of the snapshot, and returns it; `None` if
    /// the tree is empty. The entry is locked. With [`Wait::SkipLocked`], takes the first entry
    /// that no other transaction has locked, so that several workers take different entries of a
    /// queue; `None` if all entries are locked.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_for_update`](Self::get_for_update); `Invalid` for
    /// [`Wait::ShowLocked`].
    pub fn pop_first(&self, tree: &impl AsTree, wait: Wait) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(tree, wait, |cursor| cursor.first())
    }

    /// Removes the last entry and returns it; otherwise like [`pop_first`](Self::pop_first).
    ///
    /// # Errors
    /// As [`pop_first`](Self::pop_first).
    pub fn pop_last(&self, tree: &impl AsTree, wait: Wait) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(tree, wait, |cursor| cursor.last())
    }

    fn pop(
        &self,
        tree: &impl AsTree,
        wait: Wait,
        edge: fn(&mut TransactionCursor) -> Result<bool>,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if wait == Wait::ShowLocked {
            return Err(Error::invalid("a locked entry cannot be popped: use another `Wait`"));
        }
        let options = TransactionCursorOptions::new().for_update(wait).without_gaps();
        let mut cursor = self.cursor_with(tree, options)?;
        if !edge(&mut cursor)? {
            return Ok(None);
        }
        let entry = (cursor.key().to_vec(), cursor.value()?.to_vec());
        self.delete(tree, &entry.0)?;
        Ok(Some(entry))
    }

    /// Writes an update of `key` with `operand`, and reads nothing. Readers and merges apply the
    /// tree's update function later.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function, or if its function is
    /// not registered.
    pub fn update(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (tree, key, operand) = (tree.core(), key.as_ref(), operand.as_ref());
        tree.check_updates()?;
        if operand.len() > VALUE_INLINE_BYTES_MAX {
            return Err(Error::invalid(format!(
                "an operand has at most {VALUE_INLINE_BYTES_MAX} bytes, not {}",
                operand.len()
            )));
        }
        let mut state = self.core.begin_write(tree, key, operand)?;
        self.core.lock_to_write(&mut state, tree, key)?;
        self.core.write(&mut state, tree, |writes| writes.write(MessageKind::Update, key, operand));
        Ok(())
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all keys from `lo` on. Locks the whole
    /// range.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(
        &self,
        tree: &impl AsTree,
        lo: impl AsRef<[u8]>,
        hi: Option<&[u8]>,
    ) -> Result<()> {
        let (tree, lo) = (tree.core(), lo.as_ref());
        let mut state = self.core.begin_write(tree, lo, hi.unwrap_or_default())?;
        check_lengths(hi.unwrap_or_default(), b"")?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(());
        }
        self.core.lock_range_to_write(&mut state, tree, lo, hi)?;
        self.core.write(&mut state, tree, |writes| writes.write_range_delete(lo, hi));
        Ok(())
    }
}

impl Core {
    /// Checks a write, makes room in memory for its message, and returns the locked state.
    pub(super) fn begin_write(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        value: &[u8],
    ) -> Result<frondb_core::sync::MutexGuard<'_, TransactionState>> {
        let mut state = self.active_on(tree)?;
        self.txns.health.check_writable()?;
        check_lengths(key, value)?;
        if state.charge.pending >= CHARGE_CHECK_BYTES {
            self.make_room(&mut state)?;
        }
        let inline = value.len().min(VALUE_INLINE_BYTES_MAX);
        state.charge.pending += (key.len() + inline) as u64 + MESSAGE_BYTES;
        Ok(state)
    }

    fn lock_to_write(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
    ) -> Result<()> {
        self.lock_row(state, tree, key, LockMode::Exclusive, Wait::Timeout)?;
        self.check_unchanged(state, tree, key)
    }

    /// Locks a key that must have no value; see [`Transaction::insert_or_share`].
    ///
    /// ```text
    ///   lock exclusively, without waiting --> absent: put     has a value: share the lock, Exists
    ///     another transaction holds it
    ///       lock shared, wait ------------> has a value: Exists
    ///                                       absent: release it, lock exclusively, wait, as above
    /// ```
    ///
    /// The shared lock is released before the exclusive lock is requested. Otherwise two
    /// transactions that have waited for the rollback of a third would both hold the shared lock,
    /// and one would become the victim of a deadlock. The check after the exclusive lock decides
    /// (rule 21).
    ///
    /// A value that is newer than the snapshot is `Exists`, too, and not `Conflict`: nothing is
    /// overwritten.
    fn lock_to_insert(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
    ) -> Result<Acquired> {
        let acquired = match self.lock_row(state, tree, key, LockMode::Exclusive, Wait::NoWait) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                let shared = self.lock_row(state, tree, key, LockMode::Shared, Wait::Timeout)?;
                if self.exists(state, tree, key, None)? {
                    return Err(exists(tree));
                }
                if !shared.was_held {
                    state.unlock_row(tree, key);
                }
                self.lock_row(state, tree, key, LockMode::Exclusive, Wait::Timeout)?
            }
            locked => locked?,
        };
        if !self.exists(state, tree, key, None)? {
            self.check_unchanged(state, tree, key)?;
            return Ok(acquired);
        }
        if !acquired.was_held {
            state.locker.share_row(tree.locks(), key);
        }
        Err(exists(tree))
    }

    /// Fails with `Conflict`, under snapshot isolation only, if the locked `key` was changed since
    /// the snapshot.
    pub(super) fn check_unchanged(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
    ) -> Result<()> {
        let Some(snapshot) = self.conflicts_since(state) else { return Ok(()) };
        let txns = &self.txns;
        let changed = txns.health.while_open(|| changed_since(&txns.reads, tree, key, snapshot))?;
        if changed { Err(conflict(tree)) } else { Ok(()) }
    }

    /// Fails with `Conflict`, under snapshot isolation only, if a commit after the snapshot has
    /// written a key of the locked range `[lo, hi)`. The range is empty (`hi <= lo`) if a cursor
    /// has sought a key beyond its bound.
    pub(super) fn check_range_unchanged(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        lo: &[u8],
        hi: Option<&[u8]>,
    ) -> Result<()> {
        let snapshot = self.conflicts_since(state).filter(|_| hi.is_none_or(|hi| hi > lo));
        let Some(snapshot) = snapshot else { return Ok(()) };
        let txns = &self.txns;
        let changed = || range_changed_since(&txns.reads, tree, lo, hi, snapshot);
        if txns.health.while_open(changed)? { Err(conflict(tree)) } else { Ok(()) }
    }

    fn lock_range_to_write(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        lo: &[u8],
        hi: Option<&[u8]>,
    ) -> Result<()> {
        let wait = state.wait(Wait::Timeout);
        let mode = LockMode::Exclusive;
        let locked = state.locker.lock_range(tree.locks(), lo, hi, mode, wait);
        self.locked(state, tree, locked)?;
        self.check_range_unchanged(state, tree, lo, hi)
    }

    pub(super) fn put(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        value: &[u8],
        target: Target,
    ) -> Result<()> {
        if value.len() <= VALUE_INLINE_BYTES_MAX {
            let put = MessageKind::Put;
            self.write_to(state, tree, target, |writes| writes.write(put, key, value));
            return Ok(());
        }
        // Write a large value to disk now; the commit makes it durable.
        let _call = self.txns.calls.begin()?;
        let space = &self.txns.space;
        let mut extents = Vec::new();
        let reference = match write_value(space, value, &mut extents) {
            Ok(reference) => reference,
            Err(error) => {
                extents.into_iter().for_each(|extent| space.release(extent));
                return Err(error);
            }
        };
        let mut encoded = Vec::new();
        reference.encode(&mut encoded);
        let bytes = value.len() as u64;
        self.write_to(state, tree, target, |writes| {
            writes.write_large(key, &encoded, bytes, extents);
        });
        Ok(())
    }

    fn write(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        write: impl FnOnce(&mut TreeWrites),
    ) {
        self.write_to(state, tree, Target::Commit, write);
    }

    pub(super) fn write_to(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        target: Target,
        write: impl FnOnce(&mut TreeWrites),
    ) {
        state.remember(tree);
        match (target, &mut state.overlay) {
            (Target::Overlay, Some(overlay)) => write(overlay.writes.tree(tree.id)),
            _ => {
                write(state.writes.tree(tree.id));
                state.locker.add_work(1);
                state.entry.add_message();
            }
        }
    }

    /// Updates the memory charge. While all write sets together exceed their limit, and this one
    /// has at least [`SPILL_BYTES_MIN`], spills its largest tree.
    fn make_room(&self, state: &mut TransactionState) -> Result<()> {
        let txns = &self.txns;
        let limit = txns.shares.now().write_set_bytes();
        let mut sum = state.charge.set(txns, state.memory_bytes());
        while sum > limit && state.memory_bytes() >= SPILL_BYTES_MIN {
            let _call = self.txns.calls.begin()?;
            // A kept cursor would keep the messages in memory.
            state.kept = None;
            let TransactionState { writes, overlay, trees, .. } = &mut *state;
            let overlay = overlay.as_deref_mut().map(|overlay| &mut overlay.writes);
            let writes = match overlay {
                Some(overlay) if overlay.memory_bytes() > writes.memory_bytes() => overlay,
                _ => writes,
            };
            // The spill first copies and sorts the messages.
            let _sorting = txns.reads.budget.reserve(Part::Work, writes.bytes() * 3 / 2);
            writes.spill_largest(&txns.spill, &|id| spill_of(trees, id))?;
            txns.spill.add_spill();
            sum = state.charge.set(txns, state.memory_bytes());
        }
        Ok(())
    }
}

fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_BYTES_MAX {
        let message = format!("a key has at most {KEY_BYTES_MAX} bytes, not {}", key.len());
        return Err(Error::invalid(message));
    }
    if value.len() > VALUE_BYTES_MAX {
        let message = format!("a value has at most {VALUE_BYTES_MAX} bytes, not {}", value.len());
        return Err(Error::invalid(message));
    }
    Ok(())
}

fn exists(tree: &Arc<TreeCore>) -> Error {
    Error::new(ErrorKind::Exists, format!("tree {:?} already has the key", tree.name()))
}

fn conflict(tree: &Arc<TreeCore>) -> Error {
    let message = format!(
        "tree {:?}: the row was changed since the transaction's snapshot; roll back and try again",
        tree.name()
    );
    Error::new(ErrorKind::Conflict, message)
}
