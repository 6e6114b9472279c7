//! A MariaDB server: many clients, statements of reports, and memory.

use crate::report::bench_page::row::Floor::{Max, Min, OfFile};
use crate::report::bench_page::row::Quantity::{Figure, Member};
use crate::report::bench_page::row::Unit::{Megabytes, Times};
use crate::report::bench_page::row::{INNODB, Row, Section};

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        title: "sysbench",
        steps: &["sysbench", "sysbench-beyond"],
        variant: "",
        peers: &[INNODB],
        text: "One table of {ROWS} rows, two threads: in memory ({MEMORY}) and five times the memory ({sysbench-beyond.MEMORY}). Ratios are medians of {SLICES} \
               [pairs of slices](benchmark-method.md#slices) of {SLICE_SECONDS} s, with quartiles.",
        short: "",
        rows: &[
            rate("in memory: points/s", "sysbench", "oltp_point_select", 1.0),
            rate("in memory: read-only/s", "sysbench", "oltp_read_only", 1.0),
            rate("in memory: index updates/s", "sysbench", "oltp_update_index", 1.0),
            rate("in memory: read-write/s", "sysbench", "oltp_read_write", 1.0),
            rate("beyond memory: points/s", "sysbench-beyond", "oltp_point_select", 1.2),
            rate("beyond memory: read-only/s", "sysbench-beyond", "oltp_read_only", 1.2),
            rate("beyond memory: index updates/s", "sysbench-beyond", "oltp_update_index", 1.2),
            rate("beyond memory: read-write/s", "sysbench-beyond", "oltp_read_write", 1.2),
        ],
    },
    Section {
        title: "Graph and TPC-C",
        steps: &["graph-cloud", "graph-own", "graph-memory", "tpcc"],
        variant: "",
        peers: &[INNODB],
        text: "LinkBench's mix on {ROWS} nodes: with {MEMORY} on a volume of 3,000 requests/s and on the disk as it is, and on {graph-memory.ROWS} nodes in \
               memory. TPC-C's mix on {tpcc.ROWS} warehouses with {tpcc.MEMORY}. Ratios of rates are medians of {SLICES} pairs of slices; *written* is in their time.",
        short: "SQL: LinkBench's mix beyond memory, a volume of 3,000 requests/s",
        rows: &[
            timed("graph, cloud volume: operations/s", "graph-cloud")
                .first(Min(2.0))
                .short("the operations/s"),
            slow("graph, cloud volume: 99.9th percentile, ms", "graph-cloud")
                .short("the 99.9th percentile"),
            timed("graph, own disk: operations/s", "graph-own").first(Min(1.15)),
            slow("graph, own disk: 99.9th percentile, ms", "graph-own"),
            written("graph, own disk: written, MB", "graph-own"),
            size("graph, own disk: size, MB", "graph-own"),
            timed("graph in memory: operations/s", "graph-memory").first(Min(1.1)),
            cpu("graph in memory: server CPU us", "graph-memory", ""),
            timed("TPC-C: transactions/s", "tpcc").first(Min(1.6)),
            slow("TPC-C: 99.9th percentile, ms", "tpcc").first(Max(1.0)),
            Row::less("TPC-C: worst, ms", Member("transaction_ms_max"))
                .of("tpcc", "")
                .first(Max(1.5)),
        ],
    },
    Section {
        title: "Counts",
        steps: &["sql-counts"],
        variant: "",
        peers: &[INNODB],
        text: "Server CPU of a statement, us; {ROWS} rows in memory. FronDB's rows are in memtables for a minute after the load, which costs more.",
        short: "",
        rows: &[
            count("`COUNT(*)` of the table", "count"),
            count("a range that an index covers, summed", "covered range"),
            count("`COUNT(DISTINCT)`", "count distinct"),
            count("`GROUP BY` of a key", "group by"),
            count("`MIN` and `MAX` of each group", "min and max of a group"),
            count("all rows", "rows by primary key"),
            count("a join that an index covers", "covered join"),
        ],
    },
    Section {
        title: "Memory of a server",
        steps: &["sql-memory"],
        variant: "",
        peers: &[],
        text: "{ROWS} rows are loaded, 200 connections work, then statements. The server's growth, less \
               InnoDB's with a buffer pool of 8 MiB and 32 KiB an open connection, divided by `frondb_memory` ({MEMORY}); *whole*: InnoDB's not subtracted.",
        short: "",
        rows: &[
            held("load, peak", "load, peak: less the control and connections, by the option"),
            held(
                "connections, peak",
                "busy, peak: less the control and connections, by the option",
            ),
            held("connections, idle", "at rest: less the control and connections, by the option"),
            held("after their end", "closed: less the control and connections, by the option"),
            held(
                "INSERT of 1 M rows, peak",
                "insert, two secondary keys, peak: less the control and connections, by the option",
            ),
            held(
                "DELETE of half, peak",
                "delete, peak: less the control and connections, by the option",
            ),
            held("DELETE, whole", "delete, peak: less connections, by the option"),
            held(
                "INSERT of children, peak",
                "insert, a foreign key, peak: less the control and connections, by the option",
            ),
            held(
                "INSERT of children, whole",
                "insert, a foreign key, peak: less connections, by the option",
            ),
            held(
                "status of 5,000 tables, peak",
                "table status, peak: less the control and connections, by the option",
            ),
            held("status, whole", "table status, peak: less connections, by the option"),
            Row::less("status of 5,000 tables, s", Figure("table status of 5,000 tables, first"))
                .floor(OfFile),
        ],
    },
];

const RATE: &str = "transactions/s";

const fn rate(label: &'static str, step: &'static str, test: &'static str, floor: f64) -> Row {
    Row::new(label, Member("transactions_per_s")).of(step, test).pairs(RATE).first(Min(floor))
}

const fn cpu(label: &'static str, step: &'static str, variant: &'static str) -> Row {
    Row::less(label, Member("server_cpu_us_per_row")).of(step, variant).pairs("server CPU")
}

const fn timed(label: &'static str, step: &'static str) -> Row {
    Row::new(label, Member("transactions_per_s")).of(step, "").pairs(RATE)
}

const fn slow(label: &'static str, step: &'static str) -> Row {
    Row::less(label, Member("transaction_ms_p999")).of(step, "")
}

/// Compares bytes in the same time: both engines work equally long.
const fn written(label: &'static str, step: &'static str) -> Row {
    Row::less(label, Member("written_bytes")).of(step, "").unit(Megabytes)
}

const fn size(label: &'static str, step: &'static str) -> Row {
    Row::less(label, Member("disk_bytes")).of(step, "").unit(Megabytes)
}

const fn count(label: &'static str, query: &'static str) -> Row {
    Row::less(label, Member("server_cpu_us_per_row")).of("sql-counts", query).first(Max(1.0))
}

const fn held(label: &'static str, figure: &'static str) -> Row {
    Row::less(label, Figure(figure)).unit(Times).floor(OfFile)
}
