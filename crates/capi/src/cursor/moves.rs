//! Seeks and single steps of a cursor.

use std::mem::MaybeUninit;

use frondb::Result;

use super::{CursorObject, Direction, Inner, either, frondb_cursor};
use crate::call::call;
use crate::error::frondb_error;
use crate::handle;
use crate::slice::{frondb_slice, out_flag};

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

/// Moves to the first entry whose key is at least `key`; `found` is set to whether there is one.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_CORRUPTION for a damaged block on the way; FRONDB_IO; FRONDB_CLOSED;
/// FRONDB_INVALID for an entry whose update cannot be applied; FRONDB_NOT_FOUND if the tree was
/// dropped before the first move. For a cursor of a transaction also the errors of
/// frondb_txn_get().
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

/// Moves to the last entry whose key is at most `key`; `found` is set to whether there is one.
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

/// Moves to the first entry; `found` is set to whether there is one.
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

/// Moves to the last entry; `found` is set to whether there is one.
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

/// Moves to the next entry; `found` is set to whether there is one. A cursor that has passed the
/// last entry does not move any further.
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

/// Moves to the previous entry; `found` is set to whether there is one.
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
