//! MariaDB's own test suites (mtr, the package `mariadb-test`), run with ENGINE=FronDB in a private
//! tree.
//!
//! | module | |
//! |---|---|
//! | [`tree`](mod@tree) | a copy of the suites, with our plugin, our overlay and our suite in it |
//! | [`outcome`] | what mtr reports, as counts |
//! | [`reduced`] | tests of InnoDB's suite without passages that need what FronDB refuses |
//! | [`substitute`] | turns suites for InnoDB into suites for FronDB |
//! | [`differences`] | tests whose result may differ from the expected one, and why |
//! | [`exceptions`] | tests for other engines that FronDB may fail, and why |
//!
//! mtr finds an overlay of the suite `storage_engine` below `plugin/frondb/storage_engine` and
//! names it `storage_engine-frondb`.

mod differences;
mod exceptions;
mod outcome;
mod reduced;
mod substitute;
mod tree;

pub(crate) use differences::check as check_differences;
pub(super) use exceptions::Exceptions;
pub(super) use outcome::Outcome;
pub(super) use reduced::SUITE as REDUCED;
pub(super) use tree::Tree;

use std::path::{Path, PathBuf};

use super::plugin;
use crate::install::{apt, on_path};
use crate::step::Cmd;
use crate::{Result, variables};

/// A test that takes more minutes than this counts as hung.
const TEST_MINUTES: u32 = 10;
/// A run without its own limit that takes more minutes than this counts as hung.
const RUN_MINUTES: u32 = 180;

/// Suites whose text names InnoDB. [`substitute`] replaces the name by FronDB's.
pub(super) const NAMED: [&str; 7] =
    ["parts", "gcol", "vcol", "versioning", "sql_sequence", "rpl", "innodb"];

/// The tests of InnoDB's own suite for foreign keys that run on a release build of the server.
const OF_INNODB: [&str; 13] = [
    "add_foreign_key",
    "fk_col_alter",
    "fk_drop_alter",
    "foreign_key",
    "foreign_key_not_windows",
    "foreign_null",
    "foreign_sql_mode",
    "innodb-fk",
    "innodb-fk-virtual",
    "innodb-fk-warnings",
    "innodb-fkcheck",
    "innodb-get-fk",
    "stored_fk",
];

/// The suite of [`NAMED`] whose tests also run in combinations with several default engines, and
/// two of these combinations. In the first combination FronDB replaces InnoDB. The second tests
/// transaction periods, which only InnoDB has, so it keeps InnoDB.
const DEFAULTED: (&str, &str, &str) = ("versioning", "timestamp", "trx_id");
pub(super) const AS_DEFAULT: &str = "versioning-default";

/// One run of mtr.
#[derive(Clone, Debug, Default)]
pub(super) struct Run {
    /// The suites, by mtr's names.
    pub(super) suites: Vec<String>,
    /// Arguments in addition to the arguments of every run.
    pub(super) arguments: Vec<String>,
    /// The tests to run; if empty, all tests of the suites run.
    pub(super) tests: Vec<String>,
    /// Minutes after which the run counts as hung.
    minutes: Option<u32>,
}

impl Run {
    /// Creates a run of all tests of these suites.
    pub(super) fn of(suites: &[&str]) -> Self {
        Self { suites: suites.iter().map(|&suite| suite.to_owned()).collect(), ..Self::default() }
    }

    /// Creates a run of a suite of [`NAMED`]: of `innodb` only [`OF_INNODB`], of `rpl` only the
    /// tests that name InnoDB, because most tests of rpl concern no engine.
    pub(super) fn of_named(suite: &str) -> Result<Self> {
        let mut run = Self::of(&[suite]);
        if suite == "innodb" {
            run.tests = OF_INNODB.map(str::to_owned).into();
        }
        if suite == "rpl" {
            fetch()?;
            run.tests = substitute::naming(&tree::installed().join("suite").join(suite))?;
        }
        Ok(run)
    }

    /// Sets the time after which the run fails.
    pub(super) fn within(mut self, minutes: u32) -> Self {
        self.minutes = Some(minutes);
        self
    }

    /// Leaves out these tests.
    pub(super) fn without(mut self, exceptions: &Exceptions) -> Result<Self> {
        let list = exceptions.write_list()?;
        self.arguments.push(format!("--skip-test-list={}", list.display()));
        Ok(self)
    }

    /// Adds the server's options for FronDB, or for InnoDB.
    fn loading(mut self, engine: &str) -> Self {
        // mtr turns InnoDB off for tests that do not request it.
        self.arguments.push("--mysqld=--loose-innodb".to_owned());
        if engine != "innodb" {
            self.arguments.push("--mysqld=--plugin-load-add=ha_frondb.so".to_owned());
            // The expected results assume InnoDB's default of autoinc-lock-mode, and that OPTIMIZE
            // copies the table as in InnoDB. verify-fast-codecs makes a release build verify what
            // fast codecs write.
            let ours = ["autoinc-lock-mode=1", "optimize-mode=copy", "verify-fast-codecs=ON"];
            let options = ours.map(|option| format!("--mysqld=--loose-frondb-{option}"));
            self.arguments.extend(options);
        }
        self
    }

