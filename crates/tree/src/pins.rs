//! The versions that cursors pin, and how other threads unpin them.
//!
//! A cursor between two moves must not keep memtables, blocks and the extents of dropped runs (rule
//! 12): its snapshot and its key are enough to continue from the newest version. So the cursor's
//! version and sources are not in the cursor itself but in [`Pins`], which other threads can reach:
//!
//! ```text
//!   Cursor -- merge -- chunks (the entry that the cursor shows, and the entries that follow)
//!      |         +---- PinnedSource --+ next_chunk, under the lock
//!      +-- Pins: Mutex { version, sources } <-- a flush removes both between two moves
//! ```
//!
//! A read takes the lock once per chunk, not once per entry. A source that was unpinned returns an
//! error and leaves the chunk as it is; the cursor then seeks to the position after the last key
//! that it read.
//!
//! # Very many cursors
//! A cursor between two moves keeps its chunks, which are charged to the budget. The open cursors
//! put the memory under *pressure* while the budget is less than `PRESSURE_BYTES` for each of them.
//! Under pressure, the chunks of new walks (a walk is the merge over one leaf) are small and own
//! their values, and only as many walks keep their sources as the budget has room for: when another
//! walk begins, the oldest walk between two moves loses its sources. The pressure is *high* while
//! the budget is less than `HIGH_PRESSURE_BYTES` for each cursor. Under high pressure, a cursor
//! copies the entry that it moves to and ends its walk, so every move is a seek.
//!
//! # Invariants
//! - The entry that a cursor shows is in the cursor's own chunks, so it stays valid when the cursor
//!   is unpinned.
//! - A cursor is not unpinned during a move (`moving`), so every move completes.
//! - The cursors of a dropped tree keep their versions. Cursors without a version get the tree's
//!   last version before an empty version replaces it ([`Cursors::pin_last`]).
//! - No version is dropped under a lock of this module: dropping the last reference to a version
//!   frees memory and extents.
//!
//! # Threads and locks
//! Any thread may call any function. A thread that holds the lock of a shard takes no other lock; a
//! thread that holds the lock of a `Pins` may take the lock of [`TreeCore::version`].

mod cursors;
mod source;

use std::time::Duration;

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result, Source};

use crate::tree::TreeCore;
use crate::version::Version;

pub use cursors::Cursors;
pub(crate) use source::PinnedSource;

/// Age at which a version is old: a cursor replaces it at its next leaf, and the next install of
/// the tree, or idle maintenance, unpins the version of a cursor between two moves.
const VERSION_AGE_MAX: Duration = Duration::from_secs(1);

/// The version and sources that one cursor pins.
pub struct Pins {
    pub tree: Arc<TreeCore>,
    /// The list that the cursor is in, and its index there. The index changes under the list's
    /// lock.
    shard: usize,
    index: AtomicUsize,
    /// Whether the tree was dropped before the cursor was listed.
    listed_after_drop: bool,
    /// Whether the cursor is opening sources or making the first step with them. Set under the
    /// lock.
    moving: AtomicBool,
    /// Whether the pressure was high when the current walk began.
    is_pressure_high: AtomicBool,
    /// Whether the cursor must take a newer version at its next move or chunk.
    stale: AtomicBool,
    /// Number of the current walk.
    walk: AtomicU64,
    budget: Arc<Budget>,
    pinned: Mutex<Pinned>,
}

#[derive(Default)]
struct Pinned {
    version: Option<Arc<Version>>,
    /// When the cursor took the version.
    since: Nanos,
    /// The sources of the cursor's walk; empty without a version.
    sources: Vec<Box<dyn Source>>,
    /// Bytes of the chunk of each source. The cursor keeps the chunks when the sources are
    /// unpinned.
    chunk_bytes: Vec<u64>,
    charge: Option<Reservation>,
    /// Chunks of up to this many bytes in total are not charged. 0 under pressure; otherwise there
    /// are so few cursors that small chunks do not matter.
    slack: u64,
}

/// Parts removed from [`Pinned`], to be dropped without its lock.
#[derive(Default)]
#[must_use = "to be dropped when no lock is held"]
struct Unpinned {
    _version: Option<Arc<Version>>,
    _sources: Vec<Box<dyn Source>>,
}

