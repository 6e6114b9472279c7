//! `make soak`: runs the random tests of `make test` many times as long and with new seeds. Run it
//! in the night before a release, and after a change of the trunk, recovery, transactions or the
//! plugin's reads.
//!
//! Each row of [`TESTS`] is one test with the variable that sets its length. `TIMES=` multiplies
//! the lengths of `make test`, and `SEED=` is the first seed of each test. The differential test
//! against InnoDB runs for `MINUTES=`. The tests with two connections, with foreign keys and with
//! crowds of writers each run for a quarter of `MINUTES`. With `MINUTES=0` the tests that need a
//! server do not run.
//!
//! Every test prints its seed, and a failure says how to replay it. docs/reliability.md has the
//! coverage and the findings of the last soak.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::step::Cmd;
use crate::summary::{Counts, Summary};
use crate::{Result, install, mariadb, variables};

/// A random test of a crate.
struct Test {
    /// The crate's package, without `frondb`; empty for the library.
    of: &'static str,
    /// The file in the crate's folder `tests`.
    file: &'static str,
    /// A part of the names of the tests to run; empty for all.
    only: &'static str,
    /// The environment variable that sets the test's first seed.
    seed: &'static str,
    /// The environment variable that sets the test's length.
    variable: &'static str,
    /// The length of the test in `make test`: the default in the test's own file.
    count: u64,
}

/// One random test a row: file, variable of the first seed, variable of the length, and length in
/// `make test`.
const TESTS: &[Test] = &[
    Test::new("model", "FRONDB_FIRST_SEED", "FRONDB_TIMES", 1),
    Test::new("crash", "FRONDB_FIRST_SEED", "FRONDB_CRASH_SEEDS", 4),
    Test::new("flips", "FRONDB_SEED", "FRONDB_FLIPS", 250),
    Test::new("salvage", "FRONDB_SEED", "FRONDB_FLIPS", 4),
    Test::new("kill", "FRONDB_SEED", "FRONDB_KILL_ROUNDS", 20),
    Test::new("bank", "FRONDB_SEED", "FRONDB_TRANSFERS", 250),
    Test::new("list_append", "FRONDB_SEED", "FRONDB_TRANSACTIONS", 1600),
    Test::new("list_append_checks", "FRONDB_FIRST_SEED", "FRONDB_HISTORIES", 60),
    Test::new("deadlocks", "FRONDB_SEED", "FRONDB_STORM", 1600),
    Test::of_codecs("-block", "suite", "codecs::"),
    Test::of_codecs("", "writes", "codecs::"),
];

impl Test {
    const fn new(
        file: &'static str,
        seed: &'static str,
        variable: &'static str,
        count: u64,
    ) -> Self {
        Self { of: "-simulator", file, only: "", seed, variable, count }
    }

    /// Creates a test of the codecs, given its crate and file.
    const fn of_codecs(of: &'static str, file: &'static str, only: &'static str) -> Self {
        Self { of, file, only, seed: "FRONDB_SEED", variable: "FRONDB_TIMES", count: 1 }
    }
}

/// Number of indexes that `mariadb/harness/tests/online_alter/indexes.rs` adds in `make test` while
/// writers run.
const ADD_INDEX_ATTEMPTS: u64 = 25;

const TIMES_DEFAULT: u64 = 10;
const MINUTES_DEFAULT: u64 = 60;

/// Runs all tests one after the other and prints a summary.
pub(crate) fn run(args: &[String]) -> Result {
    let given = variables(args, &["TIMES", "MINUTES", "SEED"])?;
    let number = |wanted: &str, default: u64| match given.iter().find(|(name, _)| *name == wanted) {
        None => Ok(default),
        Some((_, value)) => value.parse().map_err(|_| format!("{wanted}={value} is not a number")),
    };
    let times = number("TIMES", TIMES_DEFAULT)?;
    let minutes = number("MINUTES", MINUTES_DEFAULT)?;
    let seed = number("SEED", seed_of_now()?)?;
    println!(
        "soak: {times} times the counts of `make test`, seed {seed}, {minutes} min beside InnoDB"
    );

    install::c_compiler()?;
    let mut summary = Summary::default();
    for test in TESTS {
        summary.tests(test.file, || simulate(test, times, seed));
    }
    if minutes > 0 {
        summary.tests("differential", || {
            let minutes = minutes.to_string();
            on_servers("differential", &[("MINUTES", &minutes), ("SEED", &seed.to_string())])
        });
        summary.tests("two connections", || {
            let minutes = minutes.div_ceil(4).to_string();
            on_servers("duet", &[("MINUTES", &minutes), ("SEED", &seed.to_string())])
        });
        summary.tests("foreign keys", || {
            let minutes = minutes.div_ceil(4).to_string();
            on_servers("foreign_keys", &[("MINUTES", &minutes), ("SEED", &seed.to_string())])
        });
        summary.tests("crowds", || {
            let minutes = minutes.div_ceil(4).to_string();
            on_servers("crowd", &[("MINUTES", &minutes), ("SEED", &seed.to_string())])
        });
        summary.tests("servers killed", || {
            let times = times.to_string();
            on_servers(
                "kill_under_load",
                &[("FRONDB_KILL_HISTORIES", &times), ("FRONDB_SEED", &seed.to_string())],
            )
        });
        summary.tests("indexes added beside writers", || {
            let attempts = (ADD_INDEX_ATTEMPTS * times).to_string();
            on_servers("online_alter", &[("ATTEMPTS", &attempts)])
        });
    }
    summary.finish()
}

/// Returns a seed that changes every second, and is far from the seeds of `make test`.
fn seed_of_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|e| e.to_string())?;
    Ok(now.as_secs())
}

fn simulate(test: &Test, times: u64, seed: u64) -> (Counts, Result) {
    let Test { of, file, only, .. } = test;
    let arguments =
        format!("test --quiet --package frondb{of} --test {file} -- {only} --show-output");
    let count = (test.count * times).to_string();
    let cmd = Cmd::new("cargo", &arguments).env(test.variable, &count);
    cmd.env(test.seed, &seed.to_string()).run_tests()
}

fn on_servers(test: &str, environment: &[(&str, &str)]) -> (Counts, Result) {
    let plugin = match mariadb::plugin() {
        Ok(plugin) => plugin,
        Err(error) => return (Counts::default(), Err(error)),
    };
    let arguments = format!(
        "test --quiet --package frondb-mariadb-harness --test {test} -- --ignored --show-output"
    );
    let mut cmd = Cmd::new("cargo", &arguments).env("FRONDB_PLUGIN", &plugin.display().to_string());
    for (name, value) in environment {
        cmd = cmd.env(name, value);
    }
    cmd.run_tests()
}
