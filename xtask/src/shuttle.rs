//! `make shuttle`: the concurrency tests, run under a scheduler that replays interleavings.
//!
//! Built with `--cfg shuttle`, the locks, atomics and threads of `frondb_core::sync` are shuttle's.
//! Code outside a shuttle run then panics when it takes a lock, so only the tests of files that call
//! one of its checkers are run, and only what they need is built:
//!
//! ```text
//!   crates/wal/tests/schedules.rs      -p frondb-wal   --test schedules
//!   crates/space/src/group_sync.rs     -p frondb-space --lib -- group_sync::
//! ```

use std::collections::BTreeSet;

use crate::Result;
use crate::step::{Cmd, Counts};
use crate::workspace::{Member, members};

/// Runs them; an error if one fails.
pub(crate) fn run() -> Result {
    run_counted().1
}

/// Runs them and counts.
pub(crate) fn run_counted() -> (Counts, Result) {
    let found = match scheduled() {
        Ok(found) => found,
        Err(e) => return (Counts::default(), Err(e)),
    };
    let (mut counts, mut result) = (Counts::default(), Ok(()));
    for scheduled in [found.targets, found.modules] {
        if scheduled.packages.is_empty() {
            continue;
        }
        let (more, ran) = test(&scheduled);
        counts.passed += more.passed;
        counts.failed += more.failed;
        let wanted = scheduled.files;
        let ran = ran.and_then(|()| {
            let enough = more.passed >= wanted;
            let few = || format!("{wanted} files have shuttle tests, {} tests ran", more.passed);
            enough.then_some(()).ok_or_else(few)
        });
        result = result.and(ran);
    }
    (counts, result)
}

fn test(scheduled: &Scheduled) -> (Counts, Result) {
    let Scheduled { packages, selection, filters, .. } = scheduled;
    let packages: Vec<String> = packages.iter().map(|package| format!("-p {package}")).collect();
    let selection: Vec<&str> = selection.iter().map(String::as_str).collect();
    let args = ["test --quiet --no-fail-fast", &selection.join(" "), &packages.join(" ")].join(" ");
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    // Schedules, not arithmetic, take the time here: optimising the dependencies would cost a minute.
    let command = Cmd::new("cargo", &args)
        .arg("--config")
        .arg("profile.dev.package.'*'.opt-level=1")
        .env("RUSTFLAGS", format!("{flags} --cfg shuttle").trim())
        .target_folder("shuttle")
        .arg("--");
    filters.iter().fold(command, |command, filter| command.arg(filter)).run_tests()
}

/// Files with shuttle tests, as arguments of one `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scheduled {
    packages: BTreeSet<String>,
    selection: BTreeSet<String>,
    filters: BTreeSet<String>,
    files: u64,
}

/// What a file with shuttle tests calls: shuttle itself, or the test kit's checkers with deep stacks.
const CHECKERS: [&str; 2] = ["shuttle::check_", "schedules::check_"];

/// All of them: test targets run whole, modules of a library by their path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    targets: Scheduled,
    modules: Scheduled,
}

impl Found {
    /// Adds a file of a package by its path below the crate's folder.
    fn add(&mut self, package: &str, path: &str) {
        let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
        let of = if let Some(target) = path.strip_prefix("tests/") {
            let target = target.split('/').next().unwrap_or(target);
            self.targets.selection.insert(format!("--test {target}"));
            &mut self.targets
        } else {
            // A file in a folder may be mounted under another name; the folder's cannot differ.
            let module = path.trim_start_matches("src/");
            let module = module.rsplit_once('/').map_or(module, |(folder, _)| folder);
            let module = module.replace('/', "::");
            self.modules.selection.insert("--lib".to_owned());
            self.modules.filters.insert(format!("{module}::"));
            &mut self.modules
        };
        of.packages.insert(package.to_owned());
        of.files += 1;
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
                found.add(package, below);
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
        found.add("frondb-wal", "tests/schedules.rs");
        found.add("frondb-wal", "tests/races/main.rs");
        found.add("frondb-core", "src/sync/scheduled.rs");
        let set = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        let targets = Scheduled {
            packages: set(&["frondb-wal"]),
            selection: set(&["--test schedules", "--test races"]),
            filters: BTreeSet::new(),
            files: 2,
        };
        let modules = Scheduled {
            packages: set(&["frondb-core"]),
            selection: set(&["--lib"]),
            filters: set(&["sync::"]),
            files: 1,
        };
        assert_eq!(found, Found { targets, modules });
    }
}
