//! Single keys and ranges: put, get, scan, count and delete in every encoding.

use frondb_testkit::TempDir;

use crate::program::{frondb, frondb_with};

#[test]
fn a_key_is_put_got_and_deleted() {
    let temp = TempDir::new("cli-keys");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    frondb("put", dir, &["t", "name", "Ada\\n"]).ok();
    assert_eq!(frondb("get", dir, &["t", "name"]).ok().text(), "Ada\\n\n");
    assert_eq!(frondb("get", dir, &["t", "name", "--raw"]).ok().out, b"Ada\n");
    let row = &frondb("get", dir, &["t", "name", "--json", "--values", "hex"]).ok().json()[0];
    assert_eq!(row["value"], "4164610a");
    frondb("del", dir, &["t", "name", "was never there"]).ok();
    frondb("get", dir, &["t", "name"]).fails(1, "name");
}

#[test]
fn any_bytes_go_in_and_come_out() {
    let temp = TempDir::new("cli-bytes");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    let value: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    frondb_with("put", dir, &["t", "", "--file", "-"], &value).ok();
    assert!(frondb("get", dir, &["t", "", "--raw"]).ok().out == value);
    frondb("put", dir, &["t", "--keys", "hex", "ff00", "-5"]).ok();
    assert_eq!(frondb("get", dir, &["t", "\\xff\\0"]).ok().text(), "-5\n");
    frondb("put", dir, &["t", "--keys", "hex", "f", "x"]).fails(2, "odd number");
}

#[test]
fn options_may_follow_keys() {
    let temp = TempDir::new("cli-options");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    for key in ["k1", "6b31", "k2", "-5"] {
        frondb("put", dir, &["t", key, "v"]).ok();
    }
    frondb("del", dir, &["t", "k2", "--read-only"]).fails(2, "read-only");
    frondb("del", dir, &["t", "k2", "--prefix", "k"]).fails(2, "cannot be used with");
    frondb("del", dir, &["t", "k2", "--nope"]).fails(2, "--nope");
    frondb("put", dir, &["t", "--nope", "v"]).fails(2, "--nope");
    frondb("put", dir, &["t", "k", "--nope"]).fails(2, "--nope");
    frondb("get", dir, &["t", "-x"]).fails(2, "-x");
    frondb("del", dir, &["t", "--prefix", "--read-only"]).fails(2, "--prefix");
    assert_eq!(frondb("scan", dir, &["t", "--count"]).ok().text(), "4\n");

    let result = &frondb("del", dir, &["t", "6b31", "--keys", "hex", "--json"]).ok().json()[0];
    assert_eq!(result["keys"], 1);
    let scan = || frondb("scan", dir, &["t", "--keys-only"]).ok().text().replace('\n', " ");
    assert_eq!(scan(), "-5 6b31 k2 ", "the key was given in hex");
    frondb("put", dir, &["t", "--", "--nope", "-v"]).ok();
    assert_eq!(frondb("get", dir, &["t", "--raw", "--", "--nope"]).ok().text(), "-v");
    frondb("del", dir, &["t", "--", "--nope", "k2"]).ok();
    frondb("del", dir, &["t", "-5"]).ok();
    assert_eq!(scan(), "6b31 ");
    frondb("put", dir, &["t", "-1", "-2"]).ok();
    frondb("del", dir, &["t", "--prefix=-"]).ok();
    assert_eq!(scan(), "6b31 ");
}

#[test]
fn ranges_are_scanned_both_ways_and_deleted() {
    let temp = TempDir::new("cli-scan");
    let dir = temp.path();
    frondb("create", dir, &["t"]).ok();
    for key in ["a1", "a2", "b1", "b2", "c"] {
        frondb("put", dir, &["t", key, "x"]).ok();
    }
    let scan = |args: &[&str]| {
        let args = [&["t", "--keys-only"], args].concat();
        frondb("scan", dir, &args).ok().text().replace('\n', " ")
    };
    assert_eq!(scan(&[]), "a1 a2 b1 b2 c ");
    assert_eq!(scan(&["--from", "a2", "--to", "b2"]), "a2 b1 ");
    assert_eq!(scan(&["--prefix", "b", "--reverse"]), "b2 b1 ");
    assert_eq!(scan(&["--reverse", "--limit", "2"]), "c b2 ");
    assert_eq!(frondb("scan", dir, &["t", "--count", "--from", "b"]).ok().text(), "3\n");
    assert_eq!(frondb("scan", dir, &["t", "--limit", "1"]).ok().text(), "a1\tx\n");

    frondb("del", dir, &["t"]).fails(2, "name keys");
    frondb("del", dir, &["t", "--prefix", "a"]).ok();
    assert_eq!(scan(&[]), "b1 b2 c ");
    frondb("del", dir, &["t", "--from", "b2"]).ok();
    assert_eq!(scan(&[]), "b1 ");
    frondb("del", dir, &["t", "--prefix", ""]).ok();
    assert_eq!(scan(&[]), "");
}
