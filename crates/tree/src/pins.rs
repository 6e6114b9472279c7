//! The versions that cursors pin, and how other threads unpin them.
//!
//! A cursor between two moves must not keep memtables, blocks and the extents of dropped runs (rule
//! 12): its snapshot and its key are enough to go on from the newest version. So its version and
//! the sources that read it are not in the cursor but in [`Pins`], which the engine can reach:
//!
//! ```text
//!   Cursor -- merge -- chunks (of the cursor: the entry it shows, and the entries that follow)
//!      |         +---- PinnedSource --+ next_chunk, under the lock
//!      +-- Pins: Mutex { version, sources } <-- a flush removes both between two moves
//! ```
//!
//! A read takes the lock once for a chunk, not once for an entry. A source that was unpinned
//! returns an error and leaves the chunk as it is; the cursor then seeks on from the last key that
//! it read.
//!
//! # Very many cursors
//! A cursor between two moves keeps its chunks, and they are charged to the budget. The cursors put
//! the memory under *pressure* while it has less than [`PRESSURE_BYTES`] for each of them. Under
//! pressure, the chunks of new walks are small and own their values, and only as many walks keep
//! their sources as the memory has room for: when another walk begins, the oldest walk between two
//! moves loses its sources. The pressure is *high* while the memory has less than
//! [`HIGH_PRESSURE_BYTES`] for each cursor. Under high pressure, a cursor copies the entry that it
//! moves to and ends its walk, so every move is a seek.
//!
//! # Invariants
//! - What a cursor shows lies in its own chunks, so unpinning takes nothing from a caller.
//! - A cursor during a move (`moving`) is not unpinned, so each of its moves ends.
//! - The cursors of a dropped tree keep their versions. Those without a version get the last one
//!   before the tree's version becomes empty ([`Cursors::pin_last`]).
//! - No version is dropped under a lock of this file: dropping the last holder of a version frees
//!   memory and extents.
//!
//! # Threads and locks
//! Any thread may call any function. A thread that holds the lock of a shard takes no other lock;
//! one that holds the lock of a `Pins` may take the lock of [`TreeCore::version`].

use std::collections::VecDeque;
use std::time::Duration;

use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Chunk, Error, ErrorKind, Result, Source};

use crate::tree::TreeCore;
use crate::version::Version;

/// Age of a version from which a cursor takes a newer one at its next leaf, and from which any
/// install unpins the version of a cursor between two moves.
const VERSION_AGE_MAX: Duration = Duration::from_secs(1);

/// Number of lists of cursors. Enough that threads which open and close cursors seldom wait for
/// each other.
const SHARDS: usize = 16;

/// About what the blocks, the read windows and the full chunks of one walk take. Where the memory
/// has less for each cursor, it is under pressure.
const PRESSURE_BYTES: u64 = 2 << 20;

/// What each cursor may keep between two moves under pressure, with messages of ordinary size.
const SMALL_BYTES: u64 = 4 << 10;

/// What the small chunks of one walk with many sources take. Where the memory has less for each
/// cursor, the pressure is high.
const HIGH_PRESSURE_BYTES: u64 = 256 << 10;

/// Maximum number of messages of a chunk under pressure.
const SMALL_MESSAGES_MAX: u64 = 16;

/// See [`Pinned::slack`].
const SLACK_BYTES: u64 = 32 << 10;

/// What one cursor pins.
pub struct Pins {
    pub tree: Arc<TreeCore>,
    /// The list that the cursor is in, and its index there. The index changes under the list's
    /// lock.
    shard: usize,
    index: AtomicUsize,
    /// Whether the tree was dropped before the cursor was listed.
    listed_after_drop: bool,
    /// Whether the cursor opens sources or makes the first step with them. Set under the lock.
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
    /// Chunks of up to so many bytes are not charged: without pressure, few cursors have them.
    slack: u64,
}

/// What was removed from [`Pinned`], to be dropped without its lock.
#[derive(Default)]
#[must_use = "to be dropped when no lock is held"]
struct Unpinned {
    _version: Option<Arc<Version>>,
    _sources: Vec<Box<dyn Source>>,
}

impl Pins {
    /// Begins a move to a leaf: drops the sources of the last walk and returns the version to read.
    /// A cursor without a version, or with an old one, gets the newest. Until
    /// [`end_move`](Self::end_move) the cursor is not unpinned.
    ///
    /// # Errors
    /// `NotFound` if the tree was dropped before the cursor had a version.
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
            // before the drop empties the version, and it waits for the lock that is held here.
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

