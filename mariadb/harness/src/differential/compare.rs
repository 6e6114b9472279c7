//! Compares the outcomes of a statement: what must be equal, and what may differ, with the reason.

use super::kind::{Class, Kind};
use super::statement::Step;
use crate::error::{Error, Result};
use crate::reply::{Reply, Value};

/// The error of a duplicate key.
pub(super) const DUPLICATE: u16 = 1062;

/// Whether both sides refuse an INSERT .. SELECT, InnoDB for a duplicate and FronDB for another
/// reason. This is correct only for an empty table or partition: there FronDB finds duplicates when
/// it sorts the rows, at the end of the statement, so it reports the error of a later row first.
pub(super) fn is_duplicate_found_late(
    step: &Step,
    ours: &Result<Reply>,
    theirs: &Result<Reply>,
) -> bool {
    let code = |outcome: &Result<Reply>| outcome.as_ref().err().and_then(Error::code);
    step.kind == Kind::InsertSelect && code(ours).is_some() && code(theirs) == Some(DUPLICATE)
}

/// The difference between two outcomes; none if they are equal.
pub(super) fn difference(
    step: &Step,
    ours: &Result<Reply>,
    theirs: &Result<Reply>,
) -> Option<String> {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => replies(step, ours, theirs),
        (Err(ours), Err(theirs)) if ours.code().is_some() && ours.code() == theirs.code() => None,
        // If several rows have errors, the statement reports the first that it reads. An ALTER that
        // copies the table reads rows in another order than an ALTER in place.
        (Err(ours), Err(theirs))
            if alters(step.kind) && ours.code().is_some() && theirs.code().is_some() =>
        {
            None
        }
        _ => Some(format!("FronDB: {}\nInnoDB: {}", outcome(ours), outcome(theirs))),
    }
}

/// An outcome as text.
pub(super) fn outcome(outcome: &Result<Reply>) -> String {
    match outcome {
        Ok(reply) => format!("ok, {} rows, {} affected", reply.rows.len(), reply.affected),
        Err(error) => error.to_string(),
    }
}

fn replies(step: &Step, ours: &Reply, theirs: &Reply) -> Option<String> {
    let names = |reply: &Reply| reply.columns.iter().map(|c| c.name.clone()).collect::<Vec<_>>();
    // If the optimizer finds that no row can match, a DELETE RETURNING has no result set. Whether
    // it checks that depends on the cost of a table scan.
    let is_of_nothing =
        step.kind == Kind::DeleteReturning && ours.rows.is_empty() && theirs.rows.is_empty();
    if !is_of_nothing && names(ours) != names(theirs) {
        return Some(format!(
            "FronDB: columns {:?}\nInnoDB: columns {:?}",
            names(ours),
            names(theirs)
        ));
    }
    let (ours_rows, theirs_rows) = (rows(step, ours), rows(step, theirs));
    if ours_rows != theirs_rows {
        let at = ours_rows.iter().zip(&theirs_rows).position(|(a, b)| a != b);
        let at = at.unwrap_or(ours_rows.len().min(theirs_rows.len()));
        return Some(format!(
            "row {at} of {} and {}\nFronDB: {}\nInnoDB: {}",
            ours_rows.len(),
            theirs_rows.len(),
            shown(ours_rows.get(at)),
            shown(theirs_rows.get(at))
        ));
    }
    // ALTER TABLE counts rows only if it copies the table, and the engines differ in when it does.
    if !alters(step.kind) && ours.affected != theirs.affected {
        return Some(format!(
            "FronDB: {} affected\nInnoDB: {} affected",
            ours.affected, theirs.affected
        ));
    }
    let warns = matches!(step.kind, Kind::Insert | Kind::InsertIgnore | Kind::Replace);
    if warns && ours.warnings != theirs.warnings {
        return Some(format!(
            "FronDB: {} warnings\nInnoDB: {} warnings",
            ours.warnings, theirs.warnings
        ));
    }
    None
}

fn alters(kind: Kind) -> bool {
    kind.class() == Class::Alter
}

/// The rows to compare; sorted if the statement does not determine their order.
fn rows(step: &Step, reply: &Reply) -> Vec<Vec<Value>> {
    let mut rows = reply.rows.clone();
    for row in &mut rows {
        if step.sql.starts_with("SHOW CREATE TABLE") {
            row.iter_mut().flatten().for_each(definition);
        } else if step.kind == Kind::Checksum {
            // The first column names the database.
            row.remove(0);
        }
    }
    if !step.ordered {
        rows.sort();
    }
    rows
}

/// Options that may differ in definitions: the engine, FronDB's own options, and the counter, which
/// each engine advances in its own way when a statement fails.
const DIFFERENT: [&str; 5] =
    ["ENGINE=", "AUTO_INCREMENT=", "`BLOCK_SIZE`=", "`FANOUT`=", "`COMPRESSION`="];

