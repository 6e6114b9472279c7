//! What cursors pin, where other threads can take it away.
//!
//! A cursor that stands still must not keep memtables, blocks and the extents of dropped runs (rule
//! 12): its snapshot and its key are enough to go on from the newest version. So its version and the
//! sources that read it are not in the cursor but in [`Pins`], which the engine knows too:
//!
//! ```text
//!   Cursor -- merge -- chunks (its own: the entry it shows, and what follows in the chunk)
//!      |         +---- PinnedSource --+ next_chunk, under the lock
//!      +-- Pins: Mutex { version, sources } <-- a flush: takes both from a cursor between two moves
//! ```
//!
//! The lock is taken once for a chunk, not for an entry. A source that was taken away answers with an
//! error and leaves the chunk as it is; the cursor then seeks on from the last key that it read.
//!
//! # Very many cursors
//! Chunks are what a cursor that stands still keeps, and are charged. While there are more cursors than
//! the memory has [`CROWD_BYTES`], the chunks of new walks are small and have their own values, and only so many walks
//! keep their sources: the oldest one that stands still loses them when another begins. In a dense crowd, of
//! one cursor for each 256 KiB, a cursor copies the entry it comes to and seeks at each move.
//!
//! Invariants
//! - What a cursor shows lies in its own chunks: nothing that it lent is taken away.
//! - A cursor that seeks or comes to a leaf (`moving`) is left alone, so each of its moves ends.
//! - The cursors of a tree that is dropped keep their versions, and those without one get the last one
//!   before it goes ([`Cursors::keep`]).
//! - Nothing is dropped under a lock of this file: the last holder of a version frees memory and extents.
//!
//! Threads: everything may be called from any thread. Locks: a shard, then nothing; a `Pins`, then
//! [`TreeCore::version`].

use std::collections::VecDeque;
use std::time::Duration;

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Chunk, Error, ErrorKind, Result, Source};

use crate::tree::TreeCore;
use crate::version::Version;

/// Age at which a cursor takes a newer version at its next leaf, and from which any install takes away
/// the version of one that stands still.
pub(super) const VERSION_AGE_MAX: Duration = Duration::from_secs(1);

/// Lists of cursors: so many that threads which open and close cursors seldom meet.
const SHARDS: usize = 16;

/// What the blocks, the windows and the full chunks of one walk take, about: the memory has room for so many
/// of them, and what is more is a crowd.
const CROWD_BYTES: u64 = 2 << 20;

/// What each of a crowd may keep when it stands still, with messages of ordinary size.
const SMALL_BYTES: u64 = 4 << 10;

/// What the small chunks of one walk with many sources take: where there is less for each cursor, the crowd is
/// dense.
const DENSE_BYTES: u64 = 256 << 10;

/// Messages of a chunk in a crowd, at most.
const SMALL_MESSAGES_MAX: u64 = 16;

/// See [`Held::slack`].
const SLACK_BYTES: u64 = 32 << 10;

/// What one cursor pins.
pub struct Pins {
    pub tree: Arc<TreeCore>,
    /// Its list, and its place there. The place is changed under the list's lock.
    shard: usize,
    place: AtomicUsize,
    /// The tree was dropped before the cursor was in the list.
    is_late: bool,
    /// The cursor opens sources, or makes the first step with them. Set under the lock.
    moving: AtomicBool,
    /// The crowd is dense; of the walk it is at.
    is_dense: AtomicBool,
    /// The version is to be replaced as soon as the cursor can.
    stale: AtomicBool,
    /// Counts its walks, to tell them apart.
    walk: AtomicU64,
    budget: Arc<Budget>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    version: Option<Arc<Version>>,
    since: Nanos,
    /// What the cursor's walk reads; empty without a version.
    sources: Vec<Box<dyn Source>>,
    /// Bytes of the chunk of each source. They stay when the sources go.
    chunk_bytes: Vec<u64>,
    charge: Option<Reservation>,
    /// Bytes that are not worth charging: few have them but in a crowd.
    slack: u64,
}

