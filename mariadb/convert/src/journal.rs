//! The journal: a table in each database that lists the work that remains if the program stops.
//! Each step is recorded before it is done. Users can see the table.
//!
//! ```text
//!   database.frondb_convert_journal
//!     table_name, constraint_name    a foreign key that is dropped and not yet added again
//!     parent_schema, parent_table    the table to which it refers
//!     clause                         its definition, for ALTER TABLE .. ADD
//!     table_name, ''                 a system-versioned table that is copied; clause is the number
//!                                    in the names frondb_convert_new_1 (the copy) and
//!                                    frondb_convert_old_1 (the table until it is dropped)
//! ```
//! An empty journal is dropped.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, ForeignKey, Name};
use crate::client::{Row, literal, quoted};
use crate::error::{Error, Result};
use crate::plan::Engine;
use crate::session::Session;

const TABLE: &str = "frondb_convert_journal";
const NEW: &str = "frondb_convert_new_";
const OLD: &str = "frondb_convert_old_";

/// The comment of the journal. A table of its name with another comment belongs to a user.
const COMMENT: &str = "Foreign keys that frondb-convert adds again: run it once more";

/// The names of this program's own tables in these databases: the journals, and the copies that the
/// journals list.
pub(crate) fn tables(session: &mut Session, schemas: &BTreeSet<String>) -> Result<BTreeSet<Name>> {
    let mut ours = BTreeSet::new();
    for schema in schemas {
        ours.insert(Name::new(schema, TABLE));
        for row in rows(session, schema)?.iter().filter(|row| row[1].is_empty()) {
            let (new, old) = names_of_copy(schema, row[4].parse().unwrap_or(0));
            ours.extend([new, old]);
        }
    }
    Ok(ours)
}

/// The first number above `number` for which both names of a copy are free.
pub(crate) fn free_number(session: &mut Session, schema: &str, number: usize) -> Result<usize> {
    let mut number = number + 1;
    loop {
        let (new, old) = names_of_copy(schema, number);
        if !exists(session, &new)? && !exists(session, &old)? {
            return Ok(number);
        }
        number += 1;
    }
}

pub(crate) fn table_of(schema: &str) -> String {
    Name::new(schema, TABLE).quoted()
}

/// The name of a versioned table's copy, and the name of the table itself while the copy replaces
/// it.
pub(crate) fn names_of_copy(schema: &str, number: usize) -> (Name, Name) {
    (Name::new(schema, &format!("{NEW}{number}")), Name::new(schema, &format!("{OLD}{number}")))
}

/// Creates the journal of a database, with an engine that the server supports.
pub(crate) fn create(session: &mut Session, schema: &str, engine: Engine) -> Result<()> {
    session.change(&format!(
        "CREATE TABLE IF NOT EXISTS {} (table_name VARCHAR(64), constraint_name VARCHAR(64), \
         parent_schema VARCHAR(64) NOT NULL, parent_table VARCHAR(64) NOT NULL, clause TEXT NOT NULL, \
         PRIMARY KEY (table_name, constraint_name)) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ENGINE={} \
         COMMENT '{COMMENT}'",
        table_of(schema),
        engine.name()
    ))
}

pub(crate) fn add_key(session: &mut Session, key: &ForeignKey) -> Result<()> {
    let parent = &key.parent;
    let values = [&key.child.table, &key.name, &parent.schema, &parent.table, &key.clause];
    let values = values.map(|value| literal(value)).join(", ");
    session.change(&format!("INSERT INTO {} VALUES ({values})", table_of(&key.child.schema)))
}

pub(crate) fn add_copy(session: &mut Session, of: &Name, number: usize) -> Result<()> {
    let name = literal(&of.table);
    session.change(&format!(
        "INSERT INTO {} VALUES ({name}, '', '', '', '{number}')",
        table_of(&of.schema)
    ))
}

/// Removes the record of a foreign key; with an empty `constraint`, the record of a copy.
pub(crate) fn remove(session: &mut Session, table: &Name, constraint: &str) -> Result<()> {
    session.change(&format!(
        "DELETE FROM {} WHERE table_name = {} AND constraint_name = {}",
        table_of(&table.schema),
        literal(&table.table),
        literal(constraint)
    ))
}

/// Drops the journal of a database if it is empty.
pub(crate) fn drop_if_empty(session: &mut Session, schema: &str) -> Result<()> {
    if has(session, schema)? && rows(session, schema)?.is_empty() {
        session.change(&format!("DROP TABLE {}", table_of(schema)))?;
    }
    Ok(())
}

