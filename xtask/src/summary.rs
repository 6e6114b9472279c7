//! The summary of a run of several steps: how long each step took, whether it passed, and how many
//! tests ran.

use std::fmt::Write as _;
use std::ops::AddAssign;
use std::time::{Duration, Instant};

use crate::Result;

/// How many tests passed and failed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Counts {
    /// Returns the sum over all test harnesses whose output is in `output`.
    pub(crate) fn of(output: &str) -> Self {
        let mut counts = Self::default();
        output.lines().for_each(|line| counts.add_line(line));
        counts
    }

    /// Adds a line of a test harness such as `test result: ok. 3 passed; 0 failed; 0 ignored`.
    pub(crate) fn add_line(&mut self, line: &str) {
        let Some(result) = line.trim().strip_prefix("test result: ") else { return };
        for part in result.split(['.', ';']) {
            let mut words = part.split_whitespace();
            let count = words.next().and_then(|word| word.parse::<u64>().ok());
            match (count, words.next()) {
                (Some(n), Some("passed")) => self.passed += n,
                (Some(n), Some("failed")) => self.failed += n,
                _ => {}
            }
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// A step whose jobs ran in parallel with other jobs.
#[derive(Debug)]
pub(crate) struct Part {
    /// The name of the step's line in the summary.
    pub(crate) name: String,
    /// The times of the jobs, added up.
    time: Duration,
    /// The tests of the jobs, added up.
    pub(crate) counts: Counts,
    failed: Vec<String>,
}

impl Part {
    /// Creates a part without jobs.
    pub(crate) fn new(name: &str) -> Self {
        let (name, counts) = (name.to_owned(), Counts::default());
        Self { name, time: Duration::ZERO, counts, failed: Vec::new() }
    }

    pub(crate) fn add(&mut self, job: &str, time: Duration, counts: Counts, result: &Result) {
        self.time += time;
        self.counts += counts;
        if let Err(message) = result {
            self.failed.push(format!("{job}: {message}"));
        }
    }

    /// Returns an error that names the failed jobs, if there are any.
    pub(crate) fn result(&self) -> Result {
        if self.failed.is_empty() { Ok(()) } else { Err(self.failed.join("\n  ")) }
    }
}

/// A line of the table.
struct Row {
    name: String,
    time: Duration,
    result: Result,
    /// Whether the row's time is included in the time of a row above it.
    is_part: bool,
}

/// The steps that have run, how long each took, and whether it passed.
#[derive(Default)]
pub(crate) struct Summary {
    rows: Vec<Row>,
    counts: Counts,
}

impl Summary {
    /// Runs a step. Does not return the error of a failed step, so that the other steps still run
    /// and one run shows all failures.
    pub(crate) fn step(&mut self, name: &str, action: impl FnOnce() -> Result) {
        self.tests(name, || (Counts::default(), action()));
    }

    /// Runs a step that counts tests.
    pub(crate) fn tests(&mut self, name: &str, action: impl FnOnce() -> (Counts, Result)) {
        eprintln!("== {name}");
        let start = Instant::now();
        let (counts, result) = action();
        if let Err(message) = &result {
            eprintln!("error: {name}: {message}");
        }
        self.counts += counts;
        self.push(name, start.elapsed(), result, false);
    }

    /// Runs several jobs in parallel. The times of their lines may add up to more than the elapsed
    /// time.
    pub(crate) fn parts(&mut self, name: &str, action: impl FnOnce() -> Vec<Part>) {
        eprintln!("== {name}");
        let start = Instant::now();
        let parts = action();
        // The lines of the parts name the failed jobs.
        self.push(name, start.elapsed(), Ok(()), false);
        for part in parts {
            let result = part.result();
            if let Err(message) = &result {
                eprintln!("error: {}:\n  {message}", part.name);
            }
            self.counts += part.counts;
            self.push(&part.name, part.time, result, true);
        }
    }

    fn push(&mut self, name: &str, time: Duration, result: Result, is_part: bool) {
        self.rows.push(Row { name: name.to_owned(), time, result, is_part });
    }

    /// Prints the table of all steps. The error names the failed steps.
    pub(crate) fn finish(self) -> Result {
        print!("{}", self.table());
        let failed = self.rows.iter().filter(|row| row.result.is_err());
        let failed: Vec<&str> = failed.map(|row| &*row.name).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    fn table(&self) -> String {
        let mut table = String::from("\n");
        let mut total = Duration::ZERO;
        for Row { name, time, result, is_part } in &self.rows {
            let outcome = if result.is_ok() { "ok" } else { "FAILED" };
            let indent = if *is_part { "  " } else { "" };
            let name = format!("{indent}{name}");
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{name:<24} {:>7.1} s  {outcome}", time.as_secs_f64());
            if !is_part {
                total += *time;
            }
        }
        let Counts { passed, failed } = self.counts;
        let _ = writeln!(table, "{:<24} {:>7.1} s", "total", total.as_secs_f64());
        let _ = writeln!(table, "{passed} passed, {failed} failed");
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harness_lines_are_counted() {
        let mut counts = Counts::default();
        counts.add_line("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured");
        counts.add_line("test result: FAILED. 3 passed; 2 failed; 0 ignored");
        counts.add_line("test foo ... ok");
        assert_eq!(counts, Counts { passed: 15, failed: 2 });
        let output = "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed\n";
        assert_eq!(Counts::of(output), Counts { passed: 2, failed: 0 });
    }

    #[test]
    fn a_failed_step_does_not_hide_the_next_one_and_fails_the_whole() {
        let mut summary = Summary::default();
        summary.step("first", || Err("no".to_owned()));
        summary.tests("second", || (Counts { passed: 1, failed: 0 }, Ok(())));
        let table = summary.table();
        assert!(table.contains("first") && table.contains("FAILED"), "{table}");
        assert!(table.ends_with("1 passed, 0 failed\n"), "{table}");
        assert_eq!(summary.finish(), Err("failed: first".to_owned()));
    }

    #[test]
    fn times_of_parts_are_not_added_twice_and_their_failures_are_named() {
        let mut summary = Summary::default();
        let (mut good, mut bad) = (Part::new("good"), Part::new("bad"));
        let minute = Duration::from_secs(60);
        good.add("a", minute, Counts { passed: 2, failed: 0 }, &Ok(()));
        bad.add("b", minute, Counts { passed: 1, failed: 1 }, &Err("no".to_owned()));
        bad.add("c", minute, Counts::default(), &Ok(()));
        assert_eq!(bad.result(), Err("b: no".to_owned()));
        summary.parts("at once", || vec![good, bad]);
        let table = summary.table();
        assert!(table.contains("  good                      60.0 s  ok\n"), "{table}");
        assert!(table.contains("  bad                      120.0 s  FAILED\n"), "{table}");
        assert!(
            table.contains("total                        0.0 s\n3 passed, 1 failed"),
            "{table}"
        );
        assert_eq!(summary.finish(), Err("failed: bad".to_owned()));
    }
}