    /// Takes over the sources of a new walk. Returns sources that read them under the lock, in the
    /// same order.
    pub fn pin_sources(
        self: &Arc<Self>,
        cursors: &Cursors,
        mut sources: Vec<Box<dyn Source>>,
    ) -> Vec<PinnedSource> {
        let pressure = cursors.pressure(self.budget.total());
        if let Some(pressure) = &pressure {
            sources.iter_mut().for_each(|source| source.keep_small(pressure.messages));
        }
        let reader = |at| PinnedSource { pins: Arc::clone(self), at };
        let readers = (0..sources.len()).map(reader).collect();
        let mut pinned = self.pinned.lock();
        debug_assert!(
            pinned.sources.is_empty(),
            "the beginning of a move drops the sources of the last walk"
        );
        pinned.chunk_bytes.clear();
        pinned.chunk_bytes.resize(sources.len(), 0);
        pinned.sources = sources;
        let is_pressure_high = pressure.as_ref().is_some_and(|pressure| pressure.is_high);
        self.is_pressure_high.store(is_pressure_high, Ordering::Relaxed);
        pinned.slack = if pressure.is_some() { 0 } else { SLACK_BYTES };
        pinned.recharge(&self.budget);
        drop(pinned);
        let walk = self.walk.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(pressure) = pressure {
            cursors.limit_walks(&pressure, Arc::clone(self), walk);
        }
        readers
    }

    /// Whether the pressure was high when the walk began: the cursor ends the walk with its move.
    pub fn is_pressure_high(&self) -> bool {
        self.is_pressure_high.load(Ordering::Relaxed)
    }

    /// Ends a move: from now on other threads may unpin the cursor.
    #[inline]
    pub fn end_move(&self) {
        self.moving.store(false, Ordering::Release);
    }

    /// Drops the sources of the walk and its charge. For a cursor that opens no other walk at once.
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

    /// Whether the sources of the walk were unpinned. Only for a walk that has sources.
    pub fn is_unpinned(&self) -> bool {
        self.pinned.lock().sources.is_empty()
    }

    /// Unpins a cursor between two moves if its version is old or keeps a flushed memtable. A
    /// cursor during a move is only marked: it takes a newer version as soon as it can.
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

    /// Unpins the cursor if it is still at that walk and between two moves.
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
    /// the thread that drops the tree marks it first and then takes this lock to give the last
    /// version to a cursor without one ([`Cursors::pin_last`]).
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

/// Whether `version` keeps a flushed memtable. Sources are flushed from the oldest on, so it is
/// enough to check the oldest.
fn has_flushed(version: &Version, newest: &Version) -> bool {
    let oldest = version.frozen.last().unwrap_or(&version.active);
    !newest.sources().any(|source| Arc::ptr_eq(source, oldest))
}

impl Pinned {
    /// Charges the bytes of the chunks.
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

/// A source of a walk that reads the real source in [`Pins`], under its lock.
pub struct PinnedSource {
    pins: Arc<Pins>,
    at: usize,
}

impl Source for PinnedSource {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        let pins = &self.pins;
        let mut pinned = pins.pinned.lock();
        if pins.stale.load(Ordering::Relaxed) && !pins.moving.load(Ordering::Relaxed) {
            let unpinned = pins.unpin(&mut pinned);
            if pinned.version.is_none() {
                drop(pinned);
                drop(unpinned);
                return Err(unpinned_error());
            }
        }
        let Some(source) = pinned.sources.get_mut(self.at) else { return Err(unpinned_error()) };
        let found = source.next_chunk(chunk);
        let bytes = chunk.allocated() as u64;
        // A chunk grows to some size and keeps it.
        if let Some(before) = pinned.chunk_bytes.get_mut(self.at).filter(|before| **before < bytes)
        {
            *before = bytes;
            pinned.recharge(&pins.budget);
        }
        found
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        let mut pinned = self.pins.pinned.lock();
        let Some(source) = pinned.sources.get_mut(self.at) else { return Err(unpinned_error()) };
        source.skip(key)
    }
}

/// The error of a source that was unpinned. The cursor checks [`Pins::is_unpinned`] and goes on, so
/// a caller never sees the error.
#[cold]
fn unpinned_error() -> Error {
    Error::internal("the version of a cursor was unpinned")
}

/// The open cursors of a database.
#[derive(Default)]
pub struct Cursors {
    shards: [Mutex<Vec<Arc<Pins>>>; SHARDS],
    next: AtomicUsize,
    count: AtomicUsize,
    /// Walks that began under pressure and may still have their sources, oldest first.
    limited_walks: Mutex<VecDeque<(Arc<Pins>, u64)>>,
}

/// The limits of new walks while there are more cursors than the memory has room for.
struct Pressure {
    /// How many walks keep their sources.
    walks: usize,
    /// Maximum number of messages of a chunk.
    messages: usize,
    is_high: bool,
}

impl Cursors {
    /// Lists a new cursor over a tree. It pins nothing before its first move.
    pub fn add(&self, tree: Arc<TreeCore>, budget: &Arc<Budget>) -> Arc<Pins> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut list = self.shards[shard].lock();
        // Checked under the list's lock: a drop that is marked later finds the cursor in the list.
        let listed_after_drop = tree.is_dropped();
        let pins = Arc::new(Pins {
            tree,
            shard,
            index: AtomicUsize::new(list.len()),
            listed_after_drop,
            moving: AtomicBool::new(false),
            is_pressure_high: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            walk: AtomicU64::new(0),
            budget: Arc::clone(budget),
            pinned: Mutex::default(),
        });
        list.push(Arc::clone(&pins));
        pins
    }

