//! Reads at a cursor: batches of entries, and the current entry; also releases the lock of the
//! current entry.

use std::mem::MaybeUninit;

use frondb::{Error, Result};

use super::rows::{Batch, frondb_entry, frondb_rows};
use super::{CursorObject, Direction, Inner, either, frondb_cursor};
use crate::call::{call, call_or};
use crate::error::frondb_error;
use crate::handle;
use crate::slice::{frondb_slice, out};

impl CursorObject {
    /// Fills the batch. Returns whether the batch has reached the end of the range. An error after
    /// the first entry ends the batch, and the next call returns the error.
    fn fill(&mut self, direction: Direction, rows_max: usize, bytes_max: usize) -> Result<bool> {
        if self.batch.is_new() {
            self.batch = Batch::reused();
        }
        self.batch.clear();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        either!(self.inner.get_mut(), cursor => cursor.expect(rows_max));
        let mut read = 0;
        let filled = loop {
            if read == rows_max {
                break Ok(false);
            }
            match self.fill_one(direction, bytes_max) {
                Ok(true) => {
                    read += 1;
                    if read == 1 {
                        self.batch.expect(rows_max, bytes_max);
                    }
                    read += self.fill_many(direction, rows_max - read, bytes_max);
                }
                Ok(false) => break Ok(self.ahead.is_none()),
                Err(error) => break Err(error),
            }
        };
        self.batch.finish();
        match filled {
            Err(error) if read > 0 => {
                self.failed = Some(error);
                Ok(false)
            }
            other => other,
        }
    }

    /// Adds the next entries that can be copied together, if any. Returns their number.
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
        // Clear this before the value is read: if that fails, the next batch continues after this
        // entry.
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

fn batch(
    cursor: *mut frondb_cursor,
    direction: Direction,
    rows_max: usize,
    bytes_max: usize,
    rows: Option<&mut MaybeUninit<frondb_rows>>,
) -> *mut frondb_error {
    call(|| {
        let place = out(rows)?;
        place.write(frondb_rows { entries: std::ptr::null(), count: 0, is_end: false });
        if rows_max == 0 {
            return Err(Error::invalid("rows_max is 0; it must be at least 1"));
        }
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        let is_end = cursor.fill(direction, rows_max, bytes_max)?;
        let entries = &cursor.batch.entries;
        place.write(frondb_rows { entries: entries.as_ptr(), count: entries.len(), is_end });
        Ok(())
    })
}

/// Reads the next entries in one call, as repeated calls of frondb_cursor_next() would, except that
/// the first batch after a seek begins with the entry that the seek found. A batch ends after
/// `rows_max` entries, before its keys and values together exceed `bytes_max`, or at the end of the
/// range. It has at least one entry, unless no entry is left: then the count is 0. Afterwards the
/// cursor is at the last entry of the batch, or at no entry if the batch reached the end of the
/// range.
///
/// The call copies keys and values, but saves many calls; about 100 rows are a good size. A locking
/// cursor of a transaction locks every entry that it reads. If reading fails after some entries,
/// the call returns these entries, and the next step or batch returns the error, unless a seek
/// comes first.
///
/// Threads: one at a time.
///
/// Errors: as frondb_cursor_seek() and frondb_cursor_value(); FRONDB_INVALID if `rows_max` is 0.
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

/// Returns whether the cursor is at an entry; false for a pointer that is not a cursor.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_is_valid(cursor: *mut frondb_cursor) -> bool {
    call_or(false, || {
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        Ok(either!(cursor.inner.get_mut(), cursor => cursor.is_valid()))
    })
}

/// Returns the key of the current entry; an empty slice if there is no current entry. The key is
/// not copied: it is valid until the cursor moves or is freed.
///
/// A batch that `bytes_max` ended has read one entry more than it returned. The first call of this
/// function after such a batch moves the cursor back to the last entry of the batch, and may read
/// from disk for that.
///
/// Threads: one at a time.
///
/// Errors: after a batch that `bytes_max` ended, as frondb_cursor_seek().
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

/// Returns the value of the current entry; an empty slice if there is no current entry. The value
/// is not copied: it is valid until the cursor moves or is freed. This call reads a large value
/// from disk.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_CORRUPTION or FRONDB_IO for a large value that cannot be read; FRONDB_CLOSED;
/// FRONDB_INVALID once the cursor's transaction was prepared. After a batch as frondb_cursor_key().
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

/// Returns key and value of the current entry with one call; both are empty slices if there is no
/// current entry. Otherwise as frondb_cursor_key() and frondb_cursor_value().
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

/// Returns whether a locking cursor of a transaction has locked the current entry. With
/// FRONDB_SHOW_LOCKED, false means that another transaction holds the lock, and the cursor shows
/// the entry as it was last committed. After a batch the current entry is the last of the batch.
/// Also returns false after frondb_cursor_unlock(), without a current entry, for a cursor without
/// locks, and for a pointer that is not a cursor.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_cursor_is_locked(cursor: *mut frondb_cursor) -> bool {
    call_or(false, || {
        let mut cursor = handle::exclusive::<CursorObject>(cursor)?;
        cursor.settle()?;
        Ok(match cursor.inner.get_mut() {
            Inner::Transaction(cursor) => cursor.is_locked(),
            Inner::Plain(_) => false,
        })
    })
}

/// Releases the lock of the current entry, for a caller that rejects the row that it has read. Does
/// nothing unless the isolation level is read committed or below and this cursor took the lock.
/// After a batch the current entry is the last of the batch; if `bytes_max` ended the batch, the
/// call does nothing.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or if the cursor belongs to no transaction;
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
