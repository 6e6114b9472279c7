//! Cursors, plain and of transactions: C has one type for both kinds, with the same functions.
//!
//! A batch copies entries into one buffer, so that a hundred of them cost one call. Entries that
//! are adjacent in a block or memtable are copied together:
//! ```text
//!   bytes    k0 v0  k1 k2 k3 v1 v2 v3  k4 v4 ...
//!   entries  {k0, v0} {k1, v1} {k2, v2}     made last, because the buffer may move while it grows
//! ```

use std::mem::MaybeUninit;
use std::ops::Range;

use frondb::{Cursor, CursorOptions, Entries, Error, Result, Snapshot, TransactionCursor, Tree};
use frondb_core::sync::Mutex;

use crate::call::{call, call_or, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, optional_bytes, out, out_flag};
use crate::snapshot::frondb_snapshot;
use crate::tree::frondb_tree;

/// A position in a tree at a fixed state. A new cursor is not positioned: frondb_cursor_next()
/// moves it to the first entry, frondb_cursor_prev() to the last. After it has passed either end,
/// or after a seek that found nothing, it is at no entry, and both functions find nothing until the
/// next seek. Cursors never block writers.
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

/// Evaluates the same expression with either kind of cursor.
macro_rules! either {
    ($inner:expr, $cursor:ident => $body:expr) => {
        match $inner {
            Inner::Plain($cursor) => $body,
            Inner::Transaction($cursor) => $body,
        }
    };
}

/// A cursor and its last batch.
pub struct CursorObject {
    /// Objects of the handle table must be `Sync`, and a cursor alone is not; hence the mutex. The
    /// mutex is never contended, because every call holds the handle exclusively.
    inner: Mutex<Inner>,
    /// A seek has positioned the cursor, and no batch or step has read the entry yet.
    fresh: bool,
    /// The cursor is one entry beyond the last batch, in this direction: the entry did not fit.
    ahead: Option<Direction>,
    /// The error that ended the last batch early; the next batch returns it.
    failed: Option<Error>,
    batch: Batch,
}

/// Limits of the memory that a batch reserves after its first entry.
const RESERVED_ROWS_MAX: usize = 256;
const RESERVED_BYTES_MAX: usize = 32 << 10;

#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each key and value lies.
    places: Vec<Place>,
    entries: Vec<frondb_entry>,
}

/// Where an entry lies in the bytes of a batch.
struct Place {
    key: Range<usize>,
    value: Range<usize>,
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

    /// Called before a call returns an entry that an earlier call found. If a rollback may have
    /// undone the entry since then, the cursor seeks its key again.
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

    /// Moves by one entry, unless the last batch already went one entry too far in this direction.
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

    /// Fills the batch. An error after the first entry ends the batch, and the next call returns
    /// the error.
    fn fill(&mut self, direction: Direction, rows_max: usize, bytes_max: usize) -> Result<()> {
        self.batch.clear();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut read = 0;
        let filled = loop {
            if read == rows_max {
                break Ok(());
            }
            match self.fill_one(direction, bytes_max) {
                Ok(true) => {
                    read += 1;
                    if read == 1 {
                        self.batch.expect(rows_max, bytes_max);
                    }
                    read += self.fill_many(direction, rows_max - read, bytes_max);
                }
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        self.batch.finish();
        match filled {
            Err(error) if read > 0 => self.failed = Some(error),
            other => return other,
        }
        Ok(())
    }

    /// Adds the following entries that can be copied together, if any. Returns how many.
    #[inline]
    fn fill_many(&mut self, direction: Direction, rows_max: usize, bytes_max: usize) -> usize {
        let bytes = bytes_max.saturating_sub(self.batch.bytes.len()) / 2;
        if direction == Direction::Prev || rows_max == 0 {
            return 0;
        }
        let entries = either!(self.inner.get_mut(), cursor => cursor.next_entries(rows_max, bytes));
        self.batch.add_many(&entries);
        entries.len()
    }

    /// Adds one entry. Returns false at the end of the range, or if the entry does not fit.
    #[inline]
    fn fill_one(&mut self, direction: Direction, bytes_max: usize) -> Result<bool> {
        let at_entry = match self.fresh {
            true => self.inner.get_mut().confirm(direction)?,
            false => self.go(direction)?,
        };
        if !at_entry {
            return Ok(false);
        }
        // Cleared first: if the value cannot be read, the next batch continues after this entry.
        self.fresh = false;
        let (key, value) = either!(self.inner.get_mut(), cursor => (cursor.key(), cursor.value()?));
        if !self.batch.places.is_empty()
            && self.batch.bytes.len() + key.len() + value.len() > bytes_max
        {
            self.ahead = Some(direction);
            return Ok(false);
        }
        self.batch.add(key, value);
        Ok(true)
    }
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.entries.clear();
    }

    /// Reserves memory for `rows_max` entries of the first one's size, within limits, so that a
    /// batch of few entries stays cheap.
    fn expect(&mut self, rows_max: usize, bytes_max: usize) {
        let rows = rows_max.min(RESERVED_ROWS_MAX);
        let bytes = self.bytes.len().saturating_mul(rows);
        self.bytes.reserve(bytes.min(bytes_max).min(RESERVED_BYTES_MAX));
        self.places.reserve(rows);
        self.entries.reserve(rows);
    }

    #[inline]
    fn add(&mut self, key: &[u8], value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push(Place { key: start..key_end, value: key_end..self.bytes.len() });
    }

    fn add_many(&mut self, entries: &Entries<'_>) {
        let ((keys, keys_from, key_ends), (values, values_from, value_ends)) =
            (entries.keys(), entries.values());
        let (Some(&keys_to), Some(&values_to)) = (key_ends.last(), value_ends.last()) else {
            return;
        };
        let mut key_at = self.bytes.len();
        self.bytes.extend_from_slice(&keys[keys_from as usize..keys_to as usize]);
        let mut value_at = self.bytes.len();
        self.bytes.extend_from_slice(&values[values_from as usize..values_to as usize]);
        let (keys_at, values_at) = (key_at, value_at);
        self.places.extend(key_ends.iter().zip(value_ends).map(|(key_end, value_end)| {
            let key = key_at..keys_at + (key_end - keys_from) as usize;
            let value = value_at..values_at + (value_end - values_from) as usize;
            (key_at, value_at) = (key.end, value.end);
            Place { key, value }
        }));
    }

    fn finish(&mut self) {
        let Self { bytes, places, entries } = self;
        let slice = |place: &Range<usize>| frondb_slice::of(&bytes[place.clone()]);
        entries.extend(
            places
                .iter()
                .map(|place| frondb_entry { key: slice(&place.key), value: slice(&place.value) }),
        );
    }
}

/// An entry of a tree.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_entry {
    /// The key.
    key: frondb_slice,
    /// The value.
    value: frondb_slice,
}

