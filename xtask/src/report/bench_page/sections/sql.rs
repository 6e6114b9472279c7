//! A MariaDB server: loads of rows, and reads, OPTIMIZE, deletes and ALTER after them.

use crate::report::bench_page::row::Floor::{Max, Min, OfFile};
use crate::report::bench_page::row::Quantity::{Figure, Member, Per, PerThousand};
use crate::report::bench_page::row::Unit::Times;
use crate::report::bench_page::row::{INNODB, MYROCKS, Row, Section};

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "SQL load and reads",
        steps: &["sql-iibench"],
        variant: "",
        peers: &[INNODB, MYROCKS],
        text: "One connection inserts {ROWS} rows with three secondary indexes, 1,000 a statement, for {LIMIT_SECONDS} s at most, {MEMORY}; then it reads. [heritage.md](heritage.md) has \
               the wear of a drive.",
        short: "SQL: load {ROWS} rows with three secondary indexes, {MEMORY}",
        rows: &[
            Row::new("rows/s", Member("rows_per_s")).second(Min(0.9)).short("the rows/s"),
            Row::new("rows/s, last fifth", Member("rows_per_s_last_fifth"))
                .first(Min(4.0))
                .short("the rows/s in the last fifth"),
            Row::less("server CPU us a row", Member("server_cpu_us_per_row"))
                .second(Max(1.0))
                .short("the CPU"),
            Row::less("bytes written a byte of rows", Per("written_bytes", "raw_bytes"))
                .first(Max(1.0 / 20.0))
                .second(Max(1.2))
                .short("the bytes written"),
            Row::less("size on disk a byte of rows", Per("disk_bytes", "raw_bytes"))
                .first(Max(0.6))
                .second(Max(1.1))
                .short("the size"),
            Row::less(
                "write requests a thousand rows, of the device",
                PerThousand("write_ops", "rows"),
            ),
            Row::less("worst statement of 1,000 rows, ms", Member("batch_ms_max")),
            Row::new("point reads/s", Member("point_ops_s")),
            Row::new("10-entry scans/s", Member("scan10_ops_s")),
            Row::new("1,000-entry scans/s", Member("scan1000_ops_s")),
            Row::new("full scan, entries/s", Member("fullscan_items_s")),
        ],
    },
    Section {
        title: "SQL load on a cloud volume",
        steps: &["sql-iibench-cloud"],
        variant: "",
        peers: &[INNODB],
        text: "The same on a disk limited to 3,000 requests and 125 MB a second; the load ends after {LIMIT_SECONDS} s.",
        short: "SQL: the same load on a volume of 3,000 requests/s",
        rows: &[
            Row::new("rows/s", Member("rows_per_s")),
            Row::new("rows/s, last fifth", Member("rows_per_s_last_fifth"))
                .first(Min(15.0))
                .short("the rows/s in the last fifth"),
        ],
    },
    Section {
        title: "OPTIMIZE TABLE",
        steps: &["optimize"],
        variant: "",
        peers: &[],
        text: "The same table of {ROWS} rows, {MEMORY}. The writer adds 20,000 rows/s. Then half of the rows is deleted from the left.",
        short: "SQL: OPTIMIZE TABLE of {ROWS} rows",
        rows: &[
            Row::less("OPTIMIZE, s", Figure("optimize of the loaded table")),
            Row::less(
                "OPTIMIZE, its time to that of a copy of the table",
                Figure("optimize by copy: time"),
            )
            .floor(OfFile)
            .short("the time of a copy of the table")
            .ratio(),
            Row::less("extra space of OPTIMIZE, %", Figure("optimize: extra disk")).floor(OfFile),
            Row::new(
                "a writer beside OPTIMIZE, its rate to alone",
                Figure("beside a writer: rate kept"),
            )
            .floor(OfFile)
            .ratio(),
            Row::less(
                "the writer's worst batch of 1,000 rows, ms",
                Figure("worst batch beside it"),
            )
            .floor(OfFile),
            Row::less("deviation from the requested throttle, %", Figure("throttle: off by"))
                .floor(OfFile),
            Row::less("deviation from the requested fraction, %", Figure("fraction: off by"))
                .floor(OfFile),
            Row::less("after the deletes: `MIN(id)`, ms", Figure("after the deletes: min"))
                .floor(OfFile),
            Row::less("after the deletes: `COUNT(*)`, ms", Figure("after the deletes: count")),
        ],
    },
    Section {
        title: "Foreign keys",
        steps: &["sql-foreign-keys"],
        variant: "",
        peers: &[INNODB],
        text: "Orders with two foreign keys are inserted for {LIMIT_SECONDS} s, {MEMORY}. Then a customer with 100,000 orders is deleted, and a third foreign \
               key added to the orders that each engine has.",
        short: "SQL: insert orders with two foreign keys, {MEMORY}",
        rows: &[
            Row::new("orders inserted a second", Member("rows_per_s"))
                .first(Min(2.0))
                .short("the rows/s"),
            Row::less("server CPU us an order", Member("server_cpu_us_per_row"))
                .first(Max(1.0))
                .short("the CPU"),
            Row::less("bytes written an order", Per("written_bytes", "rows"))
                .short("the bytes written"),
            Row::less(
                "DELETE of the customer, s",
                Figure("delete of a parent with 100,000 children"),
            )
            .first(Max(1.0 / 1.5)),
            Row::new("ADD FOREIGN KEY, rows/s", Figure("add a foreign key: rows/s"))
                .first(Min(3.0))
                .short("the rows/s of ADD FOREIGN KEY"),
            Row::new("a writer beside ADD FOREIGN KEY, its rate to alone", Figure("its rate kept"))
                .unit(Times)
                .floor(Min(0.8)),
            Row::less("the writer's worst statement, ms", Figure("its worst statement")),
        ],
    },
];
