//! Figures that are sums over all trees, kept as the trees change: reading them costs the same for
//! one tree and for a hundred thousand.
//!
//! Invariant: a sum is that of the newest versions of all trees that are counted. A tree is counted
//! from when it is listed until it is dropped, and its share changes under the lock of its version,
//! with the version.

use frondb_core::sync::atomic::{AtomicU64, Ordering};

use crate::stats::EngineStats;
use crate::tree::Version;

/// What one version of a tree adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Share {
    nodes: u64,
    leaves: u64,
    views: u64,
    entries: u64,
    raw_bytes: u64,
    run_bytes: u64,
    frozen_memtables: u64,
}

impl Share {
    /// O(memtables and attached runs): a trunk knows its own.
    pub(crate) fn of(version: &Version) -> Self {
        let totals = version.trunk.root.totals;
        let mut share = Self {
            nodes: totals.leaves + totals.inners,
            leaves: totals.leaves,
            views: totals.views,
            entries: totals.entries,
            raw_bytes: totals.raw_bytes,
            run_bytes: totals.disk_bytes,
            frozen_memtables: version.frozen.len() as u64,
        };
        for run in version.slots().flat_map(|slot| slot.runs()) {
            let meta = run.meta();
            share.entries += meta.entries;
            share.raw_bytes += meta.raw_bytes;
            share.run_bytes += meta.disk_bytes();
        }
        share
    }
}

/// The sums of an engine.
#[derive(Debug, Default)]
pub(crate) struct TreeSums {
    nodes: AtomicU64,
    leaves: AtomicU64,
    views: AtomicU64,
    entries: AtomicU64,
    raw_bytes: AtomicU64,
    run_bytes: AtomicU64,
    frozen_memtables: AtomicU64,
}

impl TreeSums {
    /// A tree's share goes from `old` to `new`.
    pub(crate) fn change(&self, old: Share, new: Share) {
        // Wraps below zero and back: every share that goes has come before.
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
        change(&self.frozen_memtables, old.frozen_memtables, new.frozen_memtables);
    }

    pub(crate) fn fill(&self, stats: &mut EngineStats) {
        let get = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        stats.nodes = get(&self.nodes);
        stats.leaves = get(&self.leaves);
        stats.views = get(&self.views);
        stats.entries = get(&self.entries);
        stats.raw_bytes = get(&self.raw_bytes);
        stats.run_bytes = get(&self.run_bytes);
        stats.frozen_memtables = get(&self.frozen_memtables);
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "sums_tests.rs"]
mod tests;
