//! A snapshot behind all writers: what an index build begins with (rule 23).

use std::time::Duration;

use frondb_core::Result;
use frondb_core::sync::atomic::Ordering;
use frondb_locks::{LockMode, LockWait};

use crate::engine::Engine;
use crate::prepared;
use crate::read::Snapshot;
use crate::tree::Tree;

impl Engine {
    /// A snapshot that sees all that transactions have written to `trees` before this call: it waits
    /// until they have ended, and keeps others from writing there for the moment it takes.
    ///
    /// Who builds an index creates its tree first, so that whoever writes from now on writes to it
    /// too, and calls this then: no row is in neither.
    ///
    /// # Errors
    /// `Busy` if a prepared transaction has written to one of them: it may wait for its coordinator for
    /// ever; `LockTimeout`; `Deadlock`; `Invalid` for a tree of another database; `NotFound` if one
    /// was dropped; `Closed`.
    pub fn snapshot_behind_writers(&self, trees: &[Tree], timeout: Duration) -> Result<Snapshot> {
        let env = &self.shared().env;
        env.check_open()?;
        let id = env.txn_ids.fetch_add(1, Ordering::Relaxed) + 1;
        let mut locker = env.locks.locker(id);
        for tree in trees {
            env.check_tree(tree)?;
            prepared::check_no_writer(env, &tree.0)?;
            let wait = LockWait::Upto(timeout);
            let locked = locker.lock_range(&tree.0.locks, b"", None, LockMode::Shared, wait);
            locked.map_err(|error| error.context(format_args!("tree {:?}", tree.name())))?;
        }
        self.snapshot()
    }
}
