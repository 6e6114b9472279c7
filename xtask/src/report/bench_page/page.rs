//! Renders docs/benchmarks.md as Markdown.

use std::fmt::Write as _;

use super::conditions::filled;
use super::lookup::{Figures, figures};
use super::row::Section;
use super::sections::sections;
use super::{run, summary, table};
use crate::Result;
use crate::report::results::Results;

const HEAD: &str = "\
# Benchmarks

Written by `make report` from the files of [figures](figures/run.json): do not edit it.

How fast FronDB is compared with other engines, and how to repeat each figure. [benchmark-method.md](benchmark-method.md) has workloads, settings and
method, [heritage.md](heritage.md) the figures published for TokuDB.
";

const IN_SHORT: &str = "
## In short

A ratio is FronDB's figure divided by that of the other engine: above 1x FronDB has the higher rate; below 1x it needs less CPU, time, bytes or space.
Quote ratios, since absolute figures differ from machine to machine.

";

const HOW_TO_REPEAT: &str = "
## How to repeat it

```sh
make report                       # the whole page
make report STEPS=iibench,txn     # some steps; SCALE=0.01 is a trial, RENDER=1 only writes the pages
make bench WORKLOAD=iibench ROWS=10000000 ENGINES=frondb,rocksdb JSON=out.json
```

`make bench` takes the variables that each section names, installs what is missing, builds and measures. The options of its programs:
`cargo run --release -p frondb-bench-peers -- bench --help`, under SQL `-p frondb-sql-bench -- --help`.

Two workloads take an hour each and are not in the run; their figures are of 27 November 2026:

- `WORKLOAD=far` (4be2c9f0): 270 M rows with 16 MiB open in 0.02 s (floor 0.3), and a point takes 1.08 device reads (floor 1.2);
- `WORKLOAD=reads ENGINES=frondb,rocksdb RATIOS=64 THREADS=1,8 MEMORY=64MiB LOAD_MEMORY=1GiB` (252c8511): with one thread 2.68x RocksDB's points/s
  (floor 1.3x), 2.30x the short and **1.92x** the long scans (floors 2x).
";

const RESULTS: &str = "
## Results

Each section begins with the variables of `make bench`. A *floor* is the value that the project requires; figures in **bold** miss it. A figure is of
one round unless the section says otherwise. The other engine's figure follows from the ratio.
";

/// Renders the page.
///
/// # Errors
/// The missing figures, one per line, with their files.
pub(crate) fn page(r: &Results) -> Result<String> {
    let (mut shown, mut missing) = (Vec::new(), Vec::new());
    for section in sections() {
        match figures(r, section) {
            Ok(rows) => shown.push((section, rows)),
            Err(errors) => missing.push(errors),
        }
    }
    if !missing.is_empty() {
        return Err(missing.join("\n"));
    }
    let mut page = HEAD.to_owned();
    page.push_str(&run::run(r, &steps())?);
    page.push_str(IN_SHORT);
    page.push_str(&summary::in_short(r, &shown)?);
    let _ = write!(page, "\n**Where FronDB is slower or larger:**\n\n{}", summary::slower(&shown));
    page.push_str(HOW_TO_REPEAT);
    page.push_str(RESULTS);
    for (section, rows) in &shown {
        page.push_str(&results(r, section, rows)?);
    }
    Ok(page)
}

/// Returns the steps of the page that failed or have no figures yet.
pub(crate) fn unmeasured(r: &Results) -> Vec<&'static str> {
    let mut steps = steps();
    steps.retain(|step| r.entry(step).is_none_or(|entry| !entry["error"].is_null()));
    steps
}

fn steps() -> Vec<&'static str> {
    sections().flat_map(|section| section.steps.iter().copied()).collect()
}

