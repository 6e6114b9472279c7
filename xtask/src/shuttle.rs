//! `make shuttle`: runs the concurrency tests under a scheduler that tries many interleavings.
//!
//! With `--cfg shuttle` the locks, atomics and threads of `frondb_core::sync` are shuttle's, and
//! other tests would panic as soon as they take a lock. So this command runs only the tests of
//! files that call one of shuttle's checkers, and builds only their crates:
//!
//! ```text
//!   crates/wal/tests/schedules.rs      -p frondb-wal   --test schedules
//!   crates/space/src/group_sync.rs     -p frondb-space --lib -- group_sync::
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt as _;

use crate::Result;
use crate::pool::{self, Job};
use crate::programs;
use crate::step::Cmd;
use crate::summary::Summary;
use crate::workspace::{Member, members};

/// Replaces this process by `rustc` with `--cfg shuttle`. Cargo calls this program as its wrapper
/// of rustc, only for the crates of the workspace, so the dependencies are built once for these and
/// the other tests. Cargo keeps crates that were built with a wrapper apart from those built
/// without.
pub(crate) fn compile(rustc: &str, args: &[String]) -> Result {
    let mut command = std::process::Command::new(rustc);
    Err(format!("cannot run {rustc}: {}", command.args(args).args(["--cfg", "shuttle"]).exec()))
}

/// Builds and runs the tests.
pub(crate) fn run() -> Result {
    let mut summary = Summary::default();
    let mut jobs = Vec::new();
    summary.step("build", || {
        jobs = self::jobs()?;
        Ok(())
    });
    pool::run(&mut summary, jobs);
    summary.finish()
}

/// Builds the tests and returns a job for each program.
pub(crate) fn jobs() -> Result<Vec<Job>> {
    let found = scheduled()?;
    let mut jobs = Vec::new();
    for scheduled in [found.targets, found.modules] {
        if !scheduled.files.is_empty() {
            jobs.extend(jobs_of(&scheduled)?);
        }
    }
    Ok(jobs)
}

fn jobs_of(scheduled: &Scheduled) -> Result<Vec<Job>> {
    let Scheduled { packages, selection, filters, files } = scheduled;
    let packages: Vec<String> = packages.iter().map(|package| format!("-p {package}")).collect();
    let selection: Vec<&str> = selection.iter().map(String::as_str).collect();
    let args = ["test --quiet", &selection.join(" "), &packages.join(" ")].join(" ");
    let wrapper = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let build =
        Cmd::new("cargo", &args).env("RUSTC_WORKSPACE_WRAPPER", &wrapper.display().to_string());
    let built = programs::build("shuttle", build)?;
    let jobs = files.iter().map(|(program, &wanted)| {
        let is_it = |source: &str| {
            source
                .strip_prefix(program.as_str())
                .is_some_and(|rest| [".rs", "/main.rs"].contains(&rest))
        };
        let built = built.iter().find(|built| is_it(&built.source));
        let built = built.ok_or_else(|| format!("cargo has not built {program}"))?;
        let command = filters.iter().fold(built.command("--quiet"), |it, filter| it.arg(filter));
        let name = format!("shuttle: {}", built.source);
        Ok(Job::tests("shuttle", &name, wanted, command).taking(30.0))
    });
    jobs.collect()
}

/// Files with shuttle tests, as arguments of one `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scheduled {
    packages: BTreeSet<String>,
    selection: BTreeSet<String>,
    filters: BTreeSet<String>,
    /// Number of these files in each program. The key is the program's source without `.rs` or
    /// `/main.rs`.
    files: BTreeMap<String, u64>,
}

/// The calls that mark a file with shuttle tests: shuttle's checkers, or the test kit's checkers
/// with deep stacks.
const CHECKERS: [&str; 2] = ["shuttle::check_", "schedules::check_"];

/// All files with shuttle tests. In a test target all tests run; in a library only the tests of
/// `modules` run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    targets: Scheduled,
    modules: Scheduled,
}

impl Found {
    /// Adds a file of a package by its path below the crate's folder.
    fn add(&mut self, folder: &str, package: &str, path: &str) {
        let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let (of, program) = if let Some(target) = path.strip_prefix("tests/") {
            let target = target.split('/').next().unwrap_or(target);
            self.targets.selection.insert(format!("--test {target}"));
            (&mut self.targets, format!("tests/{target}"))
        } else {
            // A `#[path]` may give a file another module name, but a folder has the name of its
            // module.
            let module = path.trim_start_matches("src/");
            let module = module.rsplit_once('/').map_or(module, |(folder, _)| folder);
            let module = module.replace('/', "::");
            self.modules.selection.insert("--lib".to_owned());
            self.modules.filters.insert(format!("{module}::"));
            (&mut self.modules, "src/lib".to_owned())
        };
        of.packages.insert(package.to_owned());
        *of.files.entry(format!("crates/{folder}/{program}")).or_default() += 1;
    }
}

fn scheduled() -> Result<Found> {
    let mut found = Found::default();
    for Member { folder, package, path, .. } in &members()? {
        if folder == "xtask" {
            continue;
        }
        for file in crate::workspace::rust_files_below(path)? {
            let below = file.path.strip_prefix(&format!("crates/{folder}/"));
            if let Some(below) = below.filter(|_| CHECKERS.iter().any(|it| file.text.contains(it)))
            {
                found.add(folder, package, below);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_arguments_that_run_them_and_nothing_else() {
        let mut found = Found::default();
        found.add("wal", "frondb-wal", "tests/schedules.rs");
        found.add("wal", "frondb-wal", "tests/races/main.rs");
        found.add("wal", "frondb-wal", "tests/races/more.rs");
        found.add("core", "frondb-core", "src/sync/scheduled.rs");
        let set = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        let files = |items: &[(&str, u64)]| {
            items.iter().map(|&(program, files)| (program.to_owned(), files)).collect()
        };
        let targets = Scheduled {
            packages: set(&["frondb-wal"]),
            selection: set(&["--test schedules", "--test races"]),
            filters: BTreeSet::new(),
            files: files(&[("crates/wal/tests/races", 2), ("crates/wal/tests/schedules", 1)]),
        };
        let modules = Scheduled {
            packages: set(&["frondb-core"]),
            selection: set(&["--lib"]),
            filters: set(&["sync::"]),
            files: files(&[("crates/core/src/lib", 1)]),
        };
        assert_eq!(found, Found { targets, modules });
    }
}
