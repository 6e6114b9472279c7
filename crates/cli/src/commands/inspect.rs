//! `stats`, `verify`, `exit-codes`.

use frondb::Tree;
use serde_json::{Map, Value, json};

use super::session::Session;
use super::wear;
use crate::args::{Common, Stats, Verify};
use crate::failure::{EXIT_CODES, Failure};
use crate::output::Output;
use crate::progress::Progress;

/// Prints statistics of the database and of each tree.
pub(crate) fn stats(common: &Common, args: &Stats) -> Result<(), Failure> {
    // The parser sees the conflict only if both options follow the command.
    if args.prometheus && common.json {
        return Err(Failure::usage("--prometheus and --json exclude each other"));
    }
    if args.wear {
        return wear::print(common, args);
    }
    let session = Session::open(common, &args.dir)?;
    if args.prometheus {
        let page = session.db.prometheus();
        session.close()?;
        let mut out = Output::new(common);
        out.line(&Value::Null, |_| page.trim_end().to_owned())?;
        return out.finish();
    }
    let (database, latencies) = (session.db.stats(), session.db.latencies());
    let mut trees = Vec::new();
    for name in session.db.list_trees() {
        let stats = session.tree(&name)?.stats()?;
        trees.push((name, stats));
    }
    session.close()?;
    let mut out = Output::new(common);
    let object = |statistics: Vec<(&str, u64)>| -> Map<String, Value> {
        statistics.into_iter().map(|(name, n)| (name.to_owned(), n.into())).collect()
    };
    let by_name: Map<String, Value> = trees
        .iter()
        .map(|(name, stats)| (name.clone(), object(stats.named_values()).into()))
        .collect();
    let mut of_database = database.named_values();
    of_database.extend(latencies.named_values());
    let result = json!({ "database": object(of_database), "trees": by_name });
    out.line(&result, |_| {
        let mut page = format!("{database}{latencies}");
        for (name, stats) in &trees {
            page.push_str(&format!("\ntree {name}\n{stats}"));
        }
        page.truncate(page.trim_end().len());
        page
    })?;
    out.finish()
}

/// Verifies all trees, or the named ones, and lists the damage.
pub(crate) fn verify(common: &Common, args: &Verify) -> Result<(), Failure> {
    let session = Session::open(common, &args.dir)?;
    let names = if args.trees.is_empty() { session.db.list_trees() } else { args.trees.clone() };
    let trees = names.iter().map(|name| session.tree(name)).collect::<Result<Vec<Tree>, _>>()?;
    let mut out = Output::new(common);
    let (mut runs, mut entries, mut values, mut bytes) = (0, 0, 0, 0);
    let mut faults = Vec::new();
    for (name, tree) in names.iter().zip(trees) {
        let mut progress = Progress::named(common, name);
        let report = tree.verify(&mut |done, total| {
            progress.of(done, total);
            true
        })?;
        runs += report.runs;
        entries += report.entries;
        values += report.values;
        bytes += report.bytes;
        faults.extend(report.faults.into_iter().map(|fault| (name.clone(), Failure::from(fault))));
    }
    session.close()?;
    let listed: Vec<Value> = faults
        .iter()
        .map(|(tree, fault)| {
            let place = &fault.place;
            json!({ "tree": tree, "kind": fault.kind, "message": fault.message, "place": place })
        })
        .collect();
    let result = json!({
        "trees": names.len(), "runs": runs, "entries": entries, "values": values, "bytes": bytes,
        "faults": listed,
    });
    if !common.json {
        for (tree, fault) in &faults {
            out.raw(format!("{}: tree {tree}: {}\n", fault.kind, fault.sentence()).as_bytes())?;
        }
    }
    out.done(&result, |_| {
        let faults = counted(faults.len() as u64, "fault");
        let trees = counted(names.len() as u64, "tree");
        let (runs, entries) = (counted(runs, "run"), counted(entries, "entry"));
        let values = counted(values, "large value");
        format!("{trees}, {runs}, {entries}, {values}, {bytes} bytes: {faults}")
    })?;
    out.finish()?;
    match faults.len() {
        0 => Ok(()),
        n => {
            let faults = counted(n as u64, "fault");
            Err(Failure::damaged(format!("{faults} found in {}", args.dir.display())))
        }
    }
}

/// A number with its noun: 1 tree, 2 trees, 3 entries.
pub(super) fn counted(n: u64, noun: &str) -> String {
    match (n, noun.strip_suffix('y')) {
        (1, _) => format!("{n} {noun}"),
        (_, Some(stem)) => format!("{n} {stem}ies"),
        (_, None) => format!("{n} {noun}s"),
    }
}

/// Prints the exit codes.
pub(crate) fn exit_codes(common: &Common) -> Result<(), Failure> {
    let mut out = Output::new(common);
    for (code, kinds, hint) in EXIT_CODES {
        out.line(&json!({ "code": code, "kinds": kinds, "hint": hint }), |_| {
            format!("{code:>3}  {kinds:<40} {hint}")
        })?;
    }
    out.finish()
}
