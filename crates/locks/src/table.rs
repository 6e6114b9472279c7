//! [`LockTable`]: the locks of one tree, with a mutex of their own, and the tree's batch latch.

use frondb_core::TreeId;
use frondb_core::sync::Arc;

use crate::batch_latch::BatchLatch;
use crate::lazy_state::LazyState;

/// The locks of one tree. [`LockManager::table`](crate::LockManager::table) creates it. All threads
/// share it, and pass it to each request of a locker.
pub struct LockTable {
    pub(crate) tree: TreeId,
    pub(crate) batch_latch: BatchLatch,
    pub(crate) state: LazyState,
}

/// A guard: while it exists, no locker gets its first lock in the table. See
/// [`LockTable::begin_unlocked`].
#[must_use = "others may lock as soon as it is dropped"]
pub struct Unlocked<'a> {
    table: &'a LockTable,
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        self.table.batch_latch.leave_batch();
    }
}

impl std::fmt::Debug for Unlocked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Unlocked(tree {})", self.table.tree)
    }
}

impl LockTable {
    pub(crate) fn new(tree: TreeId) -> Arc<Self> {
        Arc::new(Self { tree, batch_latch: BatchLatch::default(), state: LazyState::default() })
    }

    /// Frees the memory that a table still has from earlier locks, if it has no locks now.
    pub fn free_unused(&self) {
        self.state.free_unused();
    }

    /// Returns the tree whose keys the table locks.
    #[must_use]
    pub fn tree(&self) -> TreeId {
        self.tree
    }

    /// Lets a batch write without locks while no locker uses this tree.
    ///
    /// Returns `Some` if no locker holds or requests a lock here; then none gets its first lock
    /// until the guard is dropped. Drop the guard soon, and do not wait for locks while holding it.
    /// A batch may hold the guards of several trees. Returns `None` if a locker has requested a
    /// lock here and has not yet released all its locks; the batch must then lock the keys that it
    /// writes.
    #[must_use = "None says that the batch must lock"]
    pub fn begin_unlocked(&self) -> Option<Unlocked<'_>> {
        self.batch_latch.try_enter_batch().then(|| Unlocked { table: self })
    }
}

impl std::fmt::Debug for LockTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LockTable(tree {}, {} lockers)", self.tree, self.batch_latch.lockers())
    }
}
