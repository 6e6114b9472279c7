//! Checks that side effects go through the crates that own them, so that a simulator can control
//! them: locks and atomics through `frondb_core::sync`, time through `clock`, threads through
//! `executor`, files through `frondb_device`.

use super::code_of_line;
use super::source::shipped_lines;
use crate::workspace::SourceFile;

/// Modules of `std`, and what to use instead.
const BANNED: [(&str, &str); 4] = [
    ("sync", "frondb_core::sync"),
    ("thread", "frondb_core::executor"),
    ("time", "frondb_core::clock"),
    ("fs", "frondb_device"),
];

/// Path prefixes of files that may use the modules: the crates that own them, the allocator below
/// those, programs, the modules for Node.js and Python, and code for tests.
const OWNERS: [&str; 16] = [
    "crates/core/src/mem/allocator.rs",
    "crates/core/src/sync",
    "crates/core/src/clock",
    "crates/core/src/executor",
    "crates/device/src/",
    "crates/bench/",
    "crates/bench-peers/",
    "crates/cli/",
    "crates/node/",
    "crates/python/",
    "crates/simulator/",
    "crates/testkit/",
    "mariadb/convert/",
    "mariadb/harness/",
    "mariadb/sql-bench/",
    "xtask/",
];

/// Finds uses of a banned module in code that ships.
pub(super) fn check(file: &SourceFile) -> Vec<String> {
    let path = &file.path;
    let for_tests = ["/tests/", "/benches/", "/examples/"].iter().any(|part| path.contains(part));
    if for_tests || OWNERS.iter().any(|owner| path.starts_with(owner)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in shipped_lines(&file.text) {
        for (module, instead) in BANNED {
            if names_module(code_of_line(line), module) {
                findings.push(format!("{path}:{number}: std::{module} here; use {instead}"));
            }
        }
    }
    findings
}

/// Allowed paths: they have no side effect that a simulator must control.
const HARMLESS: [&str; 2] = ["std::time::Duration", "std::thread::available_parallelism"];

/// Returns whether code names `std::MODULE`, alone or in a `use std::{...}` list.
fn names_module(code: &str, module: &str) -> bool {
    let code = HARMLESS.iter().fold(code.to_owned(), |code, path| code.replace(path, ""));
    let direct = format!("std::{module}");
    let mut rest = code.as_str();
    while let Some(at) = rest.find(&direct) {
        rest = &rest[at + direct.len()..];
        if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
            return true;
        }
    }
    let Some((_, list)) = code.split_once("use std::{") else { return false };
    list.split([',', '{', '}', ';']).any(|item| {
        let item = item.trim();
        item == module || item.starts_with(&format!("{module}::"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&SourceFile { path: path.to_owned(), text: text.to_owned() }).len()
    }

    #[test]
    fn uses_are_found_in_every_spelling() {
        for line in [
            "use std::sync::Mutex;",
            "use std::thread;",
            "let t = std::time::Instant::now();",
            "use std::{fmt, fs};",
            "use std::{fmt, sync::Arc};",
        ] {
            assert_eq!(findings("crates/wal/src/a.rs", line), 1, "{line}");
        }
        for line in [
            "use std::time::Duration;",
            "// std::sync::Mutex is not used",
            "use std::fsx;",
            "use std::{fmt, io};",
        ] {
            assert_eq!(findings("crates/wal/src/a.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn shims_tests_and_outer_faces_may_use_them() {
        let line = "use std::fs;";
        assert_eq!(findings("crates/device/src/posix.rs", line), 0);
        assert_eq!(findings("crates/wal/tests/a.rs", line), 0);
        assert_eq!(findings("crates/wal/src/a.rs", &format!("#[cfg(test)]\n{line}")), 0);
    }
}
