//! Requests row locks for a transaction, and handles failed requests.

use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Result};
use frondb_locks::{Acquired, LockMode, LockWait};
use frondb_tree::TreeCore;

use super::{Core, Phase, TransactionState};
use crate::options::Wait;

impl TransactionState {
    pub(super) fn wait(&self, wait: Wait) -> LockWait {
        match wait {
            Wait::Timeout => LockWait::Upto(self.lock_timeout),
            Wait::NoWait | Wait::SkipLocked | Wait::ShowLocked => LockWait::NoWait,
        }
    }

    /// Releases the lock of a row that the caller has read and does not need.
    pub(super) fn unlock_row(&mut self, tree: &Arc<TreeCore>, key: &[u8]) {
        self.locker.unlock_row(tree.locks(), key);
        self.entry.set_locks(self.locker.lock_count());
    }
}

impl Core {
    pub(super) fn lock_row(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        key: &[u8],
        mode: LockMode,
        wait: Wait,
    ) -> Result<Acquired> {
        let wait = state.wait(wait);
        let locked = state.locker.lock_row(tree.locks(), key, mode, wait);
        self.locked(state, tree, locked)
    }

    /// Handles the result of a lock request of `state`'s locker; every such request ends here. If
    /// the transaction is the victim of a deadlock, rolls it back immediately, so that the other
    /// transactions continue.
    pub(super) fn locked(
        &self,
        state: &mut TransactionState,
        tree: &Arc<TreeCore>,
        locked: Result<Acquired>,
    ) -> Result<Acquired> {
        state.entry.set_locks(state.locker.lock_count());
        // The caller that makes this request may still need the row of the last locking get, so
        // `unlock` must not release that row any more.
        state.last_read_lock.tree = None;
        let error = match locked {
            Ok(acquired) => return Ok(acquired),
            Err(error) => error.context(format_args!("tree {:?}", tree.name())),
        };
        if error.kind() == ErrorKind::Deadlock {
            self.end(state, Phase::Failed(error.clone()));
        }
        Err(error)
    }
}
