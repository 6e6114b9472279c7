//! `make report`: measures what five documents claim about TokuDB, a fractal-tree engine for MySQL,
//! and writes docs/heritage.md with FronDB's figures beside TokuDB's.
//!
//! ```text
//!   steps --> measure --> docs/figures/*.json --> results --> claims, charts --> page
//!   commands  runs them   kept in the repository   look-ups    rows and bars      heritage.md
//! ```
//! | module | what it does |
//! |---|---|
//! | [`steps`] | the commands that measure, and their scale |
//! | [`measure`] | runs them one after another; a step that fails does not stop the others |
//! | [`machine`] | describes the machine and the commit |
//! | [`results`] | reads the JSON files; a figure that is missing has a reason |
//! | [`text`] | figures as text |
//! | [`claims`], [`claim`] | the rows of heritage.md: a claim, TokuDB's figure, FronDB's figure |
//! | [`charts`], [`bars`], [`scale`] | what the charts show, how a chart is drawn, and its axis |
//! | [`page`], [`summary`] | the page, and the ratios at its top |
//!
//! Everything from [`results`] on is a pure function of the JSON files. So the page can be rendered
//! again without measuring, and [`check`], a part of tidy, demands that the committed page is what
//! the committed files render to. TokuDB's figures, from the documents, are the only ones in the
//! source.

mod bars;
mod charts;
mod claim;
mod claims;
mod machine;
mod measure;
mod page;
mod results;
mod scale;
mod steps;
mod summary;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{read, root};
use crate::{Result, variables};
use results::Results;

/// Where the figures and charts are.
const FOLDER: &str = "docs/figures";
const PAGE: &str = "docs/heritage.md";
const VARIABLES: &[&str] = &["RENDER", "SCALE", "DIR", "STEPS"];

/// `cargo xtask report`: measures unless RENDER=1, then writes the page and its charts.
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
    write(root())?;
    println!("wrote {PAGE} and its charts from the figures in {FOLDER}");
    measured
}

/// Files of the page that are not what the figures in the repository render to.
pub(crate) fn check() -> Result<Vec<String>> {
    let stale = |(path, text): (PathBuf, String)| {
        let shown = path.display().to_string();
        let is_same = read(&root().join(&path)).is_ok_and(|old| old == text);
        (!is_same).then(|| format!("{shown}: is out of date: run `make report RENDER=1`"))
    };
    Ok(render(root())?.into_iter().filter_map(stale).collect())
}

/// Writes the page and the charts below `root`.
fn write(root: &Path) -> Result {
    for (path, text) in render(root)? {
        let path = root.join(path);
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// Path and text of the page and of each chart, from the figures below `root`.
fn render(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let results = Results::read(&root.join(FOLDER))?;
    let charts = charts::all(&results);
    let mut files = vec![(PathBuf::from(PAGE), page::page(&results, &charts))];
    for chart in &charts {
        files.push((Path::new(FOLDER).join(chart.file_name()), chart.svg()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_what_the_figures_render_to() {
        let findings = super::check().unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}
