//! A run of the command, from its arguments to its exit code. Used by one thread.

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::Args;
use crate::error::{Error, Result};
use crate::family::{self, Outcome};
use crate::plan::{self, Engine, Plan};
use crate::progress::Progress;
use crate::session::{Session, say};
use crate::{catalog, journal};

/// Exit codes: everything was converted; a table or foreign key was not; the run ended early.
const DONE: u8 = 0;
const LEFT: u8 = 1;
const STOPPED: u8 = 2;

/// Returns the definition of the command line, for manual pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the command.
#[must_use]
#[allow(clippy::print_stderr, reason = "this is where the program says why it stops")]
pub fn run() -> ExitCode {
    let args = Args::parse();
    match convert(&args) {
        Ok(outcome) => ExitCode::from(report(&outcome)),
        Err(error) => {
            eprintln!(
                "frondb-convert: {error}\nNothing is lost: the same command goes on where this one has stopped."
            );
            ExitCode::from(STOPPED)
        }
    }
}

fn convert(args: &Args) -> Result<Outcome> {
    let goal = args.to.engine();
    let mut session = Session::begin(&args.client, args.dry_run, args.lock_wait_timeout)?;
    check_engine(&mut session, goal)?;
    let schemas = schemas(&mut session, args)?;
    journal::end_copies(&mut session, &schemas)?;
    let ours = journal::tables(&mut session, &schemas)?;
    let is_ours = |table: &catalog::Name| ours.contains(table);
    let mut catalog = catalog::read(&mut session.client, schemas.clone(), is_ours)?;
    journal::add_dropped_keys(&mut session, &mut catalog)?;
    let Plan { families, left } = plan::plan(catalog, goal);
    let mut all = Outcome { left, missing: Vec::new() };
    let mut progress =
        Progress::new(families.iter().map(|family| family.to_convert().count()).sum());
    for family in &families {
        let outcome = family::convert(&mut session, &mut progress, family)?;
        all.left.extend(outcome.left);
        all.missing.extend(outcome.missing);
    }
    for schema in &schemas {
        journal::drop_if_empty(&mut session, schema)?;
    }
    Ok(all)
}

fn check_engine(session: &mut Session, goal: Engine) -> Result<()> {
    let name = goal.name();
    let found = session.read(&format!(
        "SELECT 1 FROM information_schema.engines WHERE engine = '{name}' AND support IN ('YES', 'DEFAULT')"
    ))?;
    match found.is_empty() {
        false => Ok(()),
        true => Err(Error::Lost(format!("the server has no engine {name}"))),
    }
}

/// The databases to convert, by the command line.
fn schemas(session: &mut Session, args: &Args) -> Result<BTreeSet<String>> {
    let all = catalog::all_schemas(&mut session.client)?;
    if args.all_databases {
        return Ok(all);
    }
    match args.databases.iter().find(|name| !all.contains(*name)) {
        None => Ok(args.databases.iter().cloned().collect()),
        Some(name) => Err(Error::Lost(format!("the server has no database {name} of a user"))),
    }
}

/// Reports the tables and keys that were not converted; returns the exit code.
fn report(outcome: &Outcome) -> u8 {
    for (table, why) in &outcome.left {
        say(&format!("-- stays: {table}: {why}"));
    }
    for family::Missing { key, why, .. } in &outcome.missing {
        say(&format!(
            "-- missing: foreign key {} of {}: {why}; mend that, and run the command again, which adds it. Its definition: {}",
            key.name, key.child, key.clause
        ));
    }
    if outcome.left.is_empty() && outcome.missing.is_empty() { DONE } else { LEFT }
}
