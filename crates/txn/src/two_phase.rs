//! What a coordinator of transactions asks an engine: which are prepared, commit this one, roll that one
//! back. Sits above [`crate::prepared`]; thread-safe.

use frondb_core::{ErrorKind, Lsn, Result};
use frondb_locks::{LockMode, LockWait};

use frondb_commit::Durability;

use crate::context::Transactions;
use crate::prepared::{self, Written};
use crate::registry::PreparedHold;

impl Transactions {
    /// Names of the transactions that are prepared, those found at the open included, sorted.
    #[must_use]
    pub fn list_prepared(&self) -> Vec<Box<[u8]>> {
        prepared::list(&self.prepared)
    }

    /// Commits a prepared transaction. Returns when it is as durable as asked; later reads see it.
    ///
    /// # Errors
    /// `NotFound` if none of this name is prepared; `NoSpace`: it is still prepared, and the call may
    /// be repeated; `Poisoned`, `Closed`.
    pub fn commit_prepared(&self, xid: &[u8], durability: Durability) -> Result<()> {
        let end = self.commit_prepared_in_order(xid, None)?;
        self.wait_durable(end, durability)
    }

    /// All of it but the wait for the disk, if it is the transaction `of` where that is given; what to
    /// wait for.
    pub fn commit_prepared_in_order(&self, xid: &[u8], of: Option<u64>) -> Result<Lsn> {
        let _call = self.calls.begin()?;
        let (txn, committed) = prepared::commit(&self.prepared, xid, of)?;
        drop(self.prepared.holds().remove(&txn));
        self.background.committed(&committed, 0, 0);
        Ok(committed.end)
    }

    /// Rolls a prepared transaction back; durable when it returns.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared(&self, xid: &[u8]) -> Result<()> {
        self.roll_back_prepared_of(xid, None)
    }

    /// The same, if it is the transaction `of` where that is given.
    pub fn roll_back_prepared_of(&self, xid: &[u8], of: Option<u64>) -> Result<()> {
        let _call = self.calls.begin()?;
        let txn = prepared::roll_back(&self.prepared, xid, of)?;
        drop(self.prepared.holds().remove(&txn));
        self.background.touched();
        Ok(())
    }
}

/// Locks what the prepared transactions that recovery found have written (rule 19). Nobody else has
/// locks yet, and theirs did not conflict, so there is nothing to wait for; should two have written
/// the same key, one of them has the lock, for a database that does not open helps nobody.
pub fn lock_again(env: &Transactions) -> Result<()> {
    for xid in prepared::list(&env.prepared) {
        let txn = prepared::number(&env.prepared, &xid)?;
        let mut locker = env.locks.locker(txn);
        let entry = env.registry.entry();
        entry.begin(txn, env.reads.now(), None);
        prepared::for_each_write(&env.prepared, &xid, &mut |tree, written| {
            entry.add_message();
            let locks = &tree.locks;
            let (mode, wait) = (LockMode::Exclusive, LockWait::NoWait);
            let locked = match written {
                Written::Key(key) => locker.lock_row(locks, key, mode, wait),
                Written::Range(lo, hi) => locker.lock_range(locks, lo, hi, mode, wait),
            };
            match locked {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    tracing::error!(%error, "two prepared transactions have written the same key");
                    Ok(())
                }
                locked => locked.map(drop),
            }
        })?;
        entry.set_locks(locker.lock_count());
        env.prepared.holds().insert(txn, PreparedHold { _locker: locker, entry });
    }
    Ok(())
}
