//! MariaDB's own test suites (mtr, the package `mariadb-test`), run with ENGINE=FronDB in a private tree.
//!
//! | module | |
//! |---|---|
//! | [`tree`] | a copy of the suites, with our plugin, our overlay and our suite in it |
//! | [`outcome`] | what mtr reports, as counts |
//! | [`substitute`] | suites of InnoDB's tables, made suites of FronDB's |
//! | [`differences`] | where FronDB is let differ from the expected result, and why |
//! | [`exceptions`] | tests of suites for other engines that FronDB is let fail, and why |
//!
//! mtr finds an overlay of suite `storage_engine` below `plugin/frondb/storage_engine` and runs it by the
//! name `storage_engine-frondb`.

mod differences;
mod exceptions;
mod outcome;
mod substitute;
mod tree;

pub(crate) use differences::check as check_differences;
pub(super) use exceptions::Exceptions;
pub(super) use outcome::Outcome;
pub(super) use tree::Tree;

use std::path::{Path, PathBuf};

use super::plugin;
use crate::install::{apt, on_path};
use crate::step::Cmd;
use crate::{Result, variables};

/// Minutes after which a test is hung.
const TEST_MINUTES: u32 = 10;
/// Minutes after which a whole run is, if it has no bound of its own.
const RUN_MINUTES: u32 = 180;

/// Suites that name InnoDB: FronDB takes its place in their text.
pub(super) const NAMED: [&str; 6] = ["parts", "gcol", "vcol", "versioning", "sql_sequence", "rpl"];

/// One of those, whose tests run with each of several engines as the default one, too. In the first of these ways
/// FronDB can take InnoDB's place alone; the second is InnoDB's transactions as periods.
const DEFAULTED: (&str, &str, &str) = ("versioning", "timestamp", "trx_id");
pub(super) const AS_DEFAULT: &str = "versioning-default";

/// One run of mtr.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// Suites, by mtr's names.
    pub(super) suites: Vec<String>,
    /// Arguments beyond those that every run has.
    pub(super) arguments: Vec<String>,
    /// Single tests; all of the suites if there are none.
    pub(super) tests: Vec<String>,
    /// Minutes after which it is hung.
    minutes: Option<u32>,
}

impl Run {
    /// Everything in these suites.
    pub(super) fn of(suites: &[&str]) -> Self {
        Self { suites: suites.iter().map(|&suite| suite.to_owned()).collect(), ..Self::default() }
    }

    /// A suite that names InnoDB, as far as it does: most tests of rpl are of no engine, and substituting
    /// another changes nothing in them.
    pub(super) fn of_named(suite: &str) -> Result<Self> {
        let mut run = Self::of(&[suite]);
        if suite == "rpl" {
            installed_suites()?;
            run.tests =
                substitute::naming(&PathBuf::from(tree::INSTALLED).join("suite").join(suite))?;
        }
        Ok(run)
    }

    /// It fails if it takes longer than that.
    pub(super) fn within(mut self, minutes: u32) -> Self {
        self.minutes = Some(minutes);
        self
    }

    /// Without these tests.
    pub(super) fn without(mut self, exceptions: &Exceptions) -> Result<Self> {
        let list = exceptions.write_list()?;
        self.arguments.push(format!("--skip-test-list={}", list.display()));
        Ok(self)
    }

    /// With FronDB, or with InnoDB and no other than mtr's defaults.
    fn loading(mut self, engine: &str) -> Self {
        // mtr leaves InnoDB off for tests that do not ask for it.
        self.arguments.push("--mysqld=--loose-innodb".to_owned());
        if engine != "innodb" {
            let plugin = ["--plugin-load-add=ha_frondb.so", "--plugin-maturity=experimental"];
            self.arguments.extend(plugin.map(|option| format!("--mysqld={option}")));
        }
        self
    }

    /// Every table that names no engine is made in this one: for suites that know nothing of it.
    pub(super) fn substituting(mut self, engine: &str) -> Self {
        let default = format!("--default-storage-engine={engine}");
        // Suites with combinations of engines of their own get this one in their place.
        let combines = self.suites.iter().any(|suite| suite.starts_with("engines/"));
        let how = if combines { "combination" } else { "mysqld" };
        self.arguments.push(format!("--{how}={default}"));
        // mtr leaves partitions off for suites that do not ask for them, and some use them all the same.
        self.arguments.push("--mysqld=--loose-partition".to_owned());
        self.loading(engine)
    }
}

/// Installs the suites and makes the tree with our plugin in it.
pub(super) fn tree() -> Result<Tree> {
    Tree::make(&installed()?)
}

