//! Makes the plan of each child from the arguments of `bench` and the defaults of the workload.

use std::collections::BTreeSet;

use super::args::BenchArgs;
use crate::engine::{Codec, EngineKind};
use crate::rows::DataKind;
use crate::workload::backup::ROWS as BACKUP_ROWS;
use crate::workload::compression::{MEMORY_BYTES as COMPRESSION_MEMORY_BYTES, rows_beyond};
use crate::workload::far::ROWS as FAR_ROWS;
use crate::workload::hot::ROWS as HOT_ROWS;
use crate::workload::memory::ROWS as MEMORY_ROWS;
use crate::workload::queue::ROWS as QUEUE_ROWS;
use crate::workload::reads::rows_of_ratio;
use crate::workload::{Part, ReadSeconds, Spec, Variant, Workload};

/// The benchmark's own directory, below the directory that the user names. The benchmark deletes
/// its contents without confirmation.
const DATA: &str = "frondb-bench-data";

/// Rows if their number is not given.
const ROWS: u64 = 10_000_000;

/// Rows of `txn` if their number is not given.
const TXN_ROWS: u64 = 20_000_000;

/// Length of each case of `fsync` unless the user gives a limit, seconds.
const FSYNC_LIMIT_S: f64 = 4.0;

/// Longest load of `durable` unless the user gives a limit, seconds: with one synced row a commit,
/// all rows would take hours.
const DURABLE_LIMIT_S: f64 = 20.0;

/// Memory of an engine if it is not given.
const MEMORY_BYTES: u64 = 256 << 20;

/// Memory of `reads` if it is not given. It is little, because the data is many times larger, but
/// enough for RocksDB: with 64 MiB the cgroup kills RocksDB during a compaction.
const READS_MEMORY_BYTES: u64 = 128 << 20;

/// Returns the memory of an engine: the given number, or else the default of the workload.
pub(super) fn memory_bytes(args: &BenchArgs) -> u64 {
    args.common.memory.unwrap_or(match args.workload {
        Workload::Reads => READS_MEMORY_BYTES,
        Workload::Compression => COMPRESSION_MEMORY_BYTES,
        _ => MEMORY_BYTES,
    })
}

/// Returns the variants to run, in order. `reads` has a variant for each given ratio, the smallest
/// first; `compression` for each given kind and codec. Other workloads have fixed variants.
pub(super) fn variants(args: &BenchArgs) -> Vec<Variant> {
    match args.workload {
        Workload::Reads => {
            let ratios = args.ratios.iter().collect::<BTreeSet<_>>();
            ratios.into_iter().map(|&ratio| Variant::of_ratio(args.codec, ratio)).collect()
        }
        Workload::Compression => {
            let is_named = |kind: &DataKind| args.kinds.is_empty() || args.kinds.contains(kind);
            let is_chosen = |codec: &Codec| args.codecs.is_empty() || args.codecs.contains(codec);
            DataKind::ALL
                .into_iter()
                .filter(is_named)
                .flat_map(|kind| {
                    let codecs = Codec::ALL.into_iter().filter(is_chosen);
                    codecs.map(move |codec| Variant::of_data(kind, codec))
                })
                .collect()
        }
        workload => workload.variants(args.codec),
    }
}

/// Returns how many times each engine is measured.
pub(super) fn rounds(args: &BenchArgs) -> u64 {
    let once = matches!(
        args.workload,
        Workload::Txn
            | Workload::Hot
            | Workload::Queue
            | Workload::Far
            | Workload::Backup
            | Workload::Memory
            | Workload::Reads
            | Workload::Compression
    );
    args.common.rounds.unwrap_or(if once { 1 } else { 3 })
}

/// Returns the number of rows that a child writes.
fn rows(args: &BenchArgs, variant: &Variant) -> u64 {
    if let Some(ratio) = variant.data_ratio {
        return rows_of_ratio(memory_bytes(args), args.common.rows, ratio);
    }
    if let (Some(kind), None) = (variant.data, args.common.rows) {
        return rows_beyond(memory_bytes(args), kind, args.common.seed);
    }
    args.common.rows.unwrap_or(match args.workload {
        Workload::Txn => TXN_ROWS,
        Workload::Hot => HOT_ROWS,
        Workload::Queue => QUEUE_ROWS,
        Workload::Far => FAR_ROWS,
        Workload::Backup => BACKUP_ROWS,
        Workload::Memory => MEMORY_ROWS,
        _ => ROWS,
    })
}

/// Makes the plan of a child.
pub(super) fn spec(args: &BenchArgs, variant: &Variant, kind: &EngineKind) -> Spec {
    let limit = args.common.limit_seconds;
    Spec {
        engine: kind.name.to_owned(),
        workload: args.workload,
        part: Part::Whole,
        variant: variant.clone(),
        rows: rows(args, variant),
        batch_rows: args.batch,
        memory_bytes: memory_bytes(args),
        seed: args.common.seed,
        dir: args.common.dir.join(DATA).join(kind.name),
        limit_s: match args.workload {
            Workload::Durable => Some(limit.unwrap_or(DURABLE_LIMIT_S)),
            Workload::Fsync => Some(limit.unwrap_or(FSYNC_LIMIT_S)),
            _ => limit,
        },
        reads: ReadSeconds::reference(args.read_scale),
        read_threads: args.threads.clone(),
        paced_rows_per_s: args.rate as f64,
        stats: args.stats,
        progress: true,
    }
}
