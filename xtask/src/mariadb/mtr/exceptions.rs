//! Tests in suites for other engines that FronDB may fail: rows of mariadb/mysql-test/suites.md,
//! each with a reason.
//!
//! ```text
//!   | gcol.gcol_one, gcol_two; rpl.rpl_xyz | needs foreign keys |
//!     tests of two suites                    why
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::outcome::{Outcome, without_how};
use crate::Result;
use crate::mariadb::folder;
use crate::workspace::{read, root};

const PAGE: &str = "mariadb/mysql-test/suites.md";

/// Tests with their reasons.
#[derive(Debug)]
pub(crate) struct Exceptions(BTreeMap<String, String>);

impl Exceptions {
    /// Reads the tests of these suites that the page lists.
    pub(crate) fn of(suites: &[&str]) -> Result<Self> {
        Ok(Self(rows(&read(&root().join(PAGE))?, suites)))
    }

    /// Writes a list of the tests, for mtr to skip. Returns its path.
    pub(super) fn write_list(&self) -> Result<PathBuf> {
        let path = folder().join("passed-over");
        let lines = self.0.iter().map(|(test, why)| format!("{test} : {why}\n"));
        let at = |error| format!("{}: {error}", path.display());
        fs::write(&path, lines.collect::<String>()).map_err(at)?;
        Ok(path)
    }

    /// Returns the failed tests without a row.
    pub(super) fn unexplained(&self, outcome: &Outcome) -> BTreeSet<String> {
        let failed = outcome.failed.iter().map(|test| without_how(test));
        failed.filter(|test| !self.0.contains_key(*test)).map(str::to_owned).collect()
    }

    /// Returns the findings: failed tests without a row, and rows of tests that passed.
    pub(crate) fn findings(&self, outcome: &Outcome) -> Vec<String> {
        let failed: BTreeSet<&str> = outcome.failed.iter().map(|test| without_how(test)).collect();
        let passed = outcome.passed.iter().map(|test| without_how(test));
        let passed: BTreeSet<&str> = passed.filter(|test| !failed.contains(test)).collect();
        let news = self.unexplained(outcome).into_iter();
        let idle = self.0.keys().filter(|test| passed.contains(test.as_str()));
        news.map(|test| format!("{test} failed, and {PAGE} has no reason"))
            .chain(idle.map(|test| format!("{test} passed, and has a row in {PAGE}")))
            .collect()
    }
}

fn rows(page: &str, suites: &[&str]) -> BTreeMap<String, String> {
    page.lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, tests, why, _] = cells[..] else { return None };
            Some(tests.split("; ").filter_map(|group| group.split_once('.')).flat_map(
                move |(suite, tests)| tests.split(", ").map(move |test| (suite, test, why)),
            ))
        })
        .flatten()
        .filter(|(suite, ..)| suites.contains(suite))
        .map(|(suite, test, why)| (format!("{suite}.{test}"), why.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_need_rows_and_rows_failures() {
        let page = "| suite | FronDB | InnoDB |\n|---|---|---|\n| rpl | 1.5 | 2 |\n\n| test | why |\n|---|---|\n\
                    | gcol.c; rpl.a | x |\n| rpl.b, e | y |\n| gcol.d, f | z |\n";
        let exceptions = Exceptions(rows(page, &["rpl"]));
        assert_eq!(exceptions.0.keys().collect::<Vec<_>>(), ["rpl.a", "rpl.b", "rpl.e"]);
        let mut outcome = Outcome::default();
        for line in [
            "rpl.a 'row'   w1 [ fail ]",
            "rpl.a 'mix'   w1 [ pass ]  1",
            "rpl.b 'mix'   w1 [ pass ]  1",
            "rpl.d 'mix'   w1 [ fail ]",
        ] {
            outcome.add_line(line);
        }
        assert_eq!(exceptions.unexplained(&outcome), BTreeSet::from(["rpl.d".to_owned()]));
        let findings = exceptions.findings(&outcome);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].starts_with("rpl.d failed") && findings[1].starts_with("rpl.b passed"));
    }
}
