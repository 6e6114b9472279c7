//! What a coordinator of transactions asks an engine: which are prepared, commit this one, roll that one
//! back. Sits above [`crate::prepared`]; thread-safe.

use frondb_core::{ErrorKind, Lsn, Result};
use frondb_locks::{LockMode, LockWait};

use crate::engine::Engine;
use crate::env::Env;
use crate::prepared::{self, Written};
use crate::transaction::PreparedHold;
use frondb_commit::Durability;

impl Engine {
    /// Names of the transactions that are prepared, those found at the open included, sorted.
    #[must_use]
    pub fn prepared(&self) -> Vec<Box<[u8]>> {
        prepared::list(&self.shared.env)
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
    pub(crate) fn commit_prepared_in_order(&self, xid: &[u8], of: Option<u64>) -> Result<Lsn> {
        let _call = self.begin_call()?;
        let shared = &self.shared;
        let (txn, committed) = prepared::commit(&shared.env, &shared.env.committer, xid, of)?;
        drop(shared.env.prepared_locks.lock().remove(&txn));
        shared.background.committed(&committed, 0, 0);
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
    pub(crate) fn roll_back_prepared_of(&self, xid: &[u8], of: Option<u64>) -> Result<()> {
        let _call = self.begin_call()?;
        let txn = prepared::roll_back(&self.shared.env, &self.shared.env.committer, xid, of)?;
        drop(self.shared.env.prepared_locks.lock().remove(&txn));
        self.shared.background.touched();
        Ok(())
    }
}

/// Locks what the prepared transactions that recovery found have written (rule 19). Nobody else has
/// locks yet, and theirs did not conflict, so there is nothing to wait for; should two have written
/// the same key, one of them has the lock, for a database that does not open helps nobody.
pub(crate) fn lock_again(env: &Env) -> Result<()> {
    for xid in prepared::list(env) {
        let txn = prepared::number(env, &xid)?;
        let mut locker = env.locks.locker(txn);
        let card = env.roster.card();
        card.begin(txn, env.now(), None);
        prepared::for_each_write(env, &xid, &mut |tree, written| {
            card.add_message();
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
        card.set_locks(locker.lock_count());
        env.prepared_locks.lock().insert(txn, PreparedHold { _locker: locker, card });
    }
    Ok(())
}
