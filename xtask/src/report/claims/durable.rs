//! *High insertion rates with durable transactions*: the cost of a sync, and ways to reduce it.

use crate::Result;
use crate::report::claim::{Claim, Document};
use crate::report::results::Results;
use crate::report::text::{number, seconds};

/// Links to the pages about the options in [`functions`]: in the library, and under SQL.
const OPTIONS: &str =
    "[durability](operating/durability.md), [variables](../mariadb/docs/variables.md)";
/// Threads that commit at the same time in the shown case.
const THREADS: u64 = 16;

/// The cases of the document: its commits, its rows a second, and our variant with the same
/// commits.
pub(crate) const CASES: [(&str, f64, &str); 3] = [
    ("1,000 rows a commit", 10_000.0, "1000 a commit, sync"),
    ("10,000 rows a commit", 15_000.0, "10000 a commit, sync"),
    ("no sync", 17_000.0, "1000 a commit, no sync"),
];

pub(super) fn document(r: &Results) -> Document {
    let [thousand, ten_thousand, no_sync] =
        CASES.map(|(_, _, variant)| rate(r, variant).map(|rate| format!("**{}**", number(rate))));
    let hardware = "Rows with three secondary indexes, through the library's API. The sync of the drive \
                    decides: see the fit above";
    let mut claims = vec![
        Claim::measured(
            "A durable commit of N rows takes T = N/R + K",
            "a model, no figure",
            "fsync",
            fit(r),
        )
        .remark("R: rows a second without the sync; K: a commit however few rows it has"),
        Claim::measured(
            "Durable rows a second, 1,000 rows a commit",
            "10,000",
            "durable",
            thousand,
        )
        .remark(hardware),
        Claim::measured("The same, 10,000 rows a commit", "15,000", "durable", ten_thousand),
        Claim::measured("The same without a sync", "17,000", "durable", no_sync)
            .remark("1,000 rows a commit"),
        Claim::measured("Commits at the same time share a sync", "no figure", "fsync", shared(r))
            .remark("Commits of one row each"),
    ];
    claims.extend(functions());
    Document { title: "High insertion rates with durable transactions", year: Some(2010), claims }
}

/// The claims without a figure.
fn functions() -> [Claim; 5] {
    [
        Claim::function(
            "`commit_sync`, ON or OFF for each session",
            "`tokudb_commit_sync`",
            "`frondb_commit_sync`; in the library for each write, transaction or handle",
            OPTIONS,
        ),
        Claim::function(
            "An application may sync once a second",
            "by the application",
            "`frondb_fsync_log_period`; in the library the option `sync`",
            OPTIONS,
        ),
        Claim::function(
            "Checkpoints every 60 s",
            "60 s",
            "`frondb_checkpoint_period`, 60 s unless it is set",
            OPTIONS,
        ),
        Claim::function(
            "A directory of its own for the log",
            "`tokudb_log_dir`",
            "`frondb_log_dir`; in the library `log_dir`",
            OPTIONS,
        ),
        Claim::function(
            "Less log: the row and not every index, compressed",
            "proposed",
            "index entries are logged, too; `log_compression` makes the log of such rows 30 % smaller \
             (figure of that page)",
            "[durability](operating/durability.md#the-log)",
        ),
    ]
}

/// Returns the rows a second of a variant of the step `durable`.
pub(crate) fn rate(r: &Results, variant: &str) -> Result<f64> {
    r.variant("durable", "frondb", variant)?.number("rows_per_s")
}

fn fit(r: &Results) -> Result<String> {
    let m = r.variant("fsync", "frondb", "fit")?;
    Ok(format!(
        "R = {} rows/s, K = {} (the fit is {} % off)",
        number(m.number("fit_rows_per_s")?),
        seconds(m.number("fit_commit_ms")? / 1e3),
        number(m.number("fit_error_percent")?)
    ))
}

fn shared(r: &Results) -> Result<String> {
    let alone = r.variant("fsync", "frondb", "1 thread")?.number("commits_per_s")?;
    let m = r.variant("fsync", "frondb", &format!("{THREADS} threads"))?;
    Ok(format!(
        "{THREADS} threads: {} commits/s with {} syncs each; one thread: {} commits/s",
        number(m.number("commits_per_s")?),
        number(m.number("syncs_per_commit")?),
        number(alone)
    ))
}
