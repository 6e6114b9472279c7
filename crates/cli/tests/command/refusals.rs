//! What cannot be done is refused with the right code and the reason, and nothing is left behind.

use std::ffi::OsStr;

use frondb::{Db, Options};
use frondb_testkit::TempDir;

use crate::program::{frondb, run};

#[test]
fn a_database_in_use_names_the_process_that_has_it() {
    let temp = TempDir::new("cli-busy");
    let db = Db::open(temp.path(), Options::new().memory_bytes(8 << 20)).unwrap();
    let pid = format!("in use by pid {}", std::process::id());
    frondb("trees", temp.path(), &[]).fails(4, &pid);
    let error = frondb("put", temp.path(), &["t", "k", "v", "--json"]).error();
    assert_eq!(error["kind"], "Busy");
    assert_eq!(error["exit_code"], 4);
    db.close().unwrap();
    drop(db);
    frondb("trees", temp.path(), &[]).ok();
}

#[test]
fn a_directory_that_is_no_database_is_left_as_it_is() {
    let temp = TempDir::new("cli-wrong");
    frondb("trees", &temp.path().join("missing"), &[]).fails(1, "missing");
    assert!(!temp.path().join("missing").exists());
    frondb("verify", temp.path(), &[]).fails(1, "");

    std::fs::write(temp.path().join("letter.txt"), "Dear").unwrap();
    let before: Vec<_> = names(temp.path());
    frondb("create", temp.path(), &["t"]).fails(2, "letter.txt");
    frondb("trees", temp.path(), &[]).fails(1, "");
    assert_eq!(names(temp.path()), before);

    let file = temp.path().join("letter.txt");
    assert_ne!(frondb("create", &file, &[]).code, 0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "Dear");
}

/// Names of what is in a directory.
fn names(dir: &std::path::Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

#[test]
fn missing_trees_and_too_long_keys_are_errors() {
    let temp = TempDir::new("cli-missing");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    frondb("get", dir, &["u", "k"]).fails(1, "u");
    frondb("scan", dir, &["u"]).fails(1, "u");
    frondb("put", dir, &["t", &"k".repeat(40_000), "v"]).fails(2, "40000");
    frondb("put", dir, &["t", "k"]).fails(2, "VALUE");
    frondb("put", dir, &["t", "k", "--file", "not/there"]).fails(1, "not/there");
    assert_eq!(frondb("scan", dir, &["t", "--count"]).ok().text(), "0\n");
}

#[test]
fn help_is_no_error_and_an_unknown_word_is() {
    let run = |args: &[&str]| run(args.iter().map(OsStr::new), b"");
    assert!(run(&["help"]).ok().text().contains("verify"));
    assert!(run(&["exit-codes"]).ok().text().contains("Corruption"));
    run(&["frobnicate", "x"]).fails(2, "frobnicate");
    run(&["trees", "x", "--frobnicate"]).fails(2, "--frobnicate");
}
