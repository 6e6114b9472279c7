//! A snapshot behind all writers: what an index build begins with (rule 23).

use std::time::Duration;

use frondb_core::{ErrorKind, Result};
use frondb_locks::{LockMode, LockWait, Locker};

use crate::context::Transactions;
use crate::prepared;
use frondb_tree::{Snapshot, Tree};

impl Transactions {
    /// A snapshot that sees all that transactions have written to `trees` before this call: it waits
    /// until they have ended, prepared ones too, and keeps others from writing there for the moment it takes.
    ///
    /// Who builds an index creates its tree first, so that whoever writes from now on writes to it
    /// too, and calls this then: no row is in neither.
    ///
    /// # Errors
    /// `Busy` if the time was up and a prepared transaction has written to one of them: its coordinator may never
    /// decide it, so a timeout of zero asks for such; `LockTimeout`; `Deadlock` if there was one when the time was
    /// up; `Invalid` for a tree of another database; `NotFound` if one was dropped; `Closed`.
    pub fn snapshot_behind_writers(&self, trees: &[Tree], timeout: Duration) -> Result<Snapshot> {
        let env = self;
        env.reads.health.check_open()?;
        let id = env.ids.next_txn();
        let mut locker = env.locks.locker(id);
        let (begun, mut left) = (env.reads.now(), timeout);
        while let Err(error) = keep_writers_out(env, &mut locker, trees, left) {
            if error.kind() != ErrorKind::Deadlock || left.is_zero() {
                return Err(error);
            }
            // A writer that is waited for wants one more row. It goes on when this lets go.
            locker.release_all();
            left = timeout.saturating_sub(env.reads.now().since(begun));
        }
        self.snapshot()
    }
}

fn keep_writers_out(
    env: &Transactions,
    locker: &mut Locker,
    trees: &[Tree],
    timeout: Duration,
) -> Result<()> {
    for tree in trees {
        tree.check(env.reads.engine)?;
        let wait = LockWait::Upto(timeout);
        let locked = locker.lock_range(&tree.core().locks, b"", None, LockMode::Shared, wait);
        // A prepared transaction keeps its locks until it is decided, so the wait is for it too: with a binary log
        // every transaction is prepared for a moment. A deadlock is one of others, and there is time left.
        if locked.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Deadlock) {
            prepared::check_no_writer(&env.prepared, tree.core())?;
        }
        locked.map_err(|error| error.context(format_args!("tree {:?}", tree.name())))?;
    }
    Ok(())
}
