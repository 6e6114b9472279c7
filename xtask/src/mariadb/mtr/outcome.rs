//! Reads mtr's report, which has a line for each test:
//!
//! ```text
//! storage_engine-frondb.1st                w2 [ pass ]      8
//! storage_engine-frondb.type_int           [ disabled ]  MDEV-10252 - ...
//! engines/funcs.an_calendar 'innodb'       w1 [ skipped ]  Needs ...
//! ```

use std::collections::BTreeSet;
use std::fmt;

use crate::Result;
use crate::summary::Counts;

/// The names of tests by their results.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) passed: BTreeSet<String>,
    pub(crate) failed: BTreeSet<String>,
    pub(crate) skipped: BTreeSet<String>,
    pub(crate) disabled: BTreeSet<String>,
}

impl Outcome {
    /// Adds a line of mtr's output.
    pub(super) fn add_line(&mut self, line: &str) {
        let Some((head, tail)) = line.split_once("[ ") else { return };
        let Some((word, _)) = tail.split_once(" ]") else { return };
        // The words are the test's name, its combination, and the worker that ran it.
        let words: Vec<&str> = head.split_whitespace().collect();
        let Some(name) = words.first().filter(|name| name.contains('.')) else { return };
        let combination = words.get(1).filter(|word| word.starts_with('\''));
        let name = match combination {
            Some(combination) => format!("{name} {combination}"),
            None => (*name).to_owned(),
        };
        let place = match word {
            "pass" => &mut self.passed,
            // A test that passes only on the second try counts as failed.
            "fail" | "retry-fail" | "retry-pass" | "exp-fail" => &mut self.failed,
            "skipped" => &mut self.skipped,
            "disabled" => &mut self.disabled,
            _ => return,
        };
        place.insert(name);
    }

    /// Keeps only the tests that ran in the combination `how`, and renames them to tests of
    /// `suite`.
    pub(super) fn only(self, how: &str, suite: &str) -> Self {
        let of = |names: BTreeSet<String>| {
            names.iter().filter_map(|name| renamed(name, how, suite)).collect()
        };
        Self {
            passed: of(self.passed),
            failed: of(self.failed),
            skipped: of(self.skipped),
            disabled: of(self.disabled),
        }
    }

    /// Replaces the results of a test, in all its combinations, by the results of another run.
    pub(super) fn replace(&mut self, test: &str, again: Self) {
        let replace = |names: &mut BTreeSet<String>, again: BTreeSet<String>| {
            names.retain(|name| without_how(name) != test);
            names.extend(again.into_iter().filter(|name| without_how(name) == test));
        };
        replace(&mut self.passed, again.passed);
        replace(&mut self.failed, again.failed);
        replace(&mut self.skipped, again.skipped);
        replace(&mut self.disabled, again.disabled);
    }

    /// Returns the counts for the summary of `make test`.
    pub(crate) fn counts(&self) -> Counts {
        Counts { passed: self.passed.len() as u64, failed: self.failed.len() as u64 }
    }

    /// Returns an error with the names of all failed tests if there are any, or if no test ran.
    pub(crate) fn demand_all(&self) -> Result {
        if !self.failed.is_empty() {
            let names: Vec<&str> = self.failed.iter().map(String::as_str).collect();
            return Err(format!("failed: {}", names.join(", ")));
        }
        if self.passed.is_empty() { Err("mtr ran no test".to_owned()) } else { Ok(()) }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mtr: {} passed, {} failed, {} skipped, {} disabled",
            self.passed.len(),
            self.failed.len(),
            self.skipped.len(),
            self.disabled.len()
        )
    }
}

/// Renames `versioning.rpl 'mix,timestamp'` to a test of `suite`, if `how` (here `timestamp`) is
/// one of the words of its combination.
fn renamed(name: &str, how: &str, suite: &str) -> Option<String> {
    let (test, combination) = name.split_once(' ')?;
    let is_asked_for = combination.trim_matches('\'').split(',').any(|word| word == how);
    let (_, test) = test.split_once('.')?;
    is_asked_for.then(|| format!("{suite}.{test} {combination}"))
}

/// Returns the name without the combination: `rpl.rpl_insert` of `rpl.rpl_insert 'mix'`. Pages have
/// one row for all combinations of a test.
pub(super) fn without_how(test: &str) -> &str {
    test.split_once(' ').map_or(test, |(test, _)| test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_are_picked() {
        let mut outcome = Outcome::default();
        for line in [
            "versioning.rpl 'mix,timestamp'  w1 [ pass ]  1",
            "versioning.rpl 'mix,trx_id'     w1 [ pass ]  1",
            "versioning.alter                w1 [ fail ]",
            "versioning.online 'timestamp'   w1 [ fail ]",
        ] {
            outcome.add_line(line);
        }
        let only = outcome.only("timestamp", "other");
        assert_eq!(only.to_string(), "mtr: 1 passed, 1 failed, 0 skipped, 0 disabled");
        assert!(only.passed.contains("other.rpl 'mix,timestamp'"));
    }

    #[test]
    fn a_second_run_of_a_test_counts_alone() {
        let outcome = |lines: &[&str]| {
            let mut outcome = Outcome::default();
            lines.iter().for_each(|line| outcome.add_line(line));
            outcome
        };
        let mut first = outcome(&[
            "rpl.a 'mix'   w1 [ fail ]",
            "rpl.a 'row'   w1 [ pass ]  1",
            "rpl.ab 'mix'  w1 [ fail ]",
        ]);
        first.replace(
            "rpl.a",
            outcome(&["rpl.a 'mix'  [ pass ]  1", "rpl.a 'row'  [ fail ]", "rpl.c  [ pass ]  1"]),
        );
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let passed: BTreeSet<String> = names(&["rpl.a 'mix'"]);
        assert_eq!(first.passed, passed);
        let failed: BTreeSet<String> = names(&["rpl.a 'row'", "rpl.ab 'mix'"]);
        assert_eq!(first.failed, failed);
    }

    #[test]
    fn lines_are_counted_by_their_outcome() {
        let mut outcome = Outcome::default();
        for line in [
            "storage_engine-frondb.type_int           [ disabled ]  MDEV-10252 - Row count",
            "storage_engine-frondb.1st                w2 [ pass ]      8",
            "storage_engine/trx-frondb.xa             w1 [ fail ]",
            "engines/funcs.an_calendar 'innodb'       w1 [ pass ]     11",
            "main.ssl                                 w1 [ skipped ]  Needs SSL",
            "        Test ended at 2026-11-22 11:57:53",
            "# [ ALTER TABLE t1 ROW_FORMAT=FIXED ]",
        ] {
            outcome.add_line(line);
        }
        assert_eq!(outcome.to_string(), "mtr: 2 passed, 1 failed, 1 skipped, 1 disabled");
        assert!(outcome.passed.contains("engines/funcs.an_calendar 'innodb'"));
        assert_eq!(outcome.demand_all(), Err("failed: storage_engine/trx-frondb.xa".to_owned()));
        assert!(Outcome::default().demand_all().is_err());
    }
}
