//! Foreign keys: runs random statements on random families of tables, on FronDB and on InnoDB. The
//! answers and the tables must be equal.
//!
//! One connection: after each statement both engines must have given the same answer, error text or
//! warnings, and must have the same rows in all tables. The statements include definitions of
//! tables.
//!
//! Two connections: no statement waits. If one engine refuses a statement because of a lock, the
//! statement is undone on the other engine, as in [`super::duet`]. When both connections have
//! committed, every row must have its parent.
//!
//! | module | |
//! |---|---|
//! | [`family`], [`domain`] | the tables, and the types of their columns |
//! | [`round`] | the steps; [`change`] and [`define`] write statements |
//! | [`neutral`] | texts without the names of the engines |
//! | [`shrink`] | fewer and shorter statements that still fail |

mod change;
mod define;
mod domain;
mod family;
mod neutral;
mod round;
mod shrink;

use std::collections::BTreeMap;
use std::path::Path;

use frondb_core::prng::Prng;

use self::family::NAMES;
use self::round::{Aim, Step};
use super::compare::{definition, is_lost, outcome};
use super::duet::side::{self, Act, ENGINES, Side};
use crate::error::{Error, Result, harness};
use crate::reply::{Reply, Value};
use crate::server::Server;

/// "Cannot add or update a child row".
const NO_PARENT: u16 = 1452;
/// "Foreign key constraint .. would lead to a duplicate entry".
const CHILD_DUPLICATE: u16 = 1761;
/// "Cannot delete or update a parent row", and the two errors above.
const FOREIGN: [u16; 3] = [1451, NO_PARENT, CHILD_DUPLICATE];
/// "Cannot drop index"; "Cannot drop column" and "Cannot change column", of a child or of a parent.
const NEEDED: [u16; 5] = [1553, 1828, 1829, 1832, 1833];
/// "Duplicate entry".
const DUPLICATE: u16 = 1062;

/// "Can't create table"; "Missing index for constraint" and "Incorrect options in FOREIGN KEY".
const CANNOT_CREATE: u16 = 1005;
const CANNOT_ADD: [u16; 2] = [1822, 1825];
/// "Table doesn't exist".
const NO_TABLE: u16 = 1146;

/// Steps on one family. Few, so that the history of a failure is short.
const ROUND: u64 = 160;

/// Counts of a run.
#[derive(Debug, Default)]
pub struct Report {
    /// Statements that succeeded on both engines, by kind.
    pub done: BTreeMap<&'static str, u64>,
    /// Statements that both engines refused, by FronDB's error number.
    pub errors: BTreeMap<u16, u64>,
    /// Statements that at least one engine refused because of a lock.
    pub refused: u64,
    /// Statements that were undone because the engines differ in them for a known reason.
    pub undone: u64,
    /// Number of compared rows, in all tables.
    pub rows: u64,
    /// Foreign keys at the ends of rounds, counted by their actions on delete and on update.
    pub actions: BTreeMap<String, u64>,
}

/// Runs at least this many statements from a seed; two of three rounds have only one connection.
/// If the engines differ, the error names the file with the statements.
pub fn run(server: &mut Server, seed: u64, statements: u64, replays: &Path) -> Result<Report> {
    let mut random = Prng::new(seed);
    let mut report = Report::default();
    let mut left = statements;
    let mut number = 0;
    while left > 0 {
        let steps = round::draw(&mut random, number % 3 != 2, ROUND.min(left.max(60)));
        left = left.saturating_sub(steps.len() as u64);
        number += 1;
        let Some((at, what)) = play(server, &steps, &mut report)? else { continue };
        let kept = shrink::shrink(server, steps[..=at].to_vec(), |server, fewer| {
            let met = play(server, fewer, &mut Report::default());
            matches!(met, Ok(Some((last, _))) if last + 1 == fewer.len())
        });
        let file = replays.join(format!("foreign-{seed}.sql"));
        std::fs::write(&file, shrink::text(&kept)).map_err(|e| harness(file.display(), e))?;
        let (last, file) = (&steps[at].sql, file.display());
        return Err(Error::Harness(format!("seed {seed}: {what}\nin: {last}\nsteps: {file}")));
    }
    Ok(report)
}

