//! Running commands: one [`Cmd`] at a time, its output passed through as it comes, and a
//! [`Summary`] of steps with their times at the end.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Result;
use crate::workspace::{root, target_folder};

/// A command with its arguments, run in the checkout's root.
pub(crate) struct Cmd {
    command: Command,
    shown: String,
}

impl Cmd {
    /// `program` with arguments split at spaces (none of ours contains one).
    pub(crate) fn new(program: &str, args: &str) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root()).args(args.split_whitespace()).stdin(Stdio::null());
        Self { command, shown: format!("{program} {args}") }
    }

    /// Adds one argument that may contain spaces.
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self.shown = format!("{} {arg}", self.shown);
        self
    }

    /// Sets an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        // A search path is long and tells nothing about what is run.
        if name != "PATH" {
            self.shown = format!("{name}='{value}' {}", self.shown);
        }
        self
    }

    /// Builds into a folder of its own below the build output, for other compiler flags.
    pub(crate) fn target_folder(self, name: &str) -> Self {
        let folder = target_folder().join(name);
        self.env("CARGO_TARGET_DIR", &folder.to_string_lossy())
    }

    /// Runs in another folder.
    pub(crate) fn dir(mut self, dir: PathBuf) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Runs it, output passed through; an error if it cannot start or exits non-zero.
    pub(crate) fn run(mut self) -> Result {
        eprintln!("$ {}", self.shown);
        let status =
            self.command.status().map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if status.success() { Ok(()) } else { Err(format!("`{}` failed: {status}", self.shown)) }
    }

    /// Whether it runs and exits with zero; nothing is printed.
    pub(crate) fn succeeds(mut self) -> bool {
        self.command.stdout(Stdio::null()).stderr(Stdio::null());
        self.command.status().is_ok_and(|status| status.success())
    }

    /// Runs it and returns its standard output, trimmed.
    pub(crate) fn output(mut self) -> Result<String> {
        let output = self.command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if !output.status.success() {
            return Err(format!("`{}` failed: {}", self.shown, output.status));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Runs a `cargo test` command and counts what its harnesses report, output passed through.
    pub(crate) fn run_tests(self) -> (Counts, Result) {
        let mut counts = Counts::default();
        let result = self.run_lines(|line| counts.add_line(line));
        (counts, result)
    }

    /// Runs it and shows each line of its output to `each`; output passed through.
    pub(crate) fn run_lines(mut self, mut each: impl FnMut(&str)) -> Result {
        eprintln!("$ {}", self.shown);
        let child = self.command.stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|e| format!("cannot start `{}`: {e}", self.shown))?;
        if let Some(stdout) = child.stdout.take() {
            let mut out = std::io::stdout().lock();
            for line in BufReader::new(stdout).split(b'\n').map_while(std::result::Result::ok) {
                each(&String::from_utf8_lossy(&line));
                // Nobody reads on after a closed pipe; the exit status still counts.
                let _ = out.write_all(&line).and_then(|()| out.write_all(b"\n"));
            }
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("`{}` failed: {status}", self.shown)),
            Err(e) => Err(format!("cannot wait for `{}`: {e}", self.shown)),
        }
    }
}

/// How many tests passed and failed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed.
    pub(crate) failed: u64,
}

impl Counts {
    /// Adds a line of a test harness such as `test result: ok. 3 passed; 0 failed; 0 ignored`.
    fn add_line(&mut self, line: &str) {
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

/// Steps that ran, how long each took, and whether it passed.
#[derive(Default)]
pub(crate) struct Summary {
    steps: Vec<(String, Duration, Result)>,
    counts: Counts,
}

impl Summary {
    /// Runs a step. A failed one does not stop those after it: one run shows everything.
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
        self.counts.passed += counts.passed;
        self.counts.failed += counts.failed;
        self.steps.push((name.to_owned(), start.elapsed(), result));
    }

    /// Prints the closing table; an error names the failed steps.
    pub(crate) fn finish(self) -> Result {
        print!("{}", self.table());
        let failed: Vec<&str> = self
            .steps
            .iter()
            .filter(|(_, _, result)| result.is_err())
            .map(|(name, _, _)| name.as_str())
            .collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
    }

    fn table(&self) -> String {
        let mut table = String::from("\n");
        let mut total = Duration::ZERO;
        for (name, time, result) in &self.steps {
            let outcome = if result.is_ok() { "ok" } else { "FAILED" };
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{name:<22} {:>7.1} s  {outcome}", time.as_secs_f64());
            total += *time;
        }
        let Counts { passed, failed } = self.counts;
        let _ = writeln!(table, "{:<22} {:>7.1} s", "total", total.as_secs_f64());
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
}
