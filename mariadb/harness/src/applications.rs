//! Loads the schemas of Debian's applications on FronDB and on InnoDB, and compares the databases.
//!
//! ```text
//!   package ---> script ---> load: each statement on both ---> exercise ---> dumps, one reloaded
//!                               |  outcomes compared              |              |
//!                               '----- description of both databases, compared --'
//! ```
//!
//! The scripts are executed as they are, except that FronDB replaces InnoDB and MyISAM where a
//! CREATE or ALTER TABLE names them. Tables of MEMORY stay tables of MEMORY.
//!
//! | module | |
//! |---|---|
//! | [`list`] | the applications: packages, scripts, character sets |
//! | [`script`] | the statements of a script, with another engine |
//! | [`pair`] | a database of each engine, and the outcomes of one statement |
//! | [`load`] | executes the scripts |
//! | [`exercise`] | rows for all tables, changed along their foreign keys |
//! | [`description`] | definitions, rows and checksums of a database |
//! | [`dump`] | dumps of both, one loaded again |

mod description;
mod dump;
mod exercise;
mod list;
mod load;
mod pair;
mod script;

use std::fmt;
use std::fs;
use std::path::Path;

use crate::error::{Error, Result, harness};
use crate::options::Engine;
use crate::server::Server;
use description::Description;
pub use list::{APPLICATIONS, App};
use pair::{Pair, Side};

/// Number of differences that an error message shows.
const SHOWN: usize = 20;

/// What was loaded and compared.
#[derive(Debug)]
pub struct Report {
    version: String,
    /// Statements of the scripts.
    statements: u64,
    tables: usize,
    /// Tables whose engine is not FronDB.
    others: usize,
    refused: usize,
    foreign_keys: u64,
    /// Rows after the scripts.
    rows: u64,
    /// Statements that inserted, changed or deleted rows after the scripts, and how many succeeded.
    changes: u64,
    succeeded: u64,
}

/// Runs the scripts of an application on both engines, changes rows, and compares the databases.
/// The application's package must be unpacked in its own folder below `packages`.
///
/// # Errors
/// A difference between FronDB and InnoDB, a damaged table, or a failure of the server.
pub fn run(server: &Server, app: &App, packages: &Path) -> Result<Report> {
    let root = packages.join(app.package);
    let loaded = load::load(server, app, &root)?;
    demand_none(app, "while its scripts ran", loaded.findings)?;
    let mut pair = Pair::connect(server, app)?;
    demand_none(app, "in the engines of tables", engines(&mut pair)?)?;
    let after_load = compare(&mut pair)?;
    demand_none(app, "after its scripts", after_load.1)?;
    let exercised = exercise::run(&mut pair)?;
    demand_none(app, "while rows were changed", exercised.findings)?;
    let after_changes = compare(&mut pair)?;
    demand_none(app, "after rows were changed", after_changes.1)?;
    demand_none(app, "in CHECK TABLE", damaged(&mut pair.ours)?)?;
    demand_none(app, "between dumps or after a reload", dumped(server, app, &mut pair)?)?;
    let tables = pair.ours.tables(None)?.len();
    Ok(Report {
        version: version(&root)?,
        statements: loaded.statements,
        tables,
        others: tables - pair.ours.tables(Some(Engine::FronDb))?.len(),
        refused: loaded.refused.len(),
        foreign_keys: pair.ours.foreign_keys()?,
        rows: after_load.0,
        changes: exercised.statements,
        succeeded: exercised.succeeded,
    })
}

/// Returns a difference if FronDB lacks tables that InnoDB has, has more, or has none.
fn engines(pair: &mut Pair) -> Result<Vec<String>> {
    let ours = pair.ours.tables(Some(Engine::FronDb))?;
    let theirs = pair.theirs.tables(Some(Engine::InnoDb))?;
    let differ = ours.is_empty() || ours != theirs;
    Ok(differ.then(|| format!("FronDB: {ours:?}\nInnoDB: {theirs:?}")).into_iter().collect())
}

/// Returns the number of rows, and the differences between both databases.
fn compare(pair: &mut Pair) -> Result<(u64, Vec<String>)> {
    let ours = Description::of(&mut pair.ours)?;
    let theirs = Description::of(&mut pair.theirs)?;
    Ok((ours.rows, ours.differences(["FronDB", "InnoDB"], &theirs)))
}

/// Returns the differences between the dumps of both databases, and between FronDB's tables and the
/// tables reloaded from their dump. The dump files stay beside the server's data until the next
/// application overwrites them.
fn dumped(server: &Server, app: &App, pair: &mut Pair) -> Result<Vec<String>> {
    let files = [&pair.ours, &pair.theirs].map(|side| {
        let file = server.data().with_file_name(format!("{}.sql", side.engine.name()));
        dump::write(server, &side.database, &file).map(|()| file)
    });
    let [ours, theirs] = files;
    let (ours, theirs) = (ours?, theirs?);
    if let Some(difference) = dump::difference(&ours, &theirs)? {
        return Ok(vec![difference]);
    }
    let name = format!("{}_copy", app.name);
    let mut copy = Side::connect_to(server, app, Engine::FronDb, name.clone())?;
    dump::load(server, &ours, &name)?;
    let (dumped, reloaded) = (Description::of(&mut pair.ours)?, Description::of(&mut copy)?);
    Ok(dumped.differences(["dumped", "reloaded"], &reloaded))
}

/// Returns what CHECK TABLE reports about FronDB's tables, other than OK.
fn damaged(side: &mut Side) -> Result<Vec<String>> {
    let tables = side.tables(Some(Engine::FronDb))?;
    let tables = tables.iter().map(|table| format!("`{table}`")).collect::<Vec<_>>().join(", ");
    let mut lines = side.lines(&format!("CHECK TABLE {tables} EXTENDED"))?;
    lines.retain(|line| !line.ends_with("\tstatus\tOK"));
    Ok(lines)
}

fn demand_none(app: &App, when: &str, findings: Vec<String>) -> Result {
    if findings.is_empty() {
        return Ok(());
    }
    let (count, shown) = (findings.len(), &findings[..findings.len().min(SHOWN)]);
    Err(Error::Harness(format!("{}: {count} differences {when}\n{}", app.name, shown.join("\n"))))
}

/// The version from the package's control file.
fn version(root: &Path) -> Result<String> {
    let path = root.join("DEBIAN/control");
    let control = fs::read_to_string(&path).map_err(|error| harness(path.display(), error))?;
    let version = control.lines().find_map(|line| line.strip_prefix("Version: "));
    version.map(str::to_owned).ok_or_else(|| harness(path.display(), "names no version"))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, statements, tables, others, refused, .. } = self;
        let Self { foreign_keys, rows, changes, succeeded, .. } = self;
        write!(f, "{version}: {statements} statements, {tables} tables")?;
        write!(f, " ({others} of other engines), {refused} refused, ")?;
        write!(f, "{foreign_keys} foreign keys, {rows} rows, then {succeeded} changes")?;
        write!(f, " and {} refused by both", changes - succeeded)
    }
}
