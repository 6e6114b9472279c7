//! Two-phase commit: preparing under a name, commit or rollback by that name, and the hook that is
//! called for every commit in commit order.

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
use crate::slice::{UserData, cleared, frondb_slice};
use crate::transaction::{TransactionObject, frondb_txn};

/// Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase commit.
/// From then on the transaction can be committed or rolled back by this handle or by name
/// (frondb_db_commit_prepared()), even after a restart. A prepared transaction keeps its locks
/// (after a restart only the locks of its writes) and accepts no more reads or writes. It stays
/// prepared when the handle is freed. When this call returns, the prepare is as durable as the
/// transaction's options require. To sync several prepares at once, prepare with FRONDB_NO_SYNC and
/// call frondb_db_sync() after the last one.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_EXISTS if another prepared transaction has this name; FRONDB_INVALID for a bad
/// name, or if the transaction has ended; otherwise as frondb_txn_commit().
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_prepare(txn: *mut frondb_txn, xid: frondb_slice) -> *mut frondb_error {
    call(|| handle::shared::<TransactionObject>(txn)?.txn().prepare(xid.bytes()?))
}

/// Lists the names of all prepared transactions, sorted, including those that were prepared before
/// the last restart.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_prepared(
    db: *mut frondb_db,
    xids: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    call(|| list::give(cleared(xids), handle::shared::<Db>(db)?.prepared()))
}

/// Commits a prepared transaction by name.
///
/// Threads: any.
///
/// Errors: FRONDB_NOT_FOUND if no prepared transaction has this name; FRONDB_NO_SPACE: the
/// transaction is still prepared, try again; FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_commit_prepared(
    db: *mut frondb_db,
    xid: frondb_slice,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    call(|| handle::shared::<Db>(db)?.commit_prepared(xid.bytes()?, durability(waits_for)?))
}

/// Rolls back a prepared transaction by name, durably.
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

/// The argument of a commit hook.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_commit_info {
    /// Number of the transaction, as returned by frondb_txn_id(); 0 for a batch.
    transaction: u64,
    /// The commit's position in the order of all commits, ascending.
    order: u64,
    /// The end of the commit's record in the log: the commit is durable once the log is durable up
    /// to this position.
    log_end: u64,
}

/// A commit hook. `info` is valid during the call.
pub type frondb_commit_hook =
    Option<extern "C" fn(user_data: *mut c_void, info: *const frondb_commit_info)>;

/// Sets a hook that is called for every later commit, in commit order, for example to write a log
/// of the application. NULL removes the hook. The committing thread calls the hook before the
/// commit is durable, and the hook blocks all other commits: it must be quick, must not call
/// functions of this interface, and must return normally (no exception, no longjmp).
/// `free_user_data`, unless NULL, is called once when the hook is no longer used: after another
/// hook was set, or the database was freed. If this function fails, `free_user_data` is not called.
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
