//! The figures of README.md: a list between two marks. Each sentence names the rows of a section of
//! benchmarks.md, so README.md and that page have the same figures.

use std::fmt::Write as _;

use super::conditions::{fill, variable};
use super::lookup::{Figures, figures};
use super::row::Section;
use super::sections::sections;
use super::text::{ratio, value};
use crate::Result;
use crate::report::results::Results;

/// The marks before and after the figures, each a line of the page.
const BEGIN: &str = "<!-- Written by `make report`: do not edit. -->\n";
const END: &str = "<!-- End of the figures. -->\n";

/// The title of a section, and a sentence. `{ROWS}` is a variable of the section's first step,
/// `{InnoDB: rows/s}` the ratio of a row to an engine, `{FronDB: first key, ms}` a row's own
/// figure. No sentence says which engine is faster, since that may change with the next run.
const SENTENCES: [(&str, &str); 4] = [
    (
        "SQL load and reads",
        "In MariaDB with {MEMORY} of memory, FronDB loads {ROWS} rows with three secondary indexes at \
         {InnoDB: rows/s} times InnoDB's rate and {MyRocks: rows/s} times MyRocks's, writes \
         {InnoDB: bytes written a byte of rows} of InnoDB's bytes, and needs \
         {InnoDB: size on disk a byte of rows} of InnoDB's space.",
    ),
    (
        "Reads beside a writer",
        "In the library, with {ROWS} rows and {MEMORY} of memory, while a writer adds 20,000 rows/s, two \
         readers do {RocksDB: point reads/s} times as many point reads and \
         {RocksDB: 10-entry scans/s} times as many 10-entry scans as with RocksDB.",
    ),
    (
        "Deletes from the left",
        "Right after the lower half of {ROWS} keys was deleted in key order, with {MEMORY} of memory, the \
         library finds the first remaining key in {FronDB: library: first key, ms} ms.",
    ),
    (
        "sysbench",
        "With all data in memory ({ROWS} rows, {MEMORY}), sysbench's point, read-only and read-write tests \
         run at {InnoDB: in memory: points/s}, {InnoDB: in memory: read-only/s} and \
         {InnoDB: in memory: read-write/s} times InnoDB's rate.",
    ),
];

/// Returns the text `old` of README.md with the figures of these results.
pub(crate) fn readme(r: &Results, old: &str) -> Result<String> {
    let mut list = String::new();
    for (title, sentence) in SENTENCES {
        let section = sections().find(|section| section.title == title);
        let section = section.ok_or_else(|| format!("no section has the title `{title}`"))?;
        let rows = figures(r, section)?;
        let filled = fill(sentence, |name| match name.split_once(": ") {
            Some((engine, label)) => figure(section, &rows, engine, label),
            None => variable(r, section, name),
        })?;
        let _ = writeln!(list, "- {filled}");
    }
    between_marks(old, &list)
}

/// Replaces what a page has between the marks.
pub(super) fn between_marks(old: &str, new: &str) -> Result<String> {
    let marked = old.split_once(BEGIN).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(END)?;
        Some((before, after))
    });
    let (before, after) =
        marked.ok_or_else(|| format!("there is no `{}` before `{}`", BEGIN.trim(), END.trim()))?;
    Ok(format!("{before}{BEGIN}{new}{END}{after}"))
}

/// Formats a row's own figure, or its ratio to another engine as in `33 times` and `1/220 of`.
fn figure(section: &Section, rows: &[Figures], engine: &str, label: &str) -> Result<String> {
    let place = section.peers.iter().position(|peer| peer.name == engine);
    let row = rows.iter().find(|row| row.row.label == label);
    let found = row.and_then(|row| match place {
        Some(place) => Some(ratio(row.ratios.get(place)?.value).trim_end_matches('x').to_owned()),
        None => (engine == "FronDB").then(|| value(row.own.value, row.row.unit)),
    });
    found.ok_or_else(|| format!("`{}` has no figure `{engine}: {label}`", section.title))
}

#[cfg(test)]
mod tests {
    use super::super::invented::Invented;
    use super::*;
    use crate::report::README;
    use crate::workspace::{read, root};
    use serde_json::json;

    #[test]
    fn the_list_of_readme_has_the_figures_with_their_conditions() {
        let mut invented = Invented::new();
        invented
            .measurement("sql-iibench", "innodb", "")
            .insert("written_bytes".into(), json!(165));
        let old = read(&root().join(README)).unwrap();
        let text = readme(&invented.results(), &old).unwrap();
        for expected in [
            "- In MariaDB with 128 MiB of memory, FronDB loads 5 M rows with three secondary indexes at 2.00 times InnoDB's \
             rate and 2.00 times MyRocks's, writes 1/220 of InnoDB's bytes, and needs 0.50 of InnoDB's space.\n",
            "while a writer adds 20,000 rows/s, two readers do 2.00 times as many point reads",
            "half of 20 M keys was deleted in key order, with 256 MiB of memory, the library finds the first remaining key \
             in 0.750 ms.\n",
            "(1 M rows, 1 GiB), sysbench's point, read-only and read-write tests run at 2.00, 2.00 and 2.00 times InnoDB's",
        ] {
            assert!(text.contains(expected), "{expected} is missing: {text}");
        }
        assert_eq!(readme(&invented.results(), &text), Ok(text.clone()));
        let around = |text: &str| {
            let (before, rest) = text.split_once(BEGIN).unwrap();
            (before.to_owned(), rest.split_once(END).unwrap().1.to_owned())
        };
        assert_eq!(around(&text), around(&old));
    }

    #[test]
    fn a_missing_mark_or_figure_is_an_error() {
        let invented = Invented::new();
        let error = |text: &str| readme(&invented.results(), text).unwrap_err();
        assert!(error(&format!("{END}{BEGIN}")).contains("there is no `<!-- Written"));
        let section = sections().next().unwrap();
        assert!(figure(section, &[], "InnoDB", "x").is_err_and(|e| e.contains("`InnoDB: x`")));
    }
}
