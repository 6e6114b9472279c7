//! Gets of a transaction: own writes first, then the overlay and committed data (rule 22).

use frondb_core::sync::Arc;
use frondb_core::{Error, Result, SeqNo};
use frondb_locks::LockMode;
use frondb_merge::Lookup;
use frondb_tree::{AsTree, TreeCore, get, multi_get_under};

use super::{Core, Transaction, TransactionState};
use crate::options::{Isolation, Wait};

impl Transaction {
    /// Returns the value of `key`, including the transaction's own writes. At serializable, locks
    /// the key in shared mode, even if the key has no value.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`. At serializable also the errors of
    /// [`get_for_share`](Self::get_for_share).
    pub fn get(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        if self.core.isolation() == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.get(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.get(&mut state, tree, key, at)
    }

    /// Reads like [`get`](Self::get), and replaces the contents of `value`, which the caller can
    /// reuse for many reads. Returns whether the key has a value; if not, `value` is empty.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        value.clear();
        let found = self.get(tree, key)?;
        Ok(found.map(|found| *value = found).is_some())
    }

    /// Returns the newest value of `key`, also if it is newer than the snapshot (under snapshot
    /// isolation, the call then fails with `Conflict`). Locks the key in exclusive mode, even if
    /// the key has no value: no other transaction can lock or write the key until this one ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`, after which the transaction is rolled back
    /// and can be tried again; `Busy` if the key is locked and `wait` is not [`Wait::Timeout`];
    /// `TooManyLocks` if this transaction has very many locks that cannot be joined to ranges,
    /// because locks of other transactions lie between them; `Cancelled`; `Conflict` under snapshot
    /// isolation, if the key was changed since the snapshot.
    pub fn get_for_update(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        let (tree, key) = (tree.core(), key.as_ref());
        self.get_locked(tree, key, LockMode::Exclusive, wait)
    }

