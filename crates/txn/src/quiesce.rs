//! A snapshot that waits for all writers of some trees: the start of an index build (rule 23).

use std::time::Duration;

use frondb_core::{ErrorKind, Result};
use frondb_locks::{LockMode, LockWait, Locker};
use frondb_tree::{AsTree, Snapshot};

use crate::context::Transactions;
use crate::prepared;

impl Transactions {
    /// Takes a snapshot that sees everything that transactions wrote to `trees` before this call.
    /// The call waits until those transactions, prepared ones included, have ended; it blocks other
    /// writes to `trees` while it takes the snapshot.
    ///
    /// An index build creates the index tree first, so that later writes go to the index too, and
    /// then makes this call: every row is in the snapshot or is written to the index.
    ///
    /// # Errors
    /// `Busy` if a prepared transaction that has written to one of the trees is left at the
    /// timeout: its coordinator may never decide it, so callers use a timeout of zero to check
    /// for one; `LockTimeout`; `Deadlock` if a deadlock is left at the timeout; `Invalid` for a
    /// tree of another database; `NotFound` if a tree was dropped; `Closed`.
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
            // A writer that holds locks needs one more row. It proceeds once these locks are
            // released.
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
    for tree in trees {
        let tree = tree.core();
        tree.check(txns.reads.engine)?;
        let wait = LockWait::Upto(timeout);
        let locked = locker.lock_range(tree.locks(), b"", None, LockMode::Shared, wait);
        // Wait for prepared transactions too: they keep their locks until they are decided, and
        // with a binary log every transaction is prepared for a moment. On a deadlock the caller
        // retries.
        if locked.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Deadlock) {
            prepared::check_no_writer(&txns.prepared, tree)?;
        }
        locked.map_err(|error| error.context(format_args!("tree {:?}", tree.name())))?;
    }
    Ok(())
}
