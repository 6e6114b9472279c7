//! Transactions of a database, prepared transactions, hooks and locks.

use std::time::Duration;

use frondb_commit::{CommitHook, Durability, guarded};
use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_locks::{DeadlockInfo, LockInfo, WaitHook, WaitInfo};
use frondb_tree::Snapshot;
use frondb_txn::{KeepOpen, Transaction, TransactionInfo, TransactionOptions};

use super::Db;
use crate::tree::Tree;

impl Db {
    /// Begins a transaction; see [`Transaction`]. A transaction costs next to nothing until it
    /// writes or locks.
    ///
    /// # Errors
    /// `Invalid` for options that contradict each other
    /// ([`TransactionOptions::snapshot_isolation`]); `Poisoned`, `Closed`.
    pub fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        let keep_open = Arc::clone(&self.open) as KeepOpen;
        self.open.txns.begin(options, self.commit_sync, keep_open)
    }

    /// Takes a snapshot that sees everything that transactions had written to `trees` before this
    /// call. The call waits until these transactions, prepared ones included, have ended, up to
    /// `timeout` for each tree. Other transactions that write to the trees wait until the snapshot
    /// is taken.
    ///
    /// This is for building an index of existing data without missing a row: create the index tree,
    /// make all writers write to the index too, then read the data at this snapshot.
    ///
    /// # Errors
    /// `Busy` if a prepared transaction that wrote to a tree has not ended in time: commit it or
    /// roll it back first; `LockTimeout`; `Deadlock` if there still is a deadlock when the time is
    /// up; `Invalid` for a tree of another database; `NotFound` if a tree was dropped; `Closed`.
    pub fn snapshot_behind_writers(&self, trees: &[&Tree], timeout: Duration) -> Result<Snapshot> {
        self.open.txns.snapshot_behind_writers(trees, timeout)
    }

    /// Returns the names of all prepared transactions, sorted, including those from before the last
    /// restart.
    #[must_use]
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.open.txns.list_prepared().into_iter().map(Vec::from).collect()
    }

    /// Commits a prepared transaction by name.
    ///
    /// # Errors
    /// `NotFound` if no prepared transaction has this name; `NoSpace`: the transaction is still
    /// prepared, try again; `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        self.open.txns.commit_prepared(xid, durability)
    }

    /// Rolls back a prepared transaction by name, durably.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        self.open.txns.roll_back_prepared(xid)
    }

    /// Sets a hook that is called for every later commit that has writes, in commit order, for
    /// example to write a log of the application. `None` removes the hook. The hook runs before the
    /// commit is durable and blocks all other commits, so it must be quick and must not call the
    /// database. If the hook panics, the panic is logged and the commit is still valid.
    pub fn set_commit_hook(&self, hook: Option<CommitHook>) {
        self.open.committer.set_hook(hook);
    }

    /// Sets a hook that is called when a wait for a lock begins, and when the waiter has to wait
    /// for more transactions than before. The hook is for callers that must commit transactions in
    /// an order of their own. `None` removes it. The waiting thread calls the hook before it
    /// sleeps. The hook may cancel transactions
    /// ([`Transaction::canceller`](crate::Transaction::canceller)), and must not call the waiting
    /// transaction. If it panics, the panic is logged and nothing else happens.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.open.locks.set_wait_hook(hook.map(guarded));
    }

    /// Returns all transactions that have not ended, active and prepared, by number. Meant for
    /// status pages. Transactions continue while the list is made, so it does not show one moment
    /// in time. The cost of the call grows with the number of transactions.
    ///
    /// If [`locks`](Self::locks) has a number that is not in this list, the number belongs to a
    /// batch or a bulk load that has taken locks, to an index build, or to a transaction that has
    /// begun since then.
    #[must_use]
    pub fn transactions(&self) -> Vec<TransactionInfo> {
        self.open.txns.list()
    }

    /// Returns all locks that transactions hold now, unordered: for status pages, and to find the
    /// transaction for which others wait.
    #[must_use]
    pub fn locks(&self) -> Vec<LockInfo> {
        self.locks_up_to(usize::MAX)
    }

    /// As [`locks`](Self::locks), but at most `max` locks: a large transaction holds hundreds of
    /// thousands of locks, and each entry of the list has a copy of its key.
    #[must_use]
    pub fn locks_up_to(&self, max: usize) -> Vec<LockInfo> {
        self.open.locks.locks(max)
    }

    /// Returns all current waits for locks, each with the transactions that the waiting one waits
    /// for.
    #[must_use]
    pub fn lock_waits(&self) -> Vec<WaitInfo> {
        self.open.locks.waits()
    }

    /// Returns the last deadlock since the database was opened, with what each transaction of the
    /// cycle waited for; `None` if there was none.
    #[must_use]
    pub fn last_deadlock(&self) -> Option<DeadlockInfo> {
        self.open.locks.last_deadlock()
    }
}
