//! The intended differences: the rows of the table in `differences.md`. Each names the title of its
//! explanation in `mariadb/docs/interleavings.md`.
//!
//! ```text
//!   | script | level | step | FronDB | InnoDB | why |
//!   |---|---|---|---|---|---|
//!   | lost-update | SER | 5 a: UPDATE ... | error 1213 | 1 affected | victims |
//!
//!   ### victims
//! ```

use super::script::Script;
use crate::error::{Error, Result};

/// The line after which the rows of the table begin.
const HEAD: &str = "|---|---|---|---|---|---|";

/// A step whose outcomes differ: a row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    script: String,
    level: String,
    step: String,
    ours: String,
    theirs: String,
    why: String,
}

impl Difference {
    pub(super) fn new(
        script: &Script,
        level: &str,
        i: usize,
        ours: String,
        theirs: String,
    ) -> Self {
        let step = match script.steps.get(i) {
            Some(step) => format!("{} {}", i + 1, step.shown()),
            None => "the table at the end".into(),
        };
        let (script, level) = (script.name.clone(), level.to_owned());
        Self { script, level, step, ours, theirs, why: String::new() }
    }

    /// Whether both rows are about the same step, whatever their outcomes.
    fn is_at(&self, other: &Self) -> bool {
        (&self.script, &self.level, &self.step) == (&other.script, &other.level, &other.step)
    }

    fn is_like(&self, other: &Self) -> bool {
        self.is_at(other) && (&self.ours, &self.theirs) == (&other.ours, &other.theirs)
    }

    fn row(&self) -> String {
        let Self { script, level, step, ours, theirs, why } = self;
        format!("| {script} | {level} | {step} | {ours} | {theirs} | {why} |")
    }
}

/// The table, and the titles of the explanations.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Difference>,
    /// The titles of the page's explanations.
    reasons: Vec<String>,
}

impl Table {
    /// Parses the table in `text` and the titles in `page`.
    pub(super) fn parse(text: &str, page: &str) -> Result<Self> {
        let mut rows = Vec::new();
        for line in text.lines().skip_while(|line| *line != HEAD).skip(1) {
            let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"))
            else {
                break;
            };
            let cells: Vec<&str> = cells.split(" | ").map(str::trim).collect();
            let [script, level, step, ours, theirs, why] = cells[..] else {
                return Err(Error::Harness(format!("not a row of six cells: {line}")));
            };
            let [script, level, step] = [script, level, step].map(str::to_owned);
            let [ours, theirs, why] = [ours, theirs, why].map(str::to_owned);
            rows.push(Difference { script, level, step, ours, theirs, why });
        }
        let reasons = page.lines().filter_map(|line| line.strip_prefix("### "));
        Ok(Self { rows, reasons: reasons.map(str::to_owned).collect() })
    }

    /// Removes the rows with this reason, and the reason.
    pub(super) fn remove(&mut self, reason: &str) {
        self.rows.retain(|row| row.why != reason);
        self.reasons.retain(|known| known != reason);
    }

    /// Compares the table with the actual differences; returns the table's errors.
    pub(super) fn complaints(&self, found: &[Difference]) -> Vec<String> {
        let mut complaints = Vec::new();
        for one in found {
            if !self.rows.iter().any(|row| row.is_like(one)) {
                complaints.push(format!("not in the table: {}", one.row()));
            }
        }
        for row in &self.rows {
            if !found.iter().any(|one| row.is_like(one)) {
                complaints.push(format!("does not occur: {}", row.row()));
            }
            if !self.reasons.contains(&row.why) {
                complaints.push(format!("has no reason that the page explains: {}", row.row()));
            }
        }
        for reason in &self.reasons {
            if !self.rows.iter().any(|row| row.why == *reason) {
                complaints.push(format!("no difference has this reason: {reason}"));
            }
        }
        complaints
    }

    /// Returns `text` with these differences as the rows of the table. A row that the table already
    /// had keeps its reason.
    pub(super) fn rewritten(&self, text: &str, found: &[Difference]) -> String {
        let mut lines: Vec<String> = Vec::new();
        let mut old = text.lines();
        for line in old.by_ref() {
            lines.push(line.to_owned());
            if line == HEAD {
                break;
            }
        }
        for one in found {
            let known = self.rows.iter().find(|row| row.is_at(one));
            let why = known.map_or_else(|| "?".to_owned(), |row| row.why.clone());
            lines.push(Difference { why, ..one.clone() }.row());
        }
        lines.extend(old.skip_while(|line| line.starts_with("| ")).map(str::to_owned));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interleavings::script::Step;

    #[test]
    fn rows_of_the_table_are_compared_with_the_differences() {
        let page = "| s | l | s | F | I | w |\n|---|---|---|---|---|---|\n\
                    | one | RC | 1 a: BEGIN | 1 | 2 | victims |\n\n### victims\n";
        let step = Step { actor: 0, text: "BEGIN".into() };
        let script = Script { name: "one".into(), before: Vec::new(), steps: vec![step] };
        let found = Difference::new(&script, "RC", 0, "1".into(), "2".into());
        let table = Table::parse(page, page).unwrap();
        assert_eq!(table.complaints(std::slice::from_ref(&found)), [] as [String; 0]);
        assert_eq!(table.rewritten(page, std::slice::from_ref(&found)), page);
        assert_eq!(table.complaints(&[]).len(), 1);
        let other = Difference::new(&script, "RC", 0, "1".into(), "3".into());
        assert_eq!(table.complaints(&[other]).len(), 2);
        let unexplained = Table::parse(&page.replace("victims |", "? |"), page).unwrap();
        assert_eq!(unexplained.complaints(&[found]).len(), 2);
    }
}