/// What was taken out of [`Held`], to be dropped without its lock.
#[derive(Default)]
#[must_use = "to be dropped when no lock is held"]
struct Gone {
    _version: Option<Arc<Version>>,
    _sources: Vec<Box<dyn Source>>,
}

impl Pins {
    /// Begins a move: lets go of the sources of the last one and returns the version to read, the newest
    /// one if the cursor has none or an old one. Until [`rest`](Self::rest) nothing is taken away.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped before the cursor had a version.
    pub fn begin(&self, now: Nanos) -> Result<Arc<Version>> {
        let mut gone = Gone::default();
        let mut held = self.held.lock();
        self.moving.store(true, Ordering::Relaxed);
        gone._sources = std::mem::take(&mut held.sources);
        let is_old = now.since(held.since) >= VERSION_AGE_MAX;
        if held.version.is_none() || is_old || self.stale.load(Ordering::Relaxed) {
            let newest = self.tree.version();
            // A dropped tree's newest version is empty; what the cursor holds stays readable. Asked
            // after the version was taken, for the drop may come in between. But while a cursor that was
            // there before the drop has none, `Cursors::keep` has still to come by, and the version is
            // what it was: the lock is held.
            let is_whole = held.version.is_none() && !self.is_late;
            if is_whole || !self.tree.is_dropped() {
                self.stale.store(false, Ordering::Relaxed);
                held.since = now;
                gone._version = held.version.replace(newest);
            }
        }
        let version = held.version.clone();
        drop(held);
        drop(gone);
        version.ok_or_else(|| {
            let message = format!("tree {:?} was dropped", &*self.tree.name.read());
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// Takes over the sources of a walk; what reads them instead of the walk, in their order.
    pub fn hold(
        self: &Arc<Self>,
        cursors: &Cursors,
        mut sources: Vec<Box<dyn Source>>,
    ) -> Vec<PinnedSource> {
        let crowd = cursors.crowd(self.budget.total());
        if let Some(crowd) = &crowd {
            sources.iter_mut().for_each(|source| source.keep_small(crowd.messages));
        }
        let pinned = |at| PinnedSource { pins: Arc::clone(self), at };
        let pinned = (0..sources.len()).map(pinned).collect();
        let mut held = self.held.lock();
        debug_assert!(
            held.sources.is_empty(),
            "the sources of the last walk go when a move begins"
        );
        held.chunk_bytes.clear();
        held.chunk_bytes.resize(sources.len(), 0);
        held.sources = sources;
        let is_dense = crowd.as_ref().is_some_and(|crowd| crowd.is_dense);
        self.is_dense.store(is_dense, Ordering::Relaxed);
        held.slack = if crowd.is_some() { 0 } else { SLACK_BYTES };
        held.recharge(&self.budget);
        drop(held);
        let walk = self.walk.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(crowd) = crowd {
            cursors.enter_crowd(&crowd, Arc::clone(self), walk);
        }
        pinned
    }

    /// Whether the walk was begun in a crowd so dense that it should not outlast its move.
    pub fn is_dense(&self) -> bool {
        self.is_dense.load(Ordering::Relaxed)
    }

    /// The move is over: from now on what the cursor pins may be taken away.
    #[inline]
    pub fn rest(&self) {
        self.moving.store(false, Ordering::Release);
    }

    /// The walk is over, and no other one follows at once.
    pub fn end_walk(&self) {
        let mut held = self.held.lock();
        let sources = std::mem::take(&mut held.sources);
        held.chunk_bytes.clear();
        held.recharge(&self.budget);
        drop(held);
        drop(sources);
    }

    /// Has the next move begin with the newest version.
    pub fn renew(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// Whether the sources of a walk that has some were taken away.
    pub fn is_lost(&self) -> bool {
        self.held.lock().sources.is_empty()
    }

    /// Takes away what a cursor between two moves pins, if it is of an old version; one that is at a
    /// move does it by itself when it can.
    fn take_old(&self, newest: &Arc<Version>, now: Nanos) {
        let Some(mut held) = self.held.try_lock() else {
            self.stale.store(true, Ordering::Relaxed);
            return;
        };
        let Some(version) = &held.version else { return };
        let is_old = now.since(held.since) >= VERSION_AGE_MAX;
        if Arc::ptr_eq(version, newest) || !(is_old || has_flushed(version, newest)) {
            return;
        }
        if self.moving.load(Ordering::Acquire) {
            self.stale.store(true, Ordering::Relaxed);
            return;
        }
        let gone = self.take(&mut held);
        drop(held);
        drop(gone);
    }

    /// Takes away what a walk pins, if the cursor is still at that walk and stands still.
    fn take_walk(&self, walk: u64) {
        let Some(mut held) = self.held.try_lock() else { return };
        if self.walk.load(Ordering::Relaxed) != walk || self.moving.load(Ordering::Acquire) {
            return;
        }
        let gone = self.take(&mut held);
        drop(held);
        drop(gone);
    }

    /// Takes version and sources out, unless the tree is dropped. Asked under the lock: whoever drops the
    /// tree gives the last version to those that have none then ([`Cursors::keep`]), and needs the lock
    /// for it.
    fn take(&self, held: &mut Held) -> Gone {
        if self.tree.is_dropped() {
            return Gone::default();
        }
        Gone { _version: held.version.take(), _sources: std::mem::take(&mut held.sources) }
    }

    /// The tree is about to be dropped, and its newest version to be emptied.
    fn keep(&self, last: &Arc<Version>, now: Nanos) {
        let mut held = self.held.lock();
        if held.version.is_none() {
            held.version = Some(Arc::clone(last));
            held.since = now;
        }
    }
}

/// Whether `version` keeps a memtable that is flushed: they are flushed from the oldest on.
fn has_flushed(version: &Version, newest: &Version) -> bool {
    let oldest = version.frozen.last().unwrap_or(&version.active);
    !newest.sources().any(|slot| Arc::ptr_eq(slot, oldest))
}

impl Held {
    /// Charges what the chunks have.
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

/// A source of a walk, as the walk has it.
pub struct PinnedSource {
    pins: Arc<Pins>,
    at: usize,
}

impl Source for PinnedSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let pins = &self.pins;
        let mut held = pins.held.lock();
        if pins.stale.load(Ordering::Relaxed) && !pins.moving.load(Ordering::Relaxed) {
            let gone = pins.take(&mut held);
            if held.version.is_none() {
                drop(held);
                drop(gone);
                return Err(taken_away());
            }
        }
        let Some(source) = held.sources.get_mut(self.at) else { return Err(taken_away()) };
        let found = source.next_chunk(chunk);
        let bytes = chunk.allocated() as u64;
        // Chunks grow to a size that they keep then.
        if let Some(before) = held.chunk_bytes.get_mut(self.at).filter(|before| **before < bytes) {
            *before = bytes;
            held.recharge(&pins.budget);
        }
        found
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let mut held = self.pins.held.lock();
        let Some(source) = held.sources.get_mut(self.at) else { return Err(taken_away()) };
        source.skip(key)
    }
}

/// What the cursor never shows: it asks [`Pins::is_lost`], and goes on.
#[cold]
fn taken_away() -> Error {
    Error::internal("the version of a cursor was taken away")
}

/// The cursors of an engine.
#[derive(Default)]
pub struct Cursors {
    shards: [Mutex<Vec<Arc<Pins>>>; SHARDS],
    next: AtomicUsize,
    count: AtomicUsize,
    /// Walks that were begun in a crowd and may have their sources, the oldest first.
    crowd: Mutex<VecDeque<(Arc<Pins>, u64)>>,
}

/// There are more cursors than the memory has room for as they are.
struct Crowd {
    /// Walks that keep their sources.
    walks: usize,
    /// Messages of a chunk.
    messages: usize,
    is_dense: bool,
}

impl Cursors {
    /// Enters a cursor over a tree, which pins nothing yet.
    pub fn add(&self, tree: Arc<TreeCore>, budget: &Arc<Budget>) -> Arc<Pins> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut list = self.shards[shard].lock();
        // Asked under the list's lock: a drop that comes later finds the cursor in the list.
        let is_late = tree.is_dropped();
        let pins = Arc::new(Pins {
            tree,
            shard,
            place: AtomicUsize::new(list.len()),
            is_late,
            moving: AtomicBool::new(false),
            is_dense: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            walk: AtomicU64::new(0),
            budget: Arc::clone(budget),
            held: Mutex::default(),
        });
        list.push(Arc::clone(&pins));
        pins
    }

    /// Strikes a cursor out.
    pub fn remove(&self, pins: &Arc<Pins>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        // Others may hold `pins` a little longer, as one of a crowd.
        let held = std::mem::take(&mut *pins.held.lock());
        drop(held);
        let mut list = self.shards[pins.shard].lock();
        let place = pins.place.load(Ordering::Relaxed);
        let removed = list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        drop(list);
        debug_assert!(Arc::ptr_eq(&removed, pins));
    }

    fn crowd(&self, memory: u64) -> Option<Crowd> {
        let (count, room) = (self.count.load(Ordering::Relaxed) as u64, memory / CROWD_BYTES);
        let messages = (memory / SMALL_BYTES / count.max(1)).clamp(1, SMALL_MESSAGES_MAX);
        let is_dense = count > memory / DENSE_BYTES;
        (count > room).then_some(Crowd {
            walks: room as usize,
            messages: messages as usize,
            is_dense,
        })
    }

    /// A walk was begun in a crowd: the oldest ones lose their sources.
    fn enter_crowd(&self, crowd: &Crowd, pins: Arc<Pins>, walk: u64) {
        let mut list = self.crowd.lock();
        list.push_back((pins, walk));
        let many = list.len().saturating_sub(crowd.walks);
        let oldest: Vec<_> = list.drain(..many).collect();
        drop(list);
        oldest.iter().for_each(|(pins, walk)| pins.take_walk(*walk));
    }

    /// The cursors over a tree; over all trees if none is named.
    fn of(&self, tree: Option<&TreeCore>) -> Vec<Arc<Pins>> {
        let mut found = Vec::new();
        for list in &self.shards {
            let list = list.lock();
            let wanted = |pins: &&Arc<Pins>| tree.is_none_or(|tree| tree.id == pins.tree.id);
            found.extend(list.iter().filter(wanted).cloned());
        }
        found
    }

    /// Takes their versions from cursors over the tree that stand still: those that keep a flushed
    /// memtable, and those of more than a second that are not the newest. REQUIRES: no lock.
    pub fn let_go(&self, tree: &TreeCore, now: Nanos) {
        let cursors = self.of(Some(tree));
        if cursors.is_empty() {
            return;
        }
        let newest = tree.version();
        cursors.iter().for_each(|pins| pins.take_old(&newest, now));
    }

    /// The same for the cursors over all trees.
    pub fn let_all_go(&self, now: Nanos) {
        self.of(None).iter().for_each(|pins| pins.take_old(&pins.tree.version(), now));
    }

    /// Gives the tree's version to its cursors that have none. REQUIRES: it is marked as dropped, and
    /// its version is still that of before; nothing else publishes one.
    pub fn keep(&self, tree: &TreeCore, now: Nanos) {
        let last = tree.version();
        self.of(Some(tree)).iter().for_each(|pins| pins.keep(&last, now));
    }
}
