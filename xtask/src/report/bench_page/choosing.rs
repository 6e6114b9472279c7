//! The tables of docs/choosing.md: the ratios of a few loads, one column for each engine. Each cell
//! names rows of sections of benchmarks.md, so both pages have the same figures.

use std::fmt::Write as _;

use super::lookup::{Figures, figures};
use super::readme::between_marks;
use super::row::Section;
use super::sections::sections;
use super::text::ratio;
use crate::Result;
use crate::report::results::Results;

const ENGINES: [&str; 3] = ["InnoDB", "MyRocks", "RocksDB"];

/// The words of a line, and the rows that have its ratios: title of the section and label. The first
/// one that compares FronDB with the engine of a column gives the figure.
type Line = (&'static str, &'static [(&'static str, &'static str)]);

const SQL: &str = "SQL load and reads";
const LIBRARY: &str = "Load and reads";

const BEYOND_MEMORY: &[Line] = &[
    ("rows/s", &[(SQL, "rows/s"), (LIBRARY, "rows/s, settled")]),
    ("rows/s, last fifth", &[(SQL, "rows/s, last fifth"), (LIBRARY, "rows/s, last fifth")]),
    ("CPU a row", &[(SQL, "server CPU us a row"), (LIBRARY, "CPU us a row")]),
    ("bytes written", &[(SQL, "bytes written a byte of rows"), (LIBRARY, "written / raw bytes")]),
    ("size on disk", &[(SQL, "size on disk a byte of rows"), (LIBRARY, "size on disk, MB")]),
    (
        "worst 1,000 rows, ms",
        &[(SQL, "worst statement of 1,000 rows, ms"), (LIBRARY, "worst batch of 1,000 rows, ms")],
    ),
    ("point reads/s", &[(SQL, "point reads/s"), (LIBRARY, "point reads/s")]),
    ("10-entry scans/s", &[(SQL, "10-entry scans/s"), (LIBRARY, "10-entry scans/s")]),
    ("1,000-entry scans/s", &[(SQL, "1,000-entry scans/s"), (LIBRARY, "1,000-entry scans/s")]),
    ("full scan", &[(SQL, "full scan, entries/s"), (LIBRARY, "full scan, entries/s")]),
];

const MIXED: &[Line] = &[
    ("in memory: point reads/s", &[("sysbench", "in memory: points/s")]),
    ("in memory: read-only transactions/s", &[("sysbench", "in memory: read-only/s")]),
    ("in memory: read-write transactions/s", &[("sysbench", "in memory: read-write/s")]),
    ("in memory: index updates/s", &[("sysbench", "in memory: index updates/s")]),
    ("in memory: social graph, operations/s", &[(GRAPH, "graph in memory: operations/s")]),
    ("in memory: CPU of `COUNT(*)`", &[("Counts", "`COUNT(*)` of the table")]),
    ("beyond memory: point reads/s", &[("sysbench", "beyond memory: points/s")]),
    ("beyond memory: read-only transactions/s", &[("sysbench", "beyond memory: read-only/s")]),
    ("beyond memory: read-write transactions/s", &[("sysbench", "beyond memory: read-write/s")]),
    ("beyond memory: index updates/s", &[("sysbench", "beyond memory: index updates/s")]),
    (
        "beyond memory, cloud volume: social graph, operations/s",
        &[(GRAPH, "graph, cloud volume: operations/s")],
    ),
    ("beyond memory: TPC-C, transactions/s", &[(GRAPH, "TPC-C: transactions/s")]),
    ("foreign keys: orders inserted a second", &[("Foreign keys", "orders inserted a second")]),
];
const GRAPH: &str = "Graph and TPC-C";

/// Returns the text `old` of choosing.md with the figures of these results.
pub(crate) fn choosing(r: &Results, old: &str) -> Result<String> {
    let first = table(r, BEYOND_MEMORY, &ENGINES)?;
    let second = table(r, MIXED, &["InnoDB"])?;
    let between =
        "\nMixed loads under SQL ([sysbench, LinkBench, TPC-C](benchmarks.md#sysbench)):\n\n";
    between_marks(old, &format!("\n{first}{between}{second}\n"))
}

fn table(r: &Results, lines: &[Line], engines: &[&str]) -> Result<String> {
    let heads: Vec<String> = engines.iter().map(|engine| format!("to {engine}")).collect();
    let mut table = format!("| | {} |\n|---|{}\n", heads.join(" | "), "---|".repeat(engines.len()));
    for (words, places) in lines {
        let cells: Vec<String> =
            engines.iter().map(|engine| cell(r, places, engine)).collect::<Result<_>>()?;
        let _ = writeln!(table, "| {words} | {} |", cells.join(" | "));
    }
    Ok(table)
}

fn cell(r: &Results, places: &[(&str, &str)], engine: &str) -> Result<String> {
    for (title, label) in places {
        let section = sections().find(|section| section.title == *title);
        let section = section.ok_or_else(|| format!("no section has the title `{title}`"))?;
        if let Some(column) = section.peers.iter().position(|peer| peer.name == engine) {
            return ratio_of(section, &figures(r, section)?, label, column);
        }
    }
    Ok(String::new())
}

fn ratio_of(section: &Section, rows: &[Figures], label: &str, column: usize) -> Result<String> {
    let row = rows.iter().find(|row| row.row.label == label);
    let found = row.and_then(|row| row.ratios.get(column));
    let found = found.ok_or_else(|| format!("`{}` has no ratio `{label}`", section.title))?;
    Ok(ratio(found.value))
}

#[cfg(test)]
mod tests {
    use super::super::invented::Invented;
    use super::*;
    use crate::report::CHOOSING;
    use crate::workspace::{read, root};

    #[test]
    fn the_tables_have_a_column_for_each_engine() {
        let results = Invented::new().results();
        let text = choosing(&results, &read(&root().join(CHOOSING)).unwrap()).unwrap();
        assert!(text.contains("\n| | to InnoDB | to MyRocks | to RocksDB |\n|---|---|---|---|\n| rows/s | 2.00x | 2.00x | 2.00x |\n"));
        assert!(
            text.contains("\n| | to InnoDB |\n|---|---|\n| in memory: point reads/s | 2.00x |\n")
        );
        assert_eq!(choosing(&results, &text), Ok(text.clone()));
    }

    #[test]
    fn a_label_that_no_section_has_is_an_error() {
        let results = Invented::new().results();
        let error = cell(&results, &[(SQL, "rows/hour")], "InnoDB").unwrap_err();
        assert_eq!(error, "`SQL load and reads` has no ratio `rows/hour`");
        assert_eq!(cell(&results, &[("sysbench", "x")], "RocksDB"), Ok(String::new()));
    }
}
