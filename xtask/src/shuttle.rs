//! `make shuttle`: the concurrency tests, run under a scheduler that replays interleavings.
//!
//! Built with `--cfg shuttle`, the locks, atomics and threads of `frondb_core::sync` are shuttle's.
//! Code outside a shuttle run then panics when it takes a lock, so only tests whose name contains
//! `shuttle` are run, in those crates that have some.

use crate::Result;
use crate::step::{Cmd, Counts};
use crate::workspace::{Member, members};

/// Runs them; an error if one fails.
pub(crate) fn run() -> Result {
    run_counted().1
}

/// Runs them and counts.
pub(crate) fn run_counted() -> (Counts, Result) {
    let crates = match crates_with_shuttle_tests() {
        Ok(crates) => crates,
        Err(e) => return (Counts::default(), Err(e)),
    };
    if crates.is_empty() {
        eprintln!("no crate has shuttle tests");
        return (Counts::default(), Ok(()));
    }
    let packages: Vec<String> = crates.iter().map(|m| format!("-p {}", m.package)).collect();
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let args = format!("test --quiet --no-fail-fast --lib --tests {}", packages.join(" "));
    // Schedules, not arithmetic, take the time here: optimising the dependencies would cost a minute.
    let (counts, result) = Cmd::new("cargo", &args)
        .arg("--config")
        .arg("profile.dev.package.'*'.opt-level=1")
        .arg("--")
        .arg("shuttle")
        .env("RUSTFLAGS", format!("{flags} --cfg shuttle").trim())
        .target_folder("shuttle")
        .run_tests();
    if result.is_ok() && counts.passed < crates.len() as u64 {
        let message = format!("{} crates have shuttle tests, {} ran", crates.len(), counts.passed);
        return (counts, Err(message));
    }
    (counts, result)
}

/// A crate has shuttle tests if a file of it calls one of shuttle's checkers.
fn crates_with_shuttle_tests() -> Result<Vec<Member>> {
    let mut found = Vec::new();
    for member in members()? {
        if member.folder == "xtask" {
            continue;
        }
        if member.rust_files()?.iter().any(|file| file.text.contains("shuttle::check_")) {
            found.push(member);
        }
    }
    Ok(found)
}