/// Entries that a cursor has read in one call. Valid until the cursor moves or is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_rows {
    /// The entries, in the order in which the cursor read them.
    entries: *const frondb_entry,
    /// The number of entries; 0 at the end of the range.
    count: usize,
}

/// A cursor over the keys of a tree from `lo` (inclusive; empty: from the beginning) to `hi`
/// (exclusive; NULL: to the end), at a snapshot, or as of now if `snapshot` is NULL. This call
/// reads no data. Free it with frondb_cursor_free().
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

fn moved(
    cursor: *mut frondb_cursor,
    found: Option<&mut MaybeUninit<bool>>,
    step: impl FnOnce(&mut CursorObject) -> Result<bool>,
) -> *mut frondb_error {
    call(|| {
        let place = out_flag(found)?;
        place.write(step(&mut *handle::exclusive::<CursorObject>(cursor)?)?);
        Ok(())
    })
}

/// Moves to the first entry whose key is at least `key`; `found` tells whether there is one.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_CORRUPTION for a damaged block on the way; FRONDB_IO; FRONDB_CLOSED. For a
/// cursor of a transaction also those of frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_seek(
    cursor: *mut frondb_cursor,
    key: frondb_slice,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| {
        let key = key.bytes()?;
        cursor.seek(|inner| either!(inner, cursor => cursor.seek(key)))
    })
}

/// Moves to the last entry whose key is at most `key`; `found` tells whether there is one.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_seek_for_prev(
    cursor: *mut frondb_cursor,
    key: frondb_slice,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| {
        let key = key.bytes()?;
        cursor.seek(|inner| either!(inner, cursor => cursor.seek_for_prev(key)))
    })
}

/// Moves to the first entry; `found` tells whether there is one.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_first(
    cursor: *mut frondb_cursor,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| cursor.seek(|inner| either!(inner, cursor => cursor.first())))
}

/// Moves to the last entry; `found` tells whether there is one.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_last(
    cursor: *mut frondb_cursor,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| cursor.seek(|inner| either!(inner, cursor => cursor.last())))
}

/// Moves to the next entry; `found` tells whether there is one. Beyond the end the cursor does not
/// move.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_next(
    cursor: *mut frondb_cursor,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| cursor.step(Direction::Next))
}

/// Moves to the previous entry; `found` tells whether there is one.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_prev(
    cursor: *mut frondb_cursor,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    moved(cursor, found, |cursor| cursor.step(Direction::Prev))
}

fn batch(
    cursor: *mut frondb_cursor,
    direction: Direction,
    rows_max: usize,
    bytes_max: usize,
    rows: Option<&mut MaybeUninit<frondb_rows>>,
) -> *mut frondb_error {
    call(|| {
        let place = out(rows)?;
        place.write(frondb_rows { entries: std::ptr::null(), count: 0 });
        if rows_max == 0 {
            return Err(Error::invalid("rows_max is 0; it must be at least 1"));
        }
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        cursor.fill(direction, rows_max, bytes_max)?;
        let entries = &cursor.batch.entries;
        place.write(frondb_rows { entries: entries.as_ptr(), count: entries.len() });
        Ok(())
    })
}

