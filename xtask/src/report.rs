//! `make report`: measures the figures of docs/benchmarks.md, docs/heritage.md and README.md, and
//! writes them into these pages. heritage.md has the claims of five documents about TokuDB, a
//! fractal-tree engine for MySQL, and FronDB's figures beside them.
//!
//! ```text
//!   steps --> measure --> docs/figures/*.json --> results --+--> claims, charts --> page
//!   commands  runs them   kept in the repository  look-ups  |    rows and bars      heritage.md
//!                                                           +--> bench_page
//!                                                                sections           benchmarks.md,
//!                                                                                   choosing.md,
//!                                                                                   README.md
//! ```
//! | module | what it does |
//! |---|---|
//! | [`steps`], [`step`] | the commands that measure, and their scale |
//! | [`measure`] | runs them one after another; a step that fails does not stop the others |
//! | [`machine`] | describes the machine and the commit |
//! | [`results`], [`measured`] | reads the JSON files; a figure that is missing has a reason |
//! | [`text`] | figures as text |
//! | [`bench_page`](mod@bench_page) | benchmarks.md: FronDB and other engines; figures of README.md and choosing.md |
//! | [`claims`], [`claim`] | the rows of heritage.md: a claim, TokuDB's figure, FronDB's figure |
//! | [`charts`], [`bars`], [`scale`] | what the charts show, how a chart is drawn, and its axis |
//! | [`page`], [`summary`] | heritage.md, and the ratios at its top |
//!
//! Everything from [`results`] on is a pure function of the JSON files. So RENDER=1 can write the
//! pages without measuring, and [`check`], a part of tidy, demands that the committed pages are
//! those that the committed JSON files give. The source itself has only the documents' figures, and
//! the figures of two workloads that take too long for a run (`bench_page/page.rs`). If a step of
//! benchmarks.md has no figures, benchmarks.md, choosing.md and README.md stay as they are; after a
//! trial with a SCALE below 1, the latter two do.

mod bars;
mod bench_page;
mod charts;
mod claim;
mod claims;
mod machine;
mod measure;
mod measured;
mod page;
mod results;
mod scale;
mod step;
mod steps;
mod summary;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{read, root};
use crate::{Result, variables};
use results::Results;

/// The folder of the figures and charts.
const FOLDER: &str = "docs/figures";
const HERITAGE: &str = "docs/heritage.md";
const BENCHMARKS: &str = "docs/benchmarks.md";
const README: &str = "README.md";
const CHOOSING: &str = "docs/choosing.md";
const VARIABLES: &[&str] = &["RENDER", "SCALE", "DIR", "STEPS"];

/// `cargo xtask report`: measures unless RENDER=1, then writes the pages and the charts.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, VARIABLES)?;
    let value = |name: &str| given.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
    let measured = match value("RENDER") {
        Some("1") => Ok(()),
        Some(other) => return Err(format!("RENDER is 1 or not given, not `{other}`")),
        None => measure::run(&measure::Plan {
            scale: value("SCALE").map_or(Ok(1.0), steps::scale)?,
            dir: value("DIR").unwrap_or("var/report"),
            steps: steps::chosen(value("STEPS"))?,
            figures: root().join(FOLDER),
        }),
    };
    let results = Results::read(&root().join(FOLDER))?;
    write(heritage(&results))?;
    let missing = bench_page::unmeasured(&results).join(",");
    match missing.is_empty() {
        true => write(benchmarks(&results)?)?,
        false => println!(
            "did not write {BENCHMARKS}, {README} and {CHOOSING}, since some steps have no figures: `make report STEPS={missing}`"
        ),
    }
    measured
}

/// Finds pages and charts that differ from what the figures in the repository give.
pub(crate) fn check() -> Result<Vec<String>> {
    let results = Results::read(&root().join(FOLDER))?;
    let mut files = heritage(&results);
    files.extend(benchmarks(&results)?);
    let stale = |(path, text): (PathBuf, String)| {
        let shown = path.display().to_string();
        let is_same = read(&root().join(path)).is_ok_and(|old| old == text);
        (!is_same).then(|| format!("{shown}: is out of date: run `make report RENDER=1`"))
    };
    Ok(files.into_iter().filter_map(stale).collect())
}

/// Writes files below the root of the checkout.
fn write(files: Vec<(PathBuf, String)>) -> Result {
    for (path, text) in files {
        let shown = path.display();
        fs::write(root().join(&path), text).map_err(|e| format!("cannot write {shown}: {e}"))?;
        println!("wrote {shown}");
    }
    Ok(())
}

/// Renders path and text of heritage.md and of each chart.
fn heritage(results: &Results) -> Vec<(PathBuf, String)> {
    let charts = charts::all(results);
    let mut files = vec![(PathBuf::from(HERITAGE), page::page(results, &charts))];
    for chart in charts.iter().chain([&charts::engines(results)]) {
        files.push((Path::new(FOLDER).join(chart.file_name()), chart.svg()));
    }
    files
}

/// Renders path and text of benchmarks.md, README.md and choosing.md: of none if a step has no
/// figures, and only of benchmarks.md after a trial.
fn benchmarks(results: &Results) -> Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    if bench_page::unmeasured(results).is_empty() {
        let page = bench_page::page(results).map_err(|e| format!("{BENCHMARKS}: {e}"))?;
        files.push((PathBuf::from(BENCHMARKS), page));
        if results.scale() >= 1.0 {
            let readme = bench_page::readme(results, &read(&root().join(README))?);
            files.push((PathBuf::from(README), readme.map_err(|e| format!("{README}: {e}"))?));
            let choosing = bench_page::choosing(results, &read(&root().join(CHOOSING))?);
            let choosing = choosing.map_err(|e| format!("{CHOOSING}: {e}"))?;
            files.push((PathBuf::from(CHOOSING), choosing));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_page::invented::Invented;

    #[test]
    fn the_pages_are_what_the_figures_render_to() {
        let findings = check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }

    #[test]
    fn pages_are_written_only_with_figures_of_all_steps_and_readme_not_after_a_trial() {
        let mut invented = Invented::new();
        let written = |invented: &Invented| {
            let files = benchmarks(&invented.results()).unwrap().into_iter();
            files.map(|(path, _)| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(written(&invented), [BENCHMARKS, README, CHOOSING]);
        invented.run["steps"][0]["scale"] = 0.01.into();
        assert_eq!(written(&invented), [BENCHMARKS]);
        invented.run["steps"].as_array_mut().unwrap().pop();
        assert!(written(&invented).is_empty());
    }

    #[test]
    fn a_figure_that_is_missing_names_page_file_and_member() {
        let mut invented = Invented::new();
        invented.measurement("tpcc", "frondb", "").remove("transaction_ms_max");
        let error = benchmarks(&invented.results()).err().unwrap_or_default();
        assert_eq!(
            error,
            "docs/benchmarks.md: tpcc.json: frondb has no number `transaction_ms_max`"
        );
    }
}
