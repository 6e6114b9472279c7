//! How long each job took when it last ran, so that the longest job can start first. The times are
//! in a file below `target/` with one line per job, the longest at the top.
//!
//! ```text
//!   31.4 frondb-simulator tests/crash.rs
//! ```
//!
//! Only the order of the jobs depends on this file. If the file is missing or wrong, a run is
//! slower but still correct.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::workspace::target_folder;

/// Seconds by job name.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Times(BTreeMap<String, f64>);

impl Times {
    /// Reads the times of the last runs; empty if there is no file.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read_to_string(path()).unwrap_or_default())
    }

    /// Writes the times for the next run.
    pub(super) fn write(&self) {
        // If the write fails, the next run has only older times, or none.
        let _ = fs::write(path(), self.text());
    }

    /// Returns how long this job took when it last ran.
    pub(super) fn of(&self, job: &str) -> Option<f64> {
        self.0.get(job).copied()
    }

    /// Records how long a job has taken.
    pub(super) fn set(&mut self, job: &str, seconds: f64) {
        self.0.insert(job.to_owned(), seconds);
    }

    fn parse(text: &str) -> Self {
        let pairs = text.lines().filter_map(|line| {
            let (seconds, job) = line.trim().split_once(' ')?;
            Some((job.to_owned(), seconds.parse().ok().filter(|s: &f64| s.is_finite())?))
        });
        Self(pairs.collect())
    }

    fn text(&self) -> String {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by(|a, b| b.1.total_cmp(a.1));
        let mut text = String::new();
        for (job, seconds) in sorted {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{seconds:6.1} {job}");
        }
        text
    }
}

fn path() -> PathBuf {
    target_folder().join("test-times")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written_the_longest_first() {
        let mut times = Times::default();
        times.set("frondb-wal src/lib.rs", 0.5);
        times.set("plugin: mtr", 61.0);
        assert_eq!(times.text(), "  61.0 plugin: mtr\n   0.5 frondb-wal src/lib.rs\n");
        assert_eq!(Times::parse(&times.text()), times);
        assert_eq!(times.of("plugin: mtr"), Some(61.0));
        assert_eq!(times.of("another"), None);
    }

    #[test]
    fn lines_without_a_time_are_left_out() {
        assert_eq!(Times::parse("nan a\ninf b\nx c\n7\n\n  1 d"), Times::parse("1.0 d"));
    }
}
