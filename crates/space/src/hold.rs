//! [`Hold`]: extents that no newer version of something refers to, kept for the readers of older ones.
//! Of a tree, whose large values they are, and of a transaction's own writes.
//!
//! A reader follows references that it found in *its* version, so the extents of a value may be
//! released when that version and all older ones are gone, whichever runs they held. Versions form
//! a chain of holds: a hold lives as long as a version that uses it or an older hold, and what a
//! change orphans is given to the hold of the versions before the change.
//!
//! ```text
//!   versions   v1   v2   v3 | v4   v5 | v6        |: an install orphaned values
//!   holds      h1 ----------> h2 -----> h3        h1 keeps h2, h2 keeps h3
//! ```
//!
//! Thread-safe. Releasing happens in the thread that lets go last.

use frondb_core::sync::{Arc, Mutex};

use crate::extent::Extent;
use crate::space::Space;

/// A link of the chain. Dropping it releases what it was given.
pub struct Hold {
    space: Arc<Space>,
    orphans: Mutex<Vec<Extent>>,
    newer: Mutex<Option<Arc<Hold>>>,
}

impl Hold {
    /// The first of a chain.
    #[must_use]
    pub fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            orphans: Mutex::new(Vec::new()),
            newer: Mutex::new(None),
        })
    }

    /// The hold of the versions from now on. REQUIRES: it is asked for once.
    #[must_use]
    pub fn succeed(&self) -> Arc<Self> {
        let next = Self::new(&self.space);
        *self.newer.lock() = Some(Arc::clone(&next));
        next
    }

    /// Releases extents when this hold's versions and all older ones are gone. The caller still has
    /// one of them. REQUIRES: nothing that is durable refers to them, or a durable edit says that it does
    /// no longer.
    pub fn add(&self, extents: impl IntoIterator<Item = Extent>) {
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

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({} orphans)", self.orphans.lock().len())
    }
}
