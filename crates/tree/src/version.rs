//! [`Version`]: all sources of a tree, as one immutable value that a reader takes.

use frondb_core::sync::Arc;
use frondb_memtable::Memtable;
use frondb_space::Hold;
use frondb_trunk::Trunk;

use crate::source::MemSource;

/// All sources of a tree at one moment. Immutable, except that the active memtable grows.
pub struct Version {
    /// The memtable that takes the messages of commits.
    pub active: Arc<MemSource>,
    /// Frozen memtables and attached runs that are not flushed, newest first.
    pub frozen: Vec<Arc<MemSource>>,
    /// The nodes with their runs.
    pub trunk: Trunk,
    /// Keeps the extents of the large values that a reader of this version may find references to.
    pub hold: Arc<Hold>,
    /// Number of sources of the tree that were flushed since the database was opened.
    pub flushes: u64,
}

impl Version {
    /// Returns the memtables, newest first, without the runs of large commits. A caller that must
    /// see all messages takes [`sources`](Self::sources).
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen).map(|source| &source.memtable)
    }

    /// Returns the sources above the trunk, newest first.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<MemSource>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }
}
