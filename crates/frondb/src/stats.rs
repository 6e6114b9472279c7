//! The statistics that an open database reports. [`collect`] reads them from its parts.

use frondb_background::job_counters;
use frondb_core::budget::Part;
use frondb_core::wear::WriteCause;

use crate::open::parts::Parts;
use sums::{Sums, loaded, millis};

pub(crate) mod collect;
mod latencies;
mod prometheus;
mod sums;

pub use latencies::Latencies;
pub(crate) use prometheus::page;

/// One row for each statistic: a comment, `gauge` for a current value or `counter` for a sum since
/// the open, the name, and the expression of the value, which reads the parts of a database or
/// [`Sums`]. The counters of background work come from their own table, [`job_counters`].
macro_rules! engine_stats {
    (
        ($parts:ident, $sums:ident) => {
            $($(#[doc = $doc:literal])* $kind:ident $name:ident = $value:expr,)*
        }
        jobs { $($(#[doc = $job_doc:literal])* $job:ident,)* }
    ) => {
        /// Statistics of an open database. Counters start at 0 when the database is opened. Reading
        /// the statistics costs next to nothing.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[non_exhaustive]
        pub struct EngineStats {
            $($(#[doc = $doc])* pub $name: u64,)*
            $($(#[doc = $job_doc])* pub $job: u64,)*
        }

        impl EngineStats {
            fn of($parts: &Parts, $sums: &Sums) -> Self {
                Self { $($name: $value,)* $($job: $sums.jobs.$job,)* }
            }

            /// Returns every statistic with its name, in the order of the declaration: for text and
            /// JSON.
            #[must_use]
            pub fn named_values(&self) -> Vec<(&'static str, u64)> {
                vec![
                    $((stringify!($name), self.$name),)*
                    $((stringify!($job), self.$job),)*
                ]
            }

            /// Returns the kind and the meaning of each statistic, in the order of
            /// [`named_values`](Self::named_values), for the page for Prometheus.
            pub(crate) fn kinds_and_meanings() -> Vec<(Kind, &'static str)> {
                vec![
                    $((Kind::$kind, concat!($($doc),*)),)*
                    $((Kind::counter, concat!($($job_doc),*)),)*
                ]
            }
        }
    };
}

/// How a statistic changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types, reason = "the words of the rows")]
pub(crate) enum Kind {
    /// A current value.
    gauge,
    /// A sum since the open, which only grows.
    counter,
}

job_counters! {
    engine_stats!
    (parts, sums) => {
        /// Trees.
        gauge trees = parts.trees.len() as u64,
        /// Nodes of all trunks.
        gauge nodes = sums.totals.nodes,
        /// Leaf nodes of all trunks.
        gauge leaves = sums.totals.leaves,
        /// Views that nodes hold of runs; a run can have several.
        gauge views = sums.totals.views,
        /// Messages in runs.
        gauge entries = sums.totals.entries,
        /// Key and value bytes in runs before compression.
        gauge raw_bytes = sums.totals.raw_bytes,
        /// Size of all runs on disk.
        gauge run_bytes = sums.totals.run_bytes,
        /// Key and value bytes that are packed with a slow codec. Trees with a slow codec are
        /// packed in the background.
        gauge packed_bytes = sums.totals.packed_bytes,
        /// The memory budget.
        gauge memory_total = parts.budget.total(),
        /// Memory in use by all parts.
        gauge memory_used = parts.budget.used(),
        /// The most memory that was in use at any time.
        gauge memory_peak = parts.budget.peak(),
        /// Memory of memtables.
        gauge memtable_bytes = parts.budget.used_by(Part::Memtable),
        /// Sources that wait for their flush, a count: frozen memtables, and the attached runs of
        /// each large commit in a tree.
        gauge frozen_memtables = sums.totals.frozen_memtables,
        /// Memory of cached blocks, indexes and filters.
        gauge cache_bytes = sums.cache.bytes,
        /// Reads of blocks, indexes and filters that the cache answered, a count.
        counter cache_hits = sums.cache.hits,
        /// Reads of blocks, indexes and filters that the cache could not answer, a count.
        counter cache_misses = sums.cache.misses,
        /// Memory of rows that are cached without their blocks, because the cache has no room for
        /// the blocks.
        gauge row_cache_bytes = sums.rows.bytes,
        /// Lookups in runs that a cached row answered without its block, a count.
        counter row_cache_hits = sums.rows.hits,
        /// Blocks that readers found in the cache in their encoded form, and decoded, a count. A
        /// full cache holds encoded blocks if the device is slow, or if they take a sixth or less
        /// of the memory of decoded ones.
        counter cache_frame_hits = loaded(&parts.runs.stats.frame_hits),
        /// Block indexes and parts of block indexes that readers found in the cache in their
        /// encoded form, and decoded, a count. The cache holds encoded indexes if it has no room
        /// for decoded ones.
        counter cache_index_frame_hits = loaded(&parts.runs.stats.index_frame_hits),
        /// Bytes of batches and transactions committed or prepared, with large values and spilled
        /// messages.
        counter user_bytes = sums.written.user_bytes(),
        /// Bytes written to the files of the database for all causes: log, flushes, merges,
        /// relocation, manifest, private runs and large values.
        counter written_bytes = sums.written.total().bytes,
        /// Write requests for all causes, a count.
        counter write_requests = sums.written.total().requests,
        /// Point reads.
        counter gets = parts.reads.counters.gets(),
        /// Times that a cursor was positioned.
        counter seeks = parts.reads.counters.seeks(),
        /// Tombstones that cursors skipped.
        counter tombstones_skipped = parts.reads.counters.tombstones_skipped(),
        /// Reads of blocks, indexes and filters from the device by point reads and scans, a count.
        /// One read of a scan can have several blocks. Large values do not count.
        counter reads = loaded(&parts.runs.stats.reads),
        /// Bytes that point reads and scans read from the device, without large values.
        counter read_bytes = loaded(&parts.runs.stats.read_bytes),
        /// Reads of merges from the device, a count.
        counter merge_reads = loaded(&parts.runs.stats.merge_reads),
        /// Bytes that merges read from the device.
        counter merge_read_bytes = loaded(&parts.runs.stats.merge_read_bytes),
        /// Point reads and short scans of a run that its filter made unnecessary.
        counter filter_negatives = loaded(&parts.runs.stats.filter_negatives),
        /// Point reads and short scans of a run that its filter let through.
        counter filter_positives = loaded(&parts.runs.stats.filter_positives),
        /// Reads that have found damage, a count.
        counter corruptions = parts.events.corruptions(),
        /// Damaged runs that background work has found since the database was opened, and does not
        /// merge any more. The number falls when such runs are dropped, or when an optimize can
        /// read them again.
        gauge damaged_runs = parts.jobs.damaged_runs(),
        /// Blocks and log records that were stored uncompressed because their compressed form did
        /// not decode, in all databases of the process, a count. A value above 0 means that a codec
        /// or the memory has a fault.
        counter miscoded_blocks = frondb_block::miscoded_blocks(),
        /// Prepared transactions that are neither committed nor rolled back yet.
        gauge prepared = parts.prepared.set().len() as u64,
        /// Age of the oldest prepared transaction, milliseconds.
        gauge oldest_prepared_ms = millis(parts.txns.oldest_prepared()),
        /// Bytes written by the relocation of runs, which lets data files shrink.
        counter relocation_bytes = sums.written.of(WriteCause::Relocation).bytes,
        /// Bytes written to private runs of large transactions, and to private runs and spools of
        /// bulk loads.
        counter private_run_bytes = sums.written.of(WriteCause::PrivateRuns).bytes,
        /// Bytes written to the extents of large values.
        counter large_value_bytes = sums.written.of(WriteCause::LargeValues).bytes,
        /// Overdue background jobs that wait, and all flushes; they slow writers down.
        gauge debt_jobs = sums.due.debt_jobs,
        /// Key and value bytes that overdue merges will read.
        gauge debt_bytes = sums.due.debt_bytes,
        /// Background tasks that run now.
        gauge running_jobs = sums.due.running,
        /// Nanoseconds that commits were delayed because background work could not keep up.
        counter write_stall_nanos = parts.background.write_stall_nanos(),
        /// Nanoseconds that background jobs waited for their limit of bytes per second.
        counter rate_limit_nanos = parts.throttle.waited_nanos(),
        /// Live snapshots.
        gauge snapshots = parts.reads.snapshots.count() as u64,
        /// Age of the oldest live snapshot, milliseconds.
        gauge oldest_snapshot_ms = millis(sums.ages.first().map(|(_, age)| *age)),
        /// Size of the log.
        gauge wal_bytes = parts.wal.live_bytes(),
        /// The part of the log that recovery would replay: in general at most twice the write
        /// buffer and one commit, on a full disk at most three times the write buffer.
        gauge wal_replay_bytes = parts.log.replay_bytes(),
        /// Bytes of records written to the log, with their headers.
        counter wal_written_bytes = sums.wal.written_bytes,
        /// Syncs of the log, a count. Group commit makes them fewer than commits.
        counter wal_syncs = sums.wal.syncs,
        /// Memtables that were logged again so that old log could be freed, a count.
        counter relogs = parts.committer.relogs(),
        /// Times that a large transaction wrote a part of its messages to disk before its commit, a
        /// count.
        counter spills = parts.txns.spill.spills(),
        /// Bulk statements of transactions that were finished, committed or not, a count.
        counter bulk_statements = parts.txns.bulk_statements(),
        /// Waits of transactions for locks.
        counter lock_waits = sums.locks.waits,
        /// Deadlocks found.
        counter deadlocks = sums.locks.deadlocks,
        /// Lock waits that ended with a timeout.
        counter lock_timeouts = sums.locks.timeouts,
        /// Times that the row locks of a transaction were replaced by range locks.
        counter lock_escalations = sums.locks.escalations,
        /// Nanoseconds that transactions waited for locks.
        counter lock_wait_nanos = u64::try_from(sums.locks.waited.as_nanos()).unwrap_or(u64::MAX),
        /// Bytes of edits in the current manifest file.
        gauge manifest_log_bytes = parts.edits.manifest.log_bytes(),
        /// Bytes written to the manifest and its superblocks.
        counter manifest_written_bytes = sums.written.of(WriteCause::Manifest).bytes,
        /// Size of the data files.
        gauge data_file_bytes = sums.space.file_bytes,
        /// Bytes of the data files in use.
        gauge data_used_bytes = sums.space.used_bytes,
        /// Free bytes in the data files.
        gauge data_free_bytes = sums.space.free_bytes,
        /// Bytes that the data files take on the disk: their size less the free ranges that were
        /// returned to the file system since the database was opened.
        gauge data_allocated_bytes = sums.space.allocated_bytes,
        /// 1 while writes fail because background work has found the disk full, otherwise 0.
        gauge disk_full = u64::from(parts.health.full().is_some()),
        /// 1 if the database is poisoned: a sync or other essential work failed, so it is unknown
        /// which data is durable, and nothing more is written until the database is opened again;
        /// otherwise 0.
        gauge poisoned = u64::from(parts.health.is_poisoned()),
    }
}

impl std::fmt::Display for EngineStats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_values(f, &self.named_values())
    }
}

/// Prints one statistic per line, bytes from 1 MiB on also in MiB.
fn write_values(
    f: &mut std::fmt::Formatter<'_>,
    values: &[(&'static str, u64)],
) -> std::fmt::Result {
    for &(name, value) in values {
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

/// Statistics of one tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct TreeStats {
    /// Levels of nodes, from the root to the leaves.
    pub height: u64,
    /// Leaf nodes.
    pub leaves: u64,
    /// Views that nodes hold of runs; a run can have several.
    pub views: u64,
    /// Messages in runs.
    pub entries: u64,
    /// Tombstones in runs.
    pub deletes: u64,
    /// Key and value bytes in runs before compression.
    pub raw_bytes: u64,
    /// Key and value bytes in the leaves' bases.
    pub base_raw_bytes: u64,
    /// Size of the runs on disk.
    pub disk_bytes: u64,
    /// Messages in memtables.
    pub memtable_entries: u64,
    /// Memory of memtables.
    pub memtable_bytes: u64,
}

impl TreeStats {
    /// Returns every statistic with its name, in the order of the declaration: for text and JSON.
    #[must_use]
    pub fn named_values(&self) -> Vec<(&'static str, u64)> {
        // Destructured by name, so that the compiler reports a new statistic that is missing here.
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
        write_values(f, &self.named_values())
    }
}