    /// Removes a cursor and drops what it pins.
    pub fn remove(&self, pins: &Arc<Pins>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        // The list of limited walks may hold `pins` a little longer.
        let pinned = std::mem::take(&mut *pins.pinned.lock());
        drop(pinned);
        let mut list = self.shards[pins.shard].lock();
        let index = pins.index.load(Ordering::Relaxed);
        let removed = list.swap_remove(index);
        if let Some(moved) = list.get(index) {
            moved.index.store(index, Ordering::Relaxed);
        }
        drop(list);
        debug_assert!(Arc::ptr_eq(&removed, pins));
    }

    /// The limits of new walks if the cursors put the memory under pressure. `memory` is the whole
    /// budget in bytes.
    fn pressure(&self, memory: u64) -> Option<Pressure> {
        let (count, room) = (self.count.load(Ordering::Relaxed) as u64, memory / PRESSURE_BYTES);
        let messages = (memory / SMALL_BYTES / count.max(1)).clamp(1, SMALL_MESSAGES_MAX);
        let is_high = count > memory / HIGH_PRESSURE_BYTES;
        (count > room).then_some(Pressure {
            walks: room as usize,
            messages: messages as usize,
            is_high,
        })
    }

    /// Notes a walk that began under pressure, and unpins the oldest walks beyond the limit.
    fn limit_walks(&self, pressure: &Pressure, pins: Arc<Pins>, walk: u64) {
        let mut list = self.limited_walks.lock();
        list.push_back((pins, walk));
        let many = list.len().saturating_sub(pressure.walks);
        let oldest: Vec<_> = list.drain(..many).collect();
        drop(list);
        oldest.iter().for_each(|(pins, walk)| pins.unpin_walk(*walk));
    }

    /// The cursors over `tree`; without one, those over all trees.
    fn of(&self, tree: Option<&TreeCore>) -> Vec<Arc<Pins>> {
        let mut found = Vec::new();
        for list in &self.shards {
            let list = list.lock();
            let wanted = |pins: &&Arc<Pins>| tree.is_none_or(|tree| tree.id == pins.tree.id);
            found.extend(list.iter().filter(wanted).cloned());
        }
        found
    }

    /// Unpins the cursors over a tree that are between two moves and whose version keeps a flushed
    /// memtable, or is not the newest and older than a second. REQUIRES: no lock.
    pub fn unpin_old(&self, tree: &TreeCore, now: Nanos) {
        let cursors = self.of(Some(tree));
        if cursors.is_empty() {
            return;
        }
        let newest = tree.version();
        cursors.iter().for_each(|pins| pins.unpin_old(&newest, now));
    }

    /// As [`unpin_old`](Self::unpin_old), for the cursors over all trees.
    pub fn unpin_all_old(&self, now: Nanos) {
        self.of(None).iter().for_each(|pins| pins.unpin_old(&pins.tree.version(), now));
    }

    /// Pins the tree's version for its cursors without one. REQUIRES: the tree is marked as
    /// dropped, its version is not emptied, and no other thread publishes a version.
    pub fn pin_last(&self, tree: &TreeCore, now: Nanos) {
        let last = tree.version();
        self.of(Some(tree)).iter().for_each(|pins| pins.pin_last(&last, now));
    }
}
