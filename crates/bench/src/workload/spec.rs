//! The plan of one child: which engine, which workload, which sizes.

use std::path::PathBuf;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engine::{Codec, Durability, EngineOptions, TreeSpec};
use crate::rows::{DATA_TREES, DataKind, TABLE_TREES};

/// A workload by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Rows with three secondary index entries each, then reads
    Iibench,
    /// Random rows of one tree written again, then reads
    Overwrite,
    /// The lower half of the rows deleted in key order; first and last key right after
    DeleteLeft,
    /// A writer at a fixed rate and two readers
    Mixed,
    /// Reads by several threads of data that is a multiple of the memory
    Reads,
    /// Kinds of data with each codec: size, load, points, full scan
    Compression,
    /// 1, 1,000 and 10,000 rows a commit, synced and not
    Durable,
    /// What a sync costs, and how many commits share one
    Fsync,
    /// Transactions beside batches
    Txn,
    /// Whether reads decay while the same rows are updated, also with an old snapshot
    Hot,
    /// The first or the last row popped again and again
    Queue,
    /// Points of a table a thousand times larger than the memory, after opening it again
    Far,
    /// Backups: their rate, what they cost a writer, and what incremental ones hold
    Backup,
    /// Whether the engine keeps to its memory option
    Memory,
    /// The merge kernel, in memory
    Merge,
}

/// The variant of [`Workload::Fsync`] that measures the cost of a sync and of a row.
pub(super) const FIT: &str = "fit";

/// One case of a workload. Most workloads have only one, without a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The name of the variant in reports; empty if the workload has only one variant.
    pub name: String,
    /// The codec of the trees.
    pub codec: Codec,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Rows a commit, if the variant fixes them.
    pub batch_rows: Option<u64>,
    /// Threads that write; 1 unless the workload varies them.
    pub threads: u64,
    /// Data on disk as a multiple of the memory, if the variant fixes it.
    pub data_ratio: Option<u64>,
    /// The kind of data of [`Workload::Compression`].
    pub data: Option<DataKind>,
}

impl Workload {
    /// Returns the name of the workload on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Iibench => "iibench",
            Self::Overwrite => "overwrite",
            Self::DeleteLeft => "delete-left",
            Self::Mixed => "mixed",
            Self::Reads => "reads",
            Self::Compression => "compression",
            Self::Durable => "durable",
            Self::Fsync => "fsync",
            Self::Txn => "txn",
            Self::Hot => "hot",
            Self::Queue => "queue",
            Self::Far => "far",
            Self::Backup => "backup",
            Self::Memory => "memory",
            Self::Merge => "merge",
        }
    }

    /// Whether the workload calls FronDB itself and not an [`Engine`](crate::engine::Engine), so
    /// that it can measure no other engine.
    #[must_use]
    pub fn is_of_frondb(self) -> bool {
        matches!(
            self,
            Self::Txn
                | Self::Hot
                | Self::Queue
                | Self::Far
                | Self::Backup
                | Self::Memory
                | Self::Merge
        )
    }

    /// Returns the trees that the engine is opened with; empty for workloads that open no engine or
    /// create their own trees.
    #[must_use]
    pub fn trees(self) -> Vec<TreeSpec> {
        match self {
            Self::Compression => DATA_TREES.to_vec(),
            Self::Overwrite => TABLE_TREES[..1].to_vec(),
            Self::Txn | Self::Hot | Self::Queue | Self::Backup | Self::Memory | Self::Merge => {
                Vec::new()
            }
            _ => TABLE_TREES.to_vec(),
        }
    }
}

/// How long each kind of read is measured, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadSeconds {
    /// Point reads that are not measured and fill the caches.
    pub warmup: f64,
    /// Point reads.
    pub points: f64,
    /// 10-entry scans.
    pub scan10: f64,
    /// 1,000-entry scans.
    pub scan1000: f64,
}

impl ReadSeconds {
    /// Returns the lengths of the reference measurement, times `scale`.
    #[must_use]
    pub fn reference(scale: f64) -> Self {
        Self {
            warmup: 10.0 * scale,
            points: 15.0 * scale,
            scan10: 15.0 * scale,
            scan1000: 10.0 * scale,
        }
    }
}

/// Which part of a workload a child runs. `reads` has all three; `iibench` has the
/// whole and the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// The load and the reads.
    #[default]
    Whole,
    /// The load; the data stays on the disk.
    Load,
    /// The reads, of data that an earlier child has loaded.
    Reads,
}

/// The complete plan of a child.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// The engine's name.
    pub engine: String,
    /// The workload.
    pub workload: Workload,
    /// The part of the workload that this child runs.
    pub part: Part,
    /// The variant of the workload.
    pub variant: Variant,
    /// Rows to write.
    pub rows: u64,
    /// Rows a commit, unless the variant fixes them.
    pub batch_rows: u64,
    /// The engine's memory; see [`EngineOptions::memory_bytes`].
    pub memory_bytes: u64,
    /// Seed of rows and reads.
    pub seed: u64,
    /// The engine's directory. The child creates it, so it must not exist, except for
    /// [`Part::Reads`].
    pub dir: PathBuf,
    /// Ends a load after this many seconds, with fewer rows; in `fsync`, the length of a case.
    pub limit_s: Option<f64>,
    /// How long reads are measured.
    pub reads: ReadSeconds,
    /// Numbers of threads that read in `reads`.
    pub read_threads: Vec<u64>,
    /// Rows a second that the writer of `mixed` is to write.
    pub paced_rows_per_s: f64,
    /// Whether to return the engine's own statistics.
    pub stats: bool,
    /// Whether to show progress.
    pub progress: bool,
}

impl Spec {
    /// Returns the rows a commit: the variant's number if it fixes one.
    #[must_use]
    pub fn batch_rows(&self) -> u64 {
        self.variant.batch_rows.unwrap_or(self.batch_rows).max(1)
    }

    /// Returns the options that the engine is opened with.
    #[must_use]
    pub fn engine_options(&self) -> EngineOptions {
        EngineOptions {
            memory_bytes: self.memory_bytes,
            trees: self.workload.trees(),
            codec: self.variant.codec,
            durability: self.variant.durability,
        }
    }
}
