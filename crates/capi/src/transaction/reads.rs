//! Gets and cursors of a transaction, with and without locks.

use std::mem::MaybeUninit;

use frondb::{Result, Transaction, TransactionCursorOptions, Tree};

use super::locking::{
    FRONDB_LOCK_EXCLUSIVE, FRONDB_LOCK_EXCLUSIVE_ENTRIES, FRONDB_LOCK_NONE, FRONDB_LOCK_SHARED,
    FRONDB_LOCK_SHARED_ENTRIES, bad_lock, frondb_lock, frondb_wait, wait,
};
use super::{frondb_txn, with_tree};
use crate::buffer::{fill, fill_many, frondb_buffer, to_fill};
use crate::cursor::{CursorObject, frondb_cursor};
use crate::error::frondb_error;
use crate::handle;
use crate::slice::{
    OutBytes, OutSlices, Slices, frondb_slice, optional_bytes, out, out_flag, out_handle,
};
use crate::tree::frondb_tree;

fn get(
    txn: &Transaction,
    tree: &Tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
) -> Result<Option<Vec<u8>>> {
    let (key, wait_for) = (key.bytes()?, wait(wait_for)?);
    match lock {
        FRONDB_LOCK_NONE => txn.get(tree, key),
        FRONDB_LOCK_SHARED => txn.get_for_share(tree, key, wait_for),
        FRONDB_LOCK_EXCLUSIVE => txn.get_for_update(tree, key, wait_for),
        other => Err(bad_lock(other)),
    }
}

/// Puts the value of a key into a buffer; `found` is set to whether the key has a value. The
/// transaction's own writes are included. A locking read returns the newest value, also if
/// it is newer than the snapshot (under snapshot isolation, the call then fails with
/// FRONDB_CONFLICT), and locks the key even if it has no value.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: FRONDB_INVALID if the transaction has ended, for a tree of another database, for a
/// `lock` that only cursors take, or if an update of the key cannot be applied; FRONDB_NOT_FOUND if
/// the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED. With a lock:
/// FRONDB_LOCK_TIMEOUT; FRONDB_DEADLOCK: the transaction was rolled back, retry it; FRONDB_BUSY if
/// the key is locked and `wait_for` is not FRONDB_WAIT; FRONDB_CANCELLED; FRONDB_TOO_MANY_LOCKS;
/// FRONDB_CONFLICT under snapshot isolation.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, buffer) = (place?, to_fill(buffer)?);
        place.write(fill(buffer, get(txn, tree, key, lock, wait_for)?));
        Ok(())
    })
}

/// Copies as much of a key's value to `value` as fits into `capacity` bytes; `value_len` is set to
/// the full length. Otherwise as frondb_txn_get().
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get_into(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    lock: frondb_lock,
    wait_for: frondb_wait,
    mut value: OutBytes,
    capacity: usize,
    value_len: Option<&mut MaybeUninit<usize>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, len_place) = (place?, out(value_len)?);
        value.check(capacity)?;
        let got = get(txn, tree, key, lock, wait_for)?;
        let bytes = got.as_deref().unwrap_or_default();
        value.write(capacity, bytes)?;
        len_place.write(bytes.len());
        place.write(got.is_some());
        Ok(())
    })
}

/// Reads several keys, all at the same moment, without locks (at serializable with shared locks);
/// otherwise as frondb_tree_multi_get().
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_multi_get(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    keys: Slices,
    count: usize,
    buffer: *mut frondb_buffer,
    values: OutSlices,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| {
        values.check(count)?;
        let (keys, buffer) = (keys.bytes(count)?, to_fill(buffer)?);
        fill_many(buffer, txn.multi_get(tree, &keys)?, values)
    })
}

/// Sets `found` to whether a key has a value. Reads and locks as frondb_txn_get() with
/// FRONDB_LOCK_NONE.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_exists(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let place = place?;
        place.write(txn.exists(tree, key.bytes()?)?);
        Ok(())
    })
}

/// Estimates how many messages the transaction has written to the keys from `lo` (inclusive) to
/// `hi` (exclusive; NULL: to the end): puts, deletes and updates, including messages that later
/// ones or a rollback to a savepoint have made obsolete. frondb_tree_messages() and
/// frondb_tree_estimate() do not count these messages before the commit.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_own_messages(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    count: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    let place = out(count);
    with_tree(txn, tree, |txn, tree| {
        place?.write(txn.own_messages(tree, lo.bytes()?, optional_bytes(hi)?)?);
        Ok(())
    })
}

/// Opens a cursor over the keys of a tree from `lo` (inclusive) to `hi` (exclusive; NULL: to the
/// end). The cursor includes the transaction's own writes up to the cursor's last seek. A locking
/// cursor shows the newest data: it locks each entry before it shows the entry, and at repeatable
/// read and serializable also the gap before the entry. Under snapshot isolation, a move of a
/// locking cursor fails with FRONDB_CONFLICT if it passes a row that was inserted, changed or
/// deleted since the snapshot; a cursor that locks entries only does not notice deleted rows. After
/// the transaction's end every move fails. Free the cursor with frondb_cursor_free(), before or
/// after the end of the transaction.
///
/// Threads: any for the transaction, calls take turns. One thread at a time may use the cursor.
///
/// Errors: as frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_cursor(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    lock: frondb_lock,
    wait_for: frondb_wait,
    cursor: Option<&mut MaybeUninit<*mut frondb_cursor>>,
) -> *mut frondb_error {
    let place = out_handle(cursor);
    with_tree(txn, tree, |txn, tree| {
        let (place, wait_for) = (place?, wait(wait_for)?);
        let options = TransactionCursorOptions::new();
        let options = match (lo.bytes()?, optional_bytes(hi)?) {
            (lo, None) => options.range(lo..),
            (lo, Some(hi)) => options.range(lo..hi),
        };
        let options = match lock {
            FRONDB_LOCK_NONE => options,
            FRONDB_LOCK_SHARED => options.for_share(wait_for),
            FRONDB_LOCK_EXCLUSIVE => options.for_update(wait_for),
            FRONDB_LOCK_SHARED_ENTRIES => options.for_share(wait_for).without_gaps(),
            FRONDB_LOCK_EXCLUSIVE_ENTRIES => options.for_update(wait_for).without_gaps(),
            other => return Err(bad_lock(other)),
        };
        let cursor = CursorObject::of_transaction(txn.cursor_with(tree, options)?);
        place.write(handle::insert(cursor)?);
        Ok(())
    })
}
