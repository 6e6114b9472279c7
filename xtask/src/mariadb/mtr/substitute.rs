//! Turns suites for InnoDB into suites for FronDB: replaces the engine's name in the text of tests
//! and results, so that FronDB must give InnoDB's results.
//!
//! Both names have six letters, and each replacement keeps the case. File names, variables, options
//! and headings of combinations that contain the name stay unchanged, except the option for the
//! lock wait timeout, which FronDB has too.

use std::fs;
use std::path::Path;

use crate::Result;

const FROM: &[u8; 6] = b"innodb";
const TO: &[u8; 6] = b"frondb";
/// Extensions of the files that name engines.
const ENDS: [&str; 7] = ["test", "inc", "result", "rdiff", "combinations", "opt", "cnf"];

/// Rewrites a file, or all files below a folder.
pub(super) fn all(path: &Path) -> Result {
    if path.is_file() { file(path) } else { folder(path) }
}

fn folder(path: &Path) -> Result {
    let at = |error| format!("{}: {error}", path.display());
    for entry in fs::read_dir(path).map_err(at)? {
        let inner = entry.map_err(at)?.path();
        if inner.is_dir() {
            folder(&inner)?;
        } else if inner.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known)) {
            file(&inner)?;
        }
    }
    Ok(())
}

/// Replaces InnoDB only in a suite's combinations, where it is the default engine, except in the
/// combination `but`. Also makes the tests hide FronDB's name in results in place of InnoDB's.
pub(super) fn defaults(suite: &Path, but: &str) -> Result {
    for folder in [suite.to_owned(), suite.join("t")] {
        let at = |error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(at)? {
            let path = entry.map_err(at)?.path();
            let change = match path.extension().and_then(|end| end.to_str()) {
                Some("combinations") => |text: &[u8], but: &str| but_section(text, but),
                Some("test") => |text: &[u8], _: &str| hidden_names(text),
                _ => continue,
            };
            fs::write(&path, change(&fs::read(&path).map_err(at)?, but)).map_err(at)?;
        }
    }
    Ok(())
}

/// Returns the text with FronDB's name in the `--replace_result` lines, which hide the engine's
/// name in results.
fn hidden_names(old: &[u8]) -> Vec<u8> {
    let mut new = old.to_vec();
    for line in new.split_mut(|&byte| byte == b'\n') {
        if line.starts_with(b"--replace_result") {
            substitute(line);
        }
    }
    new
}

/// Returns the text with InnoDB replaced outside the section `[but]`.
fn but_section(old: &[u8], but: &str) -> Vec<u8> {
    let mut new = old.to_vec();
    let heading = format!("[{but}]");
    let mut stays = false;
    for line in new.split_mut(|&byte| byte == b'\n') {
        if line.starts_with(b"[") {
            stays = line.starts_with(heading.as_bytes());
        } else if !stays {
            substitute(line);
        }
    }
    new
}

