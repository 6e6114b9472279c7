//! What the engine counts, and the figures it reports.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_trunk::job::JobStats;
use frondb_trunk::plan::{Plan, Planned, Reason};

/// Counters since the engine was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: AtomicU64,
    pub(crate) messages: AtomicU64,
    pub(crate) user_bytes: AtomicU64,
    /// That found something.
    pub(crate) gets: AtomicU64,
    /// That did not, or only asked.
    pub(crate) checks: AtomicU64,
    pub(crate) seeks: AtomicU64,
    pub(crate) deletes_stepped_over: AtomicU64,
    pub(crate) attaches: AtomicU64,
    flushes: AtomicU64,
    flush_bytes: AtomicU64,
    merges: AtomicU64,
    rewrites: AtomicU64,
    scan_rewrites: AtomicU64,
    node_flushes: AtomicU64,
    trims: AtomicU64,
    merge_bytes: AtomicU64,
    merged_entries: AtomicU64,
    steps: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
    pub(crate) relogs: AtomicU64,
    pub(crate) spills: AtomicU64,
    pub(crate) manifest_rotations: AtomicU64,
    pub(crate) job_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Reads that found something, about.
    pub(crate) fn found(&self) -> u64 {
        self.gets.load(Ordering::Relaxed) + self.seeks.load(Ordering::Relaxed)
    }

    pub(crate) fn add_flush(&self, stats: &JobStats) {
        Self::add(&self.flushes, 1);
        Self::add(&self.flush_bytes, stats.bytes_written);
        Self::add(&self.steps, stats.steps);
    }

    pub(crate) fn add_merge(&self, planned: &Planned, stats: &JobStats) {
        let counter = match planned.plan {
            Plan::FlushNode => &self.node_flushes,
            Plan::MergeRuns(_) => &self.merges,
            Plan::TruncatePrefix => &self.trims,
            Plan::Rewrite(Reason::ScanDebt, _) => &self.scan_rewrites,
            _ => &self.rewrites,
        };
        Self::add(counter, 1);
        Self::add(&self.merge_bytes, stats.bytes_written);
        Self::add(&self.merged_entries, stats.entries_in);
        Self::add(&self.steps, stats.steps);
    }

    pub(crate) fn fill(&self, stats: &mut EngineStats) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        stats.commits = get(&self.commits);
        stats.messages = get(&self.messages);
        stats.user_bytes = get(&self.user_bytes);
        stats.gets = get(&self.gets) + get(&self.checks);
        stats.seeks = get(&self.seeks);
        stats.deletes_stepped_over = get(&self.deletes_stepped_over);
        stats.attaches = get(&self.attaches);
        stats.flushes = get(&self.flushes);
        stats.flush_bytes = get(&self.flush_bytes);
        stats.merges = get(&self.merges);
        stats.rewrites = get(&self.rewrites);
        stats.scan_rewrites = get(&self.scan_rewrites);
        stats.node_flushes = get(&self.node_flushes);
        stats.trims = get(&self.trims);
        stats.merge_bytes = get(&self.merge_bytes);
        stats.merged_entries = get(&self.merged_entries);
        stats.steps = get(&self.steps);
        stats.checkpoints = get(&self.checkpoints);
        stats.relogs = get(&self.relogs);
        stats.spills = get(&self.spills);
        stats.manifest_rotations = get(&self.manifest_rotations);
        stats.job_failures = get(&self.job_failures);
    }
}

