//! The charts of heritage.md, and that of choosing.md.

use super::bars::{Chart, Group, Series};
use super::claims::{durable, linkbench, optimize, ssd};
use super::results::Results;

const TOKUDB: Series = Series { name: "TokuDB (document)", colour: "#8c6bb1" };
const INNODB_THEN: Series = Series { name: "InnoDB (document)", colour: "#bbbbbb" };
const FRONDB: Series = Series { name: "FronDB (here)", colour: "#1f77b4" };
const INNODB: Series = Series { name: "InnoDB (here)", colour: "#e08214" };

/// Returns the charts of heritage.md, in the order of the page.
pub(super) fn all(r: &Results) -> Vec<Chart> {
    vec![inserts(r), compression(r), wear(r), smallest_key(r), commits(r), linkbench(r)]
}

/// Returns the chart of choosing.md: a load in a server, and reads after it.
pub(super) fn engines(r: &Results) -> Chart {
    let bars = |member: &str| {
        let of = |engine| r.engine("sql-iibench", engine).and_then(|m| m.number(member)).ok();
        vec![(0, of("frondb")), (1, of("myrocks")), (2, of("innodb"))]
    };
    let groups = [
        ("rows, whole load", "rows_per_s"),
        ("rows, last fifth", "rows_per_s_last_fifth"),
        ("point reads", "point_ops_s"),
        ("10-entry scans", "scan10_ops_s"),
        ("1,000-entry scans", "scan1000_ops_s"),
    ];
    Chart {
        name: "engines",
        title: "A load with three secondary indexes, and reads after it",
        unit: "a second, in MariaDB, with data larger than memory",
        is_log: true,
        series: vec![
            Series { name: "FronDB", colour: FRONDB.colour },
            Series { name: "MyRocks", colour: "#6aa84f" },
            Series { name: "InnoDB", colour: INNODB.colour },
        ],
        groups: groups.map(|(name, member)| group(name, bars(member))).into(),
    }
}

fn inserts(r: &Results) -> Chart {
    let here = ssd::last_fifths(r).ok();
    Chart {
        name: "inserts",
        title: "Inserts with three secondary indexes, at the end of the load",
        unit: "rows a second",
        is_log: true,
        series: vec![TOKUDB, INNODB_THEN, FRONDB, INNODB],
        groups: vec![
            group("document, 1 billion rows", vec![(0, Some(14_532.0)), (1, Some(1_607.0))]),
            group("here, last fifth", vec![(2, here.map(|h| h.0)), (3, here.map(|h| h.1))]),
        ],
    }
}

fn compression(r: &Results) -> Chart {
    let kinds = [("logs", "log lines"), ("json", "JSON events")];
    let bars = |kind: &str| {
        let of = |codec| ssd::ratio(r, kind, codec).ok();
        vec![(0, of("toku-lzma")), (1, of("standard")), (2, of("aggressive"))]
    };
    Chart {
        name: "compression",
        title: "Compression",
        unit: "bytes of keys and values, divided by bytes on disk",
        is_log: false,
        series: vec![
            Series {
                name: "lzma alone, blocks of 4 MiB (TokuDB's algorithm)",
                colour: TOKUDB.colour,
            },
            Series { name: "FronDB standard", colour: "#9ecae1" },
            Series { name: "FronDB aggressive", colour: FRONDB.colour },
        ],
        groups: kinds.map(|(kind, name)| group(name, bars(kind))).into(),
    }
}

fn wear(r: &Results) -> Chart {
    let [bytes, requests] = ssd::wear(r).map(Result::ok);
    Chart {
        name: "wear",
        title: "Wear: how many times less is written than by InnoDB",
        unit: "InnoDB's figure divided by the engine's",
        is_log: true,
        series: vec![TOKUDB, FRONDB],
        groups: vec![
            group("bytes", vec![(0, Some(17.0)), (1, bytes)]),
            group("write requests", vec![(0, Some(161.0)), (1, requests)]),
        ],
    }
}

fn smallest_key(r: &Results) -> Chart {
    let min = optimize::key_ms(r, "first_key_ms").ok();
    let after = optimize::after_ms(r).ok();
    Chart {
        name: "smallest-key",
        title: "Time of MIN of the key, after half of the rows was deleted from the left",
        unit: "milliseconds (TokuDB: 200 million rows)",
        is_log: true,
        series: vec![TOKUDB, FRONDB],
        groups: vec![
            group("right after the deletes", vec![(0, Some(26_130.0)), (1, min)]),
            group("after OPTIMIZE", vec![(0, Some(10.0)), (1, after)]),
        ],
    }
}

fn commits(r: &Results) -> Chart {
    let groups = durable::CASES.map(|(name, toku, variant)| {
        group(name, vec![(0, Some(toku)), (1, durable::rate(r, variant).ok())])
    });
    Chart {
        name: "commits",
        title: "Durable commits of rows with secondary indexes",
        unit: "rows a second (TokuDB under MySQL, FronDB through the library)",
        is_log: true,
        series: vec![TOKUDB, FRONDB],
        groups: groups.into(),
    }
}

fn linkbench(r: &Results) -> Chart {
    let here = |step: &str| {
        let rates = linkbench::rates(r, step).ok();
        vec![(2, rates.map(|rates| rates.0)), (3, rates.map(|rates| rates.1))]
    };
    Chart {
        name: "linkbench",
        title: "LinkBench's mix of operations",
        unit: "operations a second",
        is_log: false,
        series: vec![TOKUDB, INNODB_THEN, FRONDB, INNODB],
        groups: vec![
            group("document, SATA SSD", vec![(0, Some(14_633.0)), (1, Some(6_029.0))]),
            group("here, limited as SATA", here("graph-sata")),
            group("document, NVMe", vec![(0, Some(20_594.0)), (1, Some(27_739.0))]),
            group("here, the disk as it is", here("graph-own")),
        ],
    }
}

fn group(name: &str, bars: Vec<(usize, Option<f64>)>) -> Group {
    Group { name: name.to_owned(), bars }
}
