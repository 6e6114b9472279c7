//! `optimize`: consolidates trees.

use frondb::{OptimizeOptions, OptimizeReport, Tree};
use serde_json::{Map, Value, json};

use super::session::Session;
use crate::args::{Common, Optimize};
use crate::encoding::shown_name;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Consolidates all trees, or the named ones.
pub(crate) fn optimize(common: &Common, args: &Optimize) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    let names = if args.trees.is_empty() { session.db.list_trees() } else { args.trees.clone() };
    let trees = names.iter().map(|name| session.tree(name)).collect::<Result<Vec<Tree>, _>>()?;
    let options =
        OptimizeOptions::new().fraction(args.fraction).leaves_per_second(args.leaves_per_second);
    let mut out = Output::new(common);
    let mut reports = Vec::new();
    for (name, tree) in names.iter().zip(trees) {
        let mut progress = Progress::leaves(common, name);
        let report = tree.optimize(options, &mut |done, leaves| {
            progress.of(done, leaves);
            true
        })?;
        progress.end();
        reports.push((name.clone(), report));
    }
    session.close()?;
    let by_name: Map<String, Value> =
        reports.iter().map(|(name, report)| (name.clone(), as_json(report))).collect();
    let failed: u64 = reports.iter().map(|(_, report)| report.failed).sum();
    out.done(&json!({ "trees": by_name }), |_| {
        reports.iter().map(|(name, report)| sentence(name, report)).collect::<Vec<_>>().join("\n")
    })?;
    out.finish()?;
    let named = reports.iter().flat_map(|(_, report)| &report.failures);
    let first = named.map(ToString::to_string).next().unwrap_or_default();
    match failed {
        0 => Ok(()),
        1 => Err(Failure::damaged(format!("{first}; {WHAT_TO_DO}"))),
        n => Err(Failure::damaged(format!(
            "{n} leaves could not be consolidated, the first of them: {first}; {WHAT_TO_DO}"
        ))),
    }
}

/// What an error message says after the failed leaves.
const WHAT_TO_DO: &str = "everything else is done; `frondb verify` lists all damage";

/// Returns a sentence about the result for a tree.
fn sentence(name: &str, report: &OptimizeReport) -> String {
    let OptimizeReport { leaves, rewritten, held, disk_bytes: (before, after), .. } = report;
    let mut text = format!(
        "{}: {rewritten} of {leaves} leaves rewritten, {before} -> {after} bytes",
        shown_name(name)
    );
    if *held > 0 {
        text.push_str(&format!(
            "; old rows or updates stay in {held}, because a snapshot needs them or an update \
             could not be applied"
        ));
    }
    text
}

fn as_json(report: &OptimizeReport) -> Value {
    json!({
        "leaves": report.leaves,
        "rewritten": report.rewritten,
        "held": report.held,
        "failed": report.failed,
        "failures": report.failures.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "disk_bytes_before": report.disk_bytes.0,
        "disk_bytes_after": report.disk_bytes.1,
    })
}
