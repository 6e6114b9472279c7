//! Converts the tables of a family to another engine.
//!
//! | step | if the program stops after it |
//! |---|---|
//! | empty copies of versioned tables are made and noted in the journal | the next run drops them |
//! | all tables are locked, and the foreign keys noted in the journal | nothing has changed |
//! | foreign keys dropped | the next run adds them |
//! | tables get the engine, smallest first; copies get all rows | the next run drops the copies |
//! | foreign keys added, of versioned tables to the copies | the next run adds those again |
//! | copies renamed to the names of the tables | the next run keeps the renamed copies |
//! | foreign keys removed from the journal | the next run sees that they exist |
//!
//! If the server refuses a table or a foreign key, the family gets its former engine back. Rows
//! need no check if the foreign keys are dropped and added while all tables are locked. They are
//! checked if an earlier run dropped a key, or if the tables are not locked because a default uses
//! a sequence.

use std::collections::BTreeSet;

use crate::catalog::{ForeignKey, Name};
use crate::client::quoted;
use crate::copy;
use crate::error::{Error, Result};
use crate::journal;
use crate::plan::{Engine, Family};
use crate::progress::Progress;
use crate::session::Session;

/// The result of converting a family.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Tables that kept their engine, each with the reason.
    pub(crate) left: Vec<(Name, String)>,
    /// Foreign keys that could not be added; they stay in the journal.
    pub(crate) missing: Vec<Missing>,
}

/// A foreign key that could not be added.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) key: ForeignKey,
    pub(crate) why: String,
    /// Whether rows without a parent are the reason. In that case the other engine would refuse the
    /// key too.
    pub(crate) is_data: bool,
}

/// The server's error for rows without a parent.
const NO_PARENT: u32 = 1452;

/// Converts a family. An error ends the run.
pub(crate) fn convert(
    session: &mut Session,
    progress: &mut Progress,
    family: &Family,
) -> Result<Outcome> {
    let is_alone = family.keys.is_empty() && family.tables.iter().all(|table| !table.is_versioned);
    let mut outcome = Outcome::default();
    if is_alone {
        for table in family.to_convert() {
            progress.begin(table, family.goal);
            if let Err(error) = change_engine(session, &table.name, family.goal) {
                outcome.left.push((table.name.clone(), refusal(error)?));
            }
        }
        return Ok(outcome);
    }
    let made = match make_copies(session, family)? {
        Ok(made) => made,
        Err(why) => {
            outcome.left = leave(family, &why);
            return Ok(outcome);
        }
    };
    let done = convert_all(session, progress, family, &made, &mut outcome);
    session.change("UNLOCK TABLES")?;
    done?;
    // Drop the old tables, or the abandoned copies.
    for (table, number) in &made {
        copy::drop_rest(session, table, *number)?;
    }
    Ok(outcome)
}

/// The versioned tables and the numbers of their copies.
type Made = Vec<(Name, usize)>;

/// Creates the copies before the tables are locked, because a session with locked tables cannot
/// create tables. The inner error is the server's reason for refusing a copy.
fn make_copies(session: &mut Session, family: &Family) -> Result<Result<Made, String>> {
    for schema in schemas_of(family) {
        journal::create(session, schema, family.goal)?;
    }
    let mut made = Made::new();
    let mut number = 0;
    for table in family.to_convert().filter(|table| table.is_versioned) {
        number = journal::free_number(session, &table.name.schema, number)?;
        journal::add_copy(session, &table.name, number)?;
        if let Err(error) = copy::make(session, &table.name, number, family.goal) {
            let why = refusal(error)?;
            // Do not drop the copy, which was not made: a table of its name would belong to another
            // user.
            journal::remove(session, &table.name, "")?;
            for (table, number) in &made {
                copy::drop_rest(session, table, *number)?;
            }
            return Ok(Err(format!("{}: {why}", table.name)));
        }
        made.push((table.name.clone(), number));
    }
    Ok(Ok(made))
}

fn convert_all(
    session: &mut Session,
    progress: &mut Progress,
    family: &Family,
    made: &Made,
    outcome: &mut Outcome,
) -> Result<()> {
    let can_lock = family.can_be_locked();
    if let Err(error) = if can_lock { lock(session, family, made) } else { Ok(()) } {
        outcome.left = leave(family, &refusal(error)?);
        return Ok(());
    }
    let (mut dropped, mut done): (Vec<&ForeignKey>, Vec<&Name>) = (Vec::new(), Vec::new());
    let result = drop_keys(session, family, &mut dropped)
        .and_then(|()| change_all(session, progress, family, made, &mut done));
    let mut copied: &[(Name, usize)] = made;
    if let Err(error) = result {
        outcome.left = leave(family, &refusal(error)?);
        for table in &done {
            change_engine(session, table, family.goal.other())?;
        }
        copied = &[];
    }
    let dropped_before = family.keys.iter().filter(|key| key.is_dropped);
    let checks = !can_lock || dropped_before.clone().next().is_some();
    let keys: Vec<&ForeignKey> = dropped_before.chain(dropped).collect();
    let mut added = add_keys(session, &keys, copied, checks, outcome)?;
    if let Some(why) = refused_key(outcome).filter(|_| outcome.left.is_empty()) {
        // The engine refuses a key that the other engine accepted: revert the family.
        drop_added(session, &added, copied)?;
        for table in &done {
            change_engine(session, table, family.goal.other())?;
        }
        outcome.missing.clear();
        outcome.left = leave(family, &why);
        copied = &[];
        added = add_keys(session, &keys, copied, checks, outcome)?;
    }
    // Copies get their foreign keys before they are renamed, because the server no longer locks a
    // renamed table.
    for (table, number) in copied {
        copy::exchange(session, table, *number)?;
    }
    for key in added {
        journal::remove(session, &key.child, &key.name)?;
    }
    Ok(())
}

