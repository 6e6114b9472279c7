//! [`JobCounters`]: what background work has done since the database was opened; [`Latencies`]: how
//! long background work and commits took.

use frondb_core::latency::Latency;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_trunk::job::JobStats;
use frondb_trunk::plan::{Plan, Planned, Reason};

macro_rules! job_counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counts background work. Any thread may add.
        #[derive(Debug, Default)]
        pub(crate) struct JobCounters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// What background work has done since the database was opened.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct BackgroundStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl JobCounters {
            pub(crate) fn read(&self) -> BackgroundStats {
                BackgroundStats { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }
    };
}

job_counters! {
    /// Commits of batches and transactions.
    commits,
    /// Messages committed or prepared.
    messages,
    /// Private runs of large commits that were attached to a tree unchanged, counted once for each
    /// tree.
    attaches,
    /// Memtables flushed.
    flushes,
    /// Bytes that flushes wrote.
    flush_bytes,
    /// Merges of runs, and of parts of a leaf's base.
    merges,
    /// Bases rewritten.
    rewrites,
    /// Bases rewritten because scans had read many obsolete messages there.
    scan_rewrites,
    /// Inner nodes flushed.
    node_flushes,
    /// Leaves whose deleted prefix was truncated.
    prefix_truncations,
    /// Bytes that merges of all kinds wrote.
    merge_bytes,
    /// Messages that merges of all kinds read.
    merged_entries,
    /// Steps of background work.
    steps,
    /// Checkpoints that were due by time.
    checkpoints,
    /// Manifest snapshots written.
    manifest_rotations,
    /// Jobs that failed.
    job_failures,
}

/// How long the work of commits and of the background takes. Any thread may add and read.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Commits, including waits for background work, excluding the wait for the disk. Of a prepared
    /// transaction only the second phase counts.
    pub commit: Latency,
    /// Prepares of transactions, including waits for background work, excluding the wait for the
    /// disk.
    pub prepare: Latency,
    /// Waits of commits for the disk.
    pub commit_sync: Latency,
    /// Waits of commits for background work.
    pub stall: Latency,
    /// Flushes of memtables, from their beginning to their install.
    pub flush: Latency,
    /// Merges of all kinds, from their beginning to their install.
    pub merge: Latency,
}

pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

impl JobCounters {
    /// Flushes and merges of all kinds that have ended.
    pub(crate) fn jobs(&self) -> u64 {
        let done = self.read();
        let merges = done.merges + done.rewrites + done.scan_rewrites + done.node_flushes;
        done.flushes + merges + done.prefix_truncations
    }

    pub(crate) fn add_flush(&self, stats: &JobStats) {
        add(&self.flushes, 1);
        add(&self.flush_bytes, stats.bytes_written);
        add(&self.steps, stats.steps);
    }

    pub(crate) fn add_merge(&self, planned: &Planned, stats: &JobStats) {
        let counter = match planned.plan {
            Plan::FlushNode => &self.node_flushes,
            Plan::MergeRuns(_) | Plan::MergeForReaders(_) | Plan::MergeBase { .. } => &self.merges,
            Plan::TruncatePrefix => &self.prefix_truncations,
            Plan::Rewrite(Reason::ScanDebt, _) => &self.scan_rewrites,
            _ => &self.rewrites,
        };
        add(counter, 1);
        add(&self.merge_bytes, stats.bytes_written);
        add(&self.merged_entries, stats.entries_in);
        add(&self.steps, stats.steps);
    }
}