    /// Makes this engine the default engine of tables, for suites that do not name FronDB.
    pub(super) fn substituting(mut self, engine: &str) -> Self {
        let default = format!("--default-storage-engine={engine}");
        // In suites with combinations of engines, this engine replaces the combinations.
        let combines = self.suites.iter().any(|suite| suite.starts_with("engines/"));
        let how = if combines { "combination" } else { "mysqld" };
        self.arguments.push(format!("--{how}={default}"));
        // mtr turns partitions off for suites that do not request them, but some of these suites
        // use partitions.
        self.arguments.push("--mysqld=--loose-partition".to_owned());
        self.loading(engine)
    }
}

/// Builds the plugin, installs the suites and prepares the tree.
pub(super) fn tree() -> Result<Tree> {
    Tree::make(&installed()?)
}

/// Installs the suites and prepares the tree with this plugin.
pub(super) fn tree_with(plugin: &Path) -> Result<Tree> {
    fetch()?;
    Tree::make(plugin)
}

/// Prepares a tree in which the text of suites names FronDB in place of InnoDB.
fn substituted_tree() -> Result<Tree> {
    let mut paths: Vec<String> = NAMED.iter().map(|suite| format!("suite/{suite}")).collect();
    // The suites include tests from `main`, and rpl also this loop over engines.
    paths.extend(["main", "include/rpl_row_img_general_loop.inc"].map(str::to_owned));
    Tree::make_substituted(&installed()?, &paths)
}

/// Builds our plugin and installs the suites.
fn installed() -> Result<PathBuf> {
    let plugin = plugin::plugin()?;
    fetch()?;
    Ok(plugin)
}

/// Installs the suites.
pub(super) fn fetch() -> Result {
    let suites = || tree::installed().join("mtr").exists();
    apt("MariaDB's test suites", "mariadb-test patch", || suites() && on_path("patch"))
}

/// `cargo xtask mtr SUITES= TESTS= ENGINE=` runs single suites or tests. ENGINE is for suites that
/// do not name FronDB.
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

/// Runs a suite with FronDB. Then runs each unexplained failure once more, alone and with fresh
/// data: a test may fail because of data that an earlier test has left behind.
pub(super) fn run_twice(run: &Run, exceptions: &Exceptions) -> Result<Outcome> {
    let mut outcome = run_as("frondb", run.clone())?;
    for test in exceptions.unexplained(&outcome) {
        println!("{test} failed; it runs once more, alone");
        let (_, name) = test.split_once('.').unwrap_or_default();
        let again = run_as("frondb", Run { tests: vec![name.to_owned()], ..run.clone() })?;
        println!("{test} alone: {again}");
        outcome.replace(&test, again);
    }
    Ok(outcome)
}

/// Runs suites that do not name FronDB with this `engine`: "frondb" or "innodb".
pub(super) fn run_as(engine: &str, run: Run) -> Result<Outcome> {
    if run.suites.iter().eq([AS_DEFAULT]) {
        return run_as_default(engine, run);
    }
    if run.suites.iter().eq([REDUCED]) {
        return run_reduced(engine, run);
    }
    if !run.suites.iter().all(|suite| NAMED.contains(&suite.as_str())) {
        return run_in(&tree()?, run.substituting(engine));
    }
    let tree = if engine == "innodb" { tree()? } else { substituted_tree()? };
    run_in(&tree, run.loading(engine))
}

/// Runs the suite [`REDUCED`]: tests of InnoDB's suite without some passages.
fn run_reduced(engine: &str, run: Run) -> Result<Outcome> {
    let tree = if engine == "innodb" { tree()? } else { substituted_tree()? };
    let suites = tree.suites().join("suite");
    reduced::write(&tree::installed().join("suite"), &suites)?;
    if engine != "innodb" {
        substitute::all(&suites.join(REDUCED))?;
    }
    run_in(&tree, run.loading(engine))
}

/// Runs the suite [`DEFAULTED`] with FronDB as default engine in place of InnoDB, or unchanged if
/// `engine` is InnoDB. Tables that name InnoDB stay InnoDB tables.
fn run_as_default(engine: &str, mut run: Run) -> Result<Outcome> {
    let (suite, how, but) = DEFAULTED;
    let tree = match engine {
        "innodb" => tree()?,
        _ => Tree::make_defaulted(&installed()?, &[format!("suite/{suite}")], but)?,
    };
    run.suites = vec![suite.to_owned()];
    Ok(run_in(&tree, run.loading(engine))?.only(how, AS_DEFAULT))
}

/// Runs mtr in the tree and passes its output through. The outcome lists the tests that failed; an
/// error means that mtr itself failed.
pub(super) fn run_in(tree: &Tree, run: Run) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let result = in_tree(tree, run).run_lines(|line| outcome.add_line(line));
    judge(tree, result, outcome)
}

/// Runs mtr in the tree and keeps its output.
pub(super) fn run_kept(tree: &Tree, run: Run) -> (String, Result<Outcome>) {
    let (output, result) = in_tree(tree, run).run_kept();
    let mut outcome = Outcome::default();
    output.lines().for_each(|line| outcome.add_line(line));
    (output, judge(tree, result, outcome))
}

fn in_tree(tree: &Tree, run: Run) -> Cmd {
    // Tests often wait for servers that start and stop, so one worker more than processors keeps
    // the processors busy.
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
        // mtr exits with an error when a test fails. The outcome has these tests, so this is no
        // error here.
        Err(_) if !outcome.failed.is_empty() => {}
        Err(error) => return Err(error),
    }
    Ok(outcome)
}
