//! The list of transactions that have not ended, for status pages and diagnosis.

use std::mem::MaybeUninit;

use frondb::{Db, Error, Isolation, TransactionInfo};

use crate::call::{call, call_or, create, free, number};
use crate::db::frondb_db;
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::{frondb_slice, out};
use crate::transaction::{
    FRONDB_READ_COMMITTED, FRONDB_READ_UNCOMMITTED, FRONDB_REPEATABLE_READ, FRONDB_SERIALIZABLE,
    frondb_isolation,
};

/// A list of transactions. Free it with frondb_transactions_free().
pub struct frondb_transactions {
    _private: [u8; 0],
}

object!(frondb_transactions, Transactions, Transactions);

/// The transactions.
pub struct Transactions(Vec<TransactionInfo>);

/// A transaction that has not ended. Its pointers are valid until the list is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct frondb_transaction_info {
    /// The transaction's number, as in frondb_txn_id() and frondb_lock_info.
    transaction: u64,
    /// How long ago the transaction began, nanoseconds; if recovery found it prepared, how long ago
    /// the database was opened.
    age_nanos: u64,
    /// Messages that the transaction has written and not undone: puts, deletes, updates, and one
    /// for each range delete. If recovery found the transaction prepared, only the last message for
    /// each key and range counts.
    messages: u64,
    /// Locks that the transaction holds on rows, gaps and ranges.
    locks: u64,
    /// How long the transaction has waited for a lock, nanoseconds; 0 if it does not wait now.
    waited_nanos: u64,
    /// The transaction's name if it is prepared; otherwise `data` is NULL.
    xid: frondb_slice,
    /// The isolation level; FRONDB_ISOLATION_UNKNOWN if recovery found the transaction prepared.
    isolation: frondb_isolation,
    /// Whether the transaction waits for a lock now.
    waits: bool,
}

/// The level of a transaction that an earlier process prepared.
pub const FRONDB_ISOLATION_UNKNOWN: frondb_isolation = 4;

/// All transactions that have not ended, active and prepared, by number. Transactions continue
/// while the list is made, so it is not a consistent snapshot. The cost of the call grows with the
/// number of transactions.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_db_transactions(
    db: *mut frondb_db,
    transactions: Option<&mut MaybeUninit<*mut frondb_transactions>>,
) -> *mut frondb_error {
    create(transactions, || {
        let list = handle::shared::<Db>(db)?.transactions();
        Ok(Transactions(list))
    })
}

/// The number of items; 0 for a pointer that is no list.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_transactions_count(transactions: *mut frondb_transactions) -> usize {
    call_or(0, || Ok(handle::shared::<Transactions>(transactions)?.0.len()))
}

/// Item `at` of the list, from 0.
///
/// Threads: any.
///
/// Errors: FRONDB_INVALID beyond the last item.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_transactions_get(
    transactions: *mut frondb_transactions,
    at: usize,
    info: Option<&mut MaybeUninit<frondb_transaction_info>>,
) -> *mut frondb_error {
    call(|| {
        let (place, list) = (out(info)?, handle::shared::<Transactions>(transactions)?);
        let message = || {
            format!(
                "index {at} is out of range: the list has {} transactions",
                number(list.0.len())
            )
        };
        let found = list.0.get(at).ok_or_else(|| Error::invalid(message()))?;
        place.write(frondb_transaction_info::of(found));
        Ok(())
    })
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

/// Frees a list; NULL is ignored.
///
/// Threads: any; the last call with this list.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_transactions_free(transactions: *mut frondb_transactions) -> frondb_kind {
    free::<Transactions>(transactions)
}
