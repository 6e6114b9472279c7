//! What a coordinator of transactions asks an engine: which are prepared, commit this one, roll that one
//! back. Sits above [`crate::prepared`]; thread-safe.

use frondb_core::Result;
use frondb_core::sync::atomic::Ordering;

use crate::commit::make_durable;
use crate::engine::Engine;
use crate::options::Durability;
use crate::prepared;

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
        let _call = self.begin_call()?;
        let shared = &self.shared;
        let committed = prepared::commit(&shared.env, &shared.committer, xid)?;
        shared.env.last_commit.store(shared.env.now().0, Ordering::Relaxed);
        shared.touched();
        shared.flush_attached(&committed.attached);
        shared.freeze_if_full(&committed.trees);
        make_durable(&shared.env, committed.end, durability)
    }

    /// Rolls a prepared transaction back; durable when it returns.
    ///
    /// # Errors
    /// As [`commit_prepared`](Self::commit_prepared).
    pub fn roll_back_prepared(&self, xid: &[u8]) -> Result<()> {
        let _call = self.begin_call()?;
        prepared::roll_back(&self.shared.env, &self.shared.committer, xid)?;
        self.shared.touched();
        Ok(())
    }
}