/// Runs steps on both engines, in new databases; returns the first difference and its step.
fn play(server: &Server, steps: &[Step], report: &mut Report) -> Result<Option<(usize, String)>> {
    let mut sides = [fresh(server, ENGINES[0])?, fresh(server, ENGINES[1])?];
    for (i, step) in steps.iter().enumerate() {
        if let Some(what) = both(&mut sides, step, report)? {
            return Ok(Some((i, what)));
        }
    }
    let rules = "SELECT concat(delete_rule, ' ', update_rule) \
                 FROM information_schema.referential_constraints \
                 WHERE constraint_schema = database()";
    for row in sides[0].actors[0].client.query(rules)?.rows {
        let [Some(rule)] = row.as_slice() else { continue };
        *report.actions.entry(String::from_utf8_lossy(rule).into_owned()).or_default() += 1;
    }
    Ok(None)
}

fn fresh(server: &Server, engine: &str) -> Result<Side> {
    let database = neutral::database(engine);
    server.connect()?.run([
        // A connection that was just closed may still hold locks.
        "SET lock_wait_timeout = 10".to_owned(),
        format!("DROP DATABASE IF EXISTS {database}"),
        format!("CREATE DATABASE {database} CHARACTER SET utf8mb4"),
    ])?;
    let mut side = Side::connect(server, &database)?;
    for actor in &mut side.actors {
        actor.client.run([
            format!("SET default_storage_engine = {engine}, lock_wait_timeout = 10"),
            "SET timestamp = 1700000000, time_zone = '+00:00'".to_owned(),
        ])?;
    }
    Ok(side)
}

/// Runs a step on both engines; returns their difference, if any.
fn both(sides: &mut [Side; 2], step: &Step, report: &mut Report) -> Result<Option<String>> {
    match step.aim {
        Aim::Look => return look(sides, step, report),
        Aim::Orphans => return orphans(sides),
        Aim::Check => return check(sides),
        Aim::Run | Aim::Define => {}
    }
    if step.kind == "RENAME COLUMN" {
        // While the server has a table open twice, as after a self-join, it refuses to rename a
        // column that a generated column needs, with error 1054.
        for side in &mut *sides {
            side.actors[step.actor].client.run(["FLUSH TABLES"])?;
        }
    }
    let [ours, theirs] = sides;
    let run = |side: &mut Side| side.run(step.actor, step.act, &step.sql, step.level);
    let replies = [run(ours)?, run(theirs)?];
    if step.aim == Aim::Define && !step.sql.starts_with("SET") {
        sides.iter_mut().for_each(|side| side.has_committed(step.actor));
    }
    for (reply, engine) in replies.iter().zip(ENGINES) {
        if is_lost(reply) {
            return Ok(Some(format!("{engine}: {}", outcome(reply))));
        }
    }
    let mut codes = replies.each_ref().map(|reply| reply.as_ref().err().and_then(Error::code));
    // Read the warnings now, because the next SAVEPOINT, BEGIN or COMMIT clears them.
    let warnings = [warnings(sides, step, &replies[0], 0)?, warnings(sides, step, &replies[1], 1)?];
    // IGNORE turns errors into warnings.
    for (code, warnings) in codes.iter_mut().zip(&warnings) {
        if code.is_none() && mentions(warnings, side::TIMEOUT) {
            *code = Some(side::TIMEOUT);
        }
    }
    // DELETE IGNORE of a join gives no warning for rows that it could not lock.
    let affected = replies.each_ref().map(|reply| reply.as_ref().map_or(0, |it| it.affected));
    let is_silent = step.kind == "DELETE of a join" && step.sql.starts_with("DELETE IGNORE");
    if is_silent && !step.is_alone && affected[0] != affected[1] {
        codes[usize::from(affected[1] < affected[0])] = Some(side::TIMEOUT);
    }
    if step.act != Act::Alone {
        if differs_rightly(step, &replies, &warnings) {
            side::end(sides, step.actor, step.act, true, false)?;
            report.undone += 1;
            return Ok(None);
        }
        let is_lock = side::refused_for_a_lock(sides, step.actor, step.act, codes)?;
        if is_lock && step.is_alone {
            return Ok(Some(format!("a lock: {codes:?}")));
        }
        if is_lock {
            report.refused += 1;
            return Ok(None);
        }
    }
    if let Some(what) = difference(step, &replies, &warnings) {
        return Ok(Some(what));
    }
    if step.act != Act::Alone
        && reasons(&replies[0], &warnings[0]) != reasons(&replies[1], &warnings[1])
    {
        // Undo the whole transaction, because each engine keeps locks on the rows that it read
        // before it refused the statement.
        side::end(sides, step.actor, step.act, true, true)?;
        report.undone += 1;
        return Ok(None);
    }
    match codes[0] {
        Some(code) => *report.errors.entry(code).or_default() += 1,
        None => *report.done.entry(step.kind).or_default() += 1,
    }
    match step.aim {
        Aim::Define => match definitions(sides, step)? {
            None => look(sides, step, report),
            what => Ok(what),
        },
        _ if step.is_alone => look(sides, step, report),
        _ => Ok(None),
    }
}

