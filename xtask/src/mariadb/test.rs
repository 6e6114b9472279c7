//! Everything that needs a server: `cargo xtask test-mariadb`, which `make test` includes, and
//! `test-mariadb-full`.

use super::mtr::{self, Run};
use super::plugin;
use crate::Result;
use crate::step::{Cmd, Counts, Summary};

/// The suite that MariaDB has for engines outside of its tree, with our overlay; and our own.
const SUITES: [&str; 4] =
    ["storage_engine-frondb", "storage_engine/trx-frondb", "storage_engine/parts-frondb", "frondb"];

/// Statements of the random stream: as far as FronDB and InnoDB agree. Its own default is 20,000
/// (docs/decisions/0017-mariadb-plugin.md, what is open).
const STATEMENTS: &str = "1000";

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
    summary.tests("plugin: servers", || {
        let arguments = "test --quiet --no-fail-fast --package frondb-mariadb-harness -- --ignored";
        Cmd::new("cargo", arguments)
            .env("FRONDB_PLUGIN", &plugin.display().to_string())
            .env("STATEMENTS", STATEMENTS)
            .run_tests()
    });
    summary.tests("plugin: mtr", || suites(Run::of(&SUITES)));
}

/// Suites that take any engine as the default one: those that must pass, and those that are counted.
const STRICT: [&str; 2] = ["engines/funcs", "engines/iuds"];
const COUNTED: [&str; 5] = ["parts", "gcol", "vcol", "versioning", "rpl"];

/// `cargo xtask test-mariadb-full`: suites that know nothing of FronDB, with it and with InnoDB as the default
/// engine. Hours.
pub(crate) fn full() -> Result {
    let tree = mtr::tree()?;
    let mut failed = Vec::new();
    let mut table = String::from("\n| suite | FronDB | InnoDB |\n|---|---|---|\n");
    for suite in STRICT.into_iter().chain(COUNTED) {
        let ours = mtr::run_in(&tree, Run::of(&[suite]).substituting("frondb"))?;
        let theirs = mtr::run_in(&tree, Run::of(&[suite]).substituting("innodb"))?;
        table.push_str(&format!("| {suite} | {ours} | {theirs} |\n"));
        if STRICT.contains(&suite) {
            failed.extend(ours.demand_all().err());
        }
    }
    print!("{table}");
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// Runs suites of which every test must pass.
fn suites(run: Run) -> (Counts, Result) {
    match mtr::tree().and_then(|tree| mtr::run_in(&tree, run)) {
        Ok(outcome) => {
            println!("{outcome}");
            (outcome.counts(), outcome.demand_all())
        }
        Err(error) => (Counts::default(), Err(error)),
    }
}
