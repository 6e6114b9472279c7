//! The list of transactions that have not ended, for status pages and diagnosis.

use std::mem::MaybeUninit;

use frondb::{Db, Isolation, TransactionInfo};

use crate::call::create;
use crate::db::frondb_db;
use crate::error::frondb_error;
use crate::handle;
use crate::list::{self, List, frondb_list};
use crate::slice::frondb_slice;
use crate::transaction::{
    FRONDB_READ_COMMITTED, FRONDB_READ_UNCOMMITTED, FRONDB_REPEATABLE_READ, FRONDB_SERIALIZABLE,
    frondb_isolation,
};

/// A transaction that has not ended. Its pointers are valid until the list is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_transaction_info {
    /// The transaction's number, as in frondb_txn_id() and frondb_lock_info.
    transaction: u64,
    /// Time since the transaction began, nanoseconds; for a prepared transaction that recovery
    /// found, time since the database was opened.
    age_nanos: u64,
    /// Messages that the transaction has written and not undone: puts, deletes, updates, and one
    /// for each range delete. For a prepared transaction that recovery found, without the messages
    /// that later ones had replaced when they were spilled to disk.
    messages: u64,
    /// Locks that the transaction holds on rows, gaps and ranges.
    locks: u64,
    /// Length of the current lock wait, nanoseconds; 0 if the transaction does not wait now.
    waited_nanos: u64,
    /// The transaction's name if it is prepared; otherwise `data` is NULL.
    xid: frondb_slice,
    /// The isolation level; FRONDB_ISOLATION_UNKNOWN for a prepared transaction that recovery
    /// found.
    isolation: frondb_isolation,
    /// Whether the transaction waits for a lock now.
    waits: bool,
}

/// The isolation level of a transaction that an earlier process has prepared.
pub const FRONDB_ISOLATION_UNKNOWN: frondb_isolation = 4;

/// Lists all transactions that have not ended, active and prepared, ordered by number.
/// frondb_list_get_transaction() reads the items. Transactions continue while the list is made, so
/// the list is not a consistent snapshot. The cost of the call grows with the number of
/// transactions.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_transactions(
    db: *mut frondb_db,
    transactions: Option<&mut MaybeUninit<*mut frondb_list>>,
) -> *mut frondb_error {
    create(transactions, || Ok(List::of(handle::shared::<Db>(db)?.transactions())))
}

/// Reads item `at`, from 0, of a list of transactions.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID if `at` is beyond the last item, or if the items are not transactions.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_list_get_transaction(
    list: *mut frondb_list,
    at: usize,
    info: Option<&mut MaybeUninit<frondb_transaction_info>>,
) -> *mut frondb_error {
    list::read(list, at, info, |found| Ok(frondb_transaction_info::of(found)))
}

impl frondb_transaction_info {
    fn of(info: &TransactionInfo) -> Self {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            transaction: info.transaction,
            age_nanos: nanos(info.age),
            messages: info.messages,
            locks: info.locks,
            waited_nanos: nanos(info.waited.unwrap_or_default()),
            xid: info.xid.as_ref().map_or(frondb_slice::NONE, |xid| frondb_slice::of(xid)),
            isolation: match info.isolation {
                Some(Isolation::ReadUncommitted) => FRONDB_READ_UNCOMMITTED,
                Some(Isolation::ReadCommitted) => FRONDB_READ_COMMITTED,
                Some(Isolation::RepeatableRead) => FRONDB_REPEATABLE_READ,
                Some(Isolation::Serializable) => FRONDB_SERIALIZABLE,
                None => FRONDB_ISOLATION_UNKNOWN,
            },
            waits: info.waited.is_some(),
        }
    }
}
