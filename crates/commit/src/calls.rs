//! [`Calls`]: makes the closing of a database wait for the calls that may write.
//!
//! Another process may open the directory as soon as the database is closed, while this process
//! still has handles. So nothing may write after the lock of the directory is released. A call that
//! may write holds a [`CallGuard`]. Closing waits for the calls under way; the workers still run
//! then, because the calls may wait for them. Later calls find the database closed.

use frondb_core::Result;
use frondb_core::sync::{Arc, RwLock, RwLockReadGuard};
use frondb_tree::Health;

/// The calls under way that may write. Any thread may use this object. REQUIRES: a thread that
/// holds a [`CallGuard`] begins no other call.
pub struct Calls {
    under_way: RwLock<()>,
    health: Arc<Health>,
}

/// Held by a call that may write.
pub struct CallGuard<'a> {
    _call: RwLockReadGuard<'a, ()>,
}

impl Calls {
    /// Creates the object for a database whose health is `health`.
    #[must_use]
    pub fn new(health: Arc<Health>) -> Arc<Self> {
        Arc::new(Self { under_way: RwLock::new(()), health })
    }

    /// Begins a call that may write.
    ///
    /// # Errors
    /// `Closed`, `Poisoned`; `Invalid` if the database was opened read-only.
    pub fn begin(&self) -> Result<CallGuard<'_>> {
        let call = self.begin_unchecked();
        self.health.check()?;
        self.health.check_writable()?;
        Ok(call)
    }

    /// Begins a call without the checks of [`begin`](Self::begin), which the caller must make.
    pub fn begin_unchecked(&self) -> CallGuard<'_> {
        CallGuard { _call: self.under_way.read() }
    }

    /// Waits until no call is under way. REQUIRES: the database is marked as closed.
    pub fn wait(&self) {
        drop(self.under_way.write());
    }
}