    /// Returns the newest value as [`get_for_update`](Self::get_for_update) does. Locks the key in
    /// shared mode: no other transaction can write the key until this one ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(
        &self,
        tree: &impl AsTree,
        key: impl AsRef<[u8]>,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        let (tree, key) = (tree.core(), key.as_ref());
        self.get_locked(tree, key, LockMode::Shared, wait)
    }

    /// Locks all keys with `lo <= key < hi`, existing or not, until the transaction ends; without
    /// `hi`, all keys from `lo` on. An empty `lo` without `hi` locks the whole tree.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update); `Conflict` under snapshot isolation, if any key
    /// of the range was changed since the snapshot.
    pub fn lock_range(
        &self,
        tree: &impl AsTree,
        lo: impl AsRef<[u8]>,
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: Wait,
    ) -> Result<()> {
        let (tree, lo) = (tree.core(), lo.as_ref());
        let mut state = self.core.active_on(tree)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(());
        }
        let wait = state.wait(wait);
        let locked = state.locker.lock_range(tree.locks(), lo, hi, mode, wait);
        self.core.locked(&mut state, tree, locked)?;
        self.core.check_range_unchanged(&mut state, tree, lo, hi)
    }

    fn get_locked(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        let mut state = self.core.active_on(tree)?;
        let acquired = self.core.lock_row(&mut state, tree, key, mode, wait)?;
        if !acquired.was_held && !self.core.isolation().locks_gaps() {
            state.last_read_lock.set(tree.id, key);
        }
        self.core.check_unchanged(&mut state, tree, key)?;
        self.core.get(&mut state, tree, key, None)
    }

    /// Releases the lock that the last [`get_for_update`](Self::get_for_update) or
    /// [`get_for_share`](Self::get_for_share) took on `key`, for a caller that does not need the
    /// row. Only at read committed and below, and only if the transaction had no lock on the key
    /// before that get and has not locked or written anything since; otherwise does nothing.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<()> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        if state.last_read_lock.is(tree.id, key) {
            state.last_read_lock.tree = None;
            state.unlock_row(tree, key);
        }
        Ok(())
    }

    /// Releases the lock on `key` before the transaction ends, at any isolation level. For a key
    /// whose lock protects something other than the key's value, such as the right to use a
    /// counter: after the call, other transactions can change the value. Does nothing if the key is
    /// locked as part of a range, if the lock is packed because the transaction has very many, or
    /// if the lock was first shared and then exclusive.
    ///
    /// # Errors
    /// `Invalid` if the transaction has written to the tree, if it has ended, or for a tree of
    /// another database; `NotFound` if the tree was dropped; `Closed`.
    pub fn release_key(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<()> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        if state.writes.find(tree.id).is_some() {
            return Err(Error::invalid(format!(
                "the transaction has written to tree {:?}: its locks there stay until it ends",
                tree.name()
            )));
        }
        if state.last_read_lock.is(tree.id, key) {
            state.last_read_lock.tree = None;
        }
        state.unlock_row(tree, key);
        Ok(())
    }

    /// Returns the values of several keys, all at the same snapshot, in the order of `keys`,
    /// including the transaction's own writes. Reads blocks that are not in memory in parallel.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &impl AsTree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let tree = tree.core();
        let mut state = self.core.active_on(tree)?;
        let moment;
        let at = if self.core.isolation() == Isolation::Serializable {
            for key in keys {
                self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            }
            None
        } else if let Some(at) = self.core.read_at(&mut state)? {
            Some(at)
        } else {
            moment = self.core.txns.snapshot()?;
            Some(moment.seq())
        };
        self.core.multi_get(&mut state, tree, keys, at)
    }

    /// Whether `key` has a value. Reads and locks like [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &impl AsTree, key: impl AsRef<[u8]>) -> Result<bool> {
        let (tree, key) = (tree.core(), key.as_ref());
        let mut state = self.core.active_on(tree)?;
        if self.core.isolation() == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.exists(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.exists(&mut state, tree, key, at)
    }

    /// Estimates how many puts, deletes and updates the transaction has written to `[lo, hi)`;
    /// without `hi`, to all keys from `lo` on. Includes messages that later ones have replaced or a
    /// rollback to a savepoint has undone. `Tree::messages` and `Tree::estimate` do not count these
    /// messages before the commit.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if
    /// the tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn own_messages(&self, tree: &impl AsTree, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
        let tree = tree.core();
        let mut state = self.core.active_on(tree)?;
        let txns = &self.core.txns;
        let budget = &txns.spill.index_budget;
        let count = || {
            let writes = state.writes.find(tree.id);
            writes.map_or(Ok(0), |writes| writes.messages(lo, hi, budget))
        };
        txns.health.while_open(count)
    }
}

impl Core {
    /// Returns the value of `key` in the own writes; if they do not have the key, its value at the
    /// snapshot `at`, or without `at` its newest value.
    pub(super) fn get(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<Option<Vec<u8>>> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns.health.while_open(|| get::get_under(&self.txns.reads, tree, key, at, lookup))
    }

    /// Returns the values of several keys in the own writes; for keys that they do not have, the
    /// values at the snapshot `at`, or without `at` the newest values.
    fn multi_get(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        keys: &[&[u8]],
        at: Option<SeqNo>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let lookup_of = |i: usize| self.own_lookup(state, tree, keys[i], at);
        self.txns.health.while_open(|| multi_get_under(&self.txns.reads, tree, keys, at, lookup_of))
    }

    /// Whether `key` has a value in the own writes; if they do not have the key, whether it has a
    /// value at the snapshot `at`, or without `at` in the newest committed state.
    pub(super) fn exists(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<bool> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns.health.while_open(|| get::exists_under(&self.txns.reads, tree, key, at, lookup))
    }

    /// Looks `key` up in the transaction's own writes and, for a read at a snapshot, in the
    /// overlay.
    pub(super) fn own_lookup(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<Lookup> {
        let mut lookup = Lookup::new();
        if let Some(writes) = state.writes.find(tree.id) {
            let budget = &self.txns.spill.index_budget;
            writes.get(key, &mut lookup, budget)?;
        }
        self.look_into_overlay(state, tree, key, at, &mut lookup)?;
        Ok(lookup)
    }
}
