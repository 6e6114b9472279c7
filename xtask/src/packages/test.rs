//! `cargo xtask test-packages`: installs the packages of a release of Debian in a root of that
//! release, uses them, upgrades and removes them.
//!
//! ```text
//!   target/packages/SUITE              the packages, an archive for apt
//!   target/packages/work/SUITE/next    the same with the next revision, for the upgrade
//!   target/packages/work/SUITE/base    the smallest system, kept
//!   target/packages/work/SUITE/test    a copy of it, in which the test runs
//! ```
//!
//! | module | role |
//! |---|---|
//! | `steps` | what is done in the root, and what must follow |
//! | `system` | apt, the server and its client in the root |

mod steps;
mod system;

pub(crate) use steps::inside;

use std::fs;
use std::path::Path;

use super::{SUITE, build, containers, folder, reproduce, work};
use crate::step::Cmd;
use crate::{Result, mariadb, variables};

/// A revision after that of debian/changelog.
const NEXT: &str = "2";

/// Builds the packages, and tests them in a root. Says what was skipped.
pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["SUITE", "REPRODUCE"])?;
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
    let suite = get("SUITE").unwrap_or(SUITE);
    if !Cmd::new("id", "-u").output().is_ok_and(|id| id == "0") {
        println!("skipped: test-packages for {suite}: a root folder needs the user root");
        println!("test result: ok. 0 passed; 0 failed; 1 ignored");
        return Ok(());
    }
    containers::check()?;
    build(suite, None)?;
    build(suite, Some(NEXT))?;
    let (server, built_in) = mariadb::root_of(suite)?;
    let test = work(suite).join("test");
    prepare(suite, &built_in, &test)?;
    let args = [
        format!("ARCHIVE={}", folder(suite).display()),
        format!("NEXT={}", work(suite).join("next").display()),
    ];
    mariadb::enter(&server, &test, "test-packages-inside", &args)?;
    if get("REPRODUCE").is_none() {
        println!("skipped: a second build of the packages, to compare them (REPRODUCE=1)");
        return Ok(());
    }
    reproduce::check(suite)
}

/// Makes a new root for the test. If the server of the root in which the packages were built is not
/// the newest, this root takes the same packages of the server.
fn prepare(suite: &str, built_in: &Path, test: &Path) -> Result {
    let base = work(suite).join("base");
    if !base.exists() {
        let partial = work(suite).join("base-partial");
        mariadb::smallest(suite, &partial)?;
        fs::rename(&partial, &base).map_err(|e| format!("{}: {e}", base.display()))?;
    }
    if test.exists() {
        fs::remove_dir_all(test).map_err(|e| format!("{}: {e}", test.display()))?;
    }
    let copy = |from: &Path, to: &Path| {
        let copy = Cmd::new("cp", "--archive").arg(&from.display().to_string());
        copy.arg(&to.display().to_string()).run()
    };
    copy(&base, test)?;
    let pin = built_in.join("etc/apt/preferences.d/mariadb");
    if pin.exists() {
        copy(&pin, &test.join("etc/apt/preferences.d/mariadb"))?;
        for package in super::debian::ending(&built_in.join("root"), ".deb")? {
            copy(&package, &test.join("root"))?;
        }
    }
    Ok(())
}
