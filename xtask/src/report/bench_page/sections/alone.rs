//! The library alone: functions that the other engines do not have.

use crate::report::bench_page::row::Floor::{Max, Min, OfFile};
use crate::report::bench_page::row::Quantity::{Figure, Highest, Listed, Member};
use crate::report::bench_page::row::Unit::Times;
use crate::report::bench_page::row::{Row, Section};

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "Deletes from the left",
        steps: &["delete-left", "sql-delete-left"],
        variant: "",
        peers: &[],
        text: "The lower half of {ROWS} rows is deleted in key order with the secondary entries ({MEMORY}), under SQL of {sql-delete-left.ROWS} rows; \
               right after that the first and the last key are read.",
        short: "library: the lower half of {ROWS} rows is deleted in key order",
        rows: &[
            Row::less("library: first key, ms", Member("first_key_ms"))
                .floor(Max(10.0))
                .short("ms to read the first key right after that"),
            Row::new("library: rows deleted a second", Member("deletes_per_s")),
            Row::less("SQL: `MIN(id)`, ms", Member("first_key_ms"))
                .of("sql-delete-left", "")
                .floor(Max(20.0)),
        ],
    },
    Section {
        title: "Transactions",
        steps: &["txn"],
        variant: "",
        peers: &[],
        text: "{ROWS} rows of random keys, {MEMORY}.",
        short: "",
        rows: &[
            Row::new("transactions of one row/s, not synced", Listed("single-row transactions")),
            Row::new(
                "transactions of one row, their rate to that of batches",
                Listed("single-row transactions to batches"),
            )
            .floor(OfFile)
            .ratio(),
            Row::new(
                "durable commits/s of one row, 16 threads",
                Listed("durable commits, 16 threads"),
            ),
            Row::new(
                "16 threads, their rate to that of one",
                Listed("durable commits, 16 threads to 1"),
            )
            .floor(OfFile)
            .unit(Times),
            Row::new("points/s at a snapshot, alone", Listed("snapshot reads, alone")),
            Row::new(
                "points beside a writer at full speed, to alone",
                Listed("snapshot reads, beside a writer to alone"),
            )
            .floor(OfFile)
            .ratio(),
            Row::less("lock and unlock of a row, us", Listed("lock and unlock of one row"))
                .floor(OfFile),
            Row::new("one transaction of all rows, rows/s", Listed("large transaction")),
            Row::new(
                "one transaction, its rate to that of batches of 1,000",
                Listed("large transaction to batches, rows/s"),
            )
            .floor(OfFile)
            .ratio(),
            Row::less("commit of that transaction, s", Listed("large transaction, commit call"))
                .floor(OfFile),
            Row::less(
                "peak memory of that transaction, divided by the option",
                Listed("large transaction, peak memory to MEMORY"),
            )
            .floor(OfFile)
            .unit(Times),
            Row::less(
                "bulk load: CPU to that of batches",
                Listed("bulk load to batches, CPU a row"),
            )
            .floor(OfFile)
            .unit(Times),
        ],
    },
    Section {
        title: "Hot rows",
        steps: &["hot"],
        variant: "",
        peers: &[],
        text: "Two trees of {ROWS} rows, {MEMORY}. The same 1 % of one tree is updated at full speed ({READ_SCALE} times ten minutes), then as long beside an older \
               snapshot, then random rows. A figure is the time of a read of that tree, divided by that of the tree at rest.",
        short: "",
        rows: &[
            hot("points of hot rows", "points of hot rows, updated tree to other"),
            hot("points", "points, updated tree to other"),
            hot("scans of 100 entries", "scans of 100, updated tree to other"),
            hot(
                "with a snapshot: points of hot rows",
                "points of hot rows, old snapshot, updated tree to other",
            ),
            hot("with a snapshot: points", "points, old snapshot, updated tree to other"),
            hot(
                "with a snapshot: scans of 100 entries",
                "scans of 100, old snapshot, updated tree to other",
            ),
            hot("random rows: points", "points, random updates, updated tree to other"),
            hot(
                "random rows: scans of 100 entries",
                "scans of 100, random updates, updated tree to other",
            ),
        ],
    },
    Section {
        title: "Queues",
        steps: &["queue"],
        variant: "",
        peers: &[],
        text: "Half of {ROWS} rows are popped: a new cursor reads the first row, which is deleted. Commits are not synced, {MEMORY}.",
        short: "",
        rows: &[
            pops("pops/s in one transaction", "pops in one transaction"),
            pops(
                "the last tenth of these pops, its rate to that of the first",
                "pops in one transaction, last tenth to first",
            )
            .ratio(),
            pops(
                "pops/s in one transaction, from the end",
                "pops in one transaction, from the end",
            ),
            pops("pops/s, 100 a transaction", "pops, 100 a transaction"),
            pops("pops/s, a commit each", "pops, a commit each"),
            pops(
                "pops/s, a commit each, beside an old snapshot",
                "pops, a commit each, old snapshot",
            ),
            pops("pops and pushes/s, a commit each", "pops and pushes, a commit each"),
        ],
    },
    Section {
        title: "Backups and merges",
        steps: &["backup", "merge"],
        variant: "",
        peers: &[],
        text: "{ROWS} rows, {MEMORY}; the backup goes to the same disk. The merge kernel merges {merge.ROWS} entries in memory on one core.",
        short: "",
        rows: &[
            Row::new("full backup, MB/s", Listed("backup")),
            Row::new(
                "full backup, its rate to that of reading the files",
                Listed("backup to reading the files"),
            )
            .floor(OfFile)
            .ratio(),
            Row::new(
                "a writer beside a backup, its rate to alone",
                Listed("writer beside to alone"),
            )
            .floor(OfFile)
            .ratio(),
            Row::less("longest commit beside a backup, ms", Listed("longest commit beside"))
                .floor(OfFile),
            Row::less(
                "incremental after 5 % of rows changed, to full",
                Listed("incremental after 5 % of rows to full"),
            )
            .floor(OfFile)
            .unit(Times),
            Row::new("merged entries/s, no codec", Member("merge_none_entries_s"))
                .of("merge", "")
                .floor(Min(1e7)),
            Row::new("merged entries/s, zstd-1", Member("merge_zstd_entries_s"))
                .of("merge", "")
                .floor(Min(4e6)),
        ],
    },
    Section {
        title: "Memory",
        steps: &["memory"],
        variant: "",
        peers: &[],
        text: "Eighteen cases of {ROWS} rows and more: peak of the process, less the empty process and 32 KiB for each reading thread, divided by the option.",
        short: "",
        rows: &[
            Row::less("the highest of all cases", Highest(": peak / option"))
                .floor(OfFile)
                .unit(Times),
            peak(
                "load with 1,000 cursors held, 16 MiB",
                "1,000 cursors, 16 MiB",
                "1,000 cursors, 16 MiB: peak / option",
            ),
            peak(
                "opened after a kill, 16 MiB",
                "recovery, 16 MiB",
                "recovery, 16 MiB: peak / option",
            ),
            peak(
                "1 M rows read with locks in each of 2 trees, 64 MiB",
                "locks of reads in 2 trees, 64 MiB",
                "locks of reads in 2 trees, 64 MiB: peak / option",
            ),
            peak(
                "10,000 idle trees, 16 MiB",
                "10,000 idle trees, 16 MiB",
                "10,000 idle trees, 16 MiB: peak / option",
            ),
        ],
    },
];

const fn hot(label: &'static str, name: &'static str) -> Row {
    Row::less(label, Listed(name)).floor(OfFile).ratio()
}

const fn pops(label: &'static str, name: &'static str) -> Row {
    Row::new(label, Listed(name)).floor(OfFile)
}

const fn peak(label: &'static str, case: &'static str, name: &'static str) -> Row {
    Row::less(label, Figure(name)).of("memory", case).floor(OfFile).unit(Times)
}
