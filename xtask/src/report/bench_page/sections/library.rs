//! The library beside RocksDB.

use crate::report::bench_page::row::Floor::{Max, Min};
use crate::report::bench_page::row::Quantity::{Case, Less, Member, Per, RawPerData};
use crate::report::bench_page::row::Unit::{Kib, Megabytes};
use crate::report::bench_page::row::{Floor, Quantity, ROCKSDB, Row, Section};

/// 1.15 times the memory of the steps, 256 MiB.
const PEAK_BYTES: f64 = 1.15 * 268_435_456.0;

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "Load and reads",
        steps: &["iibench"],
        variant: "",
        peers: &[ROCKSDB],
        text: "{ROWS} rows with three secondary trees, {MEMORY}; then reads by one thread.",
        short: "library: load {ROWS} rows with three secondary trees, {MEMORY}; then reads",
        rows: &[
            Row::new("rows/s, acknowledged", Member("rows_per_s"))
                .first(Min(1.5))
                .short("the rows/s"),
            Row::new("rows/s, settled", Member("rows_per_s_settled")).first(Min(1.5)),
            Row::new("rows/s, last fifth", Member("rows_per_s_last_fifth")).first(Min(1.5)),
            Row::less("CPU us a row", Member("cpu_us_per_row")).first(Max(0.7)).short("the CPU"),
            Row::less("written / raw bytes", Per("written_bytes", "raw_bytes"))
                .floor(Max(4.0))
                .short("the bytes written"),
            Row::less("size on disk, MB", Member("disk_bytes"))
                .unit(Megabytes)
                .first(Max(1.0))
                .short("the size"),
            Row::new("slowest / median second", Member("min_interval_ratio"))
                .floor(Min(0.3))
                .alone(),
            Row::less("worst batch of 1,000 rows, ms", Member("batch_ms_max")),
            Row::new("point reads/s", Member("point_ops_s")).first(Min(1.0)).short("the points"),
            Row::new("10-entry scans/s", Member("scan10_ops_s"))
                .first(Min(1.0))
                .short("the short scans"),
            Row::new("1,000-entry scans/s", Member("scan1000_ops_s"))
                .first(Min(1.0))
                .short("the long scans"),
            Row::new("full scan, entries/s", Member("fullscan_items_s"))
                .first(Min(1.5))
                .short("the full scan"),
            PEAK,
        ],
    },
    Section {
        title: "Reads beside a writer",
        steps: &["mixed"],
        variant: "",
        peers: &[ROCKSDB],
        text: "The same table; then two threads read while 20,000 rows/s are written.",
        short: "library: two readers beside a writer of 20,000 rows/s, {ROWS} rows, {MEMORY}",
        rows: &[
            Row::new("point reads/s", Member("point_ops_s")).first(Min(1.0)).short("the points"),
            Row::new("10-entry scans/s", Member("scan10_ops_s"))
                .first(Min(1.0))
                .short("the short scans"),
            Row::new("1,000-entry scans/s", Member("scan1000_ops_s"))
                .first(Min(1.0))
                .short("the long scans"),
            Row::less("written / raw bytes", Per("written_bytes", "raw_bytes")).floor(Max(4.0)),
            Row::less("worst batch of 1,000 rows, ms", Member("batch_ms_max")),
            PEAK,
        ],
    },
    Section {
        title: "Reads",
        steps: &["reads"],
        variant: "8x",
        peers: &[ROCKSDB],
        text: "{RATIOS} times {ROWS} rows, about {RATIOS} times the memory ({MEMORY}); the load has {LOAD_MEMORY}.",
        short: "",
        rows: &[
            Row::less("size on disk, MB", Member("disk_bytes")).unit(Megabytes),
            point(1, "points/s, 1 thread").first(Min(1.3)),
            point(8, "points/s, 8 threads").first(Min(1.3)),
            Row::new("10-entry scans/s, 1 thread", Case(("scan10", "uniform", 1), "ops_s")),
            Row::new("1,000-entry scans/s, 1 thread", Case(("scan1000", "uniform", 1), "ops_s")),
            Row::new(
                "100 points in a call, calls/s",
                Case(("multi_get100", "uniform", 1), "ops_s"),
            ),
            Row::new("points/s, zipfian keys, 8 threads", Case(("point", "zipfian", 8), "ops_s")),
            Row::less("CPU us a point, 1 thread", Case(POINT, "cpu_us_per_op")).floor(Max(22.0)),
            Row::less("KiB read a point", Case(POINT, "read_bytes_per_op")).unit(Kib),
            Row::less("device reads a point", Case(POINT, "device_reads_per_op")),
        ],
    },
    Section {
        title: "Durable commits",
        steps: &["durable", "fsync"],
        variant: "",
        peers: &[ROCKSDB],
        text: "Rows with three secondary trees by one thread, {LIMIT_SECONDS} s a case at most; then commits of one row by several threads, which [share \
               syncs](design/wal-and-commit.md#group-commit).",
        short: "",
        rows: &[
            durable("1 row a commit, synced: rows/s", "1 a commit, sync"),
            durable("1,000 rows a commit, synced: rows/s", "1000 a commit, sync"),
            durable("10,000 rows a commit, synced: rows/s", "10000 a commit, sync"),
            durable("1 row a commit, not synced: rows/s", "1 a commit, no sync"),
            durable("1,000 rows a commit, not synced: rows/s", "1000 a commit, no sync"),
            fsync("synced commits/s, 16 threads", "16 threads", "commits_per_s"),
            fsync("synced commits/s, 64 threads", "64 threads", "commits_per_s"),
            fsync("syncs a commit, 64 threads", "64 threads", "syncs_per_commit"),
        ],
    },
    Section {
        title: "Compression",
        steps: &["compression"],
        variant: "",
        peers: &[ROCKSDB],
        text: "{ROWS} lines of a web server's log and as many JSON events, {MEMORY}. `standard` is each engine's recommended codec; `aggressive` is RocksDB's \
               zstd 19 with dictionaries and blocks of 128 KiB. With less memory FronDB's dictionaries are smaller (1/256 of it), and so is the ratio.",
        short: "",
        rows: &[
            Row::new("lines, standard: raw / size", RawPerData)
                .of(STEP, "logs standard")
                .first(Min(1.0)),
            Row::new("lines, aggressive: raw / size", RawPerData)
                .of(STEP, AGGRESSIVE)
                .floor(Min(8.0)),
            Row::less("lines, aggressive: size to lzma's on blocks of 4 MiB", LOGS_TO_LZMA)
                .of(STEP, "logs standard")
                .floor(Floor::OfFile)
                .ratio(),
            Row::new("lines, aggressive: rows/s loaded", Member("rows_per_s"))
                .of(STEP, AGGRESSIVE)
                .floor(Min(150_000.0)),
            Row::less("lines, aggressive: s to pack", Member("pack_s")).of(STEP, AGGRESSIVE),
            Row::new("lines, aggressive: points/s", Member("point_ops_s"))
                .of(STEP, AGGRESSIVE)
                .first(Min(1.0)),
            Row::new("events, aggressive: raw / size", RawPerData).of(STEP, "json aggressive"),
            Row::less("events, aggressive: size to lzma's on blocks of 4 MiB", JSON_TO_LZMA)
                .of(STEP, "json standard")
                .floor(Floor::OfFile)
                .ratio(),
        ],
    },
];

const PEAK: Row = Row::less("peak memory growth, MB", Less("rss_peak_bytes", "rss_empty_bytes"))
    .unit(Megabytes)
    .floor(Max(PEAK_BYTES));

const POINT: (&str, &str, u64) = ("point", "uniform", 1);
const STEP: &str = "compression";
const AGGRESSIVE: &str = "logs aggressive";
/// These figures are in the measurement of the first codec of their kind of data.
const LOGS_TO_LZMA: Quantity = Quantity::Figure("logs: aggressive, size to tokudb toku-lzma");
const JSON_TO_LZMA: Quantity = Quantity::Figure("json: aggressive, size to tokudb toku-lzma");

const fn point(threads: u64, label: &'static str) -> Row {
    Row::new(label, Case(("point", "uniform", threads), "ops_s"))
}

const fn durable(label: &'static str, variant: &'static str) -> Row {
    Row::new(label, Member("rows_per_s")).of("durable", variant)
}

const fn fsync(label: &'static str, variant: &'static str, member: &'static str) -> Row {
    Row::new(label, Member(member)).of("fsync", variant).alone()
}
