//! [`Hold`]: extents to which the newest version no longer refers, kept for the readers of older
//! versions. Used for the large values of a tree, and for a transaction's own writes.
//!
//! A reader follows references that it found in *its* version. An orphaned extent may therefore be
//! released when the last version that refers to it and all older versions have been dropped. The
//! holds form a chain: a hold lives as long as any of its versions or an older hold. Extents that a
//! change orphans are added to the hold of the versions before the change.
//!
//! ```text
//!   versions   v1   v2   v3 | v4   v5 | v6        |: a new version orphaned values
//!   holds      h1 ----------> h2 -----> h3        h1 keeps h2, h2 keeps h3
//! ```
//!
//! Thread-safe. The thread that drops the last reference releases the extents.

use frondb_core::sync::{Arc, Mutex};

use crate::extent::Extent;
use crate::space::Space;

/// A link of the chain. Dropping it releases its extents.
pub struct Hold {
    space: Arc<Space>,
    orphans: Mutex<Vec<Extent>>,
    newer: Mutex<Option<Arc<Hold>>>,
}

impl Hold {
    /// Creates the first hold of a chain.
    #[must_use]
    pub fn new(space: &Arc<Space>) -> Arc<Self> {
        Arc::new(Self {
            space: Arc::clone(space),
            orphans: Mutex::new(Vec::new()),
            newer: Mutex::new(None),
        })
    }

    /// Creates the hold of all later versions. REQUIRES: called at most once.
    #[must_use]
    pub fn successor(&self) -> Arc<Self> {
        let next = Self::new(&self.space);
        *self.newer.lock() = Some(Arc::clone(&next));
        next
    }

    /// Returns whether `hold` is the only reference, and the hold keeps no extents and has no
    /// successor: a new chain may replace it.
    #[must_use]
    pub fn is_unused(hold: &Arc<Self>) -> bool {
        Arc::strong_count(hold) == 1
            && hold.orphans.lock().is_empty()
            && hold.newer.lock().is_none()
    }

    /// Keeps extents until this hold's versions and all older ones have been dropped, then releases
    /// them. REQUIRES: the caller holds a reference to one of these versions; no durable data
    /// refers to the extents, or a durable edit has removed the reference.
    pub fn add(&self, extents: impl IntoIterator<Item = Extent>) {
        self.orphans.lock().extend(extents);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        for extent in std::mem::take(&mut *self.orphans.lock()) {
            self.space.release(extent);
        }
        // Drop link by link: recursion could overflow the stack on a long chain, for example after
        // a cursor was open for hours.
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
