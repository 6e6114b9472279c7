//! `cargo xtask packages` and `test-packages`: packages for a release of Debian, by the rules in
//! `debian/`.
//!
//! ```text
//!   this machine   built      cargo: library, programs, manual   target/packages/built
//!   in a root      debian     dpkg-buildpackage                  target/packages/work/SUITE
//!                             the packages, an archive for apt   target/packages/SUITE
//!   debian/rules   files      the plugin; all files, in place    debian/tmp
//! ```
//!
//! | module | role |
//! |---|---|
//! | `built` | what cargo builds, the same in every folder |
//! | `files` | `cargo xtask package-files`, which debian/rules calls |
//! | `debian` | copies debian/, builds the packages, runs lintian |
//! | `containers` | linters of the files in `containers/` |
//! | `reproduce` | a second build elsewhere has the same packages |
//! | `test` | `cargo xtask test-packages`, in a root of its own |
//! | `version` | versions of packages, and of the server that the plugin needs |
//!
//! Cargo runs on this machine, because the release's own is too old. So the machine's release must
//! not be newer than that of the packages: programs run with their C library or a newer one.

mod built;
mod containers;
mod debian;
mod files;
mod reproduce;
mod test;
mod version;

pub(crate) use debian::inside;
pub(crate) use files::run as files;
pub(crate) use test::{inside as test_inside, run as test};
pub(crate) use version::check;

use std::path::{Path, PathBuf};

use crate::workspace::target_folder;
use crate::{Result, mariadb, variables};

/// The release of Debian whose packages are built if SUITE names none.
const SUITE: &str = "bookworm";

/// `cargo xtask packages`: builds the packages of a release of Debian.
pub(crate) fn run(args: &[String]) -> Result {
    let variables = variables(args, &["SUITE"])?;
    let suite = variables.last().map_or(SUITE, |(_, suite)| suite);
    build(suite, None)?;
    println!("the packages are in {}", folder(suite).display());
    Ok(())
}

/// Returns the folder of the packages of a release.
fn folder(suite: &str) -> PathBuf {
    target_folder().join("packages").join(suite)
}

/// Returns the folder in which the packages of a release are built and tested.
fn work(suite: &str) -> PathBuf {
    folder("work").join(suite)
}

/// Builds packages in a root of the release. `revision` replaces that of debian/changelog; such
/// packages are in the folder `next` of the work.
fn build(suite: &str, revision: Option<&str>) -> Result {
    let (server, root) = mariadb::root_of(suite)?;
    version::check_machine(Path::new("/"), &root)?;
    built::build()?;
    let to = if revision.is_some() { work(suite).join("next") } else { folder(suite) };
    let mut args = vec![format!("TO={}", to.display()), format!("WORK={}", work(suite).display())];
    args.extend(revision.map(|revision| format!("REVISION={revision}")));
    mariadb::enter(&server, &root, "packages-inside", &args)
}