/// Returns the names of the tests whose own text names the engine.
pub(super) fn naming(suite: &Path) -> Result<Vec<String>> {
    let tests = suite.join("t");
    let at = |error| format!("{}: {error}", tests.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&tests).map_err(at)? {
        let path = entry.map_err(at)?.path();
        if path.extension().is_some_and(|end| end == "test") {
            let old = fs::read(&path).map_err(at)?;
            let name = path.file_stem().filter(|_| text(&old) != old);
            names.extend(name.map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// A file that stays unchanged: it waits for InnoDB's own background work, also if the tables are
/// in another engine.
const STAYING: &str = "wait_all_purged.inc";

fn file(path: &Path) -> Result {
    if path.file_name().is_some_and(|name| name == STAYING) {
        return Ok(());
    }
    let at = |error| format!("{}: {error}", path.display());
    let old = fs::read(path).map_err(at)?;
    let new = text(&old);
    if new == old { Ok(()) } else { fs::write(path, new).map_err(at) }
}

fn text(old: &[u8]) -> Vec<u8> {
    let mut new = old.to_vec();
    for line in new.split_mut(|&byte| byte == b'\n') {
        if !stays(line) {
            substitute(line);
        }
    }
    new
}

/// Returns whether a line stays unchanged, because it includes a file or shows InnoDB's own status.
fn stays(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let statement = line.trim_start().trim_start_matches('-').trim_start();
    statement.starts_with("source") || line.contains("transactions not purged")
}

fn substitute(line: &mut [u8]) {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    for start in 0..(line.len() + 1).saturating_sub(FROM.len()) {
        let end = start + FROM.len();
        let before = start.checked_sub(1).map(|at| line[at]);
        let is_name = line[start..end].eq_ignore_ascii_case(FROM)
            && !before.is_some_and(|byte| is_inner(byte) || matches!(byte, b'/' | b'[' | b'#'))
            && !line.get(end).is_some_and(|&byte| is_inner(byte));
        if is_name || is_shared_option(&line[start..]) {
            for (letter, to) in line[start..end].iter_mut().zip(TO) {
                *letter = if letter.is_ascii_uppercase() { to.to_ascii_uppercase() } else { *to };
            }
        }
    }
}

/// Returns whether `rest` begins with `innodb_lock_wait_timeout`, as a variable or as an option.
fn is_shared_option(rest: &[u8]) -> bool {
    const OPTION: &[u8] = b"innodb_lock_wait_timeout";
    let letters =
        rest.iter().map(|&byte| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() });
    letters.take(OPTION.len()).eq(OPTION.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_name_the_engine_are_found() {
        let suite = std::env::temp_dir().join(format!("frondb-naming-{}", std::process::id()));
        fs::create_dir_all(suite.join("t")).unwrap();
        for (name, text) in [
            ("b.test", "create table t (a int) engine=InnoDB;"),
            ("a.test", "let $engine_type= innodb;"),
            ("c.test", "--source include/have_innodb.inc\ncreate table t (a int);"),
            ("d.inc", "set default_storage_engine=innodb;"),
        ] {
            fs::write(suite.join("t").join(name), text).unwrap();
        }
        let names = naming(&suite).unwrap();
        fs::remove_dir_all(&suite).unwrap();
        assert_eq!(names, ["a", "b"]);
        assert!(naming(&suite).is_err());
    }

    #[test]
    fn a_section_stays() {
        let old = b"[a]\ndefault-storage-engine=innodb\n[b]\ndefault-storage-engine=innodb\n[c]\nx=innodb";
        let new = b"[a]\ndefault-storage-engine=frondb\n[b]\ndefault-storage-engine=innodb\n[c]\nx=frondb";
        assert_eq!(but_section(old, "b"), new);
        let old = b"--replace_result InnoDB ENGINE\nselect 'InnoDB'";
        assert_eq!(hidden_names(old), b"--replace_result FronDB ENGINE\nselect 'InnoDB'");
    }

    #[test]
    fn only_the_names_of_the_engine_change() {
        for (old, new) in [
            ("create table t (a int) engine=innodb;", "create table t (a int) engine=frondb;"),
            (") ENGINE=InnoDB DEFAULT", ") ENGINE=FronDB DEFAULT"),
            ("SET storage_engine = 'INNODB'", "SET storage_engine = 'FRONDB'"),
            ("InnoDB", "FronDB"),
            ("--source include/have_innodb.inc", "--source include/have_innodb.inc"),
            ("source suite/versioning/innodb inc", "source suite/versioning/innodb inc"),
            ("set global innodb_x=1, t1_innodb", "set global innodb_x=1, t1_innodb"),
            ("--innodb\n[innodb]\ninnodb", "--innodb\n[innodb]\nfrondb"),
            ("InnoDB\t\t0 transactions not purged", "InnoDB\t\t0 transactions not purged"),
            ("--innodb-lock-wait-timeout=4 --innodb", "--frondb-lock-wait-timeout=4 --innodb"),
            ("@@innodb_lock_wait_timeout", "@@frondb_lock_wait_timeout"),
            ("innod", "innod"),
        ] {
            assert_eq!(String::from_utf8(text(old.as_bytes())).unwrap(), new);
        }
        assert_eq!(text(b"\xff innodb \xfe"), b"\xff frondb \xfe");
    }
}
