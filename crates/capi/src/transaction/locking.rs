//! The lock and wait modes of reads, and the functions that only lock or unlock.

use frondb::{Error, LockMode, Result, Wait};

use super::{frondb_txn, with_tree};
use crate::error::frondb_error;
use crate::slice::{frondb_slice, optional_bytes};
use crate::tree::frondb_tree;

/// The lock that a read takes.
pub type frondb_lock = u32;
/// No lock; a read of a serializable transaction takes a shared lock nevertheless.
pub const FRONDB_LOCK_NONE: frondb_lock = 0;
/// Shared lock. Reads the newest value, which no other transaction can write until this transaction
/// ends.
pub const FRONDB_LOCK_SHARED: frondb_lock = 1;
/// Exclusive lock. Reads the newest value, which no other transaction can lock or write until this
/// transaction ends.
pub const FRONDB_LOCK_EXCLUSIVE: frondb_lock = 2;
/// As FRONDB_LOCK_SHARED, for cursors only: locks no gaps, at any isolation level, so other
/// transactions may insert between the entries that the cursor shows.
pub const FRONDB_LOCK_SHARED_ENTRIES: frondb_lock = 3;
/// As FRONDB_LOCK_EXCLUSIVE, for cursors only: locks no gaps.
pub const FRONDB_LOCK_EXCLUSIVE_ENTRIES: frondb_lock = 4;

/// What a call does if another transaction holds the lock.
pub type frondb_wait = u32;
/// Waits, at most for the lock timeout of the transaction.
pub const FRONDB_WAIT: frondb_wait = 0;
/// Fails at once with FRONDB_BUSY.
pub const FRONDB_NO_WAIT: frondb_wait = 1;
/// Cursors skip rows that are locked, and lock no gaps; a single read fails with FRONDB_BUSY.
pub const FRONDB_SKIP_LOCKED: frondb_wait = 2;
/// If another transaction has locked a row, a cursor shows the last committed version of the row
/// and does not lock the row; frondb_cursor_is_locked() distinguishes such rows. At repeatable read
/// and serializable, cursors wait instead. A single read fails with FRONDB_BUSY.
pub const FRONDB_SHOW_LOCKED: frondb_wait = 3;

pub(super) fn wait(wait: frondb_wait) -> Result<Wait> {
    match wait {
        FRONDB_WAIT => Ok(Wait::Timeout),
        FRONDB_NO_WAIT => Ok(Wait::NoWait),
        FRONDB_SKIP_LOCKED => Ok(Wait::SkipLocked),
        FRONDB_SHOW_LOCKED => Ok(Wait::ShowLocked),
        other => Err(Error::invalid(format!("unknown frondb_wait {other}"))),
    }
}

pub(super) fn bad_lock(lock: frondb_lock) -> Error {
    Error::invalid(format!("unknown frondb_lock {lock}"))
}

/// Locks all keys from `lo` (inclusive) to `hi` (exclusive; NULL: to the end), existing or not,
/// until the transaction ends. An empty `lo` with a NULL `hi` locks the whole tree.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_get(), with FRONDB_CONFLICT for any key of the range; FRONDB_INVALID
/// unless `lock` is FRONDB_LOCK_SHARED or FRONDB_LOCK_EXCLUSIVE.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_lock_range(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    lo: frondb_slice,
    hi: Option<&frondb_slice>,
    lock: frondb_lock,
    wait_for: frondb_wait,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| {
        let mode = match lock {
            FRONDB_LOCK_SHARED => LockMode::Shared,
            FRONDB_LOCK_EXCLUSIVE => LockMode::Exclusive,
            other => return Err(bad_lock(other)),
        };
        txn.lock_range(tree, lo.bytes()?, optional_bytes(hi)?, mode, wait(wait_for)?)
    })
}

/// Releases the lock that the last locking frondb_txn_get() took on the key, for a caller that
/// rejects the row that it has read. Does nothing if the isolation level is above read committed,
/// if the transaction already had a lock on the key before that read, or if it has locked or
/// written anything since.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_unlock(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.unlock(tree, key.bytes()?))
}

/// Releases the transaction's lock on a key before the transaction ends, at any isolation level.
/// For keys whose lock protects something other than their value, such as the right to use a
/// counter: after the call other transactions can change the value. Does nothing for a key that is
/// locked as part of a range (also one to which the engine has joined many row locks), or whose
/// lock was shared first and then exclusive.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has written to the tree, if it has ended, or for a
/// tree of another database; FRONDB_NOT_FOUND if the tree was dropped; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_release_key(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    key: frondb_slice,
) -> *mut frondb_error {
    with_tree(txn, tree, |txn, tree| txn.release_key(tree, key.bytes()?))
}
