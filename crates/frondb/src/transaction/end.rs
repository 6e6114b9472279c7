//! The end of a transaction: commit, prepare and rollback.

use frondb_core::Result;
use frondb_txn::Committing;

use super::Transaction;

impl Transaction {
    /// Commits: all writes take effect atomically. Returns when the commit is as durable as the
    /// transaction's options require. Before the wait for the disk, other transactions see the
    /// writes and can take the locks.
    ///
    /// # Errors
    /// `NoSpace`, `Cancelled`, or `NotFound` if a tree was dropped: nothing has changed, and the
    /// transaction stays active, for another try or a rollback. `Poisoned`, `Io`, `Closed`;
    /// `Invalid` if it has ended.
    pub fn commit(&self) -> Result<()> {
        self.inner.commit()
    }

    /// The first half of a [`commit`](Self::commit): everything except the wait for the disk,
    /// which [`Committing::wait`] does. A caller that makes the first halves of several
    /// transactions one after the other decides their order, and one sync serves all of them.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_in_order(&self) -> Result<Committing> {
        self.inner.commit_in_order()
    }

    /// Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase
    /// commit. From then on it can be committed or rolled back by this handle or by name
    /// ([`Db::commit_prepared`](crate::Db::commit_prepared)), even after a restart. It keeps its
    /// write locks and accepts no more reads or writes. Dropping the handle leaves it prepared. On
    /// return the prepare is as durable as the transaction's options require.
    ///
    /// # Errors
    /// `Exists` if another prepared transaction has this name; `Invalid` for the name, or if the
    /// transaction has ended. Otherwise as [`commit`](Self::commit).
    pub fn prepare(&self, xid: &[u8]) -> Result<()> {
        self.inner.prepare(xid)
    }

    /// The first half of a [`prepare`](Self::prepare): everything except the wait for the disk.
    /// Only after that wait may the caller report to its coordinator that the transaction is
    /// prepared.
    ///
    /// # Errors
    /// As [`prepare`](Self::prepare).
    pub fn prepare_in_order(&self, xid: &[u8]) -> Result<Committing> {
        self.inner.prepare_in_order(xid)
    }

    /// Undoes all writes and releases all locks.
    ///
    /// # Errors
    /// `Invalid` if the transaction was committed or rolled back before; for a prepared
    /// transaction, the errors of [`Db::rollback_prepared`](crate::Db::rollback_prepared).
    pub fn rollback(&self) -> Result<()> {
        self.inner.rollback()
    }

    /// Rolls the transaction back unless another thread is in a call on it or on one of its
    /// cursors. In that case it returns false and nothing has changed. It does not wait for that
    /// call, as dropping the transaction would. A transaction that has ended or is prepared stays
    /// as it is.
    #[must_use = "it may be in use"]
    pub fn try_abandon(&self) -> bool {
        self.inner.try_abandon()
    }
}