/// Removes from a definition what may differ: the options in [`DIFFERENT`], CLUSTERING, and the
/// engines of partitions.
pub(super) fn definition(text: &mut Vec<u8>) {
    let shown = String::from_utf8_lossy(text).replace(" `CLUSTERING`='YES'", "");
    // MariaDB 11.8 shows it without quotes.
    let shown = shown.replace(" `CLUSTERING`=YES", "");
    let words = shown.split_whitespace().filter(|word| {
        !DIFFERENT.iter().any(|option| word.starts_with(option)) && !["ENGINE", "="].contains(word)
    });
    let words: Vec<&str> = words.map(|word| if is_engine(word) { "" } else { word }).collect();
    *text = words.join(" ").into_bytes();
}

/// In clauses of partitions the engine is a word of its own: "ENGINE = InnoDB".
fn is_engine(word: &str) -> bool {
    ["InnoDB", "FronDB"].contains(&word.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// A row as text.
pub(super) fn shown(row: Option<&Vec<Value>>) -> String {
    let Some(row) = row else { return "(no row)".to_owned() };
    let value = |value: &Value| match value {
        None => "NULL".to_owned(),
        Some(bytes) => bytes.escape_ascii().to_string(),
    };
    row.iter().map(value).collect::<Vec<_>>().join(" | ")
}

/// Whether the server has not answered a statement: the connection is lost, the time limit has
/// passed, or the harness failed.
pub(super) fn is_lost(outcome: &Result<Reply>) -> bool {
    matches!(outcome, Err(Error::Lost(_) | Error::Late(_) | Error::Harness(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: Kind, sql: &str) -> Step {
        Step::new(kind, &[], sql.to_owned())
    }

    fn reply(rows: &[&str], affected: u64) -> Result<Reply> {
        let rows = rows.iter().map(|row| vec![Some(row.as_bytes().to_vec())]).collect();
        Ok(Reply { rows, affected, ..Reply::default() })
    }

    fn error(code: u16) -> Result<Reply> {
        Err(Error::Server { code, state: String::new(), message: format!("{code}") })
    }

    #[test]
    fn rows_counts_and_errors_are_compared() {
        let set = step(Kind::Range, "SELECT 1");
        assert_eq!(difference(&set, &reply(&["a", "b"], 0), &reply(&["b", "a"], 0)), None);
        let ordered = set.clone().ordered(true);
        assert!(difference(&ordered, &reply(&["a", "b"], 0), &reply(&["b", "a"], 0)).is_some());
        assert!(difference(&set, &reply(&["a"], 0), &reply(&["a", "a"], 0)).is_some());
        assert!(difference(&set, &reply(&[], 1), &reply(&[], 2)).is_some());
        let alter = step(Kind::AddColumn, "ALTER TABLE t ADD COLUMN c INT");
        assert_eq!(difference(&alter, &reply(&[], 1), &reply(&[], 0)), None);
        assert_eq!(difference(&set, &error(1062), &error(1062)), None);
        assert!(difference(&set, &error(1062), &error(1022)).is_some());
        assert!(difference(&set, &error(1062), &reply(&[], 0)).is_some());
        let bulk = step(Kind::InsertSelect, "INSERT INTO t SELECT * FROM s");
        assert!(is_duplicate_found_late(&bulk, &error(1048), &error(1062)));
        assert!(!is_duplicate_found_late(&bulk, &error(1062), &error(1048)));
        assert!(!is_duplicate_found_late(&bulk, &reply(&[], 0), &error(1062)));
        assert!(!is_duplicate_found_late(&set, &error(1048), &error(1062)));
    }

    #[test]
    fn a_delete_of_no_row_may_have_no_result() {
        fn named(mut reply: Reply) -> Result<Reply> {
            reply.columns = vec![crate::reply::Column { name: "c0".into(), kind: 3 }];
            Ok(reply)
        }
        let delete = step(Kind::DeleteReturning, "DELETE FROM t RETURNING c0");
        assert_eq!(difference(&delete, &reply(&[], 0), &named(Reply::default())), None);
        let row = vec![vec![Some(b"1".to_vec())]];
        let of_one = Reply { rows: row, ..Reply::default() };
        assert!(difference(&delete, &reply(&[], 0), &named(of_one)).is_some());
        let select = step(Kind::Range, "SELECT c0 FROM t");
        assert!(difference(&select, &reply(&[], 0), &named(Reply::default())).is_some());
    }

    #[test]
    fn definitions_differ_in_the_engine_only() {
        let show = step(Kind::Audit, "SHOW CREATE TABLE t");
        let ours = reply(
            &["`a` int) ENGINE=FronDB AUTO_INCREMENT=7 DEFAULT (PARTITION p ENGINE = FronDB)"],
            0,
        );
        let theirs = reply(
            &["`a` int) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT (PARTITION p ENGINE = InnoDB)"],
            0,
        );
        assert_eq!(difference(&show, &ours, &theirs), None);
        let other = reply(&["`b` int) ENGINE=InnoDB"], 0);
        assert!(difference(&show, &ours, &other).is_some());
    }
}
