//! Writes of a transaction, and the savepoints to which they can be undone.

use frondb_core::Result;
use frondb_engine::Savepoint;

use super::Transaction;
use crate::tree::Tree;

impl Transaction {
    /// Sets the value of `key`. Keys have 0 to 32 KiB, values 0 to 64 MiB.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, for a key or value that is too long, or for a tree
    /// of another database; `NotFound` if the tree was dropped; `LockTimeout`; `Deadlock`: the
    /// transaction was rolled back, try it again; `TooManyLocks` for a transaction with very many
    /// locks between those of others; `Conflict` under snapshot isolation: roll back and try again;
    /// `Cancelled`; `NoSpace` if a large transaction cannot spill to disk; `Io`, `Closed`. Except for `Deadlock` the transaction's writes are as before the call.
    pub fn put(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(&tree.inner, key, value)
    }

    /// Sets the value of a `key` that has none.
    ///
    /// # Errors
    /// `Exists` if the key has a value; the key stays locked. Otherwise as [`put`](Self::put).
    pub fn insert(&self, tree: &Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.insert(&tree.inner, key, value)
    }

    /// Removes `key`; it need not exist.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, tree: &Tree, key: &[u8]) -> Result<()> {
        self.inner.delete(&tree.inner, key)
    }

    /// Removes all keys with `lo <= key < hi`; without `hi`, all from `lo` on. Locks the whole
    /// range.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete_range(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<()> {
        self.inner.delete_range(&tree.inner, lo, hi)
    }

    /// Applies the tree's update function with this operand to `key`, without reading it.
    ///
    /// # Errors
    /// As [`put`](Self::put); `Invalid` if the tree has no update function or it is not
    /// registered.
    pub fn update(&self, tree: &Tree, key: &[u8], operand: &[u8]) -> Result<()> {
        self.inner.update(&tree.inner, key, operand)
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
