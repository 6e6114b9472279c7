//! Puts, inserts, deletes and updates of a transaction.

use std::mem::MaybeUninit;

use super::locking::{frondb_wait, wait};
use super::{frondb_txn, with_tree};
use crate::buffer::{fill, frondb_buffer, to_fill};
use crate::error::frondb_error;
use crate::slice::{frondb_slice, optional_bytes, out_flag};
use crate::tree::frondb_tree;

/// Sets the value of a key. Keys have 0 to 32 KiB, values 0 to 64 MiB.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, for a key or value that is too long, or for
/// a tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_LOCK_TIMEOUT;
/// FRONDB_TOO_MANY_LOCKS; FRONDB_DEADLOCK: the transaction was rolled back, retry it;
/// FRONDB_CONFLICT under snapshot isolation; FRONDB_CANCELLED; FRONDB_NO_SPACE if a large
/// transaction cannot spill to disk; FRONDB_IO, FRONDB_CLOSED. Except after FRONDB_DEADLOCK, the
/// transaction's writes are as before the call.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_put(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.put(tree, key.bytes()?, value.bytes()?))
}

/// Sets the value of a key that has none.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_EXISTS if the key has a value; the key stays locked. FRONDB_CORRUPTION. Otherwise
/// as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_insert(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.insert(tree, key.bytes()?, value.bytes()?))
}

/// Sets the value of a key and puts its former value into a buffer; `found` is set to whether the
/// key had a value.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: as frondb_txn_put() and frondb_txn_get().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_replace(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, buffer) = (place?, to_fill(buffer)?);
        place.write(fill(buffer, txn.replace(tree, key.bytes()?, value.bytes()?)?));
        Ok(())
    })
}

/// Removes a key and puts its former value into a buffer, as frondb_txn_replace().
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: as frondb_txn_replace().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_take(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    buffer: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, buffer) = (place?, to_fill(buffer)?);
        place.write(fill(buffer, txn.take(tree, key.bytes()?)?));
        Ok(())
    })
}

/// Removes the first entry of the newest data (not of the snapshot), or the last one if `last` is
/// set. Locks the entry, and puts its key and its value into buffers; `found` is set to whether
/// there was an entry to remove. With FRONDB_SKIP_LOCKED the call takes the first or last entry
/// that no other transaction has locked, so that several workers take different entries of a queue.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffers.
///
/// Errors: as frondb_txn_replace().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_pop(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    last: bool,
    wait_for: frondb_wait,
    key: *mut frondb_buffer,
    value: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let place = out_flag(found);
    with_tree(txn, tree, |txn, tree| {
        let (place, wait) = (place?, wait(wait_for)?);
        let (key, value) = (to_fill(key)?, to_fill(value)?);
        let popped = if last { txn.pop_last(tree, wait)? } else { txn.pop_first(tree, wait)? };
        let (old_key, old_value) = popped.unzip();
        fill(key, old_key);
        place.write(fill(value, old_value));
        Ok(())
    })
}

/// Removes a key; it need not exist.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_delete(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.delete(tree, key.bytes()?))
}

/// Removes all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end). Locks the whole
/// range.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_delete_range(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.delete_range(tree, lo.bytes()?, optional_bytes(hi)?))
}

/// Writes an update of `key` with `operand` and reads nothing. Readers and merges apply the tree's
/// update function later.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_put(); FRONDB_INVALID also if the tree has no update function or the
/// function is not registered.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_update(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    operand: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.update(tree, key.bytes()?, operand.bytes()?))
}