/// The same with this one.
pub(super) fn tree_with(plugin: &Path) -> Result<Tree> {
    installed_suites()?;
    Tree::make(plugin)
}

/// The same with FronDB for InnoDB in the text of suites that name it.
fn substituted_tree() -> Result<Tree> {
    let mut paths: Vec<String> = NAMED.iter().map(|suite| format!("suite/{suite}")).collect();
    // They borrow tests from there, and rpl the loop over engines.
    paths.extend(["main", "include/rpl_row_img_general_loop.inc"].map(str::to_owned));
    Tree::make_substituted(&installed()?, &paths)
}

/// Our plugin, built, with the suites installed.
fn installed() -> Result<PathBuf> {
    let plugin = plugin::plugin()?;
    installed_suites()?;
    Ok(plugin)
}

fn installed_suites() -> Result {
    let suites = || PathBuf::from(tree::INSTALLED).join("mtr").exists();
    apt("MariaDB's test suites", "mariadb-test patch", || suites() && on_path("patch"))
}

/// `cargo xtask mtr SUITES= TESTS= ENGINE=`: what is wanted, and no more. ENGINE is for suites that know nothing
/// of FronDB.
pub(crate) fn command(args: &[String]) -> Result {
    let mut run = Run::default();
    let mut engine = None;
    for (name, value) in variables(args, &["SUITES", "TESTS", "ENGINE"])? {
        let words = || value.split([' ', ',']).map(str::to_owned);
        match name {
            "SUITES" => run.suites.extend(words()),
            "TESTS" => run.tests.extend(words()),
            _ => engine = Some(value),
        }
    }
    let outcome = match engine {
        Some(engine) => run_as(engine, run)?,
        None => run_in(&tree()?, run)?,
    };
    println!("{outcome}");
    outcome.demand_all()
}

/// Runs suites that know nothing of FronDB with this engine, "frondb" or "innodb".
pub(super) fn run_as(engine: &str, run: Run) -> Result<Outcome> {
    if run.suites.iter().eq([AS_DEFAULT]) {
        return run_as_default(engine, run);
    }
    if !run.suites.iter().all(|suite| NAMED.contains(&suite.as_str())) {
        return run_in(&tree()?, run.substituting(engine));
    }
    let tree = if engine == "innodb" { tree()? } else { substituted_tree()? };
    run_in(&tree, run.loading(engine))
}

/// Runs the suite that knows several default engines with this one among them. Tables that name InnoDB stay its own.
fn run_as_default(engine: &str, mut run: Run) -> Result<Outcome> {
    let (suite, how, but) = DEFAULTED;
    let tree = match engine {
        "innodb" => tree()?,
        _ => Tree::make_defaulted(&installed()?, &[format!("suite/{suite}")], but)?,
    };
    run.suites = vec![suite.to_owned()];
    Ok(run_in(&tree, run.loading(engine))?.only(how, AS_DEFAULT))
}

/// Runs mtr in the tree, its output passed through; failed tests are in the outcome, and an error is a run that did
/// not happen.
pub(super) fn run_in(tree: &Tree, run: Run) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let result = in_tree(tree, run).run_lines(|line| outcome.add_line(line));
    judge(tree, result, outcome)
}

/// The same, with what it prints.
pub(super) fn run_kept(tree: &Tree, run: Run) -> (String, Result<Outcome>) {
    let (output, result) = in_tree(tree, run).run_kept();
    let mut outcome = Outcome::default();
    output.lines().for_each(|line| outcome.add_line(line));
    (output, judge(tree, result, outcome))
}

fn in_tree(tree: &Tree, run: Run) -> Cmd {
    // Tests wait for servers that start and stop: one worker more than processors keeps those busy.
    let workers = 1 + std::thread::available_parallelism().map_or(1, usize::from);
    let command =
        Cmd::new("perl", "mariadb-test-run.pl --mem --force --max-test-fail=0 --nowarnings")
            .arg("--max-save-core=0")
            .arg("--max-save-datadir=0")
            .arg(&format!("--parallel={workers}"))
            .arg(&format!("--testcase-timeout={TEST_MINUTES}"))
            .arg(&format!("--suite-timeout={}", run.minutes.unwrap_or(RUN_MINUTES)))
            .arg(&format!("--suite={}", run.suites.join(",")))
            .dir(tree.suites());
    run.arguments.iter().chain(&run.tests).fold(command, |command, argument| command.arg(argument))
}

fn judge(tree: &Tree, result: Result, outcome: Outcome) -> Result<Outcome> {
    match result {
        Ok(()) => tree.clean(),
        // It fails when a test did, which the outcome says better.
        Err(_) if !outcome.failed.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok(outcome)
}
