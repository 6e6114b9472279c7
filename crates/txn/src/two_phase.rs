//! The calls that a two-phase commit coordinator makes: it lists, commits and rolls back prepared
//! transactions. [`crate::prepared`] does the work. Any thread may make these calls.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::{ErrorKind, Lsn, Result};
use frondb_locks::{LockMode, LockWait};

use crate::context::Transactions;
use crate::prepared::{self, Written};
use crate::registry::PreparedHold;

impl Transactions {
    /// Returns the names of the prepared transactions, sorted, including transactions that recovery
    /// found.
    #[must_use]
    pub fn list_prepared(&self) -> Vec<Box<[u8]>> {
        prepared::list(&self.prepared)
    }

    /// Returns the age of the oldest prepared transaction: the time since its begin, or since the
    /// open of the database if recovery found it. `None` if there is no prepared transaction.
    #[must_use]
    pub fn oldest_prepared(&self) -> Option<Duration> {
        // This call takes none of the locks that a prepare holds while it writes the log.
        if self.prepared.set().is_empty() {
            return None;
        }
        let (now, names) = (self.reads.now(), prepared::names(&self.prepared));
        let infos = self.registry.all().into_iter().filter_map(|entry| entry.read(now));
        infos.filter(|info| names.contains_key(&info.transaction)).map(|info| info.age).max()
    }

    /// Commits a prepared transaction. Returns when the commit is as durable as `durability`
    /// requires; later reads see the commit.
    ///
    /// # Errors
    /// `NotFound` if no transaction of this name is prepared; `NoSpace`, after which the
    /// transaction is still prepared and the call may be repeated; `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        let end = self.commit_prepared_in_order(xid, None)?;
        self.wait_durable(end, durability)
    }

    /// Commits like [`commit_prepared`](Self::commit_prepared), but without the wait for the disk.
    /// Returns the end of the commit's log record, for a caller that waits for durability. With
    /// `of`, fails unless the transaction with this name has the id `of`.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn commit_prepared_in_order(&self, xid: &[u8], of: Option<u64>) -> Result<Lsn> {
        let _call = self.calls.begin()?;
        let begun = self.reads.now();
        let (txn, committed) = prepared::commit(&self.prepared, xid, of)?;
        drop(self.prepared.holds().remove(&txn));
        self.background.committed(&committed, 0, 0, begun);
        Ok(committed.end)
    }

    /// Rolls back a prepared transaction. The rollback is durable on return.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared(&self, xid: &[u8]) -> Result<()> {
        self.roll_back_prepared_of(xid, None)
    }

    /// Rolls back like [`roll_back_prepared`](Self::roll_back_prepared). With `of`, fails unless
    /// the transaction with this name has the id `of`.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared_of(&self, xid: &[u8], of: Option<u64>) -> Result<()> {
        let _call = self.calls.begin()?;
        let txn = prepared::roll_back(&self.prepared, xid, of)?;
        drop(self.prepared.holds().remove(&txn));
        self.background.touched();
        Ok(())
    }
}

/// Takes the write locks of the prepared transactions that recovery found (rule 19). Never waits:
/// no other transaction has locks yet, and prepared transactions did not conflict. If two of them
/// have written the same key nevertheless, only the first gets the lock, because a failed open
/// would be worse than a missing lock.
///
/// # Errors
/// Errors of reading the private runs of a prepared transaction.
pub fn lock_again(txns: &Transactions) -> Result<()> {
    for xid in prepared::list(&txns.prepared) {
        let txn = prepared::number(&txns.prepared, &xid)?;
        // Do not join row locks to ranges: a later transaction of the list may have written keys
        // between the keys of this one.
        let mut locker = txns.locks.locker(txn).without_joins();
        let entry = txns.registry.entry();
        entry.begin(txn, txns.reads.now(), None);
        let mut messages = 0;
        prepared::for_each_write(&txns.prepared, &xid, &mut |tree, written| {
            messages += if let Written::Tree(entries) = written { entries } else { 1 };
            let locks = tree.locks();
            let (mode, wait) = (LockMode::Exclusive, LockWait::NoWait);
            let locked = match written {
                Written::Key(key) => locker.lock_row(locks, key, mode, wait),
                Written::Range(lo, hi) => locker.lock_range(locks, lo, hi, mode, wait),
                Written::Tree(_) => locker.lock_range(locks, b"", None, mode, wait),
            };
            match locked.map_err(|error| error.context(format_args!("tree {:?}", tree.name()))) {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    tracing::error!(%error, "two prepared transactions have written the same key");
                    Ok(())
                }
                locked => locked.map(drop),
            }
        })?;
        entry.set_messages(messages);
        entry.set_locks(locker.lock_count());
        txns.prepared.holds().insert(txn, PreparedHold { _locker: locker, entry });
    }
    Ok(())
}
