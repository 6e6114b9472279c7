//! [`MemtableAccount`]: the memory of all memtables, by state.
//!
//! ```text
//!   all memtables   = active + frozen + pinned       charged to the budget
//!   active          takes messages
//!   frozen          waits for its flush
//!   pinned          flushed, or of a dropped tree, but still held by a reader
//! ```

use frondb_core::budget::{Budget, Part};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

use crate::source::MemSource;

/// The memory of all memtables of a database, in bytes. Any thread may use it.
pub struct MemtableAccount {
    /// The budget that memtables are charged to.
    pub budget: Arc<Budget>,
    /// Bytes of frozen memtables that are not flushed yet.
    pub(crate) frozen_bytes: Arc<AtomicU64>,
    /// Bytes of memtables that only readers still hold. No flush frees them, so writers do not wait
    /// for them.
    pub(crate) pinned_bytes: Arc<AtomicU64>,
    /// An empty memtable, which is the active memtable of every tree that has got no message since
    /// its last freeze. The next commit to such a tree gives it a memtable of its own.
    pub(crate) empty: Arc<MemSource>,
}

impl MemtableAccount {
    /// Creates an account without memtables.
    #[must_use]
    pub fn new(budget: Arc<Budget>) -> Arc<Self> {
        let (frozen_bytes, pinned_bytes) = (Arc::default(), Arc::default());
        let empty = MemSource::new(&budget);
        empty.memtable.seal();
        Arc::new(Self { budget, frozen_bytes, pinned_bytes, empty })
    }

    /// Returns the number of bytes of memtables that are not flushed.
    #[must_use]
    pub fn unflushed_bytes(&self) -> u64 {
        let all = self.budget.used_by(Part::Memtable);
        all.saturating_sub(self.pinned_bytes.load(Ordering::Relaxed))
    }

    /// Returns the number of bytes of active memtables.
    #[must_use]
    pub fn active_bytes(&self) -> u64 {
        self.unflushed_bytes().saturating_sub(self.frozen_bytes.load(Ordering::Relaxed))
    }
}
