//! A private copy of the server's test suites. It is needed because failing tests write files next
//! to their results, and because our files must be in the server's folders.
//!
//! ```text
//!   target/mariadb/mtr/bin, sbin            links into the system
//!                     lib/mysql/plugin      links to the server's plugins, and ours
//!                     share/mysql           links, and (of MariaDB 11.8: share/mariadb)
//!                       mysql-test          the copy (mariadb-test)
//!                         plugin/frondb     mariadb/mysql-test, copied anew each time
//!                     copied                the version of the server whose suites were copied
//!   target/mariadb/mtr-substituted          the same, but the text of some suites names FronDB
//!   target/mariadb/mtr-defaulted            the same, but the default engine of some suites is
//!                                           FronDB
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::substitute;
use crate::Result;
use crate::mariadb::{folder, plugin, source};
use crate::step::Cmd;
use crate::workspace::root;

/// The folders of the suites in Debian's packages of MariaDB 11.8 and 10.11.
const PLACES: [&str; 2] = ["/usr/share/mariadb/mariadb-test", "/usr/share/mysql/mysql-test"];

/// Returns the folder of the installed suites.
pub(super) fn installed() -> &'static Path {
    let found = PLACES.iter().map(Path::new).find(|place| place.exists());
    found.unwrap_or(Path::new(PLACES[1]))
}

#[derive(Clone, Debug)]
pub(crate) struct Tree(PathBuf);

impl Tree {
    /// Creates the tree, or brings it up to date.
    pub(super) fn make(ours: &Path) -> Result<Self> {
        Self::of("mtr", ours, |_| Ok(()))
    }

    /// Creates another tree, in which the text of these files and folders names FronDB in place of
    /// InnoDB.
    pub(super) fn make_substituted(ours: &Path, paths: &[String]) -> Result<Self> {
        Self::of("mtr-substituted", ours, |suites| {
            paths.iter().try_for_each(|path| substitute::all(&suites.join(path)))
        })
    }

    /// Creates another tree, in which FronDB replaces InnoDB as the default engine of the tests in
    /// these folders, except in the combination `but`.
    pub(super) fn make_defaulted(ours: &Path, folders: &[String], but: &str) -> Result<Self> {
        Self::of("mtr-defaulted", ours, |suites| {
            folders.iter().try_for_each(|folder| substitute::defaults(&suites.join(folder), but))
        })
    }

    fn of(name: &str, ours: &Path, change: impl Fn(&Path) -> Result) -> Result<Self> {
        let tree = Self(folder().join(name));
        let version = Cmd::new(&plugin::server()?.display().to_string(), "--version").output()?;
        let stamp = tree.0.join("copied");
        if fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == version) {
            tree.link_plugins(ours)?;
            tree.overlay()?;
            return Ok(tree);
        }
        remove(&tree.0)?;
        tree.copy()?;
        change(&tree.suites())?;
        tree.link_plugins(ours)?;
        tree.overlay()?;
        fs::write(&stamp, version).map_err(at(&stamp))?;
        Ok(tree)
    }

    /// Returns the folder in which mtr runs.
    pub(crate) fn suites(&self) -> PathBuf {
        self.0.join(installed().strip_prefix("/usr").unwrap_or(installed()))
    }

    fn copy(&self) -> Result {
        let suites = self.suites();
        let share = suites.parent().unwrap_or(&suites);
        fs::create_dir_all(share).map_err(at(share))?;
        link(Path::new("/usr/bin"), &self.0)?;
        link(Path::new("/usr/sbin"), &self.0)?;
        for path in entries(installed().parent().unwrap_or(installed()))? {
            if path != installed() {
                link(&path, share)?;
            }
        }
        let from = installed().display().to_string();
        Cmd::new("cp", "-r").arg(&from).arg(&suites.display().to_string()).run()
    }

    fn link_plugins(&self, ours: &Path) -> Result {
        let plugins = self.0.join("lib/mysql/plugin");
        remove(&plugins)?;
        fs::create_dir_all(&plugins).map_err(at(&plugins))?;
        for path in entries(Path::new("/usr/lib/mysql/plugin"))? {
            if path.file_name() != ours.file_name() {
                link(&path, &plugins)?;
            }
        }
        link(ours, &plugins)
    }

    /// Replaces the overlays and the suite of the last run by our current ones.
    fn overlay(&self) -> Result {
        let to = self.suites().join("plugin/frondb");
        remove(&to)?;
        let from = root().join("mariadb/mysql-test");
        copy(&from, &to)?;
        // The folder of a series has results that differ there.
        let version = source::installed_version()?;
        let of_series = from.join(source::series(&version));
        if of_series.exists() { copy(&of_series.join("."), &to) } else { Ok(()) }
    }

    /// Removes the files that a run has left in memory.
    pub(super) fn clean(&self) {
        let var = self.suites().join("var");
        // `var` is a link to mtr's files in memory, which otherwise stay until the next run.
        if let Ok(kept) = fs::read_link(&var) {
            let _ = fs::remove_dir_all(kept);
            let _ = fs::remove_file(var);
        }
    }
}

fn copy(from: &Path, to: &Path) -> Result {
    Cmd::new("cp", "-r").arg(&from.display().to_string()).arg(&to.display().to_string()).run()
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

fn remove(folder: &Path) -> Result {
    if folder.exists() { fs::remove_dir_all(folder).map_err(at(folder)) } else { Ok(()) }
}

/// Links a file or folder into a folder under its own name.
fn link(from: &Path, folder: &Path) -> Result {
    let to = folder.join(from.file_name().unwrap_or_default());
    symlink(from, &to).map_err(at(&to))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    entries.map(|entry| entry.map(|entry| entry.path()).map_err(at(folder))).collect()
}
