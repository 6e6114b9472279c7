//! All steps of `make report`. Commands that depend on the memory option give it, since the pages
//! show it. Rows and times were chosen on two processors. Steps with SLICES compare two engines in
//! turns, so short runs are enough; other steps have one round.

use crate::report::step::{Scaled, Step};

/// The variable ROWS: its value at scale 1, and its least value.
const fn rows(full: f64, least: f64) -> Scaled {
    ("ROWS", full, least)
}

const SLICE_SECONDS: f64 = 3.0;
const GRAPH: &[Scaled] = &[rows(1e6, 10_000.0), ("SLICE_SECONDS", SLICE_SECONDS, 0.5), WARM_UP];
const WARM_UP: Scaled = ("WARM_UP_SECONDS", 10.0, 1.0);
/// Slices of at least one second: sysbench runs for whole seconds.
const SYSBENCH: &[Scaled] = &[rows(1e6, 10_000.0), ("SLICE_SECONDS", 2.0, 1.0)];

/// All steps, in the order in which they run: first the steps of the library, then those under SQL.
pub(crate) const STEPS: &[Step] = &[
    Step::device(0.8, &[("SECONDS", 40.0, 5.0)]),
    Step::bench(
        "iibench",
        3.4,
        "WORKLOAD=iibench ENGINES=frondb,rocksdb MEMORY=256MiB ROUNDS=1",
        &[rows(1e7, 50_000.0), ("READ_SCALE", 0.5, 0.02)],
    ),
    Step::bench(
        "mixed",
        3.3,
        "WORKLOAD=mixed ENGINES=frondb,rocksdb MEMORY=256MiB ROUNDS=1",
        &[rows(1e7, 50_000.0), ("READ_SCALE", 0.5, 0.02)],
    ),
    // RocksDB cannot load with as little memory as it can read with.
    Step::bench(
        "reads",
        2.9,
        "WORKLOAD=reads ENGINES=frondb,rocksdb RATIOS=8 THREADS=1,8 MEMORY=64MiB LOAD_MEMORY=512MiB",
        &[rows(1e6, 10_000.0), ("READ_SCALE", 0.5, 0.02)],
    ),
    Step::bench(
        "overwrite",
        0.3,
        "WORKLOAD=overwrite ENGINES=frondb MEMORY=256MiB ROUNDS=1",
        &[rows(5e6, 50_000.0), ("READ_SCALE", 0.2, 0.02)],
    ),
    Step::bench(
        "delete-left",
        1.1,
        "WORKLOAD=delete-left ENGINES=frondb MEMORY=256MiB ROUNDS=1",
        &[rows(2e7, 50_000.0)],
    ),
    Step::bench("merge", 0.2, "WORKLOAD=merge ROUNDS=1", &[rows(4e6, 50_000.0)]),
    Step::bench(
        "durable",
        1.9,
        "WORKLOAD=durable ENGINES=frondb,rocksdb MEMORY=256MiB ROUNDS=1",
        &[rows(5e6, 50_000.0), ("LIMIT_SECONDS", 10.0, 1.0)],
    ),
    Step::bench(
        "fsync",
        0.4,
        "WORKLOAD=fsync ENGINES=frondb MEMORY=256MiB ROUNDS=1",
        &[("LIMIT_SECONDS", 4.0, 0.5)],
    ),
    Step::bench(
        "txn",
        1.3,
        "WORKLOAD=txn MEMORY=256MiB",
        &[rows(1e7, 50_000.0), ("READ_SCALE", 0.5, 0.02)],
    ),
    // At READ_SCALE=1 the hot rows are updated for ten minutes, twice.
    Step::bench(
        "hot",
        2.4,
        "WORKLOAD=hot MEMORY=256MiB",
        &[rows(5e5, 10_000.0), ("READ_SCALE", 0.1, 0.01)],
    ),
    Step::bench("queue", 0.6, "WORKLOAD=queue MEMORY=256MiB", &[rows(4e5, 10_000.0)]),
    Step::bench("backup", 1.0, "WORKLOAD=backup MEMORY=256MiB", &[rows(1e7, 100_000.0)]),
    // Each case has a memory option of its own. With ENGINES no server is measured: see sql-memory.
    Step::bench("memory", 4.0, "WORKLOAD=memory ENGINES=frondb", &[rows(3e6, 60_000.0)]),
    // FronDB's size includes about 5 MB of log. With fewer rows this would distort the ratio.
    Step::bench(
        "compression",
        7.0,
        "WORKLOAD=compression ENGINES=frondb,rocksdb KINDS=logs,json \
         CODECS=standard,aggressive,toku-lzma MEMORY=256MiB",
        &[rows(800_000.0, 20_000.0), ("READ_SCALE", 0.2, 0.02)],
    ),
    // InnoDB loads for 14 minutes. The limit keeps a slower machine from making the run much
    // longer.
    Step::bench(
        "sql-iibench",
        17.0,
        "WORKLOAD=sql-iibench ENGINES=frondb,innodb,myrocks MEMORY=128MiB",
        &[rows(5e6, 50_000.0), ("LIMIT_SECONDS", 1_000.0, 10.0), ("READ_SECONDS", 6.0, 0.5)],
    ),
    // Here and in the next step the time limit ends InnoDB's load with fewer rows than FronDB's
    // load. The smaller table favours InnoDB, whose rate falls as its table grows.
    Step::bench(
        "sql-iibench-cloud",
        1.9,
        "WORKLOAD=sql-iibench ENGINES=frondb,innodb DISK=cloud MEMORY=128MiB",
        &[rows(3e6, 50_000.0), ("LIMIT_SECONDS", 60.0, 10.0), ("READ_SECONDS", 1.0, 0.5)],
    ),
    Step::bench(
        "wear",
        3.8,
        "WORKLOAD=wear ENGINES=frondb,innodb MEMORY=128MiB",
        &[rows(5e6, 50_000.0), ("LIMIT_SECONDS", 180.0, 10.0)],
    ),
    Step::bench(
        "sql-delete-left",
        0.8,
        "WORKLOAD=sql-delete-left ENGINES=frondb MEMORY=128MiB",
        &[rows(5e6, 50_000.0)],
    ),
    Step::bench(
        "optimize",
        2.4,
        "WORKLOAD=optimize ENGINES=frondb MEMORY=128MiB",
        &[rows(5e6, 50_000.0)],
    ),
    Step::bench(
        "sysbench",
        3.9,
        "WORKLOAD=sysbench ENGINES=frondb,innodb MEMORY=1GiB SLICES=10",
        SYSBENCH,
    ),
    Step::bench(
        "sysbench-beyond",
        4.3,
        "WORKLOAD=sysbench ENGINES=frondb,innodb MEMORY=48MiB SLICES=10",
        SYSBENCH,
    ),
    Step::bench(
        "graph-cloud",
        2.8,
        "WORKLOAD=graph ENGINES=frondb,innodb DISK=cloud MEMORY=128MiB SLICES=10",
        GRAPH,
    ),
    Step::bench(
        "graph-sata",
        2.8,
        "WORKLOAD=graph ENGINES=frondb,innodb DISK=sata MEMORY=128MiB SLICES=10",
        GRAPH,
    ),
    Step::bench(
        "graph-own",
        2.8,
        "WORKLOAD=graph ENGINES=frondb,innodb MEMORY=128MiB SLICES=10",
        GRAPH,
    ),
    Step::bench(
        "graph-memory",
        1.9,
        "WORKLOAD=graph ENGINES=frondb,innodb MEMORY=1GiB SLICES=10",
        &[rows(2e5, 10_000.0), ("SLICE_SECONDS", SLICE_SECONDS, 0.5), WARM_UP],
    ),
    Step::bench(
        "tpcc",
        2.5,
        "WORKLOAD=tpcc ENGINES=frondb,innodb MEMORY=128MiB SLICES=10",
        &[rows(6.0, 1.0), ("SLICE_SECONDS", SLICE_SECONDS, 0.5), WARM_UP],
    ),
    Step::bench(
        "sql-foreign-keys",
        3.7,
        "WORKLOAD=sql-foreign-keys ENGINES=frondb,innodb MEMORY=128MiB",
        &[rows(5e6, 50_000.0), ("LIMIT_SECONDS", 45.0, 5.0)],
    ),
    Step::bench(
        "sql-counts",
        1.5,
        "WORKLOAD=sql-counts ENGINES=frondb,innodb MEMORY=1GiB",
        &[rows(1e6, 10_000.0), ("READ_SECONDS", 3.0, 0.2)],
    ),
    Step::bench(
        "sql-memory",
        5.0,
        "WORKLOAD=sql-memory ENGINES=frondb,innodb MEMORY=200MiB",
        &[rows(819_200.0, 50_000.0)],
    ),
];
