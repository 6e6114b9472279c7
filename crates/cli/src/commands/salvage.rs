//! `salvage`: saves the readable data of a damaged database into a new one.

use frondb::{DamagedRange, Db, Error, Options, SalvageReport, SalvagedTree};
use serde_json::{Value, json};

use super::inspect::counted;
use crate::args::{Common, Salvage};
use crate::encoding::shown_name;
use crate::failure::{Failure, Place};
use crate::output::Output;
use crate::progress::Progress;

/// Saves the readable data, and lists what was lost.
pub(crate) fn salvage(common: &Common, args: &Salvage) -> Result<(), Failure> {
    let mut options = Options::new().memory_bytes(common.memory).file_mode(common.file_mode);
    if let Some(log_dir) = &common.log_dir {
        options = options.log_dir(log_dir);
    }
    let mut shown: Option<(String, Progress)> = None;
    let report =
        Db::salvage(&args.dir, &args.to, &options, args.uncertain, &mut |name, done, total| {
            if shown.as_ref().is_none_or(|(shown, _)| shown != name) {
                shown = Some((name.to_owned(), Progress::named(common, name)));
            }
            if let Some((_, progress)) = &mut shown {
                progress.of(done, total);
            }
            true
        })
        .map_err(|error| {
            let is_of_target = error.message().contains(&*args.to.to_string_lossy());
            of_nothing_saved(error).about(if is_of_target { &args.to } else { &args.dir })
        })?;
    drop(shown);
    print(common, args, &report)?;
    if report.is_complete() {
        return Ok(());
    }
    let message = format!("not all of {} could be saved", args.dir.display());
    let failure = Failure::damaged(message);
    let hint = match (report.cut.is_empty(), args.uncertain) {
        (false, false) => {
            "no row is certain, so no tree was saved; --uncertain saves them as NAME.uncertain"
        }
        (false, true) => "rows of the trees NAME.uncertain may be older than their last commit",
        (true, _) => "the new database has nothing of what is listed as lost",
    };
    Err(failure.with_hint(hint))
}

/// Makes a failure from the error of a salvage that has saved nothing. If the reason is damage,
/// replaces the usual hint for damage, which recommends this very command.
fn of_nothing_saved(error: Error) -> Failure {
    let failure = Failure::from(error);
    match failure.kind {
        "Corruption" => {
            failure.with_hint("nothing can be saved without that file: restore it, or a backup")
        }
        _ => failure,
    }
}

fn print(common: &Common, args: &Salvage, report: &SalvageReport) -> Result<(), Failure> {
    let mut out = Output::new(common);
    let trees: Vec<Value> = report.trees.iter().map(|tree| of_tree(common, tree)).collect();
    let prepared: Vec<String> =
        report.prepared.iter().map(|name| common.keys.encode(name)).collect();
    let result = json!({
        "repaired": report.repaired.iter().map(of_error).collect::<Vec<_>>(),
        "cut": report.cut.iter().map(of_error).collect::<Vec<_>>(),
        "trees": trees,
        "prepared": prepared,
    });
    if !common.json {
        let mut text = String::new();
        for (what, errors) in [("repaired", &report.repaired), ("cut", &report.cut)] {
            for error in errors {
                text.push_str(&format!("{what}: {}\n", Failure::from(error.clone()).sentence()));
            }
        }
        for tree in &report.trees {
            for range in &tree.lost {
                let (lo, hi) = ends(common, range);
                let why = Failure::from(range.error.clone()).sentence();
                let hi = hi.map_or_else(|| "the end".to_owned(), |hi| format!("before {hi:?}"));
                text.push_str(&format!(
                    "lost: tree {}: keys from {lo:?} to {hi}: {why}\n",
                    shown_name(&tree.name)
                ));
            }
        }
        for name in &prepared {
            text.push_str(&format!("lost: prepared transaction {name}\n"));
        }
        out.raw(text.as_bytes())?;
    }
    out.done(&result, |_| {
        if !report.is_saved() {
            return format!("saved nothing, and created no database in {}", args.to.display());
        }
        let saved = report.trees.iter().filter(|tree| tree.saved_as.is_some()).count();
        let rows = report.trees.iter().map(|tree| tree.rows).sum();
        let (trees, rows) = (counted(saved as u64, "tree"), counted(rows, "entry"));
        format!("saved {trees} with {rows} to {}", args.to.display())
    })?;
    out.finish()
}

fn of_error(error: &Error) -> Value {
    json!({ "message": error.message(), "place": error.place().map(Place::from) })
}

fn ends(common: &Common, range: &DamagedRange) -> (String, Option<String>) {
    (common.keys.encode(&range.lo), range.hi.as_ref().map(|hi| common.keys.encode(hi)))
}

fn of_tree(common: &Common, tree: &SalvagedTree) -> Value {
    let lost = tree.lost.iter().map(|range| {
        let (from, to) = ends(common, range);
        let mut lost = of_error(&range.error);
        lost["from"] = json!(from);
        lost["to"] = json!(to);
        lost
    });
    let lost: Vec<Value> = lost.collect();
    json!({ "tree": tree.name, "saved_as": tree.saved_as, "entries": tree.rows, "lost": lost })
}
