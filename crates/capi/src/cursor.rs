//! Cursors, plain and of transactions: C has one type for both kinds, with the same functions.
//!
//! ```text
//!  this file  the cursor, its steps, opening and freeing it
//!  moves.rs   seeks and single steps
//!  reads.rs   batches of entries, the current entry, the snapshot; releasing an entry's lock
//!  rows.rs    the entries of a batch, in one buffer
//! ```

mod moves;
mod reads;
mod rows;

use std::mem::MaybeUninit;

use frondb::{Cursor, CursorOptions, Error, Result, Snapshot, TransactionCursor, Tree};
use frondb_core::sync::Mutex;

use crate::call::{create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, optional_bytes};
use crate::snapshot::frondb_snapshot;
use crate::tree::frondb_tree;
use rows::Batch;

pub use moves::*;
pub use reads::*;
pub use rows::{frondb_entry, frondb_rows};

/// A position in a tree. A cursor without locks shows a fixed state and never blocks writers; a
/// locking cursor (frondb_txn_cursor()) shows the newest data. A new cursor is not positioned:
/// frondb_cursor_next() moves it to the first entry, frondb_cursor_prev() to the last. After the
/// cursor has passed either end, or after a seek that found nothing, the cursor is at no entry, and
/// both functions find nothing until the next seek.
///
/// A move that fails leaves the cursor at no entry, and later moves return the same error until a
/// seek, so that no entry is skipped silently.
pub struct frondb_cursor {
    _private: [u8; 0],
}

object!(frondb_cursor, CursorObject, Cursor);

enum Inner {
    Plain(Cursor),
    Transaction(TransactionCursor),
}

/// Evaluates the same expression with a cursor of either kind.
macro_rules! either {
    ($inner:expr, $cursor:ident => $body:expr) => {
        match $inner {
            Inner::Plain($cursor) => $body,
            Inner::Transaction($cursor) => $body,
        }
    };
}
use either;

/// A cursor and its last batch.
pub struct CursorObject {
    /// Objects of the handle table must be `Sync`, and a cursor is not; hence the mutex. No thread
    /// ever waits for the mutex, because every call holds the handle exclusively.
    inner: Mutex<Inner>,
    /// Whether a seek has positioned the cursor at an entry, and no batch or step has returned the
    /// entry yet.
    fresh: bool,
    /// The direction in which the cursor is one entry beyond the last batch, because that entry did
    /// not fit into the batch; `None` if the cursor is at the last entry of the batch.
    ahead: Option<Direction>,
    /// The error that ended the last batch early; the next batch or step returns it.
    failed: Option<Error>,
    batch: Batch,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Next,
    Prev,
}

impl Inner {
    #[inline]
    fn go(&mut self, direction: Direction) -> Result<bool> {
        either!(self, cursor => match direction {
            Direction::Next => cursor.next(),
            Direction::Prev => cursor.prev(),
        })
    }

    /// Makes sure that the entry at the cursor, which an earlier call found, still exists: if a
    /// rollback may have undone it, the cursor seeks its key again. Returns whether the cursor is
    /// at an entry.
    #[inline]
    fn confirm(&mut self, direction: Direction) -> Result<bool> {
        match self {
            Self::Transaction(cursor) if !cursor.is_current() => {
                let key = cursor.key().to_vec();
                match direction {
                    Direction::Next => cursor.seek(&key),
                    Direction::Prev => cursor.seek_for_prev(&key),
                }
            }
            Self::Plain(_) | Self::Transaction(_) => Ok(true),
        }
    }
}

impl Direction {
    fn back(self) -> Self {
        match self {
            Self::Next => Self::Prev,
            Self::Prev => Self::Next,
        }
    }
}

impl Drop for CursorObject {
    fn drop(&mut self) {
        std::mem::take(&mut self.batch).recycle();
    }
}

impl CursorObject {
    pub(crate) fn plain(cursor: Cursor) -> Self {
        Self::new(Inner::Plain(cursor))
    }

    pub(crate) fn of_transaction(cursor: TransactionCursor) -> Self {
        Self::new(Inner::Transaction(cursor))
    }

    fn new(inner: Inner) -> Self {
        let (failed, batch) = (None, Batch::default());
        Self { inner: Mutex::new(inner), fresh: false, ahead: None, failed, batch }
    }

    fn seek(&mut self, seek: impl FnOnce(&mut Inner) -> Result<bool>) -> Result<bool> {
        self.failed = None;
        self.fresh = false;
        self.ahead = None;
        self.fresh = seek(self.inner.get_mut())?;
        Ok(self.fresh)
    }

    #[inline]
    fn step(&mut self, direction: Direction) -> Result<bool> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        self.fresh = false;
        self.go(direction)
    }

    /// Moves by one entry. If the last batch already went one entry too far in this direction,
    /// stays at that entry.
    #[inline]
    fn go(&mut self, direction: Direction) -> Result<bool> {
        if self.ahead == Some(direction) {
            self.ahead = None;
            return self.inner.get_mut().confirm(direction);
        }
        self.settle()?;
        self.inner.get_mut().go(direction)
    }

    /// Moves back to the last entry of a batch that went one entry too far.
    fn settle(&mut self) -> Result<()> {
        match self.ahead.take() {
            None => Ok(()),
            Some(direction) => self.inner.get_mut().go(direction.back()).map(drop),
        }
    }
}

/// Opens a cursor over the keys of a tree from `lo` (inclusive; empty: from the beginning) to `hi`
/// (exclusive; NULL: to the end), at a snapshot, or at the present state if `snapshot` is NULL.
/// This call reads no data. Free the cursor with frondb_cursor_free().
///
/// Threads: any for the tree. One thread at a time may use the cursor; a second one gets
/// FRONDB_BUSY.
///
/// Errors: FRONDB_NOT_FOUND if the tree was dropped; FRONDB_INVALID for a snapshot of another
/// database; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_tree_cursor(
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    snapshot: *mut frondb_snapshot,
    cursor: Option<&mut MaybeUninit<*mut frondb_cursor>>,
) -> *mut frondb_error {
    create(cursor, || {
        let tree = handle::shared::<Tree>(tree)?;
        let mut options = CursorOptions::new();
        options = match (lo.bytes()?, optional_bytes(hi)?) {
            (lo, None) => options.range(lo..),
            (lo, Some(hi)) => options.range(lo..hi),
        };
        if let Some(snapshot) = handle::optional::<Snapshot>(snapshot)? {
            options = options.at(&snapshot);
        }
        let cursor = CursorObject::plain(tree.cursor_with(options)?);
        Ok(cursor)
    })
}

/// Frees a cursor; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_free(cursor: *mut frondb_cursor) -> frondb_kind {
    free::<CursorObject>(cursor)
}
