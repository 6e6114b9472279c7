//! [`TransactionRange`]: an iterator over the entries of a tree within a transaction.

use frondb_core::Result;

use super::Transaction;
use super::cursor::TransactionCursor;
use super::options::TransactionCursorOptions;
use crate::ends::{End, Ends, Entry, Walk, iterator};
use crate::key_range::KeyRange;
use crate::tree::Tree;

/// The entries of a range of a tree within a transaction; otherwise as [`Range`](crate::Range).
/// Made by [`Transaction::range`](crate::Transaction::range) and
/// [`Transaction::prefix`](crate::Transaction::prefix).
///
/// Writes of the transaction to the range during the iteration may appear or not, as with a
/// [`TransactionCursor`].
#[derive(Debug)]
pub struct TransactionRange {
    ends: Ends<TransactionCursor>,
}

iterator!(TransactionRange over TransactionCursor);

impl Transaction {
    /// The entries whose keys are in `range`, in key order from either end, with the transaction's
    /// own writes. At serializable it locks what it returns in shared mode.
    ///
    /// ```
    /// # use frondb::{Db, Options, TransactionOptions, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let db = Db::open(dir.path(), Options::default())?;
    /// let words = db.open_or_create_tree("words", TreeOptions::default())?;
    /// let txn = db.begin(TransactionOptions::new())?;
    /// txn.put(&words, "fern", "1")?;
    /// txn.put(&words, "frond", "2")?;
    /// for entry in txn.range(&words, "f"..)? {
    ///     let (key, value) = entry?;
    ///     println!("{} {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// # assert_eq!(txn.range(&words, "f"..)?.count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`get`](Self::get). An item is an error as [`TransactionCursor::seek`] and
    /// [`TransactionCursor::value`] return it.
    pub fn range(&self, tree: &Tree, range: impl KeyRange) -> Result<TransactionRange> {
        self.range_with(tree, TransactionCursorOptions::new().range(range))
    }

    /// The entries whose keys begin with `prefix`; otherwise as [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&self, tree: &Tree, prefix: impl AsRef<[u8]>) -> Result<TransactionRange> {
        self.range_with(tree, TransactionCursorOptions::new().prefix(prefix))
    }

    /// The entries that a cursor with these options shows, for example with locks; otherwise as
    /// [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn range_with(
        &self,
        tree: &Tree,
        options: TransactionCursorOptions,
    ) -> Result<TransactionRange> {
        self.cursor_with(tree, options).map(TransactionRange::over)
    }

    /// The entry with the smallest key; `None` if the tree is empty. Reads and locks as
    /// [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn first(&self, tree: &Tree) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(tree, ..)?.next().transpose()
    }

    /// The entry with the largest key; otherwise as [`first`](Self::first).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn last(&self, tree: &Tree) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(tree, ..)?.next_back().transpose()
    }
}