/// The numbers of a statement's error and of its warnings.
fn reasons(reply: &Result<Reply>, warnings: &[String]) -> Vec<String> {
    let error = reply.as_ref().err().and_then(Error::code).map(|code| code.to_string());
    let numbers = warnings.iter().filter_map(|warning| warning.split(" | ").nth(1));
    error.into_iter().chain(numbers.map(str::to_owned)).collect()
}

fn mentions(warnings: &[String], code: u16) -> bool {
    warnings.iter().any(|warning| warning.split(" | ").nth(1) == Some(&code.to_string()))
}

/// Whether the engines differ in a statement for a known reason. Such a statement is then undone.
/// - InnoDB checks a foreign key again whenever it writes an entry of the child's index, even if
///   only another column has changed. So it refuses rows that already lacked their parents.
/// - If a row has a duplicate itself and would also cause one in a child, InnoDB reports the
///   duplicate in the child, which IGNORE does not ignore.
fn differs_rightly(step: &Step, replies: &[Result<Reply>; 2], warnings: &[Vec<String>; 2]) -> bool {
    let only_theirs = |code: u16| !mentions(&warnings[0], code) && mentions(&warnings[1], code);
    let [ours, theirs] =
        replies.each_ref().map(|reply| reply.as_ref().map_or(0, |reply| reply.affected));
    // UPDATE IGNORE does not warn of rows without a parent.
    let is_less = step.sql.starts_with("UPDATE IGNORE") && theirs < ours;
    (step.has_orphans && step.sql.contains("UPDATE") && (only_theirs(NO_PARENT) || is_less))
        || (step.sql.starts_with("UPDATE IGNORE") && only_theirs(CHILD_DUPLICATE))
}

/// The lines of SHOW WARNINGS: a statement's warnings and its error.
fn warnings(
    sides: &mut [Side; 2],
    step: &Step,
    reply: &Result<Reply>,
    engine: usize,
) -> Result<Vec<String>> {
    if reply.as_ref().is_ok_and(|reply| reply.warnings == 0) {
        return Ok(Vec::new());
    }
    let shown = sides[engine].actors[step.actor].client.query("SHOW WARNINGS")?;
    Ok(neutral::rows(&shown.rows, ENGINES[engine]))
}

fn difference(
    step: &Step,
    replies: &[Result<Reply>; 2],
    warnings: &[Vec<String>; 2],
) -> Option<String> {
    // While foreign_key_checks is off, InnoDB reports other errors for foreign keys that an ALTER
    // cannot add.
    let codes = replies.each_ref().map(|reply| reply.as_ref().err().and_then(Error::code));
    if step.has_orphans && CANNOT_ADD.iter().any(|code| codes == [Some(CANNOT_CREATE), Some(*code)])
    {
        return None;
    }
    let shown = |reply: &Result<Reply>, engine: &str| match reply {
        // ALTER TABLE counts rows only if it copies them.
        Ok(_) if step.aim == Aim::Define => "ok".to_owned(),
        Ok(reply) => format!("{} affected, {}", reply.affected, reply.info),
        Err(error) => neutral::text(&error.to_string(), engine),
    };
    // InnoDB does not say why it refuses some foreign keys. It reports twice that a column which
    // becomes NOT NULL contains NULLs.
    let is_reason = |warning: &str| {
        warning.starts_with("Warning | 150 |") || warning.starts_with("Error | 1138 |")
    };
    let has_reasons = warnings.iter().all(|all| all.iter().any(|warning| is_reason(warning)));
    let lines = [0, 1].map(|at| {
        let mut lines = vec![shown(&replies[at], ENGINES[at])];
        let warnings = warnings[at].iter().filter(|warning| has_reasons || !is_reason(warning));
        lines.extend(warnings.cloned());
        lines.iter().map(|line| neutral::altered(line, &step.sql)).collect::<Vec<_>>()
    });
    let [ours, theirs] = &lines;
    let is_same = ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| a == b || is_other_reason(step, a, b));
    let [ours, theirs] = lines.each_ref().map(|lines| lines.join("\n    "));
    (!is_same).then(|| format!("FronDB: {ours}\nInnoDB: {theirs}"))
}

