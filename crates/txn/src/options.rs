//! Options of transactions and of their cursors. `cargo xtask pages` makes a page of this file.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::{Error, Result};
use frondb_locks::LockMode;
use frondb_tree::{CursorOptions, KeyRange};

/// The isolation level of a transaction. docs/design/transactions.md lists the anomalies that each
/// level allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Isolation {
    /// The same as [`ReadCommitted`](Self::ReadCommitted): no level shows uncommitted data
    /// (rule 22).
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

/// The effect of a lock request if another transaction holds a conflicting lock.
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

/// Options of a transaction. The defaults: repeatable read, lock waits of up to 10 s, and the
/// durability of the handle that begins the transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionOptions {
    pub(crate) isolation: Isolation,
    pub(crate) snapshot_isolation: bool,
    pub(crate) lock_timeout: Duration,
    /// `None` for the durability of the handle that begins the transaction.
    pub(crate) durability: Option<Durability>,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            snapshot_isolation: false,
            lock_timeout: LOCK_TIMEOUT,
            durability: None,
        }
    }
}

impl TransactionOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the transaction sees of other transactions. Default [`Isolation::RepeatableRead`].
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Whether a write or a locking read of a row that was inserted, changed or deleted since the
    /// transaction's snapshot fails with `Conflict`. Default false: the write overwrites the
    /// change, although the transaction's plain reads did not see it.
    ///
    /// The first plain read takes the snapshot, or `Transaction::take_snapshot`; what the
    /// transaction writes and locks before is never in conflict. A locking cursor fails if it passes such a row. Only for repeatable read; at other levels
    /// `Db::begin` fails with `Invalid`.
    #[must_use]
    pub fn snapshot_isolation(mut self, on: bool) -> Self {
        self.snapshot_isolation = on;
        self
    }

    /// How long to wait for each lock before the call fails with `LockTimeout`. Default 10 s.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// What the commit waits for. Default: the durability of the handle that begins the
    /// transaction (`Db::with_commit_sync`), which is
    /// [`Durability::Sync`] unless set otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Checks that the options are compatible.
    ///
    /// # Errors
    /// `Invalid`, naming the option to change.
    pub(crate) fn check(&self) -> Result<()> {
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

/// The range that a transaction's cursor shows, and the locks that the cursor takes. Default: the
/// whole tree, and only the locks that the isolation level requires.
#[derive(Clone, Debug, Default)]
pub struct TransactionCursorOptions {
    /// The keys that the cursor shows; `shown` has no snapshot.
    pub(crate) shown: CursorOptions,
    /// The locks to take; `None` for a plain read, which locks in shared mode at serializable.
    pub(crate) lock: Option<ReadLock>,
}

impl TransactionCursorOptions {
    /// Returns the default options: the whole tree, and locks only at serializable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only keys in `range`.
    #[must_use]
    pub fn range(mut self, range: impl KeyRange) -> Self {
        self.shown = self.shown.range(range);
        self
    }

    /// Shows only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.shown = self.shown.prefix(prefix);
        self
    }

    /// Shows the newest data and locks it in exclusive mode. Under snapshot isolation, a move of
    /// the cursor fails with `Conflict` if it passes a row that was inserted, changed or deleted
    /// since the snapshot.
    #[must_use]
    pub fn for_update(mut self, wait: Wait) -> Self {
        self.lock = Some(ReadLock { mode: LockMode::Exclusive, wait, gaps: true });
        self
    }

    /// Shows the newest data and locks it in shared mode; otherwise like
    /// [`for_update`](Self::for_update).
    #[must_use]
    pub fn for_share(mut self, wait: Wait) -> Self {
        self.lock = Some(ReadLock { mode: LockMode::Shared, wait, gaps: true });
        self
    }

    /// Locks only the entries that the cursor shows, at every isolation level. Other transactions
    /// may insert between these entries; a caller that must prevent that needs another lock. Call
    /// this method after [`for_update`](Self::for_update) or [`for_share`](Self::for_share), which
    /// would undo it.
    ///
    /// Under snapshot isolation, the cursor does not notice rows that were deleted since the
    /// snapshot.
    #[must_use]
    pub fn without_gaps(mut self) -> Self {
        if let Some(lock) = &mut self.lock {
            lock.gaps = false;
        }
        self
    }
}

/// The locks that a cursor takes on the entries that it shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadLock {
    pub(crate) mode: LockMode,
    /// The action if another transaction holds a conflicting lock.
    pub(crate) wait: Wait,
    /// Whether to lock gaps too, at the isolation levels that lock them.
    pub(crate) gaps: bool,
}
