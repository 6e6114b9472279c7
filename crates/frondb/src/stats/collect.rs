//! Collects the statistics of an open database from its parts.

use frondb_tree::{TreeCore, Version};

use crate::open::parts::Parts;
use crate::stats::sums::Sums;
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

pub(crate) fn stats(parts: &Parts) -> EngineStats {
    EngineStats::of(parts, &Sums::of(parts))
}

/// Reads the histograms of the times of calls and background work.
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
