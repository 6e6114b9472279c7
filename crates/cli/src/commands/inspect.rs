//! `stats`, `verify`, `exit-codes`.

use frondb::{AttachedStats, AttachedTree, Tree};
use serde_json::{Map, Value, json};

use super::session::{Session, Source, of_owner};
use super::wear;
use crate::args::{Common, Stats, Verify};
use crate::encoding::shown_name;
use crate::failure::{EXIT_CODES, Failure};
use crate::output::Output;
use crate::progress::Progress;

/// Prints statistics of the database and of each tree.
pub(crate) fn stats(common: &Common, args: &Stats) -> Result<(), Failure> {
    // clap detects the conflict only if both options follow the command.
    if args.prometheus && common.json {
        return Err(Failure::usage("--prometheus and --json exclude each other"));
    }
    if args.wear {
        return wear::print(common, args);
    }
    let found = match Source::open_to_read(common, &args.dir)? {
        Source::Session(session) if args.prometheus => {
            let page = session.db.prometheus();
            session.close()?;
            return prometheus(common, &page);
        }
        Source::Owner(owner) if args.prometheus => {
            return prometheus(common, &owner.prometheus().map_err(of_owner)?);
        }
        Source::Owner(owner) => attached(owner.stats().map_err(of_owner)?),
        Source::Session(session) => own(session)?,
    };
    let mut out = Output::new(common);
    let object = |statistics: &[(String, u64)]| -> Map<String, Value> {
        statistics.iter().map(|(name, n)| (name.clone(), (*n).into())).collect()
    };
    let trees = found.trees.iter().map(|tree| (tree.name.clone(), object(&tree.numbers).into()));
    let trees: Map<String, Value> = trees.collect();
    let result = json!({ "database": object(&found.database), "trees": trees });
    out.line(&result, |_| {
        let mut page = found.page.clone();
        for tree in &found.trees {
            page.push_str(&format!("\ntree {}\n{}", shown_name(&tree.name), tree.page));
        }
        page.truncate(page.trim_end().len());
        page
    })?;
    out.finish()
}

fn prometheus(common: &Common, page: &str) -> Result<(), Failure> {
    let mut out = Output::new(common);
    out.line(&Value::Null, |_| page.trim_end().to_owned())?;
    out.finish()
}

/// The statistics to print. They come from this process, or from the process that has the database
/// open.
struct Found {
    database: Vec<(String, u64)>,
    page: String,
    trees: Vec<FoundTree>,
}

struct FoundTree {
    name: String,
    numbers: Vec<(String, u64)>,
    page: String,
}

fn attached(stats: AttachedStats) -> Found {
    let tree =
        |tree: AttachedTree| FoundTree { name: tree.name, numbers: tree.stats, page: tree.page };
    let trees = stats.trees.into_iter().map(tree).collect();
    Found { database: stats.database, page: stats.page, trees }
}

fn own(session: Session<'_>) -> Result<Found, Failure> {
    let owned = |numbers: Vec<(&str, u64)>| -> Vec<(String, u64)> {
        numbers.into_iter().map(|(name, number)| (name.to_owned(), number)).collect()
    };
    let (stats, latencies) = (session.db.stats(), session.db.latencies());
    let mut trees = Vec::new();
    for name in session.db.list_trees() {
        let stats = session.tree(&name)?.stats()?;
        let numbers = owned(stats.named_values());
        trees.push(FoundTree { name, numbers, page: stats.to_string() });
    }
    session.close()?;
    let database = owned([stats.named_values(), latencies.named_values()].concat());
    Ok(Found { database, page: format!("{stats}{latencies}"), trees })
}

/// Verifies all trees, or the named ones, and prints the faults.
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
            let tree = shown_name(tree);
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

/// Returns a number with its noun: 1 tree, 2 trees, 3 entries.
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
