//! Gets of a transaction: its own writes over committed data (rule 22).

use frondb_core::sync::Arc;
use frondb_core::{Error, Result, SeqNo};
use frondb_locks::LockMode;
use frondb_merge::Lookup;
use frondb_tree::{TreeCore, get, multi_get_under};

use super::{Core, Transaction, TransactionState};
use crate::options::{Isolation, Wait};

impl Transaction {
    /// The value of `key`, own writes included. At serializable, the call locks the key in shared
    /// mode.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; errors of a lock at serializable; `Corruption`, `Io`, `Closed`.
    pub fn get(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut state = self.core.active_on(tree)?;
        if self.core.options.isolation == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.get(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.get(&mut state, tree, key, at)
    }

    /// Locks `key` in exclusive mode, whether or not it has a value, and returns its newest value
    /// regardless of the snapshot. No other transaction can lock or write the key until this one
    /// ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`: the transaction was rolled back; `Busy`
    /// for a locked row if `wait` is not [`Wait::Timeout`]; `Cancelled`; `Conflict` with snapshot
    /// isolation, if the key was changed since the snapshot.
    pub fn get_for_update(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        self.get_locked(tree, key, LockMode::Exclusive, wait)
    }

    /// Locks `key` in shared mode and returns its newest value regardless of the snapshot. Other
    /// transactions can also lock the key in shared mode, and none can write it until this one
    /// ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        self.get_locked(tree, key, LockMode::Shared, wait)
    }

    /// Locks all keys with `lo <= key < hi`, existing or not, until the transaction ends; without
    /// `hi`, all keys from `lo` on.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn lock_range(
        &self,
        tree: &Arc<TreeCore>,
        lo: &[u8],
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: Wait,
    ) -> Result<()> {
        let mut state = self.core.active_on(tree)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(());
        }
        let wait = state.wait(wait);
        let locked = state.locker.lock_range(tree.locks(), lo, hi, mode, wait);
        self.core.locked(&mut state, tree, locked).map(drop)
    }

    fn get_locked(
        &self,
        tree: &Arc<TreeCore>,
        key: &[u8],
        mode: LockMode,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        let mut state = self.core.active_on(tree)?;
        if self.core.options.snapshot_isolation {
            self.core.snapshot(&mut state)?;
        }
        let acquired = self.core.lock_row(&mut state, tree, key, mode, wait)?;
        if !acquired.was_held && !self.core.options.isolation.locks_gaps() {
            state.last_read_lock.set(tree.id, key);
        }
        self.core.check_unchanged(&mut state, tree, key)?;
        self.core.get(&mut state, tree, key, None)
    }

    /// Releases the lock that the last locking get took on `key`, for a caller that does not need
    /// the row. Does nothing above read committed, if the transaction had a lock on the key before
    /// the get, or if it has since locked or written anything.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<()> {
        let mut state = self.core.active_on(tree)?;
        if state.last_read_lock.is(tree.id, key) {
            state.last_read_lock.tree = None;
            state.unlock_row(tree, key);
        }
        Ok(())
    }

    /// Releases the lock on `key` before the transaction ends, at any isolation level. For keys
    /// that represent something other than their values, such as the right to use a counter:
    /// nothing protects the value from then on. Does nothing for a key that is locked as part of a
    /// range, or whose lock was first shared and then exclusive.
    ///
    /// # Errors
    /// `Invalid` if the transaction has written to the tree, if it has ended, or for a tree of
    /// another database; `NotFound` if the tree was dropped; `Closed`.
    pub fn release_key(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<()> {
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

    /// The values of several keys, in the order of `keys`; all at one point in time, unless each
    /// key is locked.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &Arc<TreeCore>, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        let mut state = self.core.active_on(tree)?;
        let moment;
        let at = if self.core.options.isolation == Isolation::Serializable {
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

    /// Whether `key` has a value; reads and locks as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Arc<TreeCore>, key: &[u8]) -> Result<bool> {
        let mut state = self.core.active_on(tree)?;
        if self.core.options.isolation == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.exists(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.exists(&mut state, tree, key, at)
    }

    /// Approximate number of messages that the transaction has written to `[lo, hi)` of a tree.
    ///
    /// # Errors
    /// As [`get`](Self::get), without the errors of a lock.
    pub fn own_messages(&self, tree: &Arc<TreeCore>, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
        let mut state = self.core.active_on(tree)?;
        let budget = &self.core.txns.spill.index_budget;
        let count = || {
            let writes = state.writes.find(tree.id);
            writes.map_or(Ok(0), |writes| writes.messages(lo, hi, budget))
        };
        self.core.txns.reads.health.while_open(count)
    }
}

impl Core {
    /// The value of `key` in own writes; if they do not have it, at the snapshot `at`.
    pub(super) fn get(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<Option<Vec<u8>>> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns
            .reads
            .health
            .while_open(|| get::get_under(&self.txns.reads, tree, key, at, lookup))
    }

    /// The values of several keys in own writes; for keys that they do not have, at the snapshot
    /// `at`.
    fn multi_get(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        keys: &[&[u8]],
        at: Option<SeqNo>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let lookup_of = |i: usize| self.own_lookup(state, tree, keys[i], at);
        self.txns
            .reads
            .health
            .while_open(|| multi_get_under(&self.txns.reads, tree, keys, at, lookup_of))
    }

    /// Whether `key` has a value in own writes; if they do not have it, at the snapshot `at`.
    pub(super) fn exists(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<bool> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns
            .reads
            .health
            .while_open(|| get::exists_under(&self.txns.reads, tree, key, at, lookup))
    }

    /// Looks `key` up in the layers above committed data: own writes and, for a read at a snapshot,
    /// the overlay.
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
