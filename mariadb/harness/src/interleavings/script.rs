//! Parses scripts of two connections.
//!
//! ```text
//!   ## name
//!   What it shows, in a sentence or more.
//!   before: CREATE OR REPLACE TABLE other (id INT PRIMARY KEY)
//!   a: BEGIN
//!   b: UPDATE o SET g = 90 WHERE id = 1
//!   a: look
//! ```
//!
//! `look` reads the table `o` (stage.rs) by each of its keys. `before` statements run before the
//! steps and create what the script needs besides this table.

use crate::error::{Error, Result};

const SCRIPTS: &str = include_str!("scripts.txt");

/// A level at which the scripts run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    /// The name in the table of differences.
    pub(super) short: &'static str,
    /// The name in the server.
    pub(super) name: &'static str,
    /// Whether both engines' variables `snapshot_isolation` are ON. The defaults depend on the
    /// server.
    pub(super) snapshot_isolation: bool,
}

/// Ways to read the table: name and query. The result of each way is compared with the first
/// result. Each query reads all columns, except the last, which reads only the columns in the
/// entries of its key.
pub(super) const WAYS: [(&str, &str); 5] = [
    ("id", "id, v, g, u, c FROM o FORCE INDEX (PRIMARY)"),
    ("g", "id, v, g, u, c FROM o FORCE INDEX (g) WHERE g >= 0"),
    ("u", "id, v, g, u, c FROM o FORCE INDEX (u) WHERE u >= 0"),
    ("c", "id, v, g, u, c FROM o FORCE INDEX (c) WHERE c >= 0"),
    ("g and v alone", "id, v, g, NULL, NULL FROM o FORCE INDEX (covers) WHERE g >= 0"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) name: String,
    /// Statements that run before the first step.
    pub(super) before: Vec<String>,
    pub(super) steps: Vec<Step>,
}

/// A step of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    /// 0 for `a`, 1 for `b`.
    pub(super) actor: usize,
    pub(super) text: String,
}

impl Step {
    /// Whether the step reads the table by each of its keys.
    pub(super) fn looks(&self) -> bool {
        self.text == "look"
    }

    pub(super) fn sql(&self) -> String {
        if !self.looks() {
            return self.text.clone();
        }
        let ways: Vec<String> =
            WAYS.iter().map(|(name, read)| format!("SELECT '{name}', {read}")).collect();
        ways.join(" UNION ALL ")
    }

    /// The step as `differences.md` shows it.
    pub(super) fn shown(&self) -> String {
        format!("{}: {}", ["a", "b"][self.actor], self.text)
    }
}

/// Parses all scripts; keeps their order.
pub(super) fn all() -> Result<Vec<Script>> {
    parse(SCRIPTS)
}

fn parse(text: &str) -> Result<Vec<Script>> {
    let mut scripts: Vec<Script> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            scripts.push(Script { name: name.to_owned(), before: Vec::new(), steps: Vec::new() });
            continue;
        }
        if let (Some(sql), Some(script)) = (line.strip_prefix("before: "), scripts.last_mut()) {
            script.before.push(sql.to_owned());
            continue;
        }
        let actor = ["a: ", "b: "].iter().position(|actor| line.starts_with(actor));
        let (Some(actor), Some(script)) = (actor, scripts.last_mut()) else { continue };
        script.steps.push(Step { actor, text: line[3..].to_owned() });
    }
    let empty = scripts.iter().find(|script| script.steps.is_empty());
    match empty {
        Some(script) => Err(Error::Harness(format!("script {} has no steps", script.name))),
        None => Ok(scripts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read() {
        let scripts = parse("# title\n\n## one\nText.\nbefore: DO 1\na: BEGIN\nb: look\n").unwrap();
        assert_eq!(scripts.len(), 1);
        assert_eq!(scripts[0].before, ["DO 1"]);
        assert_eq!(scripts[0].steps[1].shown(), "b: look");
        assert!(scripts[0].steps[1].sql().contains("UNION ALL"));
        assert!(parse("## one\n## two\na: BEGIN\n").is_err());
        let mut names: Vec<String> = all().unwrap().into_iter().map(|script| script.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "two scripts have one name");
    }
}
