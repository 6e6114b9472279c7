//! Options for beginning a transaction and its cursors. `cargo xtask pages` makes a page of this
//! file.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::tuple::prefix_end;
use frondb_locks::LockMode;
use frondb_txn::{Isolation, ReadLock, Wait};

use crate::key_range::{KeyRange, bounds_of};

/// Options of a transaction. The defaults: repeatable read, lock waits of up to 10 s, and a commit
/// that waits for the disk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    pub(crate) inner: frondb_txn::TransactionOptions,
    /// `None` for the default of the handle.
    durability: Option<Durability>,
}

impl TransactionOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the transaction sees of other transactions. Default [`Isolation::RepeatableRead`].
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.inner.isolation = isolation;
        self
    }

    /// Whether a write or a locking read of a row that was changed since the transaction's snapshot
    /// fails with `Conflict`. Default false: the write overwrites the change, although the
    /// transaction's plain reads did not see it. Only for repeatable read; at other levels
    /// [`Db::begin`](crate::Db::begin) fails with `Invalid`.
    #[must_use]
    pub fn snapshot_isolation(mut self, on: bool) -> Self {
        self.inner.snapshot_isolation = on;
        self
    }

    /// How long to wait for each lock before the call fails with `LockTimeout`. Default 10 s.
    #[must_use]
    pub fn lock_timeout(mut self, timeout: Duration) -> Self {
        self.inner.lock_timeout = timeout;
        self
    }

    /// What the commit waits for. Default: the durability of the handle that begins the
    /// transaction ([`Db::with_commit_sync`](crate::Db::with_commit_sync)), which is
    /// [`Durability::Sync`] unless set otherwise.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// The engine's options, for a handle of this default durability.
    pub(crate) fn with_default(self, durability: Durability) -> frondb_txn::TransactionOptions {
        let durability = self.durability.unwrap_or(durability);
        frondb_txn::TransactionOptions { durability, ..self.inner }
    }
}

/// The range that a transaction's cursor shows and the locks it takes. Default: the whole tree,
/// with no locks beyond those of the isolation level.
#[derive(Clone, Debug, Default)]
pub struct TransactionCursorOptions {
    pub(super) inner: frondb_txn::TransactionCursorOptions,
}

impl TransactionCursorOptions {
    /// The whole tree; locks only at serializable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only keys in `range`.
    #[must_use]
    pub fn range(mut self, range: impl KeyRange) -> Self {
        (self.inner.lower, self.inner.upper) = bounds_of(&range);
        self
    }

    /// Shows only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        self.inner.lower = Some(prefix.to_vec());
        self.inner.upper = prefix_end(prefix);
        self
    }

    /// Shows the newest data and locks it in exclusive mode.
    #[must_use]
    pub fn for_update(mut self, wait: Wait) -> Self {
        self.inner.lock = Some(ReadLock { mode: LockMode::Exclusive, wait, gaps: true });
        self
    }

    /// Shows the newest data and locks it in shared mode.
    #[must_use]
    pub fn for_share(mut self, wait: Wait) -> Self {
        self.inner.lock = Some(ReadLock { mode: LockMode::Shared, wait, gaps: true });
        self
    }

    /// Locks only the entries that the cursor shows, at every isolation level. Others may insert
    /// between them, so a caller that must prevent that needs a lock of its own. Follows
    /// [`for_update`](Self::for_update) or [`for_share`](Self::for_share).
    #[must_use]
    pub fn without_gaps(mut self) -> Self {
        if let Some(lock) = &mut self.inner.lock {
            lock.gaps = false;
        }
        self
    }
}
