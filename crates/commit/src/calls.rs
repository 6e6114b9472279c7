//! [`Calls`]: keeps a database from being closed under a call that may write.
//!
//! Another process may open the directory as soon as it is closed, while handles of this one are still
//! around. So nothing may write behind the release of the directory's lock: a call that may write holds
//! a [`CallGuard`], and closing waits for those under way, while the workers they may wait for still
//! run. Later ones find the database closed.

use frondb_core::Result;
use frondb_core::sync::{Arc, RwLock, RwLockReadGuard};
use frondb_tree::Health;

/// The calls of an open database that may write. Any thread may use it. Calls do not nest.
pub struct Calls {
    under_way: RwLock<()>,
    health: Arc<Health>,
}

/// Held by a call that may write.
pub struct CallGuard<'a> {
    _call: RwLockReadGuard<'a, ()>,
}

impl Calls {
    /// Of a database with this health.
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

    /// The same for a call that checks by itself what it needs.
    pub fn begin_unchecked(&self) -> CallGuard<'_> {
        CallGuard { _call: self.under_way.read() }
    }

    /// Waits until no call is under way. REQUIRES: the database is closed to calls.
    pub fn wait(&self) {
        drop(self.under_way.write());
    }
}
