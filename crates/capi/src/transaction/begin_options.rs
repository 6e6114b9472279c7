//! The options with which transactions begin, and the isolation levels.

use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::{Error, Isolation, Result, TransactionOptions};

use crate::batch::{durability, frondb_durability};
use crate::call::{call, create, free};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};

/// Options with which frondb_db_begin() begins transactions. The same options may be used for any
/// number of transactions.
pub struct frondb_txn_options {
    _private: [u8; 0],
}

object!(frondb_txn_options, TransactionOptions, TransactionOptions);

/// What a transaction sees of other transactions' writes.
pub type frondb_isolation = u32;
/// The same as read committed: uncommitted data is never shown.
pub const FRONDB_READ_UNCOMMITTED: frondb_isolation = 0;
/// Each statement sees what was committed when it began. Locking reads lock rows only.
pub const FRONDB_READ_COMMITTED: frondb_isolation = 1;
/// All plain reads see the same state as the first one. Locking reads and writes see the newest
/// data, and locking cursors lock the gaps that they pass. The default.
pub const FRONDB_REPEATABLE_READ: frondb_isolation = 2;
/// All reads lock what they read.
pub const FRONDB_SERIALIZABLE: frondb_isolation = 3;

/// Makes options with the defaults: repeatable read, lock waits of up to 10 s, and the durability
/// of the database handle. Free them with frondb_txn_options_free().
///
/// Threads: any. One thread at a time may set options; any number of threads may begin transactions
/// with them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_new(
    options: Option<&mut MaybeUninit<*mut frondb_txn_options>>,
) -> *mut frondb_error {
    create(options, || Ok(TransactionOptions::new()))
}

/// Frees options; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread uses them.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_free(options: *mut frondb_txn_options) -> frondb_kind {
    free::<TransactionOptions>(options)
}

fn set(
    options: *mut frondb_txn_options,
    change: impl FnOnce(TransactionOptions) -> Result<TransactionOptions>,
) -> *mut frondb_error {
    call(|| {
        let mut options = handle::exclusive::<TransactionOptions>(options)?;
        *options = change(options.clone())?;
        Ok(())
    })
}

/// Sets what transactions see of other transactions' writes. Default FRONDB_REPEATABLE_READ.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for an unknown level.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_isolation(
    options: *mut frondb_txn_options,
    isolation: frondb_isolation,
) -> *mut frondb_error {
    set(options, |options| {
        let isolation = match isolation {
            FRONDB_READ_UNCOMMITTED => Isolation::ReadUncommitted,
            FRONDB_READ_COMMITTED => Isolation::ReadCommitted,
            FRONDB_REPEATABLE_READ => Isolation::RepeatableRead,
            FRONDB_SERIALIZABLE => Isolation::Serializable,
            other => return Err(Error::invalid(format!("unknown frondb_isolation {other}"))),
        };
        Ok(options.isolation(isolation))
    })
}

/// Sets whether a write or a locking read of a row fails with FRONDB_CONFLICT if another
/// transaction has inserted, changed or deleted the row since the snapshot of this transaction. A
/// locking cursor then also fails if it passes such a row. Default false. Only for repeatable read:
/// if set at another level, frondb_db_begin() fails with FRONDB_INVALID.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_snapshot_isolation(
    options: *mut frondb_txn_options,
    on: bool,
) -> *mut frondb_error {
    set(options, |options| Ok(options.snapshot_isolation(on)))
}

/// Sets how long a call waits for each lock before it fails with FRONDB_LOCK_TIMEOUT, milliseconds.
/// Default 10,000.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_lock_timeout_millis(
    options: *mut frondb_txn_options,
    millis: u64,
) -> *mut frondb_error {
    set(options, |options| Ok(options.lock_timeout(Duration::from_millis(millis))))
}

/// Sets what the commit waits for. Default: the durability of the handle that begins the
/// transaction (frondb_db_with_commit_sync()), which is FRONDB_SYNC unless set otherwise.
///
/// Threads: one at a time.
///
/// Errors: FRONDB_INVALID for an unknown durability.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_options_set_durability(
    options: *mut frondb_txn_options,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    set(options, |options| Ok(options.durability(durability(waits_for)?)))
}
