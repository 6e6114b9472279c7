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
    /// The empty memtable that is active in every tree without messages since its last flush. The
    /// first commit to a tree replaces it by a memtable of the tree's own.
    pub(crate) empty: Arc<MemSource>,
}

impl MemtableAccount {
    /// An account without memtables.
    #[must_use]
    pub fn new(budget: Arc<Budget>) -> Arc<Self> {
        let (frozen_bytes, pinned_bytes) = (Arc::default(), Arc::default());
        let empty = MemSource::new(&budget);
        empty.memtable.seal();
        Arc::new(Self { budget, frozen_bytes, pinned_bytes, empty })
    }

    /// Bytes of memtables that are not flushed.
    #[must_use]
    pub fn unflushed_bytes(&self) -> u64 {
        let all = self.budget.used_by(Part::Memtable);
        all.saturating_sub(self.pinned_bytes.load(Ordering::Relaxed))
    }

    /// Bytes of active memtables.
    #[must_use]
    pub fn active_bytes(&self) -> u64 {
        self.unflushed_bytes().saturating_sub(self.frozen_bytes.load(Ordering::Relaxed))
    }
}
