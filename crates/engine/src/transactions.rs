//! The transaction calls of [`Engine`], which forward to [`frondb_txn`].

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::{Snapshot, Tree};
use frondb_txn::{BulkLoad, BulkOptions, Transaction, TransactionInfo, TransactionOptions};

use crate::engine::Engine;

impl Engine {
    /// Begins a transaction, which keeps the engine open. A transaction costs next to nothing
    /// until it writes or locks.
    ///
    /// # Errors
    /// `Invalid` for `snapshot_isolation` at another level than repeatable read; `Closed`,
    /// `Poisoned`.
    pub fn begin(self: &Arc<Self>, options: TransactionOptions) -> Result<Transaction> {
        self.txns.begin(options, Arc::clone(self) as frondb_txn::KeepOpen)
    }

    /// All active and prepared transactions, sorted by id. The list is not a consistent snapshot,
    /// because transactions proceed while the call reads them. Takes O(transactions) and blocks
    /// none of them.
    #[must_use]
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        self.txns.list()
    }

    /// Names of the prepared transactions, sorted; includes those that recovery found.
    #[must_use]
    pub fn prepared(&self) -> Vec<Box<[u8]>> {
        self.txns.list_prepared()
    }

    /// Commits a prepared transaction. Returns when the commit is as durable as `durability`
    /// requires; later reads see it.
    ///
    /// # Errors
    /// `NotFound` if no transaction of this name is prepared; `NoSpace`: the transaction is still
    /// prepared, and the caller may retry; `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        self.txns.commit_prepared(xid, durability)
    }

    /// Rolls back a prepared transaction; durable on return.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared(&self, xid: &[u8]) -> Result<()> {
        self.txns.roll_back_prepared(xid)
    }

    /// A snapshot that sees everything that transactions have written to `trees` before this
    /// call: see [`frondb_txn::Transactions::snapshot_behind_writers`].
    ///
    /// # Errors
    /// As [`frondb_txn::Transactions::snapshot_behind_writers`].
    pub fn snapshot_behind_writers(&self, trees: &[Tree], timeout: Duration) -> Result<Snapshot> {
        self.txns.snapshot_behind_writers(trees, timeout)
    }

    /// Begins a bulk load, which keeps the engine open.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`.
    pub fn bulk_load(self: &Arc<Self>, options: BulkOptions) -> Result<BulkLoad> {
        let open = Arc::clone(self) as frondb_txn::KeepOpen;
        self.txns.bulk_load(options, Arc::clone(&self.catalog), open)
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "prepared_tests.rs"]
mod tests;
