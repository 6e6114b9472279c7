//! Transactions. They begin in `db`; `two_phase` prepares them.
//!
//! ```text
//!  this file         the transaction, its statements, its snapshot, the cancelling of its waits
//!  begin_options.rs  isolation levels, and the options with which a transaction begins
//!  reads.rs          gets and cursors, with or without locks
//!  locking.rs        how reads lock and wait; locking a range, releasing a lock
//!  overlay.rs        values that plain reads see in place of the snapshot's
//!  writes.rs         puts, inserts, deletes and updates
//!  bulk_statement.rs many writes to empty trees
//!  savepoints.rs     savepoints
//!  end.rs            commit, in one call or in two halves, and rollback
//! ```

mod begin_options;
mod bulk_statement;
mod end;
mod locking;
mod overlay;
mod reads;
mod savepoints;
mod writes;

use std::mem::MaybeUninit;
use std::time::Duration;

use frondb::{Result, Savepoint, Transaction, Tree};
use frondb_core::sync::Mutex;

use crate::batch::{durability, frondb_durability};
use crate::call::{call, free_if};
use crate::error::{frondb_error, frondb_kind};
use crate::handle::{self, object};
use crate::slice::out;
use crate::tree::frondb_tree;

pub use begin_options::*;
pub use bulk_statement::*;
pub use end::*;
pub use locking::*;
pub use overlay::*;
pub use reads::*;
pub use savepoints::*;
pub use writes::*;

/// A transaction: reads and writes over any number of trees. Its writes take effect atomically with
/// the commit; until then only the transaction itself sees them. A transaction locks each key that
/// it writes; it holds the locks until it ends.
///
/// Any thread may use a transaction; calls take turns. A deadlock victim is rolled back
/// immediately, and every later call except frondb_txn_rollback() and frondb_txn_free() fails.
/// After the transaction's end every call fails with FRONDB_INVALID, except
/// frondb_txn_begin_next(), frondb_txn_free(), frondb_txn_id() and frondb_txn_cancel(); the last
/// two always succeed.
pub struct frondb_txn {
    _private: [u8; 0],
}

object!(frondb_txn, TransactionObject, Transaction);

/// A transaction and its savepoints.
pub struct TransactionObject {
    txn: Transaction,
    /// The savepoints that are set, with their numbers for C, ascending.
    savepoints: Mutex<Vec<(u64, Savepoint)>>,
}

impl TransactionObject {
    pub(crate) fn new(txn: Transaction) -> Self {
        Self { txn, savepoints: Mutex::new(Vec::new()) }
    }

    pub(crate) fn txn(&self) -> &Transaction {
        &self.txn
    }
}

/// Runs `body` with the transaction of a handle.
#[inline]
fn with(
    txn: *mut frondb_txn,
    body: impl FnOnce(&TransactionObject) -> Result<()>,
) -> *mut frondb_error {
    call(|| body(&*handle::shared::<TransactionObject>(txn)?))
}

/// Runs `body` with the transaction and the tree of two handles.
#[inline]
fn with_tree(
    txn: *mut frondb_txn,
    tree: *mut frondb_tree,
    body: impl FnOnce(&Transaction, &Tree) -> Result<()>,
) -> *mut frondb_error {
    with(txn, |txn| body(&txn.txn, &*handle::shared::<Tree>(tree)?))
}

/// Begins the next transaction with the handle and the options of a transaction that has ended,
/// committed or rolled back. Settings that calls have changed in the ended transaction have the
/// values of the options again. For programs with many short transactions: the call costs about
/// half of frondb_db_begin(). Cursors of the ended transaction stay ended; its savepoints are gone.
///
/// Threads: any; FRONDB_BUSY while another thread is in a call with the transaction.
///
/// Errors: FRONDB_INVALID if the transaction has not ended; FRONDB_POISONED, FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_begin_next(txn: *mut frondb_txn) -> *mut frondb_error {
    call(|| {
        let mut object = handle::exclusive::<TransactionObject>(txn)?;
        object.txn.begin_next()?;
        object.savepoints.get_mut().clear();
        Ok(())
    })
}

/// Frees a transaction, and rolls it back unless it has ended or is prepared; NULL is ignored.
///
/// Threads: any; FRONDB_BUSY, and nothing is freed, while another thread is in a call with the
/// transaction or with one of its cursors (frondb_txn_cancel() ends its wait).
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_free(txn: *mut frondb_txn) -> frondb_kind {
    free_if::<TransactionObject>(txn, |txn| {
        // A call of a cursor does not lock this handle. Roll back here, so that no such call can
        // run between this check and the removal of the handle.
        if txn.txn.try_abandon() { Ok(()) } else { Err(handle::busy::<TransactionObject>()) }
    })
}

/// Returns the transaction's number; numbers ascend in the order in which transactions begin.
/// frondb_lock_info identifies transactions by this number.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_id(
    txn: *mut frondb_txn,
    id: Option<&mut MaybeUninit<u64>>,
) -> *mut frondb_error {
    with(txn, |txn| {
        out(id)?.write(txn.txn.id());
        Ok(())
    })
}

/// Begins a statement. At read committed, all plain reads until the next
/// frondb_txn_begin_statement() or frondb_txn_end_statement() see one state. Outside of a statement
/// each read and each cursor is a statement of its own. The call drops a pending
/// frondb_txn_cancel(), which was meant for the previous statement.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_begin_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.begin_statement())
}

/// Ends a statement. At read committed this releases the state that the statement's reads have
/// seen; plain reads before the next statement see the newest commits.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_end_statement(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.end_statement())
}

/// Changes the time that later calls wait for each lock, milliseconds.
/// frondb_txn_options_set_lock_timeout_millis() sets the initial value.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended or is prepared; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_lock_timeout_millis(
    txn: *mut frondb_txn,
    millis: u64,
) -> *mut frondb_error {
    with(txn, |txn| txn.txn.set_lock_timeout(Duration::from_millis(millis)))
}

/// Changes what the prepare and the commit wait for. Also allowed on a prepared transaction, for
/// frondb_txn_commit(). frondb_txn_options_set_durability() sets the initial value.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended, or for an unknown durability;
/// FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_set_durability(
    txn: *mut frondb_txn,
    waits_for: frondb_durability,
) -> *mut frondb_error {
    with(txn, |txn| txn.txn.set_durability(durability(waits_for)?))
}

/// Takes the snapshot of a repeatable-read transaction now. Without this call the first plain read
/// takes it.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_take_snapshot(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.take_snapshot())
}

/// Cancels the transaction's wait: a wait for a lock, or the wait of a commit or prepare for
/// background work to make room. The call that waits fails with FRONDB_CANCELLED, and a cancelled
/// commit or prepare has not happened. If the transaction is not waiting, its next wait fails,
/// unless frondb_txn_begin_statement() or frondb_txn_forget_cancel() comes first. This call never
/// waits.
///
/// Threads: any; meant for another thread than the waiting one.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_cancel(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| {
        txn.txn.canceller().cancel();
        Ok(())
    })
}

/// Drops a pending frondb_txn_cancel(), as frondb_txn_begin_statement() does. For a commit that is
/// a statement of its own: call this function before the commit.
///
/// Threads: any; calls take turns.
///
/// Errors: FRONDB_INVALID if the transaction has ended; FRONDB_CLOSED.
#[unsafe(no_mangle)]
pub extern "C" fn frondb_txn_forget_cancel(txn: *mut frondb_txn) -> *mut frondb_error {
    with(txn, |txn| txn.txn.forget_cancel())
}
