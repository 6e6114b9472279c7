//! Collects the statistics of an open database from its parts.

use std::time::Duration;

use frondb_background::{BackgroundStats, Due};
use frondb_cache::RowStats;
use frondb_core::SeqNo;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::wear::WriteSums;
use frondb_locks::LockCounts;
use frondb_tree::{TreeCore, TreeSizes, Version};
use frondb_wal::WalStats;

use crate::open::parts::Parts;
use crate::stats::{EngineStats, Latencies, TreeStats};

pub(crate) fn tree_stats(tree: &TreeCore) -> TreeStats {
    let version = tree.version();
    let totals = version.trunk.root.totals;
    let above = above(&version);
    TreeStats {
        height: version.trunk.height() as u64,
        leaves: totals.leaves,
        views: totals.views,
        entries: totals.entries + above.entries,
        deletes: totals.deletes + above.deletes,
        raw_bytes: totals.raw_bytes + above.raw_bytes,
        base_raw_bytes: totals.base_raw_bytes,
        disk_bytes: totals.disk_bytes + above.disk_bytes,
        memtable_entries: version.memtables().map(|memtable| memtable.len()).sum(),
        memtable_bytes: version.memtables().map(|memtable| memtable.bytes()).sum(),
    }
}

/// Statistics of committed runs that are not part of the trunk yet.
#[derive(Default)]
struct Above {
    entries: u64,
    deletes: u64,
    raw_bytes: u64,
    disk_bytes: u64,
}

fn above(version: &Version) -> Above {
    let mut sum = Above::default();
    for run in version.sources().flat_map(|slot| slot.runs()) {
        let meta = run.meta();
        sum.entries += meta.entries;
        sum.deletes += meta.deletes;
        sum.raw_bytes += meta.raw_bytes;
        sum.disk_bytes += meta.disk_bytes();
    }
    sum
}

/// Sums of a part that serve several statistics of a report. The time to compute them does not
/// depend on the number of trees.
pub(super) struct Sums {
    pub(super) totals: TreeSizes,
    pub(super) cache: frondb_cache::Stats,
    pub(super) rows: RowStats,
    pub(super) ages: Vec<(SeqNo, Duration)>,
    pub(super) locks: LockCounts,
    pub(super) wal: WalStats,
    pub(super) written: WriteSums,
    pub(super) space: frondb_space::Stats,
    pub(super) due: Due,
    pub(super) jobs: BackgroundStats,
}

pub(crate) fn stats(parts: &Parts) -> EngineStats {
    let runs = &parts.reads.runs;
    let sums = Sums {
        totals: parts.catalog.totals(),
        cache: runs.cache.stats(),
        rows: runs.rows.stats(),
        ages: parts.reads.snapshots.ages(),
        locks: parts.locks.counts(),
        wal: parts.log.wal.stats(),
        written: parts.edits.wear.since_open(),
        space: runs.space.stats(),
        due: parts.background.queue.due(),
        jobs: parts.jobs.stats(),
    };
    EngineStats::of(parts, &sums)
}

/// The value of a counter.
pub(super) fn loaded(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The age of the oldest one in milliseconds; 0 without any.
pub(super) fn millis(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| age.as_millis() as u64)
}

/// How long calls and background work take.
pub(crate) fn latencies(parts: &Parts) -> Latencies {
    let Parts { jobs, log, reads, .. } = parts;
    let (reads, work) = (&reads.counters, &jobs.latencies);
    Latencies {
        get: reads.get_latency.read(),
        seek: reads.seek_latency.read(),
        commit: work.commit.read(),
        prepare: work.prepare.read(),
        commit_sync: work.commit_sync.read(),
        log_sync: log.wal.sync_latency(),
        stall: work.stall.read(),
        flush: work.flush.read(),
        merge: work.merge.read(),
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "totals_tests.rs"]
mod tests;
