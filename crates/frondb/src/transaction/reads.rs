//! Gets of a transaction, plain and locking, and locks on ranges.

use frondb_core::Result;
use frondb_locks::LockMode;
use frondb_tree::AsTree;
use frondb_txn::Wait;

use super::Transaction;
use crate::tree::Tree;

impl Transaction {
    /// The value of `key`, including the transaction's own writes. At serializable it locks the
    /// key in shared mode, even if the key has no value.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`, `Io`, `Closed`. At serializable also the errors of
    /// [`get_for_share`](Self::get_for_share).
    #[inline]
    pub fn get(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.inner.get(tree.core(), key.as_ref())
    }

    /// As [`get`](Self::get), into a vector that can be reused for many reads: replaces its
    /// contents, which are empty if the key has no value. Returns whether the key has one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        value.clear();
        let found = self.inner.get(tree.core(), key.as_ref())?;
        Ok(found.map(|found| *value = found).is_some())
    }

    /// The values of several keys as of one moment, in the order of `keys`, including the
    /// transaction's own writes. The blocks that are not in memory are read at the same time.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(&self, tree: &Tree, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.multi_get(tree.core(), keys)
    }

    /// Whether `key` has a value. Reads and locks as [`get`](Self::get).
    ///
    /// # Errors
    /// As [`get`](Self::get).
    #[inline]
    pub fn exists(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.exists(tree.core(), key.as_ref())
    }

    /// Estimates how many messages the transaction has written to `[lo, hi)` (without `hi`, all
    /// from `lo` on): puts, deletes and updates, also those that later ones or a rollback to a
    /// savepoint have made obsolete. [`Tree::messages`] and [`Tree::estimate`] do not count
    /// them before the commit.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if
    /// the tree was dropped; `Corruption`, `Io`, `Closed`.
    pub fn own_messages(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<u64> {
        self.inner.own_messages(tree.core(), lo, hi)
    }

    /// The newest value of `key`, independent of the snapshot. Locks the key in exclusive mode,
    /// even if it has no value: no other transaction can lock or write it until this one ends.
    ///
    /// # Errors
    /// As [`get`](Self::get); `LockTimeout`; `Deadlock`: the transaction was rolled back, try it
    /// again; `Busy` if the key is locked and `wait` is not [`Wait::Timeout`]; `TooManyLocks` for a
    /// transaction with very many locks between those of others; `Cancelled`; `Conflict` under
    /// snapshot isolation, if the key was changed since the snapshot.
    #[inline]
    pub fn get_for_update(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_update(tree.core(), key.as_ref(), wait)
    }

    /// The newest value of `key`, independent of the snapshot. Locks the key in shared mode: no
    /// other transaction can write it until this one ends.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    #[inline]
    pub fn get_for_share(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        wait: Wait,
    ) -> Result<Option<Vec<u8>>> {
        self.inner.get_for_share(tree.core(), key.as_ref(), wait)
    }

    /// Releases the lock that the last [`get_for_update`](Self::get_for_update) or
    /// [`get_for_share`](Self::get_for_share) took on `key`, for a caller that rejects the row it
    /// has read. Does nothing unless the level is read committed or below, the transaction had no
    /// lock on the key before, and it has not locked or written anything since.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Closed`.
    pub fn unlock(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.unlock(tree.core(), key.as_ref())
    }

    /// Releases the lock on `key` before the transaction ends, at any isolation level. For keys
    /// that stand for something other than their values, such as the right to use a counter:
    /// nothing protects the value from then on. Does nothing for a key that is locked as part of a
    /// range, or whose lock was shared first and then exclusive.
    ///
    /// # Errors
    /// `Invalid` if the transaction has written to the tree, if it has ended, or for a tree of
    /// another database; `NotFound` if the tree was dropped; `Closed`.
    pub fn release_key(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.release_key(tree.core(), key.as_ref())
    }

    /// Locks all keys with `lo <= key < hi`, existing or not, until the transaction ends; without
    /// `hi`, all from `lo` on. An empty `lo` without `hi` locks the whole tree.
    ///
    /// # Errors
    /// As [`get_for_update`](Self::get_for_update).
    pub fn lock_range(
        &self,
        tree: &Tree,
        lo: impl AsRef<[u8]>,
        hi: Option<&[u8]>,
        mode: LockMode,
        wait: Wait,
    ) -> Result<()> {
        self.inner.lock_range(tree.core(), lo.as_ref(), hi, mode, wait)
    }
}
