//! Gets of a transaction: its own writes over committed data.

use frondb_core::{Result, SeqNo};
use frondb_locks::LockMode;
use frondb_merge::Lookup;

use super::{Core, State, Transaction};
use crate::options::{Isolation, Wait};
use frondb_tree::{Tree, get};

impl Transaction {
    /// The value of `key`, own writes included. At serializable it locks the key, in shared mode.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; those of a lock at serializable; `Corruption`, `Io`, `Closed`.
    pub fn get(&self, tree: &Tree, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut state = self.core.active_on(tree)?;
        if self.core.options.isolation == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.get(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.get(&mut state, tree, key, at)
    }

    /// The newest value of `key`, whatever the snapshot, after it was locked in exclusive mode;
    /// also if there is none. Nobody else can lock or write it until the transaction ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`: the transaction was rolled back; `Busy`
    /// for a locked row unless it is waited for; `Cancelled`.
    pub fn get_for_update(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.get_locked(tree, key, LockMode::Exclusive, wait)
    }

    /// The newest value of `key`, whatever the snapshot, after it was locked in shared mode:
    /// others can lock it in that mode too, and nobody can write it until the transaction ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn get_for_share(&self, tree: &Tree, key: &[u8], wait: Wait) -> Result<Option<Vec<u8>>> {
        self.get_locked(tree, key, LockMode::Shared, wait)
    }

    /// Locks all keys with `lo <= key < hi`, there or not, until the transaction ends; without `hi`
    /// all from `lo` on.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn lock_range(
        &self,
        tree: &Tree,
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
        let locked = state.locker.lock_range(&tree.core().locks, lo, hi, mode, wait);
        self.core.locked(&mut state, tree, locked).map(drop)
    }

    fn get_locked(
        &self,
        tree: &Tree,
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
            state.looked_at.set(tree.id(), key);
        }
        self.core.check_unchanged(&mut state, tree, key)?;
        self.core.get(&mut state, tree, key, None)
    }

    /// Gives up the lock of a key that the last locking get has locked: for a caller that looked and does
    /// not want it. Only at read committed and below, only if the transaction had no lock on it before,
    /// and only if it has locked or written nothing since; else nothing happens.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        let mut state = self.core.active_on(tree)?;
        if state.looked_at.is(tree.id(), key) {
            state.looked_at.tree = None;
            state.unlock_row(tree, key);
        }
        Ok(())
    }

    /// The values of several keys, in their order; of one moment unless each is locked.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
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
        keys.iter().map(|key| self.core.get(&mut state, tree, key, at)).collect()
    }

    /// Whether `key` has a value; reads and locks as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Tree, key: &[u8]) -> Result<bool> {
        let mut state = self.core.active_on(tree)?;
        if self.core.options.isolation == Isolation::Serializable {
            self.core.lock_row(&mut state, tree, key, LockMode::Shared, Wait::Timeout)?;
            return self.core.exists(&mut state, tree, key, None);
        }
        let at = self.core.read_at(&mut state)?;
        self.core.exists(&mut state, tree, key, at)
    }
}

impl Core {
    /// The value of `key` in own writes over what `at` sees.
    pub(super) fn get(
        &self,
        state: &mut State,
        tree: &Tree,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<Option<Vec<u8>>> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns
            .reads
            .health
            .while_open(|| get::get_under(&self.txns.reads, tree.core(), key, at, lookup))
    }

    /// Whether `key` has a value in own writes over what `at` sees.
    pub(super) fn exists(
        &self,
        state: &mut State,
        tree: &Tree,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<bool> {
        let lookup = self.own_lookup(state, tree, key, at)?;
        self.txns
            .reads
            .health
            .while_open(|| get::exists_under(&self.txns.reads, tree.core(), key, at, lookup))
    }

    /// What lies above committed data: own writes, and for a read at a snapshot the overlay.
    fn own_lookup(
        &self,
        state: &mut State,
        tree: &Tree,
        key: &[u8],
        at: Option<SeqNo>,
    ) -> Result<Lookup> {
        let mut lookup = Lookup::new();
        if let Some(writes) = state.writes.find(tree.id()) {
            let budget = &self.txns.spill.index_budget;
            writes.get(key, &mut lookup, budget)?;
        }
        self.look_into_overlay(state, tree, key, at, &mut lookup)?;
        Ok(lookup)
    }
}
