//! Reduces the statements of a failure to a few that still show the difference.

use std::time::{Duration, Instant};

use super::kind::Kind;
use super::pair::{Met, Pair};
use super::statement::Step;
use crate::server::Server;

/// Longest time of the search.
const BUDGET: Duration = Duration::from_secs(120);

/// Returns fewer statements, the last of which shows a difference; returns all statements if the
/// difference does not occur again.
pub(super) fn shrink(server: &mut Server, all: Vec<Step>) -> Vec<Step> {
    let started = Instant::now();
    let mut fails = |steps: &[Step]| differs(server, steps);
    let mut kept = all;
    let related = related(&kept);
    if fails(&related) {
        kept = related;
    } else if !fails(&kept) {
        return kept;
    }
    let mut size = kept.len() / 2;
    while size > 0 {
        let mut at = 0;
        // Keep the last statement, which shows the difference.
        while at + 1 < kept.len() {
            if started.elapsed() > BUDGET {
                return kept;
            }
            let last = kept.len() - 1;
            let end = (at + size..last).find(|&end| !kept[end].follows).unwrap_or(last);
            let begin = (at..end).find(|&begin| !kept[begin].follows).unwrap_or(end);
            let without: Vec<Step> = kept[..begin].iter().chain(&kept[end..]).cloned().collect();
            if begin < end && fails(&without) {
                kept = without;
                at = begin;
            } else {
                at = end;
            }
        }
        size /= 2;
    }
    kept
}

/// Keeps the statements about the tables of the last statement, about the tables from which these
/// were created, and the statements that use no table.
fn related(steps: &[Step]) -> Vec<Step> {
    let mut names: Vec<String> = steps.last().map(|step| step.tables.clone()).unwrap_or_default();
    let mut kept = Vec::new();
    for step in steps.iter().rev() {
        let words = || step.sql.split(|c: char| !c.is_alphanumeric() && c != '_');
        let is_about = words().any(|word| names.iter().any(|name| name == word));
        if is_about || step.tables.is_empty() {
            kept.push(step.clone());
        }
        if is_about {
            names.extend(step.tables.iter().cloned());
        }
    }
    kept.reverse();
    kept
}

/// Whether the last statement shows a difference and no earlier statement does.
fn differs(server: &mut Server, steps: &[Step]) -> bool {
    // A statement that crashed the server may have crashed it again.
    if server.connect().is_err() && (server.kill().is_err() || server.start().is_err()) {
        return false;
    }
    let Ok(mut pair) = Pair::fresh(server) else { return false };
    for (i, step) in steps.iter().enumerate() {
        match pair.run(step) {
            Ok(Met::Different(_)) => return i + 1 == steps.len(),
            // The AUTO_INCREMENT counters may differ now, and the statement that aligned them has
            // been removed.
            Ok(Met::Refused(_)) if inserts(step.kind) && !step.refused => return false,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}

fn inserts(kind: Kind) -> bool {
    matches!(kind, Kind::Insert | Kind::InsertReturning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn related_statements_follow_tables_through_their_names() {
        let step = |sql: &str, tables: &[&str]| Step {
            tables: tables.iter().map(|&name| name.to_owned()).collect(),
            ..Step::new(Kind::Insert, &[], sql.to_owned())
        };
        let steps = [
            step("CREATE TABLE t1 (a INT)", &["t1"]),
            step("CREATE TABLE t2 (a INT)", &["t2"]),
            step("CREATE TABLE t12 (a INT)", &["t12"]),
            step("BEGIN", &[]),
            step("INSERT INTO t2 SELECT a FROM t1", &["t2", "t1"]),
            step("SELECT * FROM t2", &["t2"]),
        ];
        let kept: Vec<String> = related(&steps).into_iter().map(|step| step.sql).collect();
        assert_eq!(kept.len(), 5);
        assert!(!kept.contains(&"CREATE TABLE t12 (a INT)".to_owned()));
    }
}
