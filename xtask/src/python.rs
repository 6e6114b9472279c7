//! `make python`: the wheel and the source distribution of `crates/python`, checked as a user
//! installs them.
//!
//! ```text
//!   target/python/venv     the tools, pinned in crates/python/requirements.txt; the wheel
//!   target/python/dist     frondb-VERSION-cp311-abi3-PLATFORM.whl, frondb-VERSION.tar.gz
//!   target/python/source   the unpacked source distribution
//! ```
//! `make test` runs the tests in Python without a wheel: see crates/python/tests/python.rs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::step::Cmd;
use crate::workspace::{read, root, target_folder};
use crate::{Result, install};

const CRATE: &str = "crates/python";
/// The tools that `make test` needs; the others are large.
const OF_TESTS: [&str; 2] = ["hypothesis", "pytest"];

/// Builds, installs and tests the module.
pub(crate) fn run() -> Result {
    install::c_compiler()?;
    venv()?;
    install_tools(|_| true)?;
    let dist = folder().join("dist");
    remove(&dist)?;
    maturin("build --release", &dist)?;
    maturin("sdist", &dist)?;
    check_source(&only(&dist, ".tar.gz")?)?;
    install_wheel(&only(&dist, ".whl")?)?;
    check_types()?;
    let tests = python("-X dev -m pytest -q -p no:cacheprovider").dir(root().join(CRATE));
    tests.env("FRONDB_PYTHON_ALL", "1").run()?;
    println!("the wheel and the source distribution are in {}", dist.display());
    Ok(())
}

/// Makes the tools available that the tests in Python need.
pub(crate) fn tools() -> Result {
    venv()?;
    install_tools(|name| OF_TESTS.contains(&name))
}

fn folder() -> PathBuf {
    target_folder().join("python")
}

fn interpreter() -> PathBuf {
    folder().join("venv/bin/python")
}

fn python(args: &str) -> Cmd {
    // A user's own modules and settings must not change the result.
    Cmd::new(&interpreter().to_string_lossy(), args)
        .env("PYTHONNOUSERSITE", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
}

/// Makes a virtual environment, unless there is one.
fn venv() -> Result {
    if python("-m pip --version").succeeds() {
        return Ok(());
    }
    let present = || Cmd::new("python3", "-c").arg("import ensurepip, venv").succeeds();
    install::apt("Python with the module venv", "python3 python3-venv", present)?;
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !Cmd::new("python3", "-c").arg(recent).succeeds() {
        return Err("python3 is older than 3.11; put a newer one first on PATH".to_owned());
    }
    let venv = folder().join("venv");
    // What an interrupted command has left.
    remove(&venv)?;
    Cmd::new("python3", "-m venv").arg(&venv.to_string_lossy()).run()
}

/// Installs the tools that `wanted` names, in their pinned versions, unless they are there.
fn install_tools(wanted: impl Fn(&str) -> bool) -> Result {
    let requirements = read(&root().join(CRATE).join("requirements.txt"))?;
    let wanted: Vec<_> = pinned(&requirements).filter(|(name, _)| wanted(name)).collect();
    let mut check = String::from("from importlib.metadata import version as v\n");
    for (name, version) in &wanted {
        check += &format!("assert v('{name}') == '{version}'\n");
    }
    if python("-c").arg(&check).succeeds() {
        return Ok(());
    }
    let packages: Vec<_> = wanted.iter().map(|(name, v)| format!("{name}=={v}")).collect();
    let packages = packages.join(" ");
    python(&format!("-m pip install --quiet --disable-pip-version-check {packages}"))
        .run()
        .map_err(|e| format!("the tools for Python are missing, so this was NOT checked: {e}"))
}

/// Returns the names and versions in a file of requirements.
fn pinned(requirements: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = requirements.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.trim().split_once("=="))
}

fn maturin(command: &str, dist: &Path) -> Result {
    let manifest = root().join(CRATE).join("Cargo.toml");
    python(&format!("-m maturin {command} --manifest-path"))
        .arg(&manifest.to_string_lossy())
        .arg("--out")
        .arg(&dist.to_string_lossy())
        .run()
}

/// Checks that cargo finds all crates of the source distribution in it. A build of it would take
/// minutes and compile the same files again.
fn check_source(archive: &Path) -> Result {
    let source = folder().join("source");
    remove(&source)?;
    fs::create_dir_all(&source).map_err(|e| format!("cannot make {}: {e}", source.display()))?;
    Cmd::new("tar", "--extract --strip-components=1 --file")
        .arg(&archive.to_string_lossy())
        .arg("--directory")
        .arg(&source.to_string_lossy())
        .run()?;
    let manifest = source.join(CRATE).join("Cargo.toml");
    let metadata = Cmd::new("cargo", "metadata --format-version=1 --manifest-path");
    metadata.arg(&manifest.to_string_lossy()).output().map(drop)
}

fn install_wheel(wheel: &Path) -> Result {
    let install = "-m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall";
    python(install).arg(&wheel.to_string_lossy()).run()
}

/// Compares the stubs with the module, and checks the types of the package, its tests and its
/// benchmark.
fn check_types() -> Result {
    let cache = folder().join("mypy");
    let commands = [
        "-m mypy.stubtest --mypy-config-file=pyproject.toml frondb",
        "-m mypy --package frondb",
        "-m mypy tests bench",
    ];
    for command in commands {
        let check = python(command).dir(root().join(CRATE));
        check.env("MYPY_CACHE_DIR", &cache.to_string_lossy()).run()?;
    }
    Ok(())
}

/// Returns the only file of a folder with this ending.
fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut found = paths.filter(|path| path.to_string_lossy().ends_with(ending));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(format!("{} must have one file *{ending}", folder.display())),
    }
}

fn remove(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", folder.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_pinned() {
        let requirements = read(&root().join(CRATE).join("requirements.txt")).unwrap();
        let names: Vec<&str> = pinned(&requirements).map(|(name, _)| name).collect();
        assert!(OF_TESTS.iter().all(|name| names.contains(name)), "{names:?}");
        let is_comment = |line: &&str| line.starts_with('#');
        assert_eq!(names.len(), requirements.lines().filter(|line| !is_comment(line)).count());
    }
}
