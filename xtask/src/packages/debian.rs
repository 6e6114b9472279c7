//! `cargo xtask packages-inside`: builds packages inside a root, from a copy of debian/.
//!
//! ```text
//!   WORK/build/frondb/    the copy, in which debhelper works
//!   WORK/build/*.deb      where dpkg-buildpackage writes
//!   TO/*.deb              all packages, when lintian has passed them
//!   TO/Packages           the list that makes the folder an archive for apt
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::version::{self, CHANGELOG, Release};
use crate::install::{apt, on_path};
use crate::step::Cmd;
use crate::workspace::{read, root};
use crate::{Result, variables};

/// Builds the packages in the folder TO.
pub(crate) fn inside(args: &[String]) -> Result {
    let variables = variables(args, &["TO", "WORK", "REVISION"])?;
    let get = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| *v);
    let (to, work) = match (get("TO"), get("WORK")) {
        (Some(to), Some(work)) => (PathBuf::from(to), PathBuf::from(work)),
        _ => return Err("packages-inside needs TO= and WORK=, folders".to_owned()),
    };
    apt("a tool for packages", "build-essential cmake debhelper lintian", || {
        Path::new("/usr/share/build-essential").exists()
            && ["cmake", "dh", "lintian"].iter().all(|tool| on_path(tool))
    })?;
    let place = work.join("build");
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    }
    let source = place.join("frondb");
    copy_source(&source, get("REVISION"))?;
    let program = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    Cmd::new("dpkg-buildpackage", "--build=binary --no-sign")
        .dir(source)
        .env("FRONDB_XTASK", &program.display().to_string())
        .run()?;
    lintian(&place)?;
    publish(&place, &to)
}

/// Copies debian/ and the changelog, for dpkg writes into the folder and the one around it.
fn copy_source(to: &Path, revision: Option<&str>) -> Result {
    fs::create_dir_all(to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    for name in ["debian", "CHANGELOG.md"] {
        let from = root().join(name).display().to_string();
        Cmd::new("cp", "--recursive").arg(&from).arg(&to.display().to_string()).run()?;
    }
    let changelog = to.join(CHANGELOG);
    let release = Release::of(Path::new("/"))?;
    let text = version::changelog_of(&read(&changelog)?, &release, revision)?;
    fs::write(&changelog, text).map_err(|e| format!("{}: {e}", changelog.display()))
}

/// Checks the packages. Prints warnings, too; an error fails.
fn lintian(place: &Path) -> Result {
    let changes = only(place, ".changes")?;
    Cmd::new("lintian", "--allow-root --fail-on error").arg(&changes.display().to_string()).run()
}

/// Replaces the packages in `to`, and lists them for apt.
fn publish(place: &Path, to: &Path) -> Result {
    fs::create_dir_all(to).map_err(|e| format!("cannot make {}: {e}", to.display()))?;
    for old in ending(to, ".deb")? {
        fs::remove_file(&old).map_err(|e| format!("{}: {e}", old.display()))?;
    }
    for package in ending(place, ".deb")? {
        let name = package.file_name().unwrap_or_default();
        fs::rename(&package, to.join(name)).map_err(|e| format!("{}: {e}", package.display()))?;
    }
    let list = Cmd::new("dpkg-scanpackages", "--multiversion .").dir(to.to_owned()).output()?;
    let file = to.join("Packages");
    fs::write(&file, list + "\n").map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns the only file of a folder with this ending.
fn only(folder: &Path, end: &str) -> Result<PathBuf> {
    let mut found = ending(folder, end)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        n => Err(format!("{} has {n} files *{end}", folder.display())),
    }
}

/// Returns the files of a folder with this ending.
pub(super) fn ending(folder: &Path, end: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    found.sort();
    Ok(found)
}
