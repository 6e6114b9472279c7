//! [`Version`]: what a reader of a tree needs, as one immutable value.

use frondb_core::sync::Arc;
use frondb_memtable::Memtable;
use frondb_space::Hold;
use frondb_trunk::Trunk;

use crate::source::MemSource;

/// All sources of a tree at one moment. Immutable but for the active memtable's growth.
pub struct Version {
    /// Takes the messages of commits.
    pub active: Arc<MemSource>,
    /// Newest first.
    pub frozen: Vec<Arc<MemSource>>,
    /// The runs, by nodes.
    pub trunk: Trunk,
    /// Keeps the large values that a reader of this version may find references to.
    pub hold: Arc<Hold>,
}

impl Version {
    /// The memtables, newest first. For what runs cannot matter to; all else goes over `slots`.
    pub fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen).map(|slot| &slot.memtable)
    }

    /// The sources above the trunk, newest first.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<MemSource>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }
}