/// Whether both engines refuse the same statement for different reasons. The known cases:
///
/// - A row has a duplicate, or would cause one in a child, and also violates a foreign key. InnoDB
///   writes one index after the other and carries out the actions of each; FronDB carries out
///   actions after it has written the whole row.
/// - A row violates several foreign keys. InnoDB checks them in the order in which it created the
///   indexes, FronDB in the order of the definition. The orders differ after an ALTER has rebuilt
///   an index.
/// - Several actions would cause duplicates. InnoDB carries out the actions on a child's children
///   before it checks the child for duplicates.
/// - An action changes the primary key of a child that also refers to the changed row by another
///   foreign key. InnoDB writes all index entries of the child again and does not find the parent.
/// - A foreign key needs a column that is dropped or changed, and another foreign key needs it too,
///   or an index of the column is needed.
/// - A column has another type than the referenced one, and no index has all referenced columns.
/// - A child has a duplicate, and InnoDB names the child's table as before a RENAME.
/// - UPDATE IGNORE of FronDB skips a row that has a duplicate itself, and fails at a later row that
///   would cause one in a child; InnoDB fails at the first row (see [`differs_rightly`]).
fn is_other_reason(step: &Step, ours: &str, theirs: &str) -> bool {
    let is = |text: &str, code: &u16| {
        let marks =
            [format!("ERROR {code} "), format!("Error | {code} |"), format!("Warning | {code} |")];
        marks.iter().any(|mark| text.starts_with(mark))
    };
    let is_one = |text: &str, codes: &[u16]| codes.iter().any(|code| is(text, code));
    if is(ours, &CHILD_DUPLICATE) && is(theirs, &CHILD_DUPLICATE) {
        let is_later_row = step.sql.starts_with("UPDATE IGNORE");
        return is_later_row || unnamed(ours) == unnamed(theirs);
    }
    let is_duplicate = |text: &str| is_one(text, &[DUPLICATE, CHILD_DUPLICATE]);
    let breaks = |text: &str| is_duplicate(text) || is_one(text, &FOREIGN);
    let alters = ["DROP COLUMN", "MODIFY"].iter().any(|what| step.sql.contains(what));
    let is_needed = alters && [ours, theirs].iter().all(|text| is_one(text, &NEEDED));
    let reasons = ["There is no index", "does not match"];
    let is_formed_wrong = reasons.iter().any(|reason| ours.contains(reason))
        && reasons.iter().any(|reason| theirs.contains(reason));
    let key = |text: &str| text.split_once("fails (").map(|(_, key)| key.to_owned());
    let is_same_key = |a: &str, b: &str| key(a).is_some() && key(a) == key(b);
    let is_same = is_one(ours, &FOREIGN) && is_one(theirs, &FOREIGN) && is_same_key(ours, theirs);
    let has_several = step.is_altered && is(ours, &NO_PARENT) && is(theirs, &NO_PARENT);
    is_needed
        || is_formed_wrong
        || is_same
        || has_several
        || (breaks(ours) && breaks(theirs) && (is_duplicate(ours) || is_duplicate(theirs)))
}

/// Cuts the names of the child's table and of its foreign key off a text.
fn unnamed(text: &str) -> &str {
    text.split_once("in table ").map_or(text, |(before, _)| before)
}

/// Runs a query on both engines; returns the difference of the answers, and the answers. `trims`
/// ignores trailing spaces of values.
fn ask(
    sides: &mut [Side; 2],
    actor: usize,
    sql: &str,
    trims: bool,
) -> Result<(Option<String>, [Result<Reply>; 2])> {
    for side in &mut *sides {
        side.actors[actor].client.send(sql)?;
    }
    let replies = sides.each_mut().map(|side| side.actors[actor].client.receive());
    let shown = |reply: &Result<Reply>, engine: &str| match reply {
        Ok(reply) => {
            let mut rows = reply.rows.clone();
            if sql.starts_with("SHOW CREATE") {
                rows.iter_mut().flatten().flatten().for_each(definition);
            }
            if trims {
                rows.iter_mut().flatten().flatten().for_each(|value| {
                    let length = value.trim_ascii_end().len();
                    value.truncate(length);
                });
            }
            let mut rows = neutral::rows(&rows, engine);
            rows.sort();
            rows
        }
        Err(error) => vec![neutral::text(&error.to_string(), engine)],
    };
    let (a, b) = (shown(&replies[0], ENGINES[0]), shown(&replies[1], ENGINES[1]));
    if a == b {
        return Ok((None, replies));
    }
    let only = |all: &[String], of: &[String]| {
        let rows = all.iter().filter(|row| !of.contains(row)).cloned();
        rows.collect::<Vec<_>>().join("\n    ")
    };
    let what = format!("{sql}\nFronDB alone: {}\nInnoDB alone: {}", only(&a, &b), only(&b, &a));
    Ok((Some(what), replies))
}

