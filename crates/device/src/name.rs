//! File names: relative paths with `/` between their parts, checked in one place.
//!
//! A name leads outside of the device's directory only through a symbolic link there, whatever a
//! corrupt manifest or a careless option contains. So an absolute path, `..`, `.`, an empty part
//! and a zero byte are `Invalid` before any system call is made.

use frondb_core::{Error, Result};

/// Checks the name of a file or of a directory below the device.
///
/// # Errors
/// `Invalid` unless the name is a plain relative path.
pub fn check(name: &str) -> Result<()> {
    let plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains('\0');
    if name.split('/').all(plain) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "file name {name:?} must be a relative path without empty parts, '.' or '..'"
    )))
}

/// Checks the name of a directory, where the empty name is the device itself.
///
/// # Errors
/// `Invalid` unless the name is empty or a plain relative path.
pub fn check_dir(name: &str) -> Result<()> {
    if name.is_empty() { Ok(()) } else { check(name) }
}

/// Returns the directory of a name; empty for a name at the top.
#[must_use]
pub fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

/// Returns `name` inside `dir`, where the empty `dir` is the device itself.
#[must_use]
pub fn join(dir: &str, name: &str) -> String {
    match (dir, name) {
        ("", name) => name.to_owned(),
        (dir, "") => dir.to_owned(),
        (dir, name) => format!("{dir}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_pass() {
        for good in ["a", "wal/000001.wal", "a/b/c", "...", "a b"] {
            check(good).unwrap();
        }
        for bad in ["", "/", "/etc/passwd", "..", "a/..", "../a", "a//b", "a/", ".", "a/./b", "a\0"]
        {
            assert!(check(bad).is_err(), "{bad:?} passed");
        }
        check_dir("").unwrap();
        assert!(check_dir("/").is_err());
    }

    #[test]
    fn join_and_parent_omit_the_root() {
        assert_eq!(parent("a"), "");
        assert_eq!(parent("a/b/c"), "a/b");
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("d", "a"), "d/a");
        assert_eq!(join("d", ""), "d");
    }
}