/// Renders a section.
fn results(r: &Results, section: &Section, rows: &[Figures]) -> Result<String> {
    let mut commands = Vec::new();
    for step in section.steps {
        let command = r.entry_text(step, "command")?;
        commands.push(format!("`{}`", command.strip_prefix("make bench ").unwrap_or(command)));
    }
    Ok(format!(
        "\n### {}\n\n{}\n\n{}\n\n{}",
        section.title,
        commands.join("<br>\n"),
        filled(r, section, section.text)?,
        table::table(section, rows)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::invented::Invented;
    use super::*;
    use serde_json::json;

    /// 20 KB, less room for the list of figures in which FronDB is slower. That list is empty for
    /// the invented figures.
    const ROOM: usize = 20_000 - 1_500;

    #[test]
    fn a_complete_run_gives_a_page_of_at_most_20_kb() {
        let invented = Invented::new();
        let r = invented.results();
        assert!(unmeasured(&r).is_empty());
        let text = page(&r).unwrap();
        assert!(text.len() <= ROOM, "{} bytes", text.len());
        assert!(!text.contains("|  |") && !text.contains('{') && !text.contains("unknown"));
        for expected in [
            "# Benchmarks\n",
            "2 processors (AMD EPYC), memory 23.5 GiB, Linux 6.18. **Run:** commit 0123abcd, 2026-12-01 10:00 to",
            "`WORKLOAD=sql-iibench ENGINES=frondb,innodb,myrocks MEMORY=128MiB ROWS=5000000 LIMIT_SECONDS=1000 READ_SECONDS=6`",
            "| [SQL: load 5 M rows with three secondary indexes, 128 MiB](#sql-load-and-reads) | InnoDB | 2.00x the rows/s, ",
            "| in memory: points/s | 24,690 | 2.00x (1.90, 2.10) | min 1x |",
        ] {
            assert!(text.contains(expected), "{expected} is missing: {text}");
        }
    }

    #[test]
    fn headings_that_other_pages_link_to_are_there() {
        let text = page(&Invented::new().results()).unwrap();
        let headings = text.lines().filter(|line| line.starts_with('#'));
        let headings: Vec<String> = headings
            .map(|line| line.trim_start_matches(['#', ' ']).to_lowercase().replace(' ', "-"))
            .collect();
        for file in crate::workspace::markdown_files().unwrap() {
            for link in file.text.split("benchmarks.md#").skip(1) {
                let heading = link.split([')', '`']).next().unwrap_or_default();
                assert!(headings.iter().any(|h| h == heading), "{}: {heading}", file.path);
            }
        }
    }

    #[test]
    fn missed_floors_are_bold_and_slower_figures_listed() {
        let mut invented = Invented::new();
        let before = page(&invented.results()).unwrap();
        let ours = invented.measurement("iibench", "frondb", "");
        ours.insert("point_ops_s".to_owned(), json!(6_172.5));
        ours.insert("disk_bytes".to_owned(), json!(3.0));
        let text = page(&invented.results()).unwrap();
        let row = "| point reads/s | 6,172 | | **0.50x** | min 1x |";
        assert!(text.contains(row), "{text}");
        let slower = |text: &str| {
            let (_, rest) = text.split_once("slower or larger:**").unwrap();
            rest.split_once("## How to repeat").unwrap().0.to_owned()
        };
        assert_eq!(slower(&before).trim(), "In no figure of this page.");
        let expected = "- [Load and reads](#load-and-reads), to RocksDB: size on disk 2.00x; point reads/s 0.50x";
        assert_eq!(slower(&text).trim(), expected);
    }

    #[test]
    fn a_missing_or_malformed_value_is_an_error_with_its_file_and_path() {
        let error = |change: &dyn Fn(&mut Invented)| {
            let mut invented = Invented::new();
            change(&mut invented);
            page(&invented.results()).unwrap_err()
        };
        let e = error(&|i| drop(i.measurement("iibench", "rocksdb", "").remove("rows_per_s")));
        assert_eq!(e, "iibench.json: rocksdb has no number `rows_per_s`");
        let e = error(&|i| {
            i.measurement("mixed", "frondb", "").insert("point_ops_s".to_owned(), json!("fast"));
        });
        assert_eq!(e, "mixed.json: frondb has no number `point_ops_s`");
        let e = error(&|i| drop(i.files.insert("hot", json!({"a": 1}))));
        assert!(e.starts_with("hot.json has no figure `points of hot rows, updated tree"), "{e}");
        let e = error(&|i| {
            i.measurement("iibench", "frondb", "").insert("raw_bytes".to_owned(), json!(0));
        });
        assert_eq!(e, "iibench.json: frondb: raw_bytes is 0, so nothing is divided by it");
        let e = error(&|i| {
            drop(i.measurement("iibench", "frondb", "").remove("rows_per_s"));
            drop(i.measurement("mixed", "frondb", "").remove("point_ops_s"));
        });
        assert_eq!(e.lines().count(), 2, "{e}");
        let e = error(&|i| drop(i.files.remove("reads")));
        assert_eq!(e, "step reads was not measured");
        let e = error(&|i| i.run["machine"] = json!(null));
        assert_eq!(e, "run.json has nothing at /machine/memory_mib");
        let e = error(&|i| i.run["steps"][1]["commit"] = json!(7));
        assert_eq!(e, "run.json has no text `commit` of the step iibench");
    }

    #[test]
    fn steps_of_another_commit_are_named_and_failed_ones_unmeasured() {
        let mut invented = Invented::new();
        invented.run["steps"][1]["commit"] = json!("89abcdef");
        let text = page(&invented.results()).unwrap();
        assert!(text.contains("**Run:** commit 0123abcd, but"), "{text}");
        assert!(text.contains(", but commit 89abcdef for iibench, "), "{text}");
        invented.run["steps"][1]["error"] = json!("no disk");
        assert_eq!(unmeasured(&invented.results()), ["iibench"]);
        assert!(page(&invented.results()).is_err_and(|e| e == "step iibench failed: no disk"));
    }
}
