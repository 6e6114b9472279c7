//! [`BulkStatement`]: many writes of a transaction to empty trees, sorted outside of the trees.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::AsTree;
use frondb_txn::{BulkProgress, BulkReport, Duplicate};

use super::Transaction;
use crate::tree::Tree;

/// Many writes of a [`Transaction`] to trees that are empty, with less work than single writes:
/// whole trees are locked instead of keys, and the entries are sorted in a part of the memory and
/// on disk, and written once to their place. After [`finish`](Self::finish) they are ordinary
/// writes of the transaction: only the transaction sees them, a savepoint that is older than the
/// statement undoes them, and they are committed, prepared or rolled back with the transaction.
///
/// A [`BulkLoad`](crate::BulkLoad) does the same with a commit of its own, and also for trees that
/// are not empty.
///
/// One thread at a time may use a statement. While it is in progress, the transaction must not
/// write to its trees by other means.
///
/// ```
/// use frondb::{Db, Options, TransactionOptions, TreeOptions};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let words = db.create_tree("words", TreeOptions::default())?;
/// let txn = db.begin(TransactionOptions::new())?;
/// let before = txn.set_savepoint()?;
/// match txn.begin_bulk(&[&words])? {
///     Some(mut bulk) => {
///         for word in ["leaf", "frond", "fern"] {
///             bulk.put(&words, word.as_bytes(), b"1")?;
///         }
///         let report = bulk.finish(&mut |_| true)?;
///         if report.duplicates > 0 {
///             txn.roll_back_to(before)?;
///         }
///     }
///     None => txn.insert(&words, b"fern", b"1")?,
/// }
/// assert!(txn.exists(&words, b"fern")?);
/// assert!(!words.exists(b"fern")?);
/// txn.commit()?;
/// assert!(words.exists(b"fern")?);
/// # db.close()
/// # }
/// ```
#[derive(Debug)]
pub struct BulkStatement {
    inner: frondb_txn::BulkStatement,
}

impl Transaction {
    /// Begins a [`BulkStatement`] that writes to `trees`. Locks these trees as a whole until the
    /// transaction ends.
    ///
    /// Returns `None` if that is not possible, so that the caller uses single writes: a tree has an
    /// entry, in the newest committed state, in the transaction's own writes or in its snapshot;
    /// another transaction has locks on a tree; or, under snapshot isolation, a tree was changed
    /// since the snapshot. The call does not wait for locks. If the call returns `None` because of
    /// another transaction's lock or commit, locks on whole trees may remain.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, or for a tree of another database; `NotFound` if a
    /// tree was dropped; `Corruption`, `Io`, `Poisoned`, `Closed`.
    pub fn begin_bulk(&self, trees: &[&Tree]) -> Result<Option<BulkStatement>> {
        let trees: Vec<_> = trees.iter().map(|tree| Arc::clone(tree.core())).collect();
        Ok(self.inner.begin_bulk(&trees)?.map(|inner| BulkStatement { inner }))
    }
}

impl BulkStatement {
    /// Adds an entry. Keys have 0 to 32 KiB, values 0 to 64 MiB. If a key is put twice, the last
    /// value counts, and [`finish`](Self::finish) reports it.
    ///
    /// # Errors
    /// `Invalid` for a key or value that is too long, for a tree that the statement was not begun
    /// with, or after [`finish`](Self::finish); `NotFound` if the tree was dropped; `NoSpace`,
    /// `Io`, `Closed`: the statement can only be dropped.
    #[inline]
    pub fn put(
        &mut self,
        tree: &Tree,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.inner.put(tree.core(), key.as_ref(), value.as_ref())
    }

    /// Sorts the entries and makes them writes of the transaction. `progress` is called every few
    /// milliseconds; the call fails when it returns false.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended, has written to one of the trees by other means in
    /// the meantime, or if the statement was finished before; `NotFound` if a tree was dropped;
    /// `Cancelled`; `NoSpace`, `Io`, `Closed`. After an error the writes of the transaction are as
    /// before the statement, and the statement can only be dropped.
    pub fn finish(&mut self, progress: &mut dyn FnMut(BulkProgress) -> bool) -> Result<BulkReport> {
        self.inner.finish(progress)
    }

    /// The smallest key that was put twice, of the first tree that has one in the order in which
    /// the trees were created. `None` if there is none, and before [`finish`](Self::finish).
    #[must_use]
    pub fn duplicate(&self) -> Option<Duplicate> {
        self.inner.duplicate()
    }
}