impl Pins {
    /// Begins a move to a leaf: drops the sources of the last walk and returns the version to read.
    /// This is the newest version if the cursor has none, an old one, or was asked to renew it. No
    /// thread unpins the cursor before [`end_move`](Self::end_move).
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped before the cursor was listed ([`Cursors::add`]).
    pub fn begin_move(&self, now: Nanos) -> Result<Arc<Version>> {
        let mut unpinned = Unpinned::default();
        let mut pinned = self.pinned.lock();
        self.moving.store(true, Ordering::Relaxed);
        unpinned._sources = std::mem::take(&mut pinned.sources);
        let is_old = now.since(pinned.since) >= VERSION_AGE_MAX;
        if pinned.version.is_none() || is_old || self.stale.load(Ordering::Relaxed) {
            let newest = self.tree.version();
            // The newest version of a dropped tree is empty, so the cursor must not take it; its
            // own version stays readable. The check comes after the version was read, because the
            // drop may come in between. A cursor that was listed before the drop and has no version
            // may take the newest one in any case: `Cursors::pin_last` visits all listed cursors
            // before the drop publishes an empty version, and it waits for the lock that is held
            // here.
            let is_before_drop = pinned.version.is_none() && !self.listed_after_drop;
            if is_before_drop || !self.tree.is_dropped() {
                self.stale.store(false, Ordering::Relaxed);
                pinned.since = now;
                unpinned._version = pinned.version.replace(newest);
            }
        }
        let version = pinned.version.clone();
        drop(pinned);
        drop(unpinned);
        version.ok_or_else(|| {
            let message = format!("tree {:?} was dropped", &*self.tree.name.read());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Returns whether the pressure was high when the walk began. If so, the cursor ends the walk
    /// after the move.
    pub fn is_pressure_high(&self) -> bool {
        self.is_pressure_high.load(Ordering::Relaxed)
    }

    /// Ends a move: from now on other threads may unpin the cursor.
    #[inline]
    pub fn end_move(&self) {
        self.moving.store(false, Ordering::Release);
    }

    /// Drops the sources of the walk and its charge. For a cursor that does not immediately open
    /// another walk.
    pub fn end_walk(&self) {
        let mut pinned = self.pinned.lock();
        let sources = std::mem::take(&mut pinned.sources);
        pinned.chunk_bytes.clear();
        pinned.recharge(&self.budget);
        drop(pinned);
        drop(sources);
    }

    /// Makes the next move take the newest version.
    pub fn renew(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// Returns whether the sources of the walk were unpinned. REQUIRES: the walk was opened with
    /// sources.
    pub fn is_unpinned(&self) -> bool {
        self.pinned.lock().sources.is_empty()
    }

    /// Unpins a cursor between two moves if its version is old or keeps a flushed memtable. During
    /// a move, only marks the cursor, which then takes a newer version as soon as it can.
    fn unpin_old(&self, newest: &Arc<Version>, now: Nanos) {
        let Some(mut pinned) = self.pinned.try_lock() else {
            self.stale.store(true, Ordering::Relaxed);
            return;
        };
        let Some(version) = &pinned.version else { return };
        let is_old = now.since(pinned.since) >= VERSION_AGE_MAX;
        if Arc::ptr_eq(version, newest) || !(is_old || has_flushed(version, newest)) {
            return;
        }
        if self.moving.load(Ordering::Acquire) {
            self.stale.store(true, Ordering::Relaxed);
            return;
        }
        let unpinned = self.unpin(&mut pinned);
        drop(pinned);
        drop(unpinned);
    }

    /// Unpins the cursor if `walk` is still its current walk and it is between two moves.
    fn unpin_walk(&self, walk: u64) {
        let Some(mut pinned) = self.pinned.try_lock() else { return };
        if self.walk.load(Ordering::Relaxed) != walk || self.moving.load(Ordering::Acquire) {
            return;
        }
        let unpinned = self.unpin(&mut pinned);
        drop(pinned);
        drop(unpinned);
    }

    /// Removes version and sources, unless the tree is dropped. The check is made under the lock:
    /// the thread that drops the tree first marks the tree as dropped, and then takes this lock to
    /// give the last version to a cursor without one ([`Cursors::pin_last`]).
    fn unpin(&self, pinned: &mut Pinned) -> Unpinned {
        if self.tree.is_dropped() {
            return Unpinned::default();
        }
        Unpinned { _version: pinned.version.take(), _sources: std::mem::take(&mut pinned.sources) }
    }

    /// Pins `last`, the last version of a tree that is being dropped, if the cursor has no version.
    fn pin_last(&self, last: &Arc<Version>, now: Nanos) {
        let mut pinned = self.pinned.lock();
        if pinned.version.is_none() {
            pinned.version = Some(Arc::clone(last));
            pinned.since = now;
        }
    }
}

/// Returns whether a source was flushed after `version` was the newest: `version` then keeps a
/// flushed memtable, or runs from before the flush.
fn has_flushed(version: &Version, newest: &Version) -> bool {
    version.flushes != newest.flushes
}

impl Pinned {
    /// Replaces the charge by the current bytes of the chunks.
    fn recharge(&mut self, budget: &Arc<Budget>) {
        let bytes: u64 = self.chunk_bytes.iter().sum();
        let bytes = if bytes > self.slack { bytes } else { 0 };
        match &mut self.charge {
            Some(charge) if charge.bytes() != bytes => charge.resize(bytes),
            None if bytes > 0 => self.charge = Some(budget.reserve(Part::Work, bytes)),
            _ => {}
        }
    }
}
