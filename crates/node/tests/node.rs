//! Runs the tests in this folder, which are JavaScript, with the library that cargo has just built.
//! Cargo builds the library for this program as it builds all other tests, so nothing is compiled
//! twice.
//!
//! `FRONDB_NODE` names the program, node 18.19 or newer; by default it is `node` on PATH, which
//! `make test` and `make node` install.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Returns the folder of the library that cargo built: this program is in it.
fn built() -> PathBuf {
    let program = env::current_exe().expect("the test has a path");
    program.parent().expect("it is in a folder").to_owned()
}

/// Copies the library to a name that node loads as an addon.
fn addon(folder: &Path) -> PathBuf {
    let library = built().join("libfrondb_node.so");
    let addon = folder.join("frondb.node");
    fs::copy(&library, &addon)
        .unwrap_or_else(|e| panic!("{}: {e}: cargo has not built the library", library.display()));
    addon
}

/// Returns the tests, sorted.
fn tests() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let entries = fs::read_dir(folder).expect("the tests are in a folder");
    let paths = entries.map(|entry| entry.expect("it can be read").path());
    let mut tests: Vec<_> =
        paths.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    tests.sort();
    tests
}

#[test]
fn the_tests_in_node_pass() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("node");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let node = env::var_os("FRONDB_NODE").unwrap_or_else(|| "node".into());
    let status = Command::new(&node)
        // The tests mostly wait: for syncs, processes and threads.
        .args(["--test", "--test-concurrency=2"])
        .args(tests())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("FRONDB_NODE_ADDON", addon(&folder))
        .env("TMPDIR", &folder)
        // A user's own settings must not change the result.
        .env_remove("NODE_OPTIONS")
        .status();
    match status {
        Ok(status) => assert!(status.success(), "node --test: {status}"),
        Err(e) => panic!(
            "cannot start {}: {e}: run `cargo xtask node-tools`, or set FRONDB_NODE to a program",
            node.display()
        ),
    }
}
