//! [`TransactionOptions`]: isolation, lock waits and durability of a transaction.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::{Error, Result};

/// The isolation level of a transaction. docs/design/transactions.md lists the anomalies that each
/// level allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// As [`ReadCommitted`](Self::ReadCommitted): uncommitted data is never shown (rule 22).
    ReadUncommitted,
    /// Each statement sees the data committed when it began. Locking reads lock rows only.
    ReadCommitted,
    /// All plain reads use the snapshot of the first plain read. Locking reads and writes see the
    /// newest data, and locking cursors lock the gaps that they pass.
    #[default]
    RepeatableRead,
    /// All reads lock the rows, gaps and ranges that they read.
    Serializable,
}

impl Isolation {
    /// Whether plain reads see the newest committed data.
    pub fn reads_newest(self) -> bool {
        matches!(self, Self::ReadUncommitted | Self::ReadCommitted)
    }

    /// Whether locking cursors lock gaps.
    pub fn locks_gaps(self) -> bool {
        matches!(self, Self::RepeatableRead | Self::Serializable)
    }
}

/// What a lock request does if another transaction holds a conflicting lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wait {
    /// Wait, up to `TransactionOptions::lock_timeout`.
    #[default]
    Timeout,
    /// Fail immediately with `Busy`.
    NoWait,
    /// Cursors skip locked rows and lock no gaps. A get of one key fails with `Busy`.
    SkipLocked,
    /// Cursors show a locked row without locking it, as last committed;
    /// `TransactionCursor::is_locked` is then false. At repeatable read and above, cursors wait
    /// instead. A get of one key fails with `Busy`.
    ShowLocked,
}

/// The default timeout of a wait for a lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The options of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionOptions {
    /// The isolation level. Default [`Isolation::RepeatableRead`].
    pub isolation: Isolation,
    /// Snapshot isolation: writing or locking a row that was changed since the snapshot fails with
    /// `Conflict`, and locking reads see the snapshot. Only valid at repeatable read. Default
    /// false.
    pub snapshot_isolation: bool,
    /// The timeout of each wait for a lock. Default 10 s.
    pub lock_timeout: Duration,
    /// The durability that the commit waits for. Default [`Durability::Sync`].
    pub durability: Durability,
}

impl TransactionOptions {
    /// Checks that the options are compatible.
    ///
    /// # Errors
    /// `Invalid`, naming the option to change.
    pub fn check(&self) -> Result<()> {
        if self.snapshot_isolation && self.isolation != Isolation::RepeatableRead {
            return Err(Error::invalid(format!(
                "snapshot_isolation needs the isolation level RepeatableRead, not {:?}: begin at \
                 RepeatableRead, or leave the option out",
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
