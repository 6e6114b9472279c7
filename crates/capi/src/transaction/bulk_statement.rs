//! Bulk statements: many writes of a transaction to trees that are empty.

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use frondb::{BulkStatement, Result, Tree};
use frondb_core::sync::Mutex;

use super::{TransactionObject, frondb_txn};
use crate::buffer::{fill, frondb_buffer, to_fill};
use crate::call::{call, free};
use crate::db::TreeHandles;
use crate::entries::{Writes, each_value};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{cleared, out, out_flag, out_handle};
use crate::stats::{frondb_stats, give_bulk_report};
use crate::verify::frondb_progress;

/// Many writes of a transaction to trees that are empty, with less work than single writes: whole
/// trees are locked instead of keys, and the entries are sorted in part of the memory budget and on
/// disk. After frondb_bulk_statement_finish() the entries are ordinary writes of the transaction:
/// only the transaction sees them, a savepoint that is older than the statement undoes them, and
/// they are committed, prepared or rolled back with the transaction. A frondb_bulk does the same
/// with a commit of its own.
pub struct frondb_bulk_statement {
    _private: [u8; 0],
}

object!(frondb_bulk_statement, StatementObject, BulkStatement);

/// A statement. Objects of the handle table must be `Sync`, and a `BulkStatement` is not; hence the
/// mutex. No thread ever waits for the mutex, because calls that need it hold the handle
/// exclusively.
pub struct StatementObject(Mutex<BulkStatement>);

/// Begins a bulk statement that writes to `count` trees, and locks these trees as a whole until the
/// transaction ends. Free the statement with frondb_bulk_statement_free(), finished or not. While
/// the statement is in progress, the transaction must not write to these trees in another way.
///
/// `statement` is set to NULL, and the caller must use single writes, if a tree has an entry in the
/// newest committed state or in the transaction's snapshot; if the transaction has written to a
/// tree, also with frondb_txn_overlay_put() or frondb_txn_overlay_delete(); if another transaction
/// has locks on a tree; or, under snapshot isolation, if a tree was changed since the snapshot. The
/// call does not wait for locks. If the reason is a lock or a commit of another transaction, the
/// call may leave locks on whole trees.
///
/// Threads: any; calls with the transaction take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for a tree of another database;
/// FRONDB_NOT_FOUND if a tree was dropped; FRONDB_TOO_MANY_LOCKS, FRONDB_CORRUPTION, FRONDB_IO,
/// FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_begin_bulk(
    txn: *mut frondb_txn,
    trees: TreeHandles,
    count: usize,
    statement: Option<&mut MaybeUninit<*mut frondb_bulk_statement>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(statement)?;
        let trees = trees.handles(count)?.iter().map(|tree| handle::shared::<Tree>(*tree));
        let trees = trees.collect::<Result<Vec<_>>>()?;
        let trees: Vec<&Tree> = trees.iter().map(|tree| &**tree).collect();
        let txn = handle::shared::<TransactionObject>(txn)?;
        if let Some(begun) = txn.txn().begin_bulk(&trees)? {
            place.write(handle::insert(StatementObject(Mutex::new(begun)))?);
        }
        Ok(())
    })
}

/// Adds `count` entries. Each write has the operation FRONDB_WRITE_PUT or FRONDB_WRITE_INSERT,
/// which have the same effect here; flags are ignored. If a key is given twice, the last value
/// wins, and frondb_bulk_statement_finish() reports the duplicate.
///
/// Threads: one at a time for the statement, any for the trees.
///
/// Errors: FRONDB_INVALID for a key or value that is too long, another operation, a tree with which
/// the statement was not begun, or after frondb_bulk_statement_finish(); FRONDB_NOT_FOUND if a tree
/// was dropped; FRONDB_NO_SPACE, FRONDB_IO, FRONDB_CLOSED. After one of the last three the
/// statement can only be freed; after another error it has the entries before the wrong one.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_statement_write(
    statement: *mut frondb_bulk_statement,
    writes: Writes,
    count: usize,
) -> *mut frondb_error {
    call(|| {
        let mut statement = handle::exclusive::<StatementObject>(statement)?;
        let statement = statement.0.get_mut();
        each_value(writes, count, |tree, key, value| statement.put(tree, key, value))
    })
}

/// Sorts the entries and makes them writes of the transaction. May be called only once; free the
/// statement afterwards. `progress`, unless NULL, receives the number of entries merged and to
/// merge (with an empty tree name), and can stop the work. `report`, which may be NULL, is as in
/// frondb_bulk_finish().
///
/// Threads: one at a time for the statement; calls with its transaction take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended or has written to one of the trees in
/// another way in the meantime, or if the statement was finished before; FRONDB_NOT_FOUND if a tree
/// was dropped; FRONDB_CANCELLED if `progress` stopped the work; FRONDB_NO_SPACE, FRONDB_IO,
/// FRONDB_CLOSED. After an error the writes of the transaction are as before the statement.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_statement_finish(
    statement: *mut frondb_bulk_statement,
    progress: frondb_progress,
    user_data: *mut c_void,
    report: Option<&mut MaybeUninit<*mut frondb_stats>>,
) -> *mut frondb_error {
    call(|| {
        let report = cleared(report);
        let mut statement = handle::exclusive::<StatementObject>(statement)?;
        let name: *const c_char = c"".as_ptr();
        let done = statement.0.get_mut().finish(&mut |at| {
            progress.is_none_or(|progress| progress(user_data, name, at.done, at.total) == 0)
        })?;
        give_bulk_report(report, done)
    })
}

/// Puts a key that was given twice into a buffer, and the number of its tree (see frondb_tree_id())
/// into `tree`; `found` is set to whether there is such a key. Call this function after
/// frondb_bulk_statement_finish(). Of several such keys it returns the smallest one in the earliest
/// created tree that has one.
///
/// Threads: one at a time for the statement and the buffer.
///
/// Errors: FRONDB_INVALID for a bad handle or a NULL pointer for a result.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_statement_duplicate(
    statement: *mut frondb_bulk_statement,
    tree: Option<&mut MaybeUninit<u64>>,
    key: *mut frondb_buffer,
    found: Option<&mut MaybeUninit<bool>>,
) -> *mut frondb_error {
    call(|| {
        let (found, tree) = (out_flag(found)?, out(tree)?);
        let mut statement = handle::exclusive::<StatementObject>(statement)?;
        let buffer = to_fill(key)?;
        let duplicate = statement.0.get_mut().duplicate();
        tree.write(duplicate.as_ref().map_or(0, |of| u64::from(of.tree.get())));
        found.write(fill(buffer, duplicate.map(|of| of.key.into_vec())));
        Ok(())
    })
}

/// Frees a statement, and drops its entries if it was not finished; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses it.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_bulk_statement_free(statement: *mut frondb_bulk_statement) -> frondb_kind {
    free::<StatementObject>(statement)
}
