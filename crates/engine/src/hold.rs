//! Large values that no newer version of a tree refers to, kept for the readers of older ones.
//!
//! A reader follows references that it found in *its* version, so the extents of a value may be
//! released when that version and all older ones are gone, whichever runs they held. Versions form
//! a chain of holds: a hold lives as long as a version that uses it or an older hold, and what a
//! change of the trunk orphans is given to the hold of the versions before the change.
//!
//! ```text
//!   versions   v1   v2   v3 | v4   v5 | v6        |: an install orphaned values
//!   holds      h1 ----------> h2 -----> h3        h1 keeps h2, h2 keeps h3
//! ```
//!
//! Thread-safe. Releasing happens in the thread that lets go last.

use frondb_core::sync::{Arc, Mutex};
use frondb_space::{Extent, Space};

/// A link of the chain.
pub(crate) struct Hold {
    space: Arc<Space>,
    orphans: Mutex<Vec<Extent>>,
    newer: Mutex<Option<Arc<Hold>>>,
}

impl Hold {
    pub(crate) fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            orphans: Mutex::new(Vec::new()),
            newer: Mutex::new(None),
        })
    }

    /// The hold of the versions from now on. REQUIRES: it is asked for once.
    pub(crate) fn succeed(&self) -> Arc<Self> {
        let next = Self::new(&self.space);
        *self.newer.lock() = Some(Arc::clone(&next));
        next
    }

    /// Releases extents when this hold's versions and all older ones are gone. The caller still has
    /// one of them. REQUIRES: a durable edit says that nothing refers to them.
    pub(crate) fn add(&self, extents: impl IntoIterator<Item = Extent>) {
        self.orphans.lock().extend(extents);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for extent in std::mem::take(&mut *self.orphans.lock()) {
            self.space.release(extent);
        }
        // Link by link: a chain that a cursor kept for hours is too long for recursion.
        let mut newer = self.newer.lock().take();
        while let Some(mut hold) = newer.and_then(Arc::into_inner) {
            newer = hold.newer.get_mut().take();
        }
    }
}