/// Changes the engine of all tables, except that it fills the copies of versioned tables.
fn change_all<'a>(
    session: &mut Session,
    progress: &mut Progress,
    family: &'a Family,
    made: &Made,
    done: &mut Vec<&'a Name>,
) -> Result<()> {
    let of = |table: &Name, error| match error {
        Error::Server(number, text) => Error::Server(number, format!("{table}: {text}")),
        lost => lost,
    };
    for table in family.to_convert() {
        progress.begin(table, family.goal);
        let name = &table.name;
        match made.iter().find(|(copied, _)| copied == name) {
            Some((_, number)) => {
                copy::fill(session, name, *number).map_err(|error| of(name, error))?
            }
            None => {
                change_engine(session, name, family.goal).map_err(|error| of(name, error))?;
                done.push(name);
            }
        }
    }
    Ok(())
}

/// The databases that need a journal.
fn schemas_of(family: &Family) -> BTreeSet<&str> {
    let of_keys = family.keys.iter().map(|key| &*key.child.schema);
    of_keys.chain(family.tables.iter().map(|table| &*table.name.schema)).collect()
}

fn lock(session: &mut Session, family: &Family, made: &Made) -> Result<()> {
    let mut tables: BTreeSet<String> =
        family.tables.iter().map(|table| table.name.quoted()).collect();
    let copies = made
        .iter()
        .map(|(table, number)| journal::names_of_copy(&table.schema, *number).0.quoted());
    tables.extend(schemas_of(family).into_iter().map(journal::table_of));
    tables.extend(copies);
    let all: Vec<String> = tables.into_iter().map(|table| format!("{table} WRITE")).collect();
    session.change(&format!("LOCK TABLES {}", all.join(", ")))
}

/// Drops the foreign keys, with one statement for each table.
fn drop_keys<'a>(
    session: &mut Session,
    family: &'a Family,
    dropped: &mut Vec<&'a ForeignKey>,
) -> Result<()> {
    let keys: Vec<&ForeignKey> = family.keys.iter().filter(|key| !key.is_dropped).collect();
    for of_child in keys.chunk_by(|a, b| a.child == b.child) {
        for key in of_child {
            journal::add_key(session, key)?;
        }
        let drops = of_child.iter().map(|key| format!("DROP FOREIGN KEY {}", quoted(&key.name)));
        let drops: Vec<String> = drops.collect();
        let child = of_child[0].child.quoted();
        let done = session.change(&format!("ALTER TABLE {child} {}", drops.join(", ")));
        if let Err(Error::Server(..)) = &done {
            for key in of_child {
                journal::remove(session, &key.child, &key.name)?;
            }
        }
        done?;
        dropped.extend(of_child);
    }
    Ok(())
}

/// The copy of a table, or the table itself if it has no copy.
fn present(table: &Name, copied: &[(Name, usize)]) -> Name {
    match copied.iter().find(|(of, _)| of == table) {
        Some((_, number)) => journal::names_of_copy(&table.schema, *number).0,
        None => table.clone(),
    }
}

/// Returns why the engine refuses one of the keys; none if it refuses none. A key that fails
/// because of rows without a parent does not count.
fn refused_key(outcome: &Outcome) -> Option<String> {
    let missing = outcome.missing.iter().find(|missing| !missing.is_data)?;
    let (key, why) = (&missing.key, &missing.why);
    Some(format!("the engine refuses the foreign key {} of {}: {why}", key.name, key.child))
}

/// Drops keys that this run has added; the journal still lists them.
fn drop_added(
    session: &mut Session,
    added: &[&ForeignKey],
    copied: &[(Name, usize)],
) -> Result<()> {
    for key in added {
        let (child, name) = (present(&key.child, copied).quoted(), quoted(&key.name));
        session.change(&format!("ALTER TABLE {child} DROP FOREIGN KEY {name}"))?;
    }
    Ok(())
}

/// Adds the foreign keys, each with its own statement, because the server may refuse one of them.
/// Keys of copied tables are added to the copies. Returns the keys that were added.
fn add_keys<'a>(
    session: &mut Session,
    keys: &[&'a ForeignKey],
    copied: &[(Name, usize)],
    checks: bool,
    outcome: &mut Outcome,
) -> Result<Vec<&'a ForeignKey>> {
    let present = |table: &Name| present(table, copied);
    session.change(&format!("SET SESSION foreign_key_checks = {}", u8::from(checks)))?;
    let mut added = Vec::new();
    for key in keys.iter().copied() {
        let clause = key.clause_with_parent(&present(&key.parent));
        let statement = format!("ALTER TABLE {} ADD {clause}", present(&key.child).quoted());
        match session.change(&statement) {
            Ok(()) => added.push(key),
            Err(error) => {
                let is_data = matches!(error, Error::Server(NO_PARENT, _));
                outcome.missing.push(Missing { key: key.clone(), why: refusal(error)?, is_data });
            }
        }
    }
    session.change("SET SESSION foreign_key_checks = 1")?;
    Ok(added)
}

fn change_engine(session: &mut Session, table: &Name, goal: Engine) -> Result<()> {
    session.change(&format!("ALTER TABLE {} ENGINE={}", table.quoted(), goal.name()))
}

/// The server's refusal as text. Other errors, such as the loss of the session, are returned as
/// errors.
fn refusal(error: Error) -> Result<String> {
    match error {
        Error::Server(..) => Ok(error.to_string()),
        Error::Lost(_) => Err(error),
    }
}

fn leave(family: &Family, why: &str) -> Vec<(Name, String)> {
    family.to_convert().map(|table| (table.name.clone(), why.to_owned())).collect()
}
