//! The value of an outdated key at the snapshot (a key that a later commit has changed), and values
//! that plain reads see instead of the values at the snapshot.

use std::mem::MaybeUninit;

use super::{frondb_txn, with_tree};
use crate::buffer::{fill, frondb_buffer, to_fill};
use crate::error::frondb_error;
use crate::slice::{frondb_slice, out_flag};
use crate::tree::frondb_tree;

/// Finds out whether another transaction has committed a change to a key since the snapshot of this
/// transaction's plain reads. If so, `is_outdated` is set to true, `found` is set to whether the
/// key had a value at the snapshot, and `buffer` gets that value. Otherwise plain reads of the key
/// see the newest commit. `is_outdated` is also false if there is no snapshot, if
/// frondb_txn_overlay_put() or frondb_txn_overlay_delete() has set what plain reads see of the key,
/// and under snapshot isolation. The transaction's own writes do not count.
///
/// Call this function before a write of a locked key if other trees, such as indexes, are derived
/// from the key's value. The caller writes the difference between the newest value and the new one
/// to the derived trees. Plain reads of this transaction also need the difference between the value
/// at the snapshot and the newest value: the caller adds it to the derived trees with
/// frondb_txn_overlay_put() and frondb_txn_overlay_delete(). The call costs next to nothing while
/// no transaction has committed to the tree since the snapshot.
///
/// Threads: any for the transaction, calls take turns; one at a time for the buffer.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CORRUPTION, FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_get_outdated(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    buffer: *mut frondb_buffer,
    is_outdated: Option<&mut MaybeUninit<bool>>,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    let (is_outdated, found) = (out_flag(is_outdated), out_flag(found));
    with_tree(txn, tree, |txn, tree| {
        let (is_outdated, found, buffer) = (is_outdated?, found?, to_fill(buffer)?);
        let Some(value) = txn.outdated(tree, key.bytes()?)? else { return Ok(()) };
        found.write(fill(buffer, value));
        is_outdated.write(true);
        Ok(())
    })
}

/// Makes later plain reads see this value of a key instead of the value at their snapshot, unless
/// the transaction writes the key itself. The call does not lock the key, the value is never
/// committed, and locking reads do not see it. The value lasts as long as the snapshot; a rollback
/// to a savepoint undoes the call.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if plain reads have no snapshot yet, at serializable, if the transaction
/// has ended, for a key or value that is too long, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_NO_SPACE if a large transaction cannot spill
/// to disk; FRONDB_IO, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_overlay_put(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
    value: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.overlay_put(tree, key.bytes()?, value.bytes()?))
}

/// Makes later plain reads see no value of a key; see frondb_txn_overlay_put().
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_overlay_put().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_overlay_delete(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.overlay_delete(tree, key.bytes()?))
}
