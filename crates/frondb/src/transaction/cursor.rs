//! [`TransactionCursor`]: reading in key order within a transaction.

use frondb_core::Result;
use frondb_core::chunk::Entries;
use frondb_tree::AsTree;

use super::Transaction;
use super::options::TransactionCursorOptions;
use crate::tree::Tree;

impl Transaction {
    /// A cursor over the whole tree. At serializable it locks what it passes in shared mode.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor(&self, tree: &Tree) -> Result<TransactionCursor> {
        self.cursor_with(tree, TransactionCursorOptions::new())
    }

    /// A cursor over part of the tree, plain or locking.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn cursor_with(
        &self,
        tree: &Tree,
        options: TransactionCursorOptions,
    ) -> Result<TransactionCursor> {
        let inner = self.inner.cursor(tree.core(), options.inner)?;
        Ok(TransactionCursor { inner })
    }
}

/// A position in a tree within a transaction: committed data as the isolation level shows it, with
/// the transaction's own writes on top. A locking cursor shows the newest data. It locks each
/// entry before it shows it, and from repeatable read on also the gap before the entry.
///
/// The cursor shows the transaction's own writes as of its last `seek`, `seek_for_prev`, `first` or
/// `last`. After the transaction has ended every move fails. Otherwise it is like a
/// [`Cursor`](crate::Cursor). One thread at a time may use it.
#[derive(Debug)]
pub struct TransactionCursor {
    inner: frondb_txn::TransactionCursor,
}

impl TransactionCursor {
    /// Whether the cursor is at an entry.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Whether no rollback to a savepoint has happened since the cursor was positioned. Otherwise
    /// its current entry may be a write that was undone; the next move shows the present state.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.inner.is_current()
    }

    /// Key of the current entry; empty without one.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Value of the current entry; empty without one.
    ///
    /// # Errors
    /// `Corruption` or `Io` for a large value; `Closed`; `Invalid` once the transaction was
    /// prepared.
    pub fn value(&self) -> Result<&[u8]> {
        self.inner.value()
    }

    /// Moves to the first entry whose key is at least `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::get`]; for a locking cursor as [`Transaction::get_for_update`]. The
    /// cursor is then at no entry.
    #[inline]
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.seek(key.as_ref())
    }

    /// Moves to the last entry whose key is at most `key`. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[inline]
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.inner.seek_for_prev(key.as_ref())
    }

    /// Moves to the first entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn first(&mut self) -> Result<bool> {
        self.inner.first()
    }

    /// Moves to the last entry. Returns whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn last(&mut self) -> Result<bool> {
        self.inner.last()
    }

    /// Moves to the next entry, or to the first if the cursor is not positioned. Returns whether
    /// there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    #[expect(clippy::should_implement_trait, reason = "it can fail, and lends what it is at")]
    pub fn next(&mut self) -> Result<bool> {
        self.inner.next()
    }

    /// The caller is about to read this many entries: the cursor prepares as many at once. Has no
    /// effect on the entries that the cursor shows.
    #[inline]
    pub fn expect(&mut self, entries: usize) {
        self.inner.expect(entries);
    }

    /// Moves over several adjacent entries in one call, returns them, and stays at the last: at
    /// most `max` entries, with at most `bytes` of keys and `bytes` of values. Cheaper than that
    /// many calls of [`next`](Self::next). May return no entries where the next one needs more than
    /// a copy, at an end, before the first entry, or after a backward move, and returns none of a
    /// locking cursor; call [`next`](Self::next) then.
    #[inline]
    #[must_use]
    pub fn next_entries(&mut self, max: usize, bytes: usize) -> Entries<'_> {
        self.inner.next_entries(max, bytes)
    }

    /// Moves to the previous entry, or to the last if the cursor is not positioned. Returns
    /// whether there is one.
    ///
    /// # Errors
    /// As [`seek`](Self::seek).
    pub fn prev(&mut self) -> Result<bool> {
        self.inner.prev()
    }

    /// Whether a locking cursor has locked the current entry. If not, another transaction holds the
    /// lock, and the entry is as it was last committed: see
    /// [`Wait::ShowLocked`](crate::Wait::ShowLocked).
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.inner.is_locked()
    }

    /// Releases the lock of the current entry, for a caller that rejects the row it has read. Does
    /// nothing unless the level is read committed or below and this cursor took the lock.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn unlock(&mut self) -> Result<()> {
        self.inner.unlock()
    }
}
