//! [`Cursors`]: the open cursors of a database, and the limits when there are very many.

use std::collections::VecDeque;

use frondb_core::budget::Budget;
use frondb_core::clock::Nanos;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex};

use super::Pins;
use crate::tree::TreeCore;

/// Number of lists of cursors: enough that threads that open and close cursors seldom wait for each
/// other.
const SHARDS: usize = 16;

/// Approximate bytes of the blocks, the read windows and the full chunks of one walk. If the budget
/// is smaller than this times the number of cursors, the memory is under pressure.
const PRESSURE_BYTES: u64 = 2 << 20;

/// Under pressure, a chunk has at most one message for this many bytes of the budget per cursor: a
/// walk keeps a chunk for each of its sources.
const SMALL_BYTES: u64 = 4 << 10;

/// Bytes of the small chunks of one walk with many sources. If the budget is smaller than this
/// times the number of cursors, the pressure is high.
const HIGH_PRESSURE_BYTES: u64 = 256 << 10;

/// Maximum number of messages of a chunk under pressure.
const SMALL_MESSAGES_MAX: u64 = 16;

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
pub(super) struct Pressure {
    /// How many walks keep their sources.
    walks: usize,
    /// Maximum number of messages of a chunk.
    pub(super) messages: usize,
    /// Whether a cursor ends its walk with each move.
    pub(super) is_high: bool,
}

impl Cursors {
    /// Adds a new cursor over a tree to the list. The cursor pins nothing before its first move.
    pub fn add(&self, tree: Arc<TreeCore>, budget: &Arc<Budget>) -> Arc<Pins> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let shard = self.next.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut list = self.shards[shard].lock();
        // Checked under the list's lock: a drop that comes later finds the cursor in the list.
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

    /// Removes a cursor and drops the version and sources that it pins.
    pub fn remove(&self, pins: &Arc<Pins>) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        // A clone of `pins` in `limited_walks` may outlive this call.
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

    /// Returns the limits for new walks; `None` if the cursors do not put the memory under
    /// pressure. `memory` is the whole budget in bytes.
    pub(super) fn pressure(&self, memory: u64) -> Option<Pressure> {
        let (count, room) = (self.count.load(Ordering::Relaxed) as u64, memory / PRESSURE_BYTES);
        let messages = (memory / SMALL_BYTES / count.max(1)).clamp(1, SMALL_MESSAGES_MAX);
        let is_high = count > memory / HIGH_PRESSURE_BYTES;
        (count > room).then_some(Pressure {
            walks: room as usize,
            messages: messages as usize,
            is_high,
        })
    }

    /// Records a walk that began under pressure, and unpins the oldest walks beyond the limit.
    pub(super) fn limit_walks(&self, pressure: &Pressure, pins: Arc<Pins>, walk: u64) {
        let mut list = self.limited_walks.lock();
        list.push_back((pins, walk));
        let many = list.len().saturating_sub(pressure.walks);
        let oldest: Vec<_> = list.drain(..many).collect();
        drop(list);
        oldest.iter().for_each(|(pins, walk)| pins.unpin_walk(*walk));
    }

    /// Returns the cursors over `tree`; with `None`, the cursors over all trees.
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
    /// memtable, or is not the newest version and was taken more than a second ago. REQUIRES: the
    /// caller holds no lock.
    pub fn unpin_old(&self, tree: &TreeCore, now: Nanos) {
        let cursors = self.of(Some(tree));
        if cursors.is_empty() {
            return;
        }
        // No cursor has a version of a stowed tree.
        let Some(newest) = tree.open_version() else { return };
        cursors.iter().for_each(|pins| pins.unpin_old(&newest, now));
    }

    /// Works as [`unpin_old`](Self::unpin_old), for the cursors over all trees.
    pub fn unpin_all_old(&self, now: Nanos) {
        for pins in self.of(None) {
            if let Some(newest) = pins.tree.open_version() {
                pins.unpin_old(&newest, now);
            }
        }
    }

    /// Gives the tree's version to its cursors that have none. REQUIRES: the tree is marked as
    /// dropped, no empty version has replaced its version yet, and no other thread publishes a
    /// version.
    pub fn pin_last(&self, tree: &TreeCore, now: Nanos) {
        let last = tree.version();
        self.of(Some(tree)).iter().for_each(|pins| pins.pin_last(&last, now));
    }
}
