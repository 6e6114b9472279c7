//! Savepoints of a transaction. In C a savepoint is a number, which this module looks up in the
//! list of the savepoints that are set.

use std::mem::MaybeUninit;

use frondb::{Error, ErrorKind, Result, Savepoint};
use frondb_core::sync::ProcessCounter;

use super::{frondb_txn, with};
use crate::error::frondb_error;
use crate::slice::out;

/// The numbers of savepoints, unique in the process, so that no transaction accepts a savepoint of
/// another.
static SAVEPOINTS: ProcessCounter = ProcessCounter::new(1);

fn find_savepoint(savepoints: &[(u64, Savepoint)], number: u64) -> Result<usize> {
    savepoints.binary_search_by_key(&number, |(number, _)| *number).map_err(|_| {
        let message = format!("savepoint {number} is not set in this transaction, or was removed");
        Error::new(ErrorKind::NotFound, message)
    })
}

/// Sets a savepoint and returns its number, which is never 0 and is unique in the process.
/// Savepoints nest. They need no freeing; the end of the transaction removes them.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_savepoint(
    txn: *mut frondb_txn,
    savepoint: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    with(txn, |txn| {
        let place = out(savepoint)?;
        // Hold the lock for the whole step, so that numbers and savepoints have the same order.
        let mut savepoints = txn.savepoints.lock();
        let set = txn.txn.set_savepoint()?;
        let number = SAVEPOINTS.next();
        savepoints.push((number, set));
        place.write(number);
        Ok(())
    })
}

/// Undoes all writes since the savepoint was set. The savepoint stays set, and later ones are
/// removed. Locks are kept.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or belongs to another transaction;
/// FRONDB_INVALID if the transaction has ended; FRONDB_NO_SPACE or FRONDB_IO if spilled writes of a
/// large transaction cannot be rewritten: the call may be repeated; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_roll_back_to(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    with(txn, |txn| {
        let mut savepoints = txn.savepoints.lock();
        let at = find_savepoint(&savepoints, savepoint)?;
        txn.txn.roll_back_to(savepoints[at].1)?;
        savepoints.truncate(at + 1);
        Ok(())
    })
}

/// Removes a savepoint and later ones, and keeps the writes.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_NOT_FOUND if the savepoint is no longer set, or belongs to another transaction;
/// FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_release_savepoint(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    end_savepoint(txn, savepoint, false)
}

/// Removes only this savepoint: later ones stay set, and the writes are kept.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_release_savepoint().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_forget_savepoint(
    txn: *mut frondb_txn,
    savepoint: u64,
) -> *mut frondb_error {
    end_savepoint(txn, savepoint, true)
}

/// Removes a savepoint: only this one if `alone` is set, otherwise also the later ones.
fn end_savepoint(txn: *mut frondb_txn, savepoint: u64, alone: bool) -> *mut frondb_error {
    with(txn, |txn| {
        let mut savepoints = txn.savepoints.lock();
        let at = find_savepoint(&savepoints, savepoint)?;
        if alone {
            txn.txn.forget_savepoint(savepoints[at].1)?;
            savepoints.remove(at);
        } else {
            txn.txn.release(savepoints[at].1)?;
            savepoints.truncate(at);
        }
        Ok(())
    })
}