/// Reads the next entries in one call, as repeated calls of frondb_cursor_next() would, except that
/// the first batch after a seek begins with the entry that was found. A batch ends after `rows_max`
/// entries, before keys and values exceed `bytes_max` together (but it has at least one entry), or
/// at the end of the range, where the count is 0. Afterwards the cursor is at the last entry of the
/// batch, or at none if the batch reached the end of the range.
///
/// Copies keys and values, but saves the calls; about 100 rows are a good size. A locking cursor of
/// a transaction locks all that it reads. If reading fails after some entries, these are returned,
/// and the next move returns the error.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek() and frondb_cursor_value().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_next_batch(
    cursor: *mut frondb_cursor,
    rows_max: usize,
    bytes_max: usize,
    rows: Option<&mut MaybeUninit<frondb_rows>>,
) -> *mut frondb_error {
    batch(cursor, Direction::Next, rows_max, bytes_max, rows)
}

/// Reads the previous entries in one call, in descending order; otherwise as
/// frondb_cursor_next_batch().
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_next_batch().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_prev_batch(
    cursor: *mut frondb_cursor,
    rows_max: usize,
    bytes_max: usize,
    rows: Option<&mut MaybeUninit<frondb_rows>>,
) -> *mut frondb_error {
    batch(cursor, Direction::Prev, rows_max, bytes_max, rows)
}

/// Whether the cursor is at an entry; false for a pointer that is no cursor.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_is_valid(cursor: *mut frondb_cursor) -> bool {
    call_or(false, || {
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        Ok(either!(cursor.inner.get_mut(), cursor => cursor.is_valid()))
    })
}

/// Key of the current entry; empty without one. Not copied: valid until the cursor moves or is
/// freed.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_key(
    cursor: *mut frondb_cursor,
    key: Option<&mut MaybeUninit<frondb_slice>>,
) -> *mut frondb_error {
    call(|| {
        let (place, mut cursor) = (out(key)?, handle::exclusive::<CursorObject>(cursor)?);
        cursor.settle()?;
        place.write(frondb_slice::of(either!(cursor.inner.get_mut(), cursor => cursor.key())));
        Ok(())
    })
}

/// Value of the current entry; empty without one. Not copied: valid until the cursor moves or is
/// freed. A large value is read from disk by this call.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_CORRUPTION or FRONDB_IO for a large value that cannot be read; FRONDB_CLOSED;
/// FRONDB_INVALID once the cursor's transaction was prepared.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_value(
    cursor: *mut frondb_cursor,
    value: Option<&mut MaybeUninit<frondb_slice>>,
) -> *mut frondb_error {
    call(|| {
        let (place, mut cursor) = (out(value)?, handle::exclusive::<CursorObject>(cursor)?);
        cursor.settle()?;
        place.write(frondb_slice::of(either!(cursor.inner.get_mut(), cursor => cursor.value())?));
        Ok(())
    })
}

/// Key and value of the current entry with one call, both empty without one. Otherwise as
/// frondb_cursor_key() and frondb_cursor_value().
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_value().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_entry(
    cursor: *mut frondb_cursor,
    entry: Option<&mut MaybeUninit<frondb_entry>>,
) -> *mut frondb_error {
    call(|| {
        let (place, mut cursor) = (out(entry)?, handle::exclusive::<CursorObject>(cursor)?);
        cursor.settle()?;
        let (key, value) =
            either!(cursor.inner.get_mut(), cursor => (cursor.key(), cursor.value()?));
        place.write(frondb_entry { key: frondb_slice::of(key), value: frondb_slice::of(value) });
        Ok(())
    })
}

/// The state that a cursor shows, as a snapshot. Free it with frondb_snapshot_free().
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for a cursor of a transaction.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_snapshot(
    cursor: *mut frondb_cursor,
    snapshot: Option<&mut MaybeUninit<*mut frondb_snapshot>>,
) -> *mut frondb_error {
    create(snapshot, || {
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        let Inner::Plain(plain) = cursor.inner.get_mut() else {
            return Err(Error::invalid("a cursor of a transaction has no snapshot"));
        };
        Ok(plain.snapshot().clone())
    })
}

/// Releases the lock of the current entry, for a caller that rejects the row it has read. Does
/// nothing unless the level is read committed or below and this cursor took the lock. After a
/// batch the current entry is the last of the batch; if `bytes_max` ended the batch, nothing
/// happens.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a cursor of no transaction;
/// FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_unlock(cursor: *mut frondb_cursor) -> *mut frondb_error {
    call(|| {
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        cursor.settle()?;
        match cursor.inner.get_mut() {
            Inner::Transaction(cursor) => cursor.unlock(),
            Inner::Plain(_) => Err(Error::invalid("the cursor belongs to no transaction")),
        }
    })
}
