//! Takes a snapshot after waiting for all writers of some trees, for the start of an index build
//! (rule 23).

use std::time::Duration;

use frondb_core::{ErrorKind, Result};
use frondb_locks::{LockMode, LockWait, Locker};
use frondb_tree::{AsTree, Snapshot};

use crate::context::Transactions;
use crate::prepared;

impl Transactions {
    /// Waits until all transactions that have written to `trees`, prepared ones included, have
    /// ended. Then takes a snapshot, which sees their committed writes; other writes to `trees`
    /// wait until the snapshot is taken.
    ///
    /// An index build first creates the index tree, so that later writes go to the index too, and
    /// then makes this call. So every row is in the snapshot, or its writer adds it to the index.
    ///
    /// # Errors
    /// `Busy` if, at the timeout, a prepared transaction that has written to one of the trees is
    /// undecided. A coordinator may never decide it, so a caller can check for such a transaction
    /// first, with a timeout of zero. `LockTimeout`; `Deadlock` if there still is a deadlock at the
    /// timeout; `Invalid` for a tree of another database; `NotFound` if a tree was dropped;
    /// `Closed`.
    pub fn snapshot_behind_writers(
        &self,
        trees: &[impl AsTree],
        timeout: Duration,
    ) -> Result<Snapshot> {
        let txns = self;
        txns.health.check_open()?;
        let id = txns.ids.next_txn();
        let mut locker = txns.locks.locker(id);
        let (begun, mut left) = (txns.reads.now(), timeout);
        while let Err(error) = keep_writers_out(txns, &mut locker, trees, left) {
            if error.kind() != ErrorKind::Deadlock || left.is_zero() {
                return Err(error);
            }
            // A writer needs a row that this call has locked. The writer continues once this call
            // releases its locks.
            locker.release_all();
            left = timeout.saturating_sub(txns.reads.now().since(begun));
        }
        self.snapshot()
    }
}

fn keep_writers_out(
    txns: &Transactions,
    locker: &mut Locker,
    trees: &[impl AsTree],
    timeout: Duration,
) -> Result<()> {
    let begun = txns.reads.now();
    for tree in trees {
        let tree = tree.core();
        tree.check(txns.reads.engine)?;
        let left = timeout.saturating_sub(txns.reads.now().since(begun));
        let wait = LockWait::Upto(left);
        let locked = locker.lock_range(tree.locks(), b"", None, LockMode::Shared, wait);
        // The lock request also waits for prepared transactions, which keep their locks until they
        // are decided: with a binary log, every transaction is prepared for a moment. If an
        // undecided one is left after the wait, report `Busy`. After a deadlock, the caller tries
        // again.
        if locked.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Deadlock) {
            prepared::check_no_writer(&txns.prepared, tree)?;
        }
        locked.map_err(|error| error.context(format_args!("tree {:?}", tree.name())))?;
    }
    Ok(())
}
