//! Two-phase commit: preparing under a name, the end by that name, and the hook that is told of
//! every commit in its order.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use frondb::{CommitHook, CommitInfo, Db};
use frondb_core::sync::Arc;

use crate::batch::{durability, frondb_durability};
use crate::call::call;
use crate::db::frondb_db;
use crate::error::frondb_error;
use crate::handle;
use crate::list::{self, frondb_list};
use crate::slice::{UserData, cleared, frondb_slice, out_handle};
use crate::transaction::{CommittingObject, TransactionObject, frondb_committing, frondb_txn};

/// Prepares under a name of 1 to 256 bytes, the first of two phases: from now on the transaction can
/// be committed or rolled back, whatever happens, by this handle or by name
/// (frondb_db_commit_prepared()), also after a restart. It keeps its write locks and takes no more
/// reads or writes; freeing the handle leaves it prepared. Durable, as it asks, when this
/// returns.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_EXISTS if one of this name is prepared; FRONDB_INVALID for the name, or if it has
/// ended; else as frondb_txn_commit().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_prepare(txn: *mut frondb_txn, xid: frondb_slice) -> *mut frondb_error {
    call(|| handle::shared::<TransactionObject>(txn)?.txn().prepare(xid.bytes()?))
}

/// The first half of frondb_txn_prepare(): all but the wait for the disk, which is
/// frondb_committing_wait(). Only when that is over may a coordinator be told that the transaction
/// is prepared.
///
/// Threads: any; calls take turns.
///
/// Errors: as frondb_txn_prepare().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_prepare_in_order(
    txn: *mut frondb_txn,
    xid: frondb_slice,
    preparing: Option<&mut MaybeUninit<*mut frondb_committing>>,
) -> *mut frondb_error {
    call(|| {
        let place = out_handle(preparing)?;
        let txn = handle::shared::<TransactionObject>(txn)?;
        let preparing = CommittingObject(txn.txn().prepare_in_order(xid.bytes()?)?);
        place.write(handle::insert(preparing)?);
        Ok(())
    })
}

/// The names of all prepared transactions, sorted: those of this process, and those that the last
/// one left behind.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_prepared(
    db: *mut frondb_db,
    xids: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| list::give(cleared(xids), handle::shared::<Db>(db)?.prepared()))
}

/// Commits a prepared transaction by its name.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if none of this name is prepared; FRONDB_NO_SPACE: it is still prepared,
/// try again; FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_commit_prepared(
    db: *mut frondb_db,
    xid: frondb_slice,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.commit_prepared(xid.bytes()?, durability(waits_for)?))
}

/// Rolls a prepared transaction back by its name; durable when it returns.
///
/// Threads: any.
///
/// Errors: as frondb_db_commit_prepared().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_rollback_prepared(
    db: *mut frondb_db,
    xid: frondb_slice,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.rollback_prepared(xid.bytes()?))
}

/// What a commit hook is told.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_commit_info {
    /// Number of the transaction, as frondb_txn_id() has it; 0 for a plain batch.
    transaction: u64,
    /// The commit's place in the order of all commits: ascending.
    order: u64,
    /// Where its record ends in the log: durable when the log is durable up to there.
    log_end: u64,
}

/// Told of a commit. `info` is good during the call.
pub type frondb_commit_hook =
    Option<extern "C" fn(user_data: *mut c_void, info: *const frondb_commit_info)>;

/// Tells `hook` of every commit from now on, in their order, for a log of one's own; NULL for
/// nobody. It is called by the thread that commits, before the commit is durable and while no other
/// can happen: it must be quick, must not call functions of this interface, and must not throw or
/// jump out. `free_user_data`, unless NULL, is called once, when the hook is not used any more: after
/// another one was set, or the database was freed. If this function fails it is not called.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_set_commit_hook(
    db: *mut frondb_db,
    hook: frondb_commit_hook,
    user_data: *mut c_void,
    free_user_data: Option<extern "C" fn(user_data: *mut c_void)>,
) -> *mut frondb_error {
    call(|| {
        let db = handle::shared::<Db>(db)?;
        let user_data = UserData::new(user_data, free_user_data);
        let hook = hook.map(|hook| -> CommitHook {
            Arc::new(move |info: &CommitInfo| {
                let info = frondb_commit_info {
                    transaction: info.transaction,
                    order: info.seq.get(),
                    log_end: info.end.get(),
                };
                hook(user_data.get(), &raw const info);
            })
        });
        db.set_commit_hook(hook);
        Ok(())
    })
}
