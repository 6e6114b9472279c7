//! Commands that cannot succeed fail with the right exit code and a reason, and change nothing.

use std::ffi::OsStr;

use frondb::{Db, Options};
use frondb_testkit::TempDir;

use crate::program::{frondb, frondb_with, run};

#[test]
fn a_database_in_use_names_the_process_that_has_it() {
    let temp = TempDir::new("cli-busy");
    let db = Db::open(temp.path(), Options::new().memory_bytes(16 << 20)).unwrap();
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

#[test]
fn a_failed_command_leaves_nothing_behind() {
    let temp = TempDir::new("cli-nothing");
    let dir = temp.path().join("db");
    frondb("create", &dir, &["t", ""]).fails(2, "1 to 512");
    frondb("create", &dir, &["t", &"n".repeat(513)]).fails(2, "513");
    frondb("create", &dir, &["t", "--memory", "1"]).fails(2, "memory");
    frondb_with("load", &dir, &["t", "-", "--format", "csv"], b"k,v\n").fails(1, "frondb create");
    assert!(!dir.exists());
    frondb("create", &dir, &["t"]).ok();
    let before = names(&dir);
    frondb("rename", &dir, &["t", ""]).fails(2, "1 to 512");
    frondb("create", &dir, &["u", "t"]).fails(3, "t");
    frondb_with("load", &dir, &["u", "-", "--format", "csv"], b"k,v\na,1,2\n").fails(10, "fields");
    frondb("dump", &dir, &["t", temp.path().to_str().unwrap()]).fails(2, "directory");
    frondb("dump", &dir, &["t", temp.path().join("no/dir").to_str().unwrap()]).fails(1, "no/dir");
    frondb("put", &dir, &["t", "\\q", "v"]).fails(2, "backslash");
    assert_eq!(frondb("trees", &dir, &[]).ok().text(), "t\n");
    assert_eq!(names(&dir), before);
}

#[test]
fn wrong_arguments_are_json_where_that_is_asked_for() {
    let temp = TempDir::new("cli-arguments");
    for args in [&["--frobnicate", "--json"][..], &["--json", "--memory", "x"], &["a", "--json"]] {
        let ran = frondb("trees", temp.path(), args);
        assert_eq!(ran.code, 2);
        let error = ran.error();
        assert_eq!(error["kind"], "Usage", "{}", ran.err);
        assert_eq!(error["exit_code"], 2);
    }
    frondb("trees", temp.path(), &["--frobnicate", "--", "--json"]).fails(2, "error: ");
}

/// A path may be any bytes; the program prints it as well as it can.
#[test]
fn a_path_that_is_not_text_is_a_path() {
    use std::os::unix::ffi::OsStrExt;
    let temp = TempDir::new("cli-path");
    let dir = temp.path().join(OsStr::from_bytes(b"d\xff"));
    for args in [&["t"][..], &["u", "--json"]] {
        frondb("create", &dir, args).ok();
    }
    assert_eq!(frondb("trees", &dir, &[]).ok().text(), "t\nu\n");
}

/// Returns the names in a directory.
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

#[test]
fn read_only_commands_share_a_database_and_change_nothing() {
    let temp = TempDir::new("cli-read-only");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    frondb("put", dir, &["t", "k", "v"]).ok();
    let reader = Options::new().memory_bytes(16 << 20).read_only(true);
    let db = Db::open(dir, reader).unwrap();
    frondb("get", dir, &["t", "k"]).fails(4, "in use");
    assert_eq!(frondb("get", dir, &["t", "k", "--read-only"]).ok().text(), "v\n");
    for command in ["trees", "stats", "verify"] {
        frondb(command, dir, &["--read-only"]).ok();
    }
    assert_eq!(frondb("scan", dir, &["t", "--count", "--read-only"]).ok().text(), "1\n");
    assert_eq!(
        frondb("dump", dir, &["t", "--format", "tsv", "--read-only"]).ok().text(),
        "key\tvalue\nk\tv\n"
    );
    drop(db);
    frondb("put", dir, &["t", "k", "w", "--read-only"]).fails(2, "read-only");
    frondb("drop", dir, &["t", "--read-only"]).fails(2, "read-only");
    assert_eq!(frondb("get", dir, &["t", "k"]).ok().text(), "v\n");
}
