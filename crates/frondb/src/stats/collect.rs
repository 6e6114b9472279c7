//! Collects the statistics of an open database from its parts.

use frondb_core::budget::Part;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::{WriteCause, WriteSums};
use frondb_tree::{TreeCore, Version};

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

pub(crate) fn stats(parts: &Parts) -> EngineStats {
    filled(EngineStats::default(), parts)
}

/// `stats` with each value replaced.
fn filled(mut stats: EngineStats, parts: &Parts) -> EngineStats {
    fill_parts(parts, &mut stats);
    fill_background(parts, &mut stats);
    stats
}

/// Statistics of all parts except background work. The time does not depend on the number of trees.
fn fill_parts(parts: &Parts, stats: &mut EngineStats) {
    let Parts { catalog, committer, edits, jobs, locks, log, reads, txns, .. } = parts;
    stats.trees = jobs.trees.len() as u64;
    let totals = catalog.totals();
    stats.nodes = totals.nodes;
    stats.leaves = totals.leaves;
    stats.views = totals.views;
    stats.entries = totals.entries;
    stats.raw_bytes = totals.raw_bytes;
    stats.run_bytes = totals.run_bytes;
    stats.packed_bytes = totals.packed_bytes;
    stats.frozen_memtables = totals.frozen_memtables;
    stats.relogs = committer.relogs();
    stats.spills = txns.spill.spills();
    stats.bulk_statements = txns.bulk_statements();
    stats.gets = reads.counters.gets();
    stats.seeks = reads.counters.seeks();
    stats.tombstones_skipped = reads.counters.tombstones_skipped();
    stats.prepared = parts.prepared.set().len() as u64;
    stats.oldest_prepared_ms = txns.oldest_prepared().map_or(0, |age| age.as_millis() as u64);
    stats.memory_total = reads.budget.total();
    stats.memory_used = reads.budget.used();
    stats.memory_peak = reads.budget.peak();
    stats.memtable_bytes = reads.budget.used_by(Part::Memtable);
    let cache = reads.runs.cache.stats();
    stats.cache_bytes = cache.bytes;
    stats.cache_hits = cache.hits;
    stats.cache_misses = cache.misses;
    let rows = reads.runs.rows.stats();
    (stats.row_cache_bytes, stats.row_cache_hits) = (rows.bytes, rows.hits);
    let runs = &reads.runs.stats;
    stats.cache_frame_hits = runs.frame_hits.load(Ordering::Relaxed);
    stats.cache_index_frame_hits = runs.index_frame_hits.load(Ordering::Relaxed);
    stats.reads = runs.reads.load(Ordering::Relaxed);
    stats.read_bytes = runs.read_bytes.load(Ordering::Relaxed);
    stats.merge_reads = runs.merge_reads.load(Ordering::Relaxed);
    stats.merge_read_bytes = runs.merge_read_bytes.load(Ordering::Relaxed);
    stats.filter_negatives = runs.filter_negatives.load(Ordering::Relaxed);
    stats.filter_positives = runs.filter_positives.load(Ordering::Relaxed);
    let ages = reads.snapshots.ages();
    stats.snapshots = reads.snapshots.count() as u64;
    stats.oldest_snapshot_ms = ages.first().map_or(0, |(_, age)| age.as_millis() as u64);
    let locks = locks.counts();
    stats.lock_waits = locks.waits;
    stats.deadlocks = locks.deadlocks;
    stats.lock_timeouts = locks.timeouts;
    stats.lock_escalations = locks.escalations;
    stats.lock_wait_nanos = u64::try_from(locks.waited.as_nanos()).unwrap_or(u64::MAX);
    stats.wal_bytes = log.wal.live_bytes();
    stats.wal_replay_bytes = log.replay_bytes();
    let wal = log.wal.stats();
    stats.wal_written_bytes = wal.written_bytes;
    stats.wal_syncs = wal.syncs;
    fill_written(&edits.wear.since_open(), stats);
    stats.manifest_log_bytes = edits.manifest.log_bytes();
    let space = reads.runs.space.stats();
    stats.data_file_bytes = space.file_bytes;
    stats.data_used_bytes = space.used_bytes;
    stats.data_free_bytes = space.free_bytes;
    stats.data_allocated_bytes = space.allocated_bytes;
    stats.disk_full = u64::from(reads.health.full().is_some());
    stats.poisoned = u64::from(reads.health.is_poisoned());
    stats.corruptions = reads.runs.events.corruptions();
    stats.miscoded_blocks = frondb_block::miscoded_blocks();
}

/// What was written since the database was opened.
fn fill_written(sums: &WriteSums, stats: &mut EngineStats) {
    stats.user_bytes = sums.user_bytes();
    let total = sums.total();
    (stats.written_bytes, stats.write_requests) = (total.bytes, total.requests);
    stats.relocation_bytes = sums.of(WriteCause::Relocation).bytes;
    stats.manifest_written_bytes = sums.of(WriteCause::Manifest).bytes;
    stats.private_run_bytes = sums.of(WriteCause::PrivateRuns).bytes;
    stats.large_value_bytes = sums.of(WriteCause::LargeValues).bytes;
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

fn fill_background(parts: &Parts, stats: &mut EngineStats) {
    let Parts { background, jobs, .. } = parts;
    let done = jobs.stats();
    stats.commits = done.commits;
    stats.messages = done.messages;
    stats.attaches = done.attaches;
    stats.flushes = done.flushes;
    stats.flush_bytes = done.flush_bytes;
    stats.merges = done.merges;
    stats.rewrites = done.rewrites;
    stats.scan_rewrites = done.scan_rewrites;
    stats.node_flushes = done.node_flushes;
    stats.prefix_truncations = done.prefix_truncations;
    stats.merge_bytes = done.merge_bytes;
    stats.merged_entries = done.merged_entries;
    stats.steps = done.steps;
    stats.checkpoints = done.checkpoints;
    stats.manifest_rotations = done.manifest_rotations;
    stats.job_failures = done.job_failures;
    stats.damaged_runs = jobs.damaged_runs();
    let due = background.queue.due();
    stats.debt_jobs = due.debt_jobs;
    stats.debt_bytes = due.debt_bytes;
    stats.running_jobs = due.running;
    stats.write_stall_nanos = background.write_stall_nanos();
    stats.rate_limit_nanos = jobs.throttle.waited_nanos();
}

#[cfg(all(test, not(shuttle)))]
#[path = "totals_tests.rs"]
mod tests;