/// Compares all rows of all tables.
fn look(sides: &mut [Side; 2], step: &Step, report: &mut Report) -> Result<Option<String>> {
    for table in NAMES {
        let (what, replies) =
            ask(sides, step.actor, &format!("SELECT * FROM {table}"), step.trims)?;
        // Reads of SERIALIZABLE transactions take locks.
        let codes = replies.each_ref().map(|reply| reply.as_ref().err().and_then(Error::code));
        if step.act == Act::Read && side::refused_for_a_lock(sides, step.actor, step.act, codes)? {
            report.refused += 1;
            return Ok(None);
        }
        if what.is_some() {
            return Ok(what);
        }
        report.rows += replies[0].as_ref().map_or(0, |reply| reply.rows.len() as u64);
    }
    Ok(None)
}

/// Compares the definitions of all tables. After an ALTER, the engines may name different indexes
/// of the parent with the same columns: FronDB keeps an index as long as it has the columns, and
/// InnoDB takes the first index with the columns when it reads the definition again.
fn definitions(sides: &mut [Side; 2], step: &Step) -> Result<Option<String>> {
    for table in NAMES.into_iter().chain(["other", "l"]) {
        if let (Some(what), _) = ask(sides, 0, &format!("SHOW CREATE TABLE {table}"), false)? {
            return Ok(Some(what));
        }
    }
    let columns = "(SELECT group_concat(s.column_name ORDER BY s.seq_in_index) \
                    FROM information_schema.statistics s WHERE s.table_schema = database() \
                    AND s.table_name = r.referenced_table_name \
                    AND s.index_name = r.unique_constraint_name AND s.seq_in_index <= \
                    (SELECT count(*) FROM information_schema.key_column_usage k \
                     WHERE k.constraint_schema = database() AND k.table_name = r.table_name \
                     AND k.constraint_name = r.constraint_name))";
    let index = if step.is_altered { columns } else { "unique_constraint_name" };
    let rules = format!(
        "SELECT constraint_name, {index} AS parent_index, update_rule, delete_rule, table_name, \
         referenced_table_name FROM information_schema.referential_constraints r \
         WHERE constraint_schema = database()"
    );
    Ok(ask(sides, 0, &rules, false)?.0)
}

/// Returns a difference if, on either engine, a row lacks its parent.
fn orphans(sides: &mut [Side; 2]) -> Result<Option<String>> {
    let columns = "SELECT constraint_name, table_name, referenced_table_name, \
                   group_concat(concat('c.', column_name, ' = p.', referenced_column_name) \
                                SEPARATOR ' AND '), \
                   group_concat(concat('c.', column_name, ' IS NOT NULL') SEPARATOR ' AND ') \
                   FROM information_schema.key_column_usage WHERE constraint_schema = database() \
                   AND referenced_table_name IS NOT NULL GROUP BY table_name, constraint_name";
    let keys = sides[0].actors[0].client.query(columns)?.rows;
    for key in keys {
        let text = |value: &Value| {
            String::from_utf8_lossy(value.as_deref().unwrap_or_default()).into_owned()
        };
        let key: Vec<String> = key.iter().map(text).collect();
        let [name, child, parent, equal, given] = key.as_slice() else { continue };
        let sql = format!(
            "SELECT count(*) FROM {child} c WHERE {given} \
             AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {equal})"
        );
        for (side, engine) in sides.iter_mut().zip(ENGINES) {
            let reply = side.actors[0].client.query(&sql);
            // The parent does not exist, because the engine refused to create it.
            if reply.as_ref().err().and_then(Error::code) == Some(NO_TABLE) {
                continue;
            }
            let count = reply?.number().unwrap_or(0);
            if count > 0 {
                return Ok(Some(format!("{engine}: {count} rows without a parent by {name}")));
            }
        }
    }
    Ok(None)
}

/// Runs CHECK TABLE on FronDB's tables.
fn check(sides: &mut [Side; 2]) -> Result<Option<String>> {
    let client = &mut sides[0].actors[0].client;
    let sql = "SELECT table_name FROM information_schema.tables WHERE table_schema = database()";
    for row in client.query(sql)?.rows {
        let [Some(name)] = row.as_slice() else { continue };
        let name = String::from_utf8_lossy(name);
        let check = client.query(format!("CHECK TABLE {name} EXTENDED"))?;
        if check.rows.len() != 1 || check.rows[0].last() != Some(&Some(b"OK".to_vec())) {
            return Ok(Some(neutral::rows(&check.rows, ENGINES[0]).join("\n")));
        }
    }
    Ok(None)
}
