//! What a transaction is begun with.

use std::time::Duration;

use frondb_core::{Error, Result};

use frondb_commit::Durability;

/// What a transaction sees of others. See docs/design/transactions.md for what may happen at
/// which level.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As [`ReadCommitted`](Self::ReadCommitted): uncommitted data is never shown (rule 22).
    ReadUncommitted,
    /// Each statement sees what was committed when it began. Locking reads lock rows only.
    ReadCommitted,
    /// All plain reads see the state of the first one; locking reads and writes see the newest,
    /// and locking cursors lock the gaps they pass.
    #[default]
    RepeatableRead,
    /// All reads lock what they read.
    Serializable,
}

impl Isolation {
    /// Whether plain reads see the newest committed state.
    pub fn reads_newest(self) -> bool {
        matches!(self, Self::ReadUncommitted | Self::ReadCommitted)
    }

    /// Whether locking cursors lock gaps.
    pub fn locks_gaps(self) -> bool {
        matches!(self, Self::RepeatableRead | Self::Serializable)
    }
}

/// What to do where a lock is held by another transaction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wait {
    /// Wait, up to [`TransactionOptions::lock_timeout`].
    #[default]
    Timeout,
    /// Fail at once with `Busy`.
    NoWait,
    /// Cursors pass over such rows, and lock no gaps; a single get fails with `Busy`.
    SkipLocked,
}

/// How long a lock is waited for unless the options say otherwise.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// What a transaction is begun with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionOptions {
    /// What it sees of others. Default [`Isolation::RepeatableRead`].
    pub isolation: Isolation,
    /// A write to, or a lock of, a row that was changed since the snapshot fails with `Conflict`, and
    /// locking reads see the snapshot. For repeatable read only: no transaction begins with it at another
    /// level. Default false.
    pub snapshot_isolation: bool,
    /// How long each lock is waited for. Default 10 s.
    pub lock_timeout: Duration,
    /// What the commit waits for. Default [`Durability::Sync`].
    pub durability: Durability,
}

impl TransactionOptions {
    /// Fails for options that do not go together.
    pub fn check(&self) -> Result<()> {
        if self.snapshot_isolation && self.isolation != Isolation::RepeatableRead {
            return Err(Error::invalid(format!(
                "snapshot_isolation goes with the isolation level RepeatableRead, not with {:?}: leave it \
                 out, or begin at RepeatableRead",
                self.isolation
            )));
        }
        Ok(())
    }
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            snapshot_isolation: false,
            lock_timeout: LOCK_TIMEOUT,
            durability: Durability::Sync,
        }
    }
}
