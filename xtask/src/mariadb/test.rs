//! All tests that need a server: `cargo xtask test-mariadb`, a part of `make test`, and
//! `test-mariadb-full`.

use std::path::Path;

use super::mtr::{self, Exceptions, Run, Tree};
use super::plugin;
use super::servers::release_of;
use crate::Result;
use crate::install::{apt, on_path};
use crate::pool::{self, Job, Ran};
use crate::programs::{self, Program};
use crate::step::Cmd;
use crate::summary::{Counts, Summary};

/// MariaDB's suite for external engines with our overlay, and our own suite.
const SUITES: [&str; 4] =
    ["storage_engine-frondb", "storage_engine/trx-frondb", "storage_engine/parts-frondb", "frondb"];

/// The arguments of `target/mariadb/build/codecs`: seed and number of tables.
const CODEC_ROUNDS: &str = "1 100000";

/// The arguments of the cargo command that builds the tests which start servers.
const SERVER_TESTS: &str =
    "test --quiet --package frondb-mariadb-harness --package frondb-convert --tests";

/// `cargo xtask test-mariadb`: builds the plugin and runs [`jobs`].
pub(crate) fn run() -> Result {
    let mut summary = Summary::default();
    let mut jobs = Vec::new();
    summary.step("build of the plugin", || {
        jobs = self::jobs(&[])?;
        Ok(())
    });
    pool::run(&mut summary, jobs);
    summary.finish()
}

/// Fetches what [`jobs`] needs: Debian's packages and headers of the server. Compiles nothing, so it
/// can run while the processors compile something else.
pub(crate) fn fetch() -> Result {
    plugin::fetch()?;
    mtr::fetch()?;
    let tools = ["mariadb-backup", "prometheus", "promtool", "prometheus-mysqld-exporter"];
    let packages = "mariadb-backup prometheus prometheus-mysqld-exporter";
    apt("a program that a test uses", packages, || tools.iter().all(|tool| on_path(tool)))?;
    if release_of(Path::new("/"))? != "bookworm" {
        eprintln!("Debian 13 has no mydumper: its test is skipped");
        return Ok(());
    }
    apt("mydumper", "mydumper", || on_path("mydumper"))
}

/// Builds the plugin and returns jobs for the tests that every change must pass. `built` has test
/// programs that already exist.
pub(crate) fn jobs(built: &[Program]) -> Result<Vec<Job>> {
    fetch()?;
    let plugin = plugin::plugin()?;
    let this = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let mut jobs = Vec::new();
    for (name, arguments) in [("codecs", CODEC_ROUNDS), ("errors", ""), ("sessions", "")] {
        let command = Cmd::new(&plugin::test(name)?.display().to_string(), arguments);
        let name = format!("plugin: {name}");
        jobs.push(Job::command(&name, &name, command).taking(40.0).shown());
    }
    let name = "plugin: headers and server";
    jobs.push(Job::tests(name, name, 0, layout_tests(built)?).taking(15.0));
    for program in server_tests()? {
        let name = format!("server: {}", program.source);
        // The output is shown because it has the number of random tables of each kind, type and
        // collation.
        let skipped = if on_path("mydumper") { "" } else { " --skip mydumper" };
        let command = program.command(&format!("--quiet --ignored --show-output{skipped}"));
        let command = command
            .env("FRONDB_PLUGIN", &plugin.display().to_string())
            .env("FRONDB_XTASK", &this.display().to_string());
        jobs.push(Job::tests("plugin: servers", &name, 0, command).taking(15.0).shown());
    }
    let tree = mtr::tree_with(&plugin)?;
    jobs.push(suites("plugin: mtr", &tree, Run::of(&SUITES)).taking(60.0));
    let exceptions = Exceptions::of(&STRICT)?;
    let run =
        Run::of(&STRICT).substituting("frondb").within(STRICT_MINUTES).without(&exceptions)?;
    jobs.push(suites("plugin: engines", &tree, run).taking(80.0));
    Ok(jobs)
}

/// Builds with cargo what [`jobs`] needs.
pub(crate) fn build() -> Result {
    plugin::library()?;
    server_tests()?;
    tests_of_xtask().map(|_| ())
}

fn server_tests() -> Result<Vec<Program>> {
    programs::build("server-tests", Cmd::new("cargo", SERVER_TESTS))
}

fn tests_of_xtask() -> Result<Vec<Program>> {
    programs::build("xtask", Cmd::new("cargo", "test --quiet --package xtask --bin xtask"))
}

/// Returns the command for the tests of `layout.rs`, which are in the test program of xtask.
fn layout_tests(built: &[Program]) -> Result<Cmd> {
    let of = |programs: &[Program]| {
        let ours = programs.iter().find(|program| program.source == "xtask/src/main.rs")?;
        Some(ours.command("--quiet --ignored mariadb::layout"))
    };
    if let Some(command) = of(built) {
        return Ok(command);
    }
    of(&tests_of_xtask()?).ok_or_else(|| "cargo has built no test program of xtask".to_owned())
}

/// Suites that work with any default engine. All tests must pass, except those with a reason in
/// suites.md.
const STRICT: [&str; 2] = ["engines/funcs", "engines/iuds"];
const STRICT_MINUTES: u32 = 25;

/// `cargo xtask test-mariadb-full`: runs suites that do not name FronDB, with FronDB and with
/// InnoDB. It takes an hour.
pub(crate) fn full() -> Result {
    let mut findings = Vec::new();
    let mut table = String::from("\n| suite | FronDB | InnoDB |\n|---|---|---|\n");
    for suite in STRICT.into_iter().chain(mtr::NAMED).chain([mtr::AS_DEFAULT, mtr::REDUCED]) {
        let run = Run::of_named(suite)?;
        let exceptions = Exceptions::of(&[suite])?;
        let ours = mtr::run_twice(&run, &exceptions)?;
        let theirs = mtr::run_as("innodb", run)?;
        table.push_str(&format!("| {suite} | {ours} | {theirs} |\n"));
        findings.extend(exceptions.findings(&ours));
        if suite == mtr::REDUCED && !theirs.failed.is_empty() {
            findings.push(format!("{suite}: InnoDB fails, so a wrong passage is left out"));
        }
    }
    print!("{table}");
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Creates the job of a run whose tests must all pass. Such jobs run one after the other, since a
/// tree has one folder for the data of its servers.
fn suites(name: &str, tree: &Tree, run: Run) -> Job {
    let tree = tree.clone();
    let job = Job::new(name, name, move || {
        let (output, outcome) = mtr::run_kept(&tree, run);
        let outcome =
            outcome.map(|outcome| (outcome.to_string(), outcome.counts(), outcome.demand_all()));
        let (said, counts, result) =
            outcome.unwrap_or_else(|error| (String::new(), Counts::default(), Err(error)));
        Ran { output, said, counts, result }
    });
    job.alone_with("the tree of mtr")
}
