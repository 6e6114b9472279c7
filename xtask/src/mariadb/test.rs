//! Everything that needs a server: `cargo xtask test-mariadb`, which `make test` includes, and
//! `test-mariadb-full`.

use super::mtr::{self, Exceptions, Run};
use super::plugin;
use crate::Result;
use crate::step::{Cmd, Counts, Summary};

/// The suite that MariaDB has for engines outside of its tree, with our overlay; and our own.
const SUITES: [&str; 4] =
    ["storage_engine-frondb", "storage_engine/trx-frondb", "storage_engine/parts-frondb", "frondb"];

/// A seed and a number of tables for the codecs' tests; `target/mariadb/build/codecs` takes others.
const CODEC_ROUNDS: &str = "1 100000";

/// `cargo xtask test-mariadb`.
pub(crate) fn run() -> Result {
    let mut summary = Summary::default();
    steps(&mut summary);
    summary.finish()
}

/// Builds the plugin and runs what every change must pass.
pub(crate) fn steps(summary: &mut Summary) {
    let mut built = None;
    summary.step("plugin", || {
        built = Some(plugin::plugin()?);
        Ok(())
    });
    let Some(plugin) = built else { return };
    summary.step("plugin: codecs", || {
        let program = plugin::test("codecs")?;
        Cmd::new(&program.display().to_string(), CODEC_ROUNDS).run()
    });
    summary.step("plugin: errors", || {
        let program = plugin::test("errors")?;
        Cmd::new(&program.display().to_string(), "").run()
    });
    summary.tests("plugin: servers", || {
        // Their output too: how often the random stream met each kind, type and collation.
        let arguments = "test --quiet --no-fail-fast --package frondb-mariadb-harness -- --ignored --show-output";
        Cmd::new("cargo", arguments).env("FRONDB_PLUGIN", &plugin.display().to_string()).run_tests()
    });
    summary.tests("plugin: mtr", || suites(Ok(Run::of(&SUITES))));
    summary.tests("plugin: engines", || {
        let exceptions = Exceptions::of(&STRICT);
        let run = Run::of(&STRICT).substituting("frondb").within(STRICT_MINUTES);
        suites(exceptions.and_then(|exceptions| run.without(&exceptions)))
    });
}

/// Suites that take any engine as the default one. All of them must pass, but for a few that have a reason.
const STRICT: [&str; 2] = ["engines/funcs", "engines/iuds"];
const STRICT_MINUTES: u32 = 25;

/// `cargo xtask test-mariadb-full`: suites that know nothing of FronDB, with it and with InnoDB. An hour.
pub(crate) fn full() -> Result {
    let mut findings = Vec::new();
    let mut table = String::from("\n| suite | FronDB | InnoDB |\n|---|---|---|\n");
    for suite in STRICT.into_iter().chain(mtr::NAMED).chain([mtr::AS_DEFAULT]) {
        let run = Run::of_named(suite)?;
        let ours = mtr::run_as("frondb", run.clone())?;
        let theirs = mtr::run_as("innodb", run)?;
        table.push_str(&format!("| {suite} | {ours} | {theirs} |\n"));
        findings.extend(Exceptions::of(&[suite])?.findings(&ours));
    }
    print!("{table}");
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

/// Runs suites of which every test must pass.
fn suites(run: Result<Run>) -> (Counts, Result) {
    match run.and_then(|run| mtr::run_in(&mtr::tree()?, run)) {
        Ok(outcome) => {
            println!("{outcome}");
            (outcome.counts(), outcome.demand_all())
        }
        Err(error) => (Counts::default(), Err(error)),
    }
}
