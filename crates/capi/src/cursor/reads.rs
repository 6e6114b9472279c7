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
    /// Fills the batch; returns whether it reached the end of the range. An error after the first
    /// entry ends the batch, and the next call returns the error.
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
        // Clear first: if the value cannot be read, the next batch continues after this entry.
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
/// the first batch after a seek begins with the entry that was found. A batch ends after `rows_max`
/// entries, before keys and values exceed `bytes_max` together (but it has at least one entry), or
/// at the end of the range, where the count is 0. Afterwards the cursor is at the last entry of the
/// batch, or at none if the batch reached the end of the range.
///
/// Copies keys and values, but saves the calls; about 100 rows are a good size. A locking cursor of
/// a transaction locks every entry that it reads. If reading fails after some entries, these are
/// returned, and the next move returns the error.
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

/// Whether a locking cursor of a transaction has locked the current entry. If it has not, another
/// transaction holds the lock, and the entry is as it was last committed: see FRONDB_SHOW_LOCKED.
/// After a batch the current entry is the last of the batch. False for a pointer that is no cursor.
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
