//! `cargo xtask test-apps`: loads the schemas of Debian's applications on FronDB and on InnoDB.
//!
//! ```text
//!   example applications      the names of the packages
//!   apt-get download          the packages                target/mariadb/apps/NAME_*.deb
//!   dpkg-deb --raw-extract    their files, not installed  target/mariadb/apps/NAME
//!   example applications      loads, compares
//! ```
//!
//! The command does not fetch a package again that is already unpacked. To get a newer version,
//! remove its folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::apt::Apt;
use super::{folder, plugin};
use crate::Result;
use crate::install::{apt, on_path};
use crate::step::Cmd;

/// The program of the harness that loads and compares the applications. It is an example, so that
/// `cargo test` does not run it.
const PROGRAM: &str = "run --quiet --package frondb-mariadb-harness --example applications";

/// `cargo xtask test-apps`. Builds the plugin, unless FRONDB_PLUGIN names a built plugin.
pub(crate) fn run() -> Result {
    let plugin = match std::env::var_os("FRONDB_PLUGIN") {
        Some(path) => PathBuf::from(path),
        None => plugin::plugin()?,
    };
    apt("a program that unpacks packages or loads dumps", "dpkg gzip mariadb-client", || {
        ["dpkg-deb", "gzip", "mariadb-dump", "mariadb"].iter().all(|program| on_path(program))
    })?;
    let home = folder().join("apps");
    let packages = Cmd::new("cargo", PROGRAM).output()?;
    fetch(&home, &packages.lines().collect::<Vec<_>>())?;
    Cmd::new("cargo", PROGRAM)
        .arg("--")
        .arg(&home.display().to_string())
        .env("FRONDB_PLUGIN", &plugin.display().to_string())
        .run()
}

/// Fetches and unpacks the packages that are missing.
fn fetch(home: &Path, packages: &[&str]) -> Result {
    let missing = packages.iter().filter(|package| !home.join(package).exists());
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(home).map_err(|e| format!("{}: {e}", home.display()))?;
    let failed = |error: String| {
        format!(
            "{error}\ncannot fetch {}: test-apps needs apt-get and the network once; without them, put \
             the packages unpacked with `dpkg-deb --raw-extract` into {}",
            missing.join(", "),
            home.display()
        )
    };
    let apt = Apt::new("deb").map_err(failed)?;
    for package in &missing {
        apt.cmd("apt-get", "download").arg(package).dir(home.to_owned()).run().map_err(failed)?;
        unpack(home, package)?;
    }
    Ok(())
}

/// Unpacks a fetched package and removes the package's file. The folder gets the package's name
/// only when it is complete.
fn unpack(home: &Path, package: &str) -> Result {
    let files = fs::read_dir(home).map_err(|e| format!("{}: {e}", home.display()))?;
    let file = files.flatten().map(|entry| entry.path()).find(|path| is_of(path, package));
    let file = file.ok_or_else(|| format!("apt-get has not fetched {package}"))?;
    let partial = home.join("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(|e| format!("{}: {e}", partial.display()))?;
    }
    let unpack = Cmd::new("dpkg-deb", "--raw-extract").arg(&file.display().to_string());
    unpack.arg(&partial.display().to_string()).run()?;
    let to = home.join(package);
    fs::rename(&partial, &to).map_err(|e| format!("{}: {e}", to.display()))?;
    fs::remove_file(&file).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns whether `path` is the package's file, `NAME_VERSION_ARCHITECTURE.deb`.
fn is_of(path: &Path, package: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let has_name = name.split_once('_').is_some_and(|(found, _)| found == package);
    has_name && path.extension().is_some_and(|extension| extension == "deb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_packages_are_told_apart() {
        let of = |name: &str| is_of(&Path::new("apps").join(name), "cacti");
        assert!(of("cacti_1.2.24+ds1-1_all.deb"));
        assert!(!of("cacti-spine_1.2.24-1_amd64.deb"));
        assert!(!of("cacti"));
        assert!(!of("cacti_1.2.24+ds1-1_all.deb.part"));
    }
}
