//! Iterators over the entries of a tree within a transaction.

use frondb_core::{Direction, Result};
use frondb_tree::{AsTree, KeyRange, Moves, Range};

use super::{Transaction, TransactionCursor};
use crate::options::TransactionCursorOptions;

/// The entries of a range of a tree within a transaction.
pub type TransactionRange = Range<TransactionCursor>;

impl Moves for TransactionCursor {
    fn begin(&mut self, direction: Direction) -> Result<bool> {
        match direction {
            Direction::Forward => self.first(),
            Direction::Backward => self.last(),
        }
    }

    fn step(&mut self, direction: Direction) -> Result<bool> {
        self.step(direction)
    }

    fn seek_from(&mut self, direction: Direction, key: &[u8]) -> Result<bool> {
        match direction {
            Direction::Forward => self.seek(key),
            Direction::Backward => self.seek_for_prev(key),
        }
    }

    fn key(&self) -> &[u8] {
        self.key()
    }

    fn value(&self) -> Result<&[u8]> {
        self.value()
    }
}

impl Transaction {
    /// Returns an iterator over the entries whose keys are in `range`, in key order from either
    /// end, with the transaction's own writes. At serializable, the iterator locks the entries and
    /// gaps that it passes, in shared mode.
    ///
    /// # Errors
    /// As [`get`](Self::get). Items may be errors of [`TransactionCursor::seek`] and
    /// [`TransactionCursor::value`].
    pub fn range(&self, tree: &impl AsTree, range: impl KeyRange) -> Result<TransactionRange> {
        self.range_with(tree, TransactionCursorOptions::new().range(range))
    }

    /// Returns an iterator over the entries whose keys begin with `prefix`; otherwise like
    /// [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn prefix(&self, tree: &impl AsTree, prefix: impl AsRef<[u8]>) -> Result<TransactionRange> {
        self.range_with(tree, TransactionCursorOptions::new().prefix(prefix))
    }

    /// Returns an iterator over the entries that a cursor with these options shows, for example a
    /// locking one; otherwise like [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn range_with(
        &self,
        tree: &impl AsTree,
        options: TransactionCursorOptions,
    ) -> Result<TransactionRange> {
        self.cursor_with(tree, options).map(Range::over)
    }

    /// Returns the entry with the smallest key; `None` if the tree is empty. Reads and locks like
    /// [`range`](Self::range).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn first(&self, tree: &impl AsTree) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(tree, ..)?.next().transpose()
    }

    /// Returns the entry with the largest key; otherwise like [`first`](Self::first).
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn last(&self, tree: &impl AsTree) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.range(tree, ..)?.next_back().transpose()
    }
}
