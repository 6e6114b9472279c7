//! [`JobCounters`]: counts of background work since the database was opened; [`Latencies`]: the
//! durations of background work and of commits.

use frondb_core::latency::Latency;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_trunk::job::JobStats;
use frondb_trunk::plan::{Plan, Planned, Reason};

/// Calls the macro `$then` with `$before` and `jobs { .. }`, which has a row for each counter of
/// background work: a comment and a name. The statistics of a database include these rows, so a new
/// counter needs only a row here and an increment.
#[macro_export]
macro_rules! job_counters {
    ($then:ident! $($before:tt)*) => {
        $then! {
            $($before)*
            jobs {
                /// Commits of batches and transactions.
                commits,
                /// Messages committed or prepared.
                messages,
                /// Private runs of large transactions that became part of a tree without being
                /// rewritten, counted once for each tree.
                attaches,
                /// Memtables flushed.
                flushes,
                /// Bytes that flushes wrote.
                flush_bytes,
                /// Merges of runs, and of parts of a leaf's base.
                merges,
                /// Rewrites of a leaf's base, except those that scans requested.
                rewrites,
                /// Rewrites of a leaf's base that scans requested because they read many obsolete
                /// messages there.
                scan_rewrites,
                /// Flushes of an inner node to its children.
                node_flushes,
                /// Leaves that lost a deleted prefix without being rewritten.
                prefix_truncations,
                /// Bytes that merges, rewrites and node flushes wrote.
                merge_bytes,
                /// Messages that merges, rewrites and node flushes read.
                merged_entries,
                /// Steps of background jobs; a job can be interrupted between two steps.
                steps,
                /// Checkpoints that were due by the checkpoint period, a count.
                checkpoints,
                /// Manifest snapshots written, a count.
                manifest_rotations,
                /// Background jobs that failed.
                job_failures,
            }
        }
    };
}

macro_rules! define_counters {
    (jobs { $($(#[$doc:meta])* $name:ident,)* }) => {
        /// Counts background work. Any thread may add.
        #[derive(Debug, Default)]
        pub(crate) struct JobCounters {
            $(pub(crate) $name: AtomicU64,)*
        }

        /// Counts of background work since the database was opened.
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

job_counters!(define_counters!);

/// Durations of commits and of background work. Any thread may add and read.
#[derive(Debug, Default)]
pub struct Latencies {
    /// Commits, including waits for background work, excluding the wait for the disk. For a
    /// prepared transaction, only the second phase.
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
    /// Returns the number of flushes and merges of all kinds that were installed.
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
