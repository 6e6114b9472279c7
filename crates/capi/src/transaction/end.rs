//! The end of a transaction: commit, in one call or in two halves, and rollback.

use std::mem::MaybeUninit;

use frondb::Committing;

use super::{frondb_txn, with};
use crate::call::{call, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::out_handle;

/// A commit that has happened and has not waited for the disk yet. Snapshots taken from now on see
/// the commit.
pub struct frondb_committing {
    _private: [u8; 0],
}

object!(frondb_committing, CommittingObject, Committing);

/// The second half of a commit, which is the wait for the disk.
pub struct CommittingObject(pub(crate) Committing);

/// Commits a transaction: all its writes take effect atomically. Returns when the commit is as
/// durable as the options of the transaction require. Before the wait for the disk, other
/// transactions see the writes and can take the locks.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NO_SPACE, FRONDB_CANCELLED (see frondb_txn_cancel()), or FRONDB_NOT_FOUND if a
/// tree was dropped: nothing has changed, and the transaction stays active, so the caller can
/// repeat the call or roll the transaction back. FRONDB_POISONED, FRONDB_IO, FRONDB_CLOSED;
/// FRONDB_INVALID if the transaction has ended.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_commit(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.commit())
}

/// Does the first half of frondb_txn_commit(): everything except the wait for the disk.
/// frondb_committing_wait() is the second half. A caller that calls this function for several
/// transactions, one after the other, decides the order of their commits, and one sync serves all
/// of them.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_commit().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_commit_in_order(
    txn: *mut frondb_txn,
    committing: Option<&mut MaybeUninit<*mut frondb_committing>>,
) -> *mut frondb_error {
    let place = out_handle(committing);
    with(txn, |txn| {
        let place = place?;
        let committing = CommittingObject(txn.txn.commit_in_order()?);
        place.write(handle::insert(committing)?);
        Ok(())
    })
}

/// Waits until a commit is as durable as the options of its transaction require: the second half of
/// the commit. Frees `committing`, even if the call fails.
///
/// Threads: any, not only the thread of the first half.
///
/// Errors: FRONDB_POISONED if the sync failed: the commit may be lost; close the database and open
/// it again. FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_wait(committing: *mut frondb_committing) -> *mut frondb_error {
    call(|| handle::remove::<CommittingObject>(committing)?.0.wait())
}

/// Frees the second half of a commit without waiting; NULL is ignored. The first half has happened:
/// the commit becomes durable with a later commit or with frondb_db_sync().
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_committing_free(committing: *mut frondb_committing) -> frondb_kind {
    free::<CommittingObject>(committing)
}

/// Rolls a transaction back: undoes all its writes and releases all its locks.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction was committed or rolled back before; for a prepared
/// transaction also the errors of frondb_db_rollback_prepared().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_rollback(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.rollback())
}
