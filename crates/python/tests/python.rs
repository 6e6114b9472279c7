//! Runs the tests in this folder, which are Python programs, with the library that cargo has just
//! built. Cargo builds the library for this program as it builds all other tests, so nothing is
//! compiled twice.
//!
//! `FRONDB_PYTHON` names the interpreter, which must have pytest and hypothesis; by default that of
//! `target/python/venv`, which `make test` and `make python` make.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns the folder of the library that cargo built: this program is in it.
fn built() -> PathBuf {
    let program = env::current_exe().expect("the test has a path");
    program.parent().expect("it is in a folder").to_owned()
}

fn interpreter(built: &Path) -> PathBuf {
    if let Some(python) = env::var_os("FRONDB_PYTHON") {
        return python.into();
    }
    // The program is in `debug/deps` of the target folder.
    let target = built.ancestors().nth(2).expect("it is below the target folder");
    target.join("python/venv/bin/python")
}

/// Makes a package of the library and the Python files.
fn package(built: &Path, folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/frondb");
    let package = folder.join("frondb");
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(&package).expect("the target folder can be written");
    for entry in fs::read_dir(source).expect("the package has files") {
        let path = entry.expect("it can be read").path();
        if let Some(name) = path.file_name().filter(|_| path.is_file()) {
            fs::copy(&path, package.join(name)).expect("a file can be copied");
        }
    }
    let library = built.join("lib_frondb.so");
    fs::copy(&library, package.join("_frondb.abi3.so"))
        .unwrap_or_else(|e| panic!("{}: {e}: cargo has not built the library", library.display()));
}

#[test]
fn the_tests_in_python_pass() {
    let built = built();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    package(&built, &folder);
    let python = interpreter(&built);
    let pytest = Command::new(&python)
        // Development mode: the interpreter checks more, and prints what a crash did.
        .args(["-X", "dev", "-m", "pytest", "-q", "-p", "no:cacheprovider"])
        .arg(format!("--basetemp={}", folder.join("tmp").display()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("PYTHONPATH", &folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status();
    match pytest {
        Ok(status) => assert!(status.success(), "pytest: {status}"),
        Err(e) => panic!(
            "cannot start {}: {e}: run `cargo xtask python-tools`, or set FRONDB_PYTHON to a Python \
             with pytest and hypothesis",
            python.display()
        ),
    }
}
