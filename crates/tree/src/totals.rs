//! [`TreeTotals`]: sums over all trees, updated whenever a tree changes. Reading them costs the
//! same for one tree and for a hundred thousand.
//!
//! Invariant: each sum is the sum over the newest versions of all counted trees. A tree is counted
//! from when it is listed until it is dropped. A tree's share changes together with its version,
//! under the lock of the version.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Weak};

use crate::version::Version;

/// Sizes of one version of a tree, or of all trees together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TreeSizes {
    /// Nodes of the trunk.
    pub nodes: u64,
    /// Leaves among the nodes.
    pub leaves: u64,
    /// Views of runs that nodes hold.
    pub views: u64,
    /// Messages in runs, attached runs included.
    pub entries: u64,
    /// Key and value bytes in runs, before encoding.
    pub raw_bytes: u64,
    /// Bytes of runs on disk, after encoding.
    pub run_bytes: u64,
    /// Key and value bytes that are packed with a slow codec.
    pub packed_bytes: u64,
    /// Sources between the active memtable and the trunk: frozen memtables, and the attached runs
    /// of each large commit.
    pub frozen_memtables: u64,
}

// The next five constants are measured: `frondb/tests/idle_trees.rs` fails if they are too small.
/// Memory of a tree with a short name, bytes: `TreeCore` and its places in the lists of trees.
const TREE_BYTES: u64 = 448;
/// Additional memory of an open tree besides its nodes and runs, bytes: its version, the chain of
/// holds, and the state of its locks.
const OPEN_BYTES: u64 = 320;
/// Memory of a node of the trunk, bytes.
const NODE_BYTES: u64 = 384;
/// Memory of a view and of the metadata of its run, bytes. A run seldom has several views.
const VIEW_BYTES: u64 = 640;
/// Memory of a tree's lock table without locks, bytes.
pub(crate) const LOCK_TABLE_BYTES: u64 = 80;

impl TreeSizes {
    /// Returns the estimated memory of an open tree with its nodes and runs that no other part
    /// charges (memtables, filters and block indexes have charges of their own), in bytes.
    #[must_use]
    pub(crate) fn memory_bytes(&self) -> u64 {
        let tree = if self.nodes > 0 { TREE_BYTES + OPEN_BYTES } else { 0 };
        tree + self.nodes * NODE_BYTES + self.views * VIEW_BYTES
    }

    /// Returns the memory of a tree that is stowed in `bytes` bytes.
    #[must_use]
    pub(crate) fn stowed_bytes(bytes: u64) -> u64 {
        TREE_BYTES + bytes
    }

    /// Returns the sizes of a version, in O(memtables and attached runs): the trunk keeps its own
    /// totals.
    pub fn of(version: &Version) -> Self {
        let totals = version.trunk.root.totals;
        let mut share = Self {
            nodes: totals.leaves + totals.inners,
            leaves: totals.leaves,
            views: totals.views,
            entries: totals.entries,
            raw_bytes: totals.raw_bytes,
            run_bytes: totals.disk_bytes,
            packed_bytes: totals.packed_raw_bytes,
            frozen_memtables: version.frozen.len() as u64,
        };
        for run in version.sources().flat_map(|source| source.runs()) {
            let meta = run.meta();
            share.entries += meta.entries;
            share.raw_bytes += meta.raw_bytes;
            share.run_bytes += meta.disk_bytes();
        }
        share
    }
}

/// Number of stowed trees that are opened before background work stows unused trees again. So many
/// open trees take about a megabyte, and visiting ten thousand trees takes a millisecond.
const OPENED_MAX: u64 = 1024;

/// Takes requests to stow trees.
pub trait StowingSink: Send + Sync {
    /// Requests that unused trees are stowed, because many stowed trees were opened. Must not wait
    /// for a lock: a thread may call it under any lock.
    fn request_stowing(&self);
}

/// The totals over all trees of a database. Any thread may use them.
#[derive(Default)]
pub struct TreeTotals {
    /// Number of openings of stowed trees since the database was opened.
    opened: AtomicU64,
    /// Receives the request to stow trees.
    sink: Option<Weak<dyn StowingSink>>,
    nodes: AtomicU64,
    leaves: AtomicU64,
    views: AtomicU64,
    entries: AtomicU64,
    raw_bytes: AtomicU64,
    run_bytes: AtomicU64,
    packed_bytes: AtomicU64,
    frozen_memtables: AtomicU64,
}

impl TreeTotals {
    /// Creates totals of no trees. `sink` gets a request to stow unused trees after each 1024
    /// openings of stowed trees.
    #[must_use]
    pub fn new(sink: Weak<dyn StowingSink>) -> Arc<Self> {
        Arc::new(Self { sink: Some(sink), ..Self::default() })
    }

    /// Counts the opening of a stowed tree.
    pub(crate) fn note_opened(&self) {
        let before = self.opened.fetch_add(1, Ordering::Relaxed);
        if (before + 1).is_multiple_of(OPENED_MAX)
            && let Some(sink) = self.sink.as_ref().and_then(Weak::upgrade)
        {
            sink.request_stowing();
        }
    }

    /// Changes a tree's share from `old` to `new`.
    pub fn change(&self, old: TreeSizes, new: TreeSizes) {
        // `new - old` may be negative; a wrapping addition still gives the right sum.
        let change = |sum: &AtomicU64, old: u64, new: u64| {
            if old != new {
                sum.fetch_add(new.wrapping_sub(old), Ordering::Relaxed);
            }
        };
        change(&self.nodes, old.nodes, new.nodes);
        change(&self.leaves, old.leaves, new.leaves);
        change(&self.views, old.views, new.views);
        change(&self.entries, old.entries, new.entries);
        change(&self.raw_bytes, old.raw_bytes, new.raw_bytes);
        change(&self.run_bytes, old.run_bytes, new.run_bytes);
        change(&self.packed_bytes, old.packed_bytes, new.packed_bytes);
        change(&self.frozen_memtables, old.frozen_memtables, new.frozen_memtables);
    }

    /// Returns the current totals. Each total is exact, but they may be of slightly different
    /// moments.
    #[must_use]
    pub fn read(&self) -> TreeSizes {
        let get = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        TreeSizes {
            nodes: get(&self.nodes),
            leaves: get(&self.leaves),
            views: get(&self.views),
            entries: get(&self.entries),
            raw_bytes: get(&self.raw_bytes),
            run_bytes: get(&self.run_bytes),
            packed_bytes: get(&self.packed_bytes),
            frozen_memtables: get(&self.frozen_memtables),
        }
    }
}