macro_rules! engine_stats {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Figures of an open engine. Counters count since it was opened; bytes unless the name
        /// says otherwise. Reading them costs nothing to speak of.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct EngineStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl EngineStats {
            /// Every figure with its name, in the order of the declaration: for text and JSON.
            #[must_use]
            pub fn figures(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

engine_stats! {
    /// Trees.
    trees,
    /// Nodes of all trunks.
    nodes,
    /// Leaves among them.
    leaves,
    /// Runs that nodes hold views of.
    views,
    /// Messages in runs.
    entries,
    /// Key and value bytes in runs, before encoding.
    raw_bytes,
    /// Bytes of runs on disk.
    run_bytes,
    /// The memory budget.
    memory_total,
    /// Of it in use.
    memory_used,
    /// Most that was in use.
    memory_peak,
    /// Memory of memtables.
    memtable_bytes,
    /// Memtables frozen and not yet flushed, a count.
    frozen_memtables,
    /// Memory of cached blocks, indexes and filters.
    cache_bytes,
    /// Cache hits.
    cache_hits,
    /// Cache misses.
    cache_misses,
    /// Commits.
    commits,
    /// Messages committed.
    messages,
    /// Bytes of batches committed.
    user_bytes,
    /// Point lookups.
    gets,
    /// Positionings of cursors.
    seeks,
    /// Deletes that cursors stepped over.
    deletes_stepped_over,
    /// Reads of blocks from the device, for lookups and scans.
    reads,
    /// Bytes of those.
    read_bytes,
    /// Reads for merges.
    merge_reads,
    /// Bytes of those.
    merge_read_bytes,
    /// Lookups that a filter answered with no.
    filter_negatives,
    /// Lookups that a filter passed.
    filter_positives,
    /// Private runs of large commits that became part of a tree as they were, a tree each.
    attaches,
    /// Transactions that are prepared and neither committed nor rolled back.
    prepared,
    /// Memtables flushed.
    flushes,
    /// Bytes those wrote.
    flush_bytes,
    /// Merges of runs.
    merges,
    /// Bases rewritten.
    rewrites,
    /// Bases rewritten because scans had paid for it.
    scan_rewrites,
    /// Inner nodes flushed.
    node_flushes,
    /// Leaves trimmed of the deletes they began with.
    trims,
    /// Bytes written by merges of all kinds.
    merge_bytes,
    /// Messages read by merges of all kinds.
    merged_entries,
    /// Steps of background work.
    steps,
    /// Jobs that writers owe.
    debt_jobs,
    /// Bytes those will read.
    debt_bytes,
    /// Jobs under way.
    running_jobs,
    /// Jobs that failed.
    job_failures,
    /// Nanoseconds that commits were slowed by.
    paced_nanos,
    /// Nanoseconds that background jobs waited for their limit of bytes a second.
    throttled_nanos,
    /// Live snapshots.
    snapshots,
    /// Age of the oldest, milliseconds.
    oldest_snapshot_ms,
    /// Log kept.
    wal_bytes,
    /// Of it, what recovery would replay: at most twice the write buffer and a commit.
    wal_replay_bytes,
    /// Log written to the device since the database was opened, headers included.
    wal_written_bytes,
    /// Times that the log was synced, a count: fewer than commits where these share one.
    wal_syncs,
    /// Checkpoints that the period made due, a count.
    checkpoints,
    /// Memtables logged again, a count.
    relogs,
    /// Parts of large transactions written to disk before they commit, a count.
    spills,
    /// Waits for locks of transactions.
    lock_waits,
    /// Deadlocks found.
    deadlocks,
    /// Waits for locks that were given up after their timeout.
    lock_timeouts,
    /// Times that many row locks of a transaction became range locks.
    lock_escalations,
    /// Nanoseconds that locks were waited for.
    lock_wait_nanos,
    /// Bytes of edits in the manifest's current file.
    manifest_log_bytes,
    /// Manifest snapshots written, a count.
    manifest_rotations,
    /// Lengths of the data files.
    data_file_bytes,
    /// Of them in use.
    data_used_bytes,
    /// Of them free.
    data_free_bytes,
    /// 1 while writes fail because the disk is full.
    disk_full,
}

impl std::fmt::Display for EngineStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_figures(f, &self.figures())
    }
}

/// A figure a line; bytes also as a person reads them.
fn write_figures(
    f: &mut std::fmt::Formatter<'_>,
    figures: &[(&'static str, u64)],
) -> std::fmt::Result {
    for &(name, value) in figures {
        let bytes = name.ends_with("_bytes") || name.starts_with("memory_");
        if bytes && value >= 1 << 20 {
            writeln!(f, "{name:<24} {value} ({:.1} MiB)", value as f64 / f64::from(1 << 20))?;
        } else if bytes {
            writeln!(f, "{name:<24} {value} bytes")?;
        } else {
            writeln!(f, "{name:<24} {value}")?;
        }
    }
    Ok(())
}

/// Figures of one tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TreeStats {
    /// Levels of nodes.
    pub height: u64,
    /// Leaves.
    pub leaves: u64,
    /// Runs that nodes hold views of.
    pub views: u64,
    /// Messages in runs.
    pub entries: u64,
    /// Deletes among them.
    pub deletes: u64,
    /// Key and value bytes in runs.
    pub raw_bytes: u64,
    /// Of them in bases.
    pub base_raw_bytes: u64,
    /// Bytes of runs on disk.
    pub disk_bytes: u64,
    /// Messages in memtables.
    pub memtable_entries: u64,
    /// Memory of memtables.
    pub memtable_bytes: u64,
}

impl TreeStats {
    /// Every figure with its name, in the order of the declaration: for text and JSON.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, u64)> {
        // Taken apart by name, so that a new one cannot be forgotten.
        let Self {
            height,
            leaves,
            views,
            entries,
            deletes,
            raw_bytes,
            base_raw_bytes,
            disk_bytes,
            memtable_entries,
            memtable_bytes,
        } = *self;
        vec![
            ("height", height),
            ("leaves", leaves),
            ("views", views),
            ("entries", entries),
            ("deletes", deletes),
            ("raw_bytes", raw_bytes),
            ("base_raw_bytes", base_raw_bytes),
            ("disk_bytes", disk_bytes),
            ("memtable_entries", memtable_entries),
            ("memtable_bytes", memtable_bytes),
        ]
    }
}

impl std::fmt::Display for TreeStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_figures(f, &self.figures())
    }
}
