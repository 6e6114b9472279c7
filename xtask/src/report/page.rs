//! Renders docs/heritage.md as Markdown.

use std::fmt::Write as _;

use serde_json::Value;

use super::bars::Chart;
use super::claim::{Claim, Document, Source};
use super::claims;
use super::results::Results;
use super::steps::STEPS;
use super::summary;
use super::text::number;

const HEAD: &str = "\
# Heritage

Written by `make report` from the files of [figures](figures/run.json): do not edit it.

FronDB is a storage engine of the kind of TokuDB, the fractal-tree engine for MySQL. Five documents say what TokuDB did. This page has their claims, one
a row: TokuDB's figure, FronDB's figure, and the step that measures it. Read it to see what FronDB keeps of TokuDB's promises, and to repeat a figure on
your machine.

- TokuDB's figures, and those of InnoDB beside them, come from the documents: their hardware, their years, and tables of up to a billion rows. They
  were not measured here. FronDB's figures, and those of InnoDB beside them, were measured in one run on the machine below. So compare ratios, not
  absolute figures.
- The steps are short: tables are smaller than those of the documents. [benchmarks.md](benchmarks.md), which `make report` writes from the same run, has
  other engines, and where FronDB is slower.
- **not measured** means that the last run has no such figure; [below](#missing-figures) is why.
";

/// Renders the page, with links to `charts`.
pub(super) fn page(r: &Results, charts: &[Chart]) -> String {
    let mut page = HEAD.to_owned();
    machine(&mut page, r);
    let _ = write!(page, "\n## In short\n\n{}", summary::table(r));
    page.push_str("\n## In charts\n");
    for chart in charts {
        let _ = write!(page, "\n![{}](figures/{})\n", chart.title, chart.file_name());
    }
    let mut missing = Vec::new();
    let documents = claims::documents(r);
    for document in &documents {
        section(&mut page, document, &mut missing);
    }
    steps(&mut page, r, &documents);
    reasons(&mut page, &missing);
    page
}

/// Appends the machine, and a warning if the run was a trial.
fn machine(page: &mut String, r: &Results) {
    if r.scale() < 1.0 {
        let _ = write!(
            page,
            "\n**A trial**: at least one step ran at a scale of {}, so its tables fit into memory and its figures mean \
             nothing. `make report` without `SCALE` measures.\n",
            r.scale()
        );
    }
    let machine = &r.run["machine"];
    let of = |name: &str| plain(&machine[name]);
    let memory = machine["memory_mib"]
        .as_f64()
        .map_or("unknown".to_owned(), |mib| format!("{} GiB", number(mib / 1024.0)));
    let _ = write!(
        page,
        "\n**Machine:** {} processors ({}), memory {memory}, Linux {}. [The steps](#the-steps) have dates and commits.\n",
        of("cores"),
        of("processor"),
        of("kernel")
    );
}

fn section(page: &mut String, document: &Document, missing: &mut Vec<String>) {
    let year = document.year.map_or_else(String::new, |year| format!(" ({year})"));
    let _ = write!(
        page,
        "\n## {}{year}\n\n| claim | TokuDB | FronDB | measured by | remark |\n|---|---|---|---|---|\n",
        document.title
    );
    for claim in &document.claims {
        let _ = writeln!(page, "{}", row(claim));
        missing.extend(claim.ours.as_ref().err().cloned());
    }
}

fn row(claim: &Claim) -> String {
    let ours = claim.ours.as_ref().map_or("not measured", String::as_str);
    let source = match claim.source {
        Source::Step(step) => format!("[{step}](#the-steps)"),
        Source::Link(link) => link.to_owned(),
    };
    format!("| {} | {} | {ours} | {source} | {} |", claim.what, claim.toku, claim.remark)
}

/// Appends the commands of the claims' steps, with their times and commits.
fn steps(page: &mut String, r: &Results, documents: &[Document]) {
    let claims = documents.iter().flat_map(|document| &document.claims);
    let cited: Vec<&str> = claims.filter_map(|claim| claim.source.step()).collect();
    let steps = || STEPS.iter().filter(|step| cited.contains(&step.name));
    let ran: f64 = steps().filter_map(|step| r.entry(step.name)?["seconds"].as_f64()).sum();
    let _ = write!(
        page,
        "\n## The steps\n\n`make report` runs them one after another with those of benchmarks.md, here in {} minutes; \
         `make report STEPS=wear,tpcc` repeats some, and `SCALE=0.01` is a trial of all. \
         [benchmark-method.md](benchmark-method.md) describes the workloads, [devices.md](operating/devices.md) the first step.\n\n\
         | step | command | took, s | date (UTC) | commit | scale |\n|---|---|---|---|---|---|\n",
        number(ran / 60.0)
    );
    for step in steps() {
        let entry = r.entry(step.name);
        let of = |name: &str| entry.map_or_else(String::new, |entry| plain(&entry[name]));
        let command = entry.map_or_else(|| step.command(1.0), |entry| plain(&entry["command"]));
        let _ = writeln!(
            page,
            "| {} | `{command}` | {} | {} | {} | {} |",
            step.name,
            of("seconds"),
            of("date"),
            of("commit"),
            of("scale")
        );
    }
}

/// Appends the reasons why figures are missing.
fn reasons(page: &mut String, missing: &[String]) {
    page.push_str("\n## Missing figures\n\n");
    if missing.is_empty() {
        page.push_str("None.\n");
    }
    let mut named: Vec<&String> = missing.iter().collect();
    named.sort();
    named.dedup();
    for reason in named {
        // The error of a program may have several lines.
        let line = reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(page, "- {line}");
    }
}

/// Formats a JSON value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::results;
    use super::*;
    use crate::report::charts;
    use serde_json::json;

    #[test]
    fn without_figures_every_claim_has_a_reason() {
        let r = results(Value::Null, &[]);
        let text = page(&r, &charts::all(&r));
        for expected in
            ["14,532", "not measured", "- step wear was not measured", "`make bench WORKLOAD=wear"]
        {
            assert!(text.contains(expected), "{expected} is missing: {text}");
        }
        assert!(!text.contains("A trial"));
    }

    #[test]
    fn figures_scale_and_errors_are_shown() {
        let wear = json!([
            {"engine": "frondb", "variant": "", "rows": 5000, "rows_per_s_last_fifth": 90_000.0},
            {"engine": "innodb", "variant": "", "rows": 4000, "rows_per_s_last_fifth": 2_000.0},
        ]);
        let run = json!({
            "machine": {"cores": 2, "processor": "AMD EPYC", "memory_mib": 24_576, "kernel": "6.18"},
            "steps": [
                {"name": "wear", "command": "make bench X", "scale": 0.01, "seconds": 90, "date": "d",
                 "commit": "c"},
                {"name": "tpcc", "command": "make bench Y", "scale": 0.01, "seconds": 1, "date": "d",
                 "commit": "c", "error": "no\nserver"},
            ],
        });
        let r = results(run, &[("wear", wear)]);
        let text = page(&r, &charts::all(&r));
        for expected in [
            "a scale of 0.01",
            "2 processors (AMD EPYC), memory 24.0 GiB, Linux 6.18",
            "**90,000**; InnoDB 2,000 (45.0x)",
            "of 5,000 (FronDB) and 4,000 (InnoDB)",
            "- step tpcc failed: no server",
            "| wear | `make bench X` | 90 | d | c | 0.01 |",
        ] {
            assert!(text.contains(expected), "{expected} is missing: {text}");
        }
    }
}
