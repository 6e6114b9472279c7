//! [`Transaction`]: reads and writes that take effect atomically.
//!
//! ```text
//!  this file   the transaction, its statements and its settings
//!  options.rs  how a transaction and its cursors are begun
//!  reads.rs    gets, plain and locking, and locks on ranges
//!  overlay.rs  values that plain reads see in place of those at the snapshot
//!  cursor.rs   reading in key order
//!  range.rs    iterators
//!  writes.rs   writes and savepoints
//!  bulk.rs     statements that write many entries to empty trees
//!  end.rs      commit, prepare and rollback
//! ```

mod bulk;
mod cursor;
mod end;
mod options;
mod overlay;
mod range;
mod reads;
mod writes;

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::Result;
use frondb_locks::Canceller;

pub use bulk::BulkStatement;
pub use cursor::TransactionCursor;
pub use options::{TransactionCursorOptions, TransactionOptions};
pub use range::TransactionRange;

/// Reads and writes over any number of trees that take effect atomically.
///
/// Until [`commit`](Self::commit) only the transaction itself sees its writes. It locks each key it
/// writes until it ends. Its [`Isolation`](crate::Isolation) determines what it sees of other
/// transactions and what its reads lock. Transactions of any size work: beyond a part of the memory
/// the writes spill to disk, and the commit stays short.
///
/// Any thread may use it; calls take turns. A dropped transaction is rolled back. A deadlock victim
/// is rolled back immediately, and every later call but [`rollback`](Self::rollback) fails.
///
/// ```
/// use frondb::{Isolation, TransactionOptions, Wait};
///
/// # use frondb::{Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// # example(&db)?;
/// # example(&db) // A program is started more than once.
/// # }
/// # fn example(db: &Db) -> frondb::Result<()> {
/// let accounts = db.open_or_create_tree("accounts", TreeOptions::default())?;
/// let amount = |value: Option<Vec<u8>>| -> u64 {
///     value.and_then(|v| v.try_into().ok()).map_or(0, u64::from_be_bytes)
/// };
///
/// let options = TransactionOptions::new().isolation(Isolation::Serializable);
/// let transfer = db.begin(options)?;
/// // The lock keeps other transactions from changing the row before the write.
/// let ada = amount(transfer.get_for_update(&accounts, "ada", Wait::Timeout)?);
/// let bob = amount(transfer.get_for_update(&accounts, "bob", Wait::Timeout)?);
/// let paid = ada.min(30);
/// transfer.put(&accounts, "ada", (ada - paid).to_be_bytes())?;
/// transfer.put(&accounts, "bob", (bob + paid).to_be_bytes())?;
/// transfer.commit()?;
///
/// assert_eq!(amount(accounts.get("bob")?), bob + paid);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Transaction {
    inner: frondb_txn::Transaction,
}

impl Transaction {
    pub(crate) fn new(inner: frondb_txn::Transaction) -> Self {
        Self { inner }
    }

    /// Begins the next transaction in place of this one, which must have ended, with the same
    /// options (settings that later calls have changed are back at their initial values). Costs
    /// about half of [`Db::begin`](crate::Db::begin), for callers of many short transactions.
    /// Cursors and cancellers of the ended transaction do not reach the next one.
    ///
    /// # Errors
    /// `Invalid` if the transaction has not ended; `Poisoned`, `Closed`.
    pub fn begin_next(&mut self) -> Result<()> {
        self.inner.begin_next()
    }

    /// The transaction's number, ascending in the order in which transactions begin.
    /// [`Db::locks`](crate::Db::locks) names transactions by this number.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.inner.id()
    }

    /// Begins a statement. At read committed, all plain reads until the next `begin_statement` see
    /// one state; without it each call and each cursor is a statement of its own. A pending
    /// cancellation ([`canceller`](Self::canceller)) is dropped, because it was meant for the
    /// previous statement.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn begin_statement(&self) -> Result<()> {
        self.inner.begin_statement()
    }

    /// Drops a pending cancellation ([`canceller`](Self::canceller)), as
    /// [`begin_statement`](Self::begin_statement) does, for a commit that is a statement of its
    /// own.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn forget_cancel(&self) -> Result<()> {
        self.inner.forget_cancel()
    }

    /// Ends a statement. At read committed the state that its reads saw is released; reads before
    /// the next statement see the newest state.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn end_statement(&self) -> Result<()> {
        self.inner.end_statement()
    }

    /// Changes how long later calls wait for each lock ([`TransactionOptions::lock_timeout`] is the
    /// initial value). Waits for a call that another thread is making on the transaction.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended or is prepared; `Closed`.
    pub fn set_lock_timeout(&self, timeout: Duration) -> Result<()> {
        self.inner.set_lock_timeout(timeout)
    }

    /// Changes what the prepare and the commit wait for ([`TransactionOptions::durability`] is the
    /// initial value). Also allowed on a prepared transaction, for a commit through this handle.
    /// Waits for a call that another thread is making on the transaction.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn set_durability(&self, durability: Durability) -> Result<()> {
        self.inner.set_durability(durability)
    }

    /// Takes the snapshot of a repeatable read now instead of at the first read.
    ///
    /// # Errors
    /// `Invalid` if the transaction has ended; `Closed`.
    pub fn take_snapshot(&self) -> Result<()> {
        self.inner.take_snapshot()
    }

    /// A handle with which any thread can cancel a wait of this transaction: a wait for a lock
    /// fails with `Cancelled`, and so does a commit that waits for background work to make room,
    /// which has then changed nothing. If the transaction is not waiting, its next wait fails,
    /// unless a statement begins first ([`begin_statement`](Self::begin_statement)): a cancellation
    /// that comes too late does not affect the next statement.
    #[must_use]
    pub fn canceller(&self) -> Canceller {
        self.inner.canceller()
    }
}
