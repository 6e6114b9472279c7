//! From the arguments of `bench` to the plan of each child: the defaults of each workload.

use super::args::BenchArgs;
use crate::engine::EngineKind;
use crate::workload::memory::ROWS as MEMORY_ROWS;
use crate::workload::{ReadSeconds, Spec, Variant, Workload};

/// Our own directory below the one that the user names. The benchmark deletes its contents without
/// confirmation.
const DATA: &str = "frondb-bench-data";

/// Rows if their number is not given.
const ROWS: u64 = 10_000_000;

/// Rows of `txn` if their number is not given.
const TXN_ROWS: u64 = 20_000_000;

/// Each case of `fsync` takes this long.
const FSYNC_LIMIT_S: f64 = 4.0;

/// Loads of `durable` end after this long: one synced row a commit would take hours.
const DURABLE_LIMIT_S: f64 = 20.0;

/// How many times each engine is measured.
pub(super) fn rounds(args: &BenchArgs) -> u64 {
    let once = matches!(args.workload, Workload::Txn | Workload::Memory);
    args.rounds.unwrap_or(if once { 1 } else { 3 })
}

/// The plan of a child.
pub(super) fn spec(args: &BenchArgs, variant: &Variant, kind: &EngineKind) -> Spec {
    let limit = args.limit_seconds;
    Spec {
        engine: kind.name.to_owned(),
        workload: args.workload,
        variant: variant.clone(),
        rows: args.rows.unwrap_or(match args.workload {
            Workload::Txn => TXN_ROWS,
            Workload::Memory => MEMORY_ROWS,
            _ => ROWS,
        }),
        batch_rows: args.batch,
        memory_bytes: args.memory,
        seed: args.seed,
        dir: args.dir.join(DATA).join(kind.name),
        limit_s: match args.workload {
            Workload::Durable => Some(limit.unwrap_or(DURABLE_LIMIT_S)),
            Workload::Fsync => Some(limit.unwrap_or(FSYNC_LIMIT_S)),
            _ => limit,
        },
        reads: ReadSeconds::reference(args.read_scale),
        paced_rows_per_s: args.rate as f64,
        stats: args.stats,
        progress: true,
    }
}
