//! Writes of a transaction: lock the key, check for conflicts, add the message to the write set.

use frondb_commit::write_value;
use frondb_core::budget::Part;
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, MessageKind, Result, SeqNo};
use frondb_locks::{Acquired, LockMode};
use frondb_tree::TreeCore;
use frondb_tree::get::{changed_since, range_changed_since};
use frondb_writeset::TreeWrites;

use super::overlay::Target;
use super::{Core, Transaction, TransactionState, spill_of};
use crate::options::Wait;

/// Bytes written between two updates of the memory charge.
const LOOK_BYTES: u64 = 16 << 10;

/// A write set with fewer bytes in memory does not spill.
const SPILL_BYTES_MIN: u64 = 64 << 10;

/// Approximate overhead of a message in memory, bytes.
const MESSAGE_BYTES: u64 = 16;

impl Transaction {
    /// Locks `key` and sets its value. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, for a key or value that is too long or a tree of
    /// another database; `NotFound` if the tree was dropped; `LockTimeout`; `Deadlock`: the
    /// transaction was rolled back; `Conflict` under snapshot isolation; `Cancelled`; `NoSpace` if
    /// a large transaction cannot go to disk (nothing has changed); `Io`, `Closed`.
    pub fn put(&self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> Result<()> {
        let mut state = self.core.begin_write(tree, key, value)?;
        self.core.lock_to_write(&mut state, tree, key)?;
        self.core.put(&mut state, tree, key, value, Target::Commit)
    }

    /// Sets the value of a `key` that has none. The check comes after the lock (rule 21), so that
    /// no other transaction can insert the key in between.
    ///
    /// # Errors
    /// `Exists` if the key has a value: the key stays locked. Errors of [`put`](Self::put) and
    /// [`get`](Self::get).
    pub fn insert(&self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> Result<()> {
        let mut state = self.core.begin_write(tree, key, value)?;
        self.core.lock_to_write(&mut state, tree, key)?;
        if self.core.exists(&mut state, tree, key, None)? {
            return Err(exists(tree));
        }
        self.core.put(&mut state, tree, key, value, Target::Commit)
    }

    /// As [`insert`](Self::insert), for a caller that will not write a key that already has a
    /// value: such a key is then locked in shared mode, unless this transaction already had an
    /// exclusive lock on it. Returns whether the lock on the inserted key is new, so that
    /// [`release_undone`](Self::release_undone) may release it if the insert is undone.
    ///
    /// ```text
    ///   lock exclusively, without waiting --> absent: put     has a value: share the lock, Exists
    ///     another transaction holds it
    ///       lock shared, wait ------------> has a value: Exists
    ///                                       absent: release it, lock exclusively, wait, as above
    /// ```
    ///
    /// The shared lock is released before the exclusive lock is requested: if two transactions have
    /// waited for the rollback of a third, neither becomes the victim of a deadlock. The check
    /// after the exclusive lock decides (rule 21).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_or_share(&self, tree: &Arc<TreeCore>, key: &[u8], value: &[u8]) -> Result<bool> {
        let mut state = self.core.begin_write(tree, key, value)?;
        let acquired = self.core.lock_to_insert(&mut state, tree, key)?;
        self.core.put(&mut state, tree, key, value, Target::Commit)?;
        Ok(!acquired.was_held)
    }

    /// Releases the lock of a key whose writes by this transaction were all undone, as if the key
    /// had not been written. Does nothing while a write of the key remains, or a range delete that
    /// covers it.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`; a device error; `Closed`.
    pub fn release_undone(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<()> {
        let mut state = self.core.active_on(tree)?;
        let own = self.core.own_lookup(&mut state, tree, key, None)?;
        if own.newest() == SeqNo(0) {
            state.unlock_row(tree, key);
        }
        Ok(())
    }

    /// Locks `key` and deletes it, whether or not it exists.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<()> {
        let mut state = self.core.begin_write(tree, key, b"")?;
        self.core.lock_to_write(&mut state, tree, key)?;
        self.core.write(&mut state, tree, |writes| writes.write(MessageKind::Delete, key, b""));
        Ok(())
    }

    /// Locks `key` and applies the tree's update function to it with this operand. Does not read
    /// the key.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function, or was opened
    /// without it.
    pub fn update(&self, tree: &Arc<TreeCore>, key: &[u8], operand: &[u8]) -> Result<()> {
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

    /// Locks the range `lo <= key < hi` and deletes all keys in it; without `hi`, all keys from
    /// `lo` on. An empty range deletes nothing.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&self, tree: &Arc<TreeCore>, lo: &[u8], hi: Option<&[u8]>) -> Result<()> {
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
    /// Checks a write and makes room for it in memory.
    pub(super) fn begin_write(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        value: &[u8],
    ) -> Result<frondb_core::sync::MutexGuard<'_, TransactionState>> {
        let mut state = self.active_on(tree)?;
        self.txns.reads.health.check_writable()?;
        check_lengths(key, value)?;
        if self.options.snapshot_isolation {
            // Take the snapshot before the lock: a commit during the lock wait is a conflict.
            self.snapshot(&mut state)?;
        }
        if state.charge.pending >= LOOK_BYTES {
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
    fn lock_to_insert(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
    ) -> Result<Acquired> {
        let acquired = match self.lock_row(state, tree, key, LockMode::Exclusive, Wait::NoWait) {
            Err(error) if error.kind() == ErrorKind::Busy => {
                let shared = self.lock_row(state, tree, key, LockMode::Shared, Wait::Timeout)?;
                self.check_unchanged(state, tree, key)?;
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
        self.check_unchanged(state, tree, key)?;
        if !self.exists(state, tree, key, None)? {
            return Ok(acquired);
        }
        if !acquired.was_held {
            state.locker.share_row(tree.locks(), key);
        }
        Err(exists(tree))
    }

    /// Under snapshot isolation: fails if the locked `key` was changed since the snapshot.
    pub(super) fn check_unchanged(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
    ) -> Result<()> {
        if !self.options.snapshot_isolation {
            return Ok(());
        }
        let snapshot = self.snapshot(state)?;
        let txns = &self.txns;
        let changed =
            txns.reads.health.while_open(|| changed_since(&txns.reads, tree, key, snapshot))?;
        if changed { Err(conflict(tree)) } else { Ok(()) }
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
        if !self.options.snapshot_isolation {
            return Ok(());
        }
        let snapshot = self.snapshot(state)?;
        let txns = &self.txns;
        let changed = || range_changed_since(&txns.reads, tree, lo, hi, snapshot);
        if txns.reads.health.while_open(changed)? { Err(conflict(tree)) } else { Ok(()) }
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
        let space = &self.txns.reads.runs.space;
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
        self.write_to(state, tree, target, |writes| writes.write_large(key, &encoded, extents));
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

    /// Updates the memory charge, and spills if all write sets together exceed their limit.
    fn make_room(&self, state: &mut TransactionState) -> Result<()> {
        let txns = &self.txns;
        let limit = txns.background.jobs.shares.now().write_set_bytes();
        let mut sum = state.charge.set(txns, state.memory_bytes());
        while sum > limit && state.memory_bytes() >= SPILL_BYTES_MIN {
            let _call = self.txns.calls.begin()?;
            // A kept cursor would keep the messages in memory.
            state.kept = None;
            // Spilling first copies and sorts the messages.
            let TransactionState { writes, overlay, trees, .. } = &mut *state;
            let overlay = overlay.as_deref_mut().map(|overlay| &mut overlay.writes);
            let writes = match overlay {
                Some(overlay) if overlay.memory_bytes() > writes.memory_bytes() => overlay,
                _ => writes,
            };
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
