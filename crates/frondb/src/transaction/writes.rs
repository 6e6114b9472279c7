//! Writes of a transaction, and the savepoints to which they can be undone.

use frondb_core::Result;
use frondb_tree::AsTree;
use frondb_txn::{Savepoint, Wait};

use super::{Transaction, TransactionCursor, TransactionCursorOptions};
use crate::tree::Tree;

impl Transaction {
    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, for a key or value that is too long, or for a tree
    /// of another database; `NotFound` if the tree was dropped; `LockTimeout`; `Deadlock`: the
    /// transaction was rolled back, try it again; `TooManyLocks` for a transaction with very many
    /// locks between those of others; `Conflict` under snapshot isolation: roll back and try again;
    /// `Cancelled`; `NoSpace` if a large transaction cannot spill to disk; `Io`, `Closed`. Except
    /// after `Deadlock`, the transaction's writes are as before the call.
    #[inline]
    pub fn put(&self, tree: &Tree, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.put(tree.core(), key.as_ref(), value.as_ref())
    }

    /// Sets the value of a `key` that has none.
    ///
    /// # Errors
    /// `Exists` if the key has a value; the key stays locked. Otherwise as [`put`](Self::put).
    #[inline]
    pub fn insert(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.insert(tree.core(), key.as_ref(), value.as_ref())
    }

    /// As [`insert`](Self::insert), for a caller that will not write a key that has a value: after
    /// `Exists` the key is only locked in shared mode, so that other transactions can read it with
    /// a lock, and find by an insert of their own that it exists. Returns whether the transaction
    /// had no exclusive lock on the key before.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_or_share(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool> {
        self.inner.insert_or_share(tree.core(), key.as_ref(), value.as_ref())
    }

    /// Releases the lock of a key that [`insert_or_share`](Self::insert_or_share) has newly locked,
    /// once that insert was undone by [`roll_back_to`](Self::roll_back_to). Does nothing if the
    /// transaction has a write of the key that was not undone.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or for a tree of another database; `NotFound` if the
    /// tree was dropped; `Corruption`; a device error; `Closed`.
    #[inline]
    pub fn release_undone(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.release_undone(tree.core(), key.as_ref())
    }

    /// Removes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn delete(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(tree.core(), key.as_ref())
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on. Locks the whole
    /// range.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&self, tree: &Tree, lo: impl AsRef<[u8]>, hi: Option<&[u8]>) -> Result<()> {
        self.inner.delete_range(tree.core(), lo.as_ref(), hi)
    }

    /// Sets the value of `key` and returns the value that it had.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_for_update`](Self::get_for_update).
    pub fn replace(
        &self,
        tree: &Tree,
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
    pub fn take(&self, tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.exchange(tree, key.as_ref(), None)
    }

    fn exchange(&self, tree: &Tree, key: &[u8], new: Option<&[u8]>) -> Result<Option<Vec<u8>>> {
        let old = self.inner.get_for_update(tree.core(), key, Wait::Timeout)?;
        match new {
            Some(value) => self.inner.put(tree.core(), key, value)?,
            None if old.is_some() => self.inner.delete(tree.core(), key)?,
            None => {}
        }
        Ok(old)
    }

    /// Removes the first entry and returns it; `None` if the tree is empty. The entry is locked. It
    /// is the first of the newest data, not of the snapshot. With [`Wait::SkipLocked`] it is the
    /// first that no other transaction has locked, so that several workers take different entries
    /// of a queue.
    ///
    /// ```
    /// use frondb::{Db, Options, TransactionOptions, TreeOptions, Wait};
    ///
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let jobs = db.open_or_create_tree("jobs", TreeOptions::default())?;
    /// jobs.put("1", "sweep")?;
    /// jobs.put("2", "water")?;
    /// let (one, two) = (db.begin(TransactionOptions::new())?, db.begin(TransactionOptions::new())?);
    /// let first = one.pop_first(&jobs, Wait::SkipLocked)?;
    /// assert_eq!(first, Some((b"1".to_vec(), b"sweep".to_vec())));
    /// assert!(two.pop_first(&jobs, Wait::SkipLocked)?.is_some_and(|(key, _)| key == b"2"));
    /// two.commit()?;
    /// one.rollback()?; // the job is there again
    /// assert_eq!(jobs.first()?, first);
    /// # db.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get_for_update`](Self::get_for_update).
    pub fn pop_first(&self, tree: &Tree, wait: Wait) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(tree, wait, |cursor| cursor.first())
    }

    /// Removes the last entry and returns it; otherwise as [`pop_first`](Self::pop_first).
    ///
    /// # Errors
    /// As [`pop_first`](Self::pop_first).
    pub fn pop_last(&self, tree: &Tree, wait: Wait) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.pop(tree, wait, |cursor| cursor.last())
    }

    fn pop(
        &self,
        tree: &Tree,
        wait: Wait,
        edge: fn(&mut TransactionCursor) -> Result<bool>,
    ) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let options = TransactionCursorOptions::new().for_update(wait).without_gaps();
        let mut cursor = self.cursor_with(tree, options)?;
        if !edge(&mut cursor)? {
            return Ok(None);
        }
        let entry = (cursor.key().to_vec(), cursor.value()?.to_vec());
        self.inner.delete(tree.core(), &entry.0)?;
        Ok(Some(entry))
    }

    /// Applies the tree's update function with this operand to `key`, without reading it.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function or it is not
    /// registered.
    #[inline]
    pub fn update(
        &self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.update(tree.core(), key.as_ref(), operand.as_ref())
    }

    /// Sets a savepoint. Savepoints nest.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_savepoint(&self) -> Result<Savepoint> {
        self.inner.set_savepoint()
    }

    /// Undoes all writes since the savepoint was set. The savepoint stays set, later ones are
    /// removed. Locks are kept.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for one of another transaction;
    /// `NoSpace` or `Io` if spilled writes of a large transaction cannot be rewritten: the call
    /// may be repeated.
    pub fn roll_back_to(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.roll_back_to(savepoint)
    }

    /// Removes the savepoint and later ones, and keeps the writes.
    ///
    /// # Errors
    /// `NotFound` if the savepoint is no longer set; `Invalid` for one of another transaction.
    pub fn release(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.release(savepoint)
    }

    /// Removes only this savepoint: later ones stay set, and the writes are kept.
    ///
    /// # Errors
    /// As [`release`](Self::release).
    pub fn forget_savepoint(&self, savepoint: Savepoint) -> Result<()> {
        self.inner.forget_savepoint(savepoint)
    }
}