/// Whether a database has a journal.
fn has(session: &mut Session, schema: &str) -> Result<bool> {
    let found = session.read(&format!(
        "SELECT table_comment FROM information_schema.tables WHERE table_schema = {} AND table_name = '{TABLE}'",
        literal(schema)
    ))?;
    match found.first().and_then(|row| row.first()) {
        None => Ok(false),
        Some(comment) if comment == COMMENT => Ok(true),
        Some(_) => Err(Error::Lost(format!(
            "frondb-convert keeps its journal in a table {}, which is somebody else's here: rename it",
            Name::new(schema, TABLE)
        ))),
    }
}

fn exists(session: &mut Session, name: &Name) -> Result<bool> {
    let rows = session.read(&format!(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = {} AND table_name = {}",
        literal(&name.schema),
        literal(&name.table)
    ))?;
    Ok(rows.contains(&vec![name.schema.clone(), name.table.clone()]))
}

/// The rows of a database's journal.
fn rows(session: &mut Session, schema: &str) -> Result<Vec<Row>> {
    if !has(session, schema)? {
        return Ok(Vec::new());
    }
    session.read(&format!(
        "SELECT table_name, constraint_name, parent_schema, parent_table, clause FROM {}",
        table_of(schema)
    ))
}

/// Completes or reverts the copies of an earlier run, so that each versioned table exists exactly
/// once.
pub(crate) fn end_copies(session: &mut Session, schemas: &BTreeSet<String>) -> Result<()> {
    for schema in schemas {
        for row in rows(session, schema)?.iter().filter(|row| row[1].is_empty()) {
            end_copy(session, &Name::new(schema, &row[0]), &row[4])?;
        }
    }
    Ok(())
}

/// Adds to the catalog the foreign keys that an earlier run has dropped. Removes keys that exist
/// again from the journal.
pub(crate) fn add_dropped_keys(session: &mut Session, catalog: &mut Catalog) -> Result<()> {
    for schema in catalog.schemas.clone() {
        for row in rows(session, &schema)?.iter().filter(|row| !row[1].is_empty()) {
            let [table, name, parent_schema, parent, clause] = row.as_slice() else { continue };
            let child = Name::new(&schema, table);
            if catalog.keys.iter().any(|key| key.child == child && key.name == *name) {
                remove(session, &child, name)?;
                continue;
            }
            let (parent, clause) = (Name::new(parent_schema, parent), clause.clone());
            let name = name.clone();
            catalog.keys.push(ForeignKey { child, name, parent, clause, is_dropped: true });
        }
    }
    Ok(())
}

/// Completes the replacement of a table by its copy if both tables have their new names. Otherwise
/// reverts the replacement, because the copy may be incomplete. Stops if another session has
/// meanwhile taken the table's name.
fn end_copy(session: &mut Session, table: &Name, number: &str) -> Result<()> {
    let (new, old) = names_of_copy(&table.schema, number.parse().unwrap_or(0));
    if exists(session, &old)? {
        if !exists(session, table)? {
            session.change(&format!("ALTER TABLE {} RENAME {}", old.quoted(), table.quoted()))?;
        } else if exists(session, &new)? {
            // The table with this name is not the copy, which still has its first name: the rows
            // are only in the old table.
            return Err(Error::Lost(format!(
                "{table} was created by somebody else while its name was free, and its rows are in {old}: give the \
                 new table another name, or drop it"
            )));
        }
    }
    drop_references(session, &new)?;
    session.change(&format!("DROP TABLE IF EXISTS {}", new.quoted()))?;
    session.change(&format!("DROP TABLE IF EXISTS {}", old.quoted()))?;
    remove(session, table, "")
}

/// Drops the foreign keys that refer to a copy; the journal still lists them.
fn drop_references(session: &mut Session, copy: &Name) -> Result<()> {
    let keys = session.read(&format!(
        "SELECT DISTINCT constraint_schema, table_name, constraint_name FROM information_schema.key_column_usage \
         WHERE referenced_table_schema = {} AND referenced_table_name = {}",
        literal(&copy.schema),
        literal(&copy.table)
    ))?;
    for key in &keys {
        let [schema, table, name] = key.as_slice() else { continue };
        let (child, name) = (Name::new(schema, table).quoted(), quoted(name));
        session.change(&format!("ALTER TABLE {child} DROP FOREIGN KEY {name}"))?;
    }
    Ok(())
}
