//! Reduces the steps of a failure to fewer and shorter ones.

use std::time::{Duration, Instant};

use super::round::{Aim, Step};
use crate::server::Server;

/// Longest time of the search.
const BUDGET: Duration = Duration::from_secs(90);

/// Removes steps, and then parts of CREATE TABLE statements, as long as the last step still shows a
/// difference. The closure `fails` runs steps and returns whether the last one does.
pub(super) fn shrink(
    server: &mut Server,
    all: Vec<Step>,
    fails: impl Fn(&Server, &[Step]) -> bool,
) -> Vec<Step> {
    let begin = Instant::now();
    let mut kept = all;
    let mut try_with = |fewer: Vec<Step>, kept: &mut Vec<Step>| {
        // A statement that crashed the server may have crashed it again.
        if server.connect().is_err() && (server.kill().is_err() || server.start().is_err()) {
            return false;
        }
        let is_enough = fails(server, &fewer);
        if is_enough {
            *kept = fewer;
        }
        is_enough
    };
    let mut size = kept.len() / 4;
    while size > 0 && begin.elapsed() < BUDGET {
        let before = kept.len();
        let mut end = kept.len().saturating_sub(1);
        while end > 0 && begin.elapsed() < BUDGET {
            let mut start = end.saturating_sub(size);
            // A step that sets the next AUTO_INCREMENT value belongs to the insert after it: remove
            // both.
            if start > 0 && is_number(&kept[start - 1]) {
                start -= 1;
            }
            if !is_number(&kept[end - 1]) {
                let fewer = [&kept[..start], &kept[end..]].concat();
                try_with(fewer, &mut kept);
            }
            end = start.min(end - 1);
        }
        // If single steps were removed, search again: other steps may have become unnecessary.
        size = if size == 1 && kept.len() < before { 1 } else { size / 2 };
    }
    for at in 0..kept.len() {
        let mut part = clauses(&kept[at].sql).map_or(0, |(_, parts)| parts.len());
        while part > 1 && kept[at].aim == Aim::Define && begin.elapsed() < BUDGET {
            part -= 1;
            let Some((head, mut parts)) = clauses(&kept[at].sql) else { break };
            parts.remove(part);
            let mut fewer = kept.clone();
            fewer[at].sql = format!("{head} ({})", parts.join(", "));
            try_with(fewer, &mut kept);
        }
    }
    kept
}

fn is_number(step: &Step) -> bool {
    step.sql.starts_with("SET insert_id")
}

/// Splits a CREATE TABLE statement into the text before its parts, and its parts; none for another
/// statement.
fn clauses(sql: &str) -> Option<(String, Vec<String>)> {
    let (head, body) = sql.strip_suffix(')')?.split_once(" (")?;
    if !head.starts_with("CREATE TABLE") {
        return None;
    }
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for c in body.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    Some((head.to_owned(), parts.iter().map(|part| part.trim().to_owned()).collect()))
}

/// The steps as text, for readers and for repeating them by hand.
pub(super) fn text(steps: &[Step]) -> String {
    let mut text =
        String::from("SET NAMES utf8mb4;\nSET timestamp = 1700000000, time_zone = '+00:00';\n");
    for step in steps {
        if !step.level.is_empty() {
            let level = format!("COMMIT; SET SESSION TRANSACTION ISOLATION LEVEL {};", step.level);
            text.push_str(&format!("{level}  -- {}\n", ["a", "b"][step.actor]));
        }
        let sql = if step.sql.is_empty() {
            format!("-- {:?}", step.aim)
        } else {
            format!("{};", step.sql)
        };
        text.push_str(&format!("{sql}  -- {}\n", ["a", "b"][step.actor]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::clauses;

    #[test]
    fn statements_that_create_tables_have_parts() {
        let (head, parts) = clauses("CREATE TABLE t (a ENUM('x','y'), KEY (a, b))").unwrap();
        assert_eq!(head, "CREATE TABLE t");
        assert_eq!(parts, ["a ENUM('x','y')", "KEY (a, b)"]);
        assert!(clauses("DROP TABLE t").is_none());
    }
}
