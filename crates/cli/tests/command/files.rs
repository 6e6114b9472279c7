//! Loading and dumping files: tables, the binary form, and what happens to invalid ones.

use std::fmt::Write;
use std::path::Path;

use frondb_testkit::TempDir;

use crate::program::{frondb, frondb_with};

/// Returns a table whose rows are not in order. Every fifth key has two rows; the second one wins.
fn table(rows: u32) -> String {
    let mut table = String::from("id,name\n");
    for i in 0..rows {
        let key = i.wrapping_mul(7919) % rows;
        if i % 5 == 0 {
            writeln!(table, "{key:06},old").unwrap();
        }
        writeln!(table, "{key:06},\"row, {key}\"").unwrap();
    }
    table
}

fn count(dir: &Path, tree: &str) -> String {
    frondb("scan", dir, &[tree, "--count"]).ok().text().trim().to_owned()
}

#[test]
fn every_format_restores_a_tree() {
    let temp = TempDir::new("cli-files");
    let (dir, file) =
        (temp.path().join("db"), |name: &str| temp.path().join(name).to_str().unwrap().to_owned());
    frondb("create", &dir, &[]).ok();
    std::fs::write(file("in.csv"), table(20_000)).unwrap();
    let loaded = frondb("load", &dir, &["t", &file("in.csv"), "--json", "--batch", "777"]).ok();
    assert_eq!(loaded.json()[0]["entries"], 24_000);
    assert_eq!(count(&dir, "t"), "20000");
    assert_eq!(frondb("get", &dir, &["t", "000005"]).ok().text(), "row, 5\n");

    let csv = frondb("dump", &dir, &["t", "--format", "csv"]).ok().out;
    for name in ["copy.csv", "copy.tsv", "copy.dump"] {
        frondb("dump", &dir, &["t", &file(name), "--keys", "base64"]).ok();
        frondb("load", &dir, &[name, &file(name), "--keys", "base64", "--sync", "batch"]).ok();
        assert!(frondb("dump", &dir, &[name, "--format", "csv"]).ok().out == csv, "{name}");
        assert!(!Path::new(&file(&format!("{name}.partial"))).exists());
    }
    let part = frondb("dump", &dir, &["t", "--format", "tsv", "--no-header", "--to", "000002"]);
    assert_eq!(part.ok().text(), "000000\trow, 0\n000001\trow, 1\n");
}

#[test]
fn columns_are_chosen_and_standard_input_is_a_file() {
    let temp = TempDir::new("cli-columns");
    let dir = temp.path();
    frondb("create", dir, &[]).ok();
    let table = b"when\twho\twhat\nmon\tada\trun\ntue\tbob\tsit\n";
    let chosen = ["t", "-", "--format", "tsv", "--key-column", "who", "--value-column", "3"];
    frondb_with("load", dir, &chosen, table).ok();
    assert_eq!(frondb("scan", dir, &["t"]).ok().text(), "ada\trun\nbob\tsit\n");
    let encoded = ["u", "-", "--format", "tsv", "--values", "hex"];
    frondb_with("load", dir, &encoded, table).fails(2, "--value-column");
    frondb_with("load", dir, &["t", "-", "--format", "csv", "--secondary"], b"a,b\n")
        .fails(2, "exists");
}

#[test]
fn a_load_reports_what_it_stored() {
    let temp = TempDir::new("cli-stored");
    let dir = temp.path();
    frondb("create", dir, &[]).ok();
    let load = |args: &[&str]| {
        let args = [&["t", "-", "--format", "csv"], args].concat();
        frondb_with("load", dir, &args, b"k,v\n1,a\n1,b\n").ok()
    };
    assert_eq!(load(&[]).text(), "loaded 1 entries into t; 1 more had keys that came again\n");
    let json = &load(&["--json"]).json()[0];
    let counts = ["entries", "read", "replaced", "batches"].map(|name| json[name].clone());
    assert_eq!(counts, [1, 2, 1, 1].map(serde_json::Value::from));
    assert_eq!(load(&["--batch", "1"]).text(), "loaded 2 entries into t in 2 batches\n");
    assert!(load(&["--batch", "1", "--json"]).json()[0]["replaced"].is_null());
    assert_eq!(frondb("scan", dir, &["t"]).ok().text(), "1\tb\n");
}

/// A table without rows creates its tree, loaded at once or in batches. Later loads fill the tree.
#[test]
fn a_table_without_rows_makes_a_tree() {
    let temp = TempDir::new("cli-no-rows");
    let dir = temp.path();
    frondb("create", dir, &[]).ok();
    frondb_with("load", dir, &["a", "-", "--format", "csv"], b"k,v\n").ok();
    frondb_with("load", dir, &["b", "-", "--format", "csv", "--batch", "5"], b"k,v\n").ok();
    assert_eq!(frondb("trees", dir, &[]).ok().text(), "a\nb\n");
    for tree in ["a", "b"] {
        frondb_with("load", dir, &[tree, "-", "--format", "csv"], b"k,v\n1,2\n").ok();
        assert_eq!(frondb("scan", dir, &[tree]).ok().text(), "1\t2\n");
    }
}

#[test]
fn a_load_that_failed_is_run_again() {
    let temp = TempDir::new("cli-again");
    let dir = temp.path();
    frondb("create", dir, &[]).ok();
    let load = ["t", "-", "--format", "csv", "--codec", "zstd:3"];
    frondb_with("load", dir, &load, b"k,v\n1,\"2\n").fails(10, "quoted");
    frondb_with("load", dir, &load, b"k,v\n1,\"2\"\n").ok();
    assert_eq!(frondb("scan", dir, &["t"]).ok().text(), "1\t2\n");
    let other = ["t", "-", "--format", "csv", "--codec", "lz4"];
    frondb_with("load", dir, &other, b"k,v\n1,2\n").fails(2, "other options");
}

#[test]
fn a_broken_file_is_refused_and_says_how_far_it_came() {
    let temp = TempDir::new("cli-broken");
    let dir = temp.path().join("db");
    let file = temp.path().join("t.dump");
    let name = file.to_str().unwrap();
    frondb("create", &dir, &[]).ok();
    frondb_with("load", &dir, &["t", "-", "--format", "csv"], table(1000).as_bytes()).ok();
    frondb("dump", &dir, &["t", name]).ok();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    frondb("load", &dir, &["u", name, "--batch", "100"]).fails(10, "1000 entries were loaded");
    frondb("load", &dir, &["w", name]).fails(10, "0 entries were loaded");
    frondb("scan", &dir, &["w"]).fails(1, "no tree \"w\"");
    frondb("create", &dir, &["x"]).ok();
    frondb("load", &dir, &["x", name]).fails(10, "0 entries were loaded");
    assert_eq!(frondb("scan", &dir, &["x"]).ok().text(), "", "all or nothing");
    let mut flipped = whole;
    flipped[100] ^= 1;
    std::fs::write(&file, flipped).unwrap();
    frondb("load", &dir, &["v", name]).fails(10, "checksum");
    frondb("load", &dir, &["v", "not/there.csv"]).fails(1, "not/there.csv");
    frondb("load", &dir, &["v", "."]).fails(2, "directory");
    let rows = b"k,v\na,1\nb,\\q\n";
    frondb_with("load", &dir, &["v", "-", "--format", "csv", "--escapes"], rows)
        .fails(10, "line 3");
    frondb_with("load", &dir, &["v", "-", "--format", "csv"], b"").fails(10, "empty");
    frondb_with("load", &dir, &["v", "-"], b"").fails(10, "is empty");
    frondb_with("load", &dir, &["v", "-", "--format", "binary"], b"F").fails(10, "cut short");
    let long = format!("k,v\n{},1\n", "k".repeat(40_000));
    for batch in [&[][..], &["--batch", "1"]] {
        let args = [&["v", "-", "--format", "csv"], batch].concat();
        frondb_with("load", &dir, &args, long.as_bytes()).fails(10, "40000");
    }
    frondb("load", &dir, &["v", name, "--no-header"]).fails(2, "for tables only");
    // A failed load with batches leaves a tree with the committed batches; other failed loads leave
    // no tree.
    assert_eq!(frondb("trees", &dir, &[]).ok().text(), "t\nu\nx\n");
}

/// Keys and values with bytes that are special in some encoding. Text formats can hold the first
/// four without escapes.
const ODD: [(&[u8], &[u8]); 6] = [
    (b"", b""),
    (b"C:\\temp", b"\\x41\\"),
    (b"\xef\xbb\xbfmark", b" a,\"b\"\t"),
    (b"\r\n", b"\n"),
    (b"\0", b"\0\xff"),
    (b"\xff\xfe", b"\x80"),
];

/// Loading a dump restores the same bytes. A dump of bytes that a format cannot hold is refused.
#[test]
fn any_bytes_come_back_from_every_form() {
    let temp = TempDir::new("cli-odd");
    let dir = temp.path().join("db");
    let file = temp.path().join("file");
    let name = file.to_str().unwrap();
    frondb("create", &dir, &["text", "all"]).ok();
    for (i, (key, value)) in ODD.into_iter().enumerate() {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        for tree in ["text", "all"].into_iter().filter(|&tree| tree == "all" || i < 4) {
            let args = [tree, &hex(key), &hex(value), "--keys", "hex", "--values", "hex"];
            frondb("put", &dir, &args).ok();
        }
    }
    let content = |tree: &str| frondb("dump", &dir, &[tree]).ok().out;
    let mut copies = 0;
    let mut round = |tree: &str, args: &[&str]| {
        copies += 1;
        let copy = format!("copy{copies}");
        frondb("dump", &dir, &[&[tree, name], args].concat()).ok();
        frondb("load", &dir, &[&[&copy, name], args].concat()).ok();
        assert!(content(&copy) == content(tree), "{args:?}");
    };
    for format in ["csv", "tsv"] {
        for header in [&[][..], &["--no-header"]] {
            let table = [&["--format", format], header].concat();
            round("text", &table);
            round("all", &[&table[..], &["--escapes"]].concat());
            round("all", &[&table[..], &["--keys", "hex", "--values", "base64"]].concat());
        }
    }
    round("all", &["--format", "binary"]);

    std::fs::write(&file, "before").unwrap();
    let refused = frondb("dump", &dir, &["all", name, "--format", "csv"]);
    refused.fails(2, "NUL").fails(2, "hint: --escapes");
    frondb("dump", &dir, &["all", name, "--format", "csv", "--from", "\\x01"]).fails(2, "UTF-8");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
    assert!(!temp.path().join("file.partial").exists());
    frondb_with("load", &dir, &["v", "-", "--format", "csv"], b"k,v\n\xe4,1\n").fails(10, "UTF-8");
}

#[test]
fn a_dump_of_a_newer_version_says_so() {
    let temp = TempDir::new("cli-newer");
    frondb("create", temp.path(), &["t"]).ok();
    let mut dump = frondb("dump", temp.path(), &["t"]).ok().out;
    dump[8] += 1;
    frondb_with("load", temp.path(), &["u", "-"], &dump).fails(9, "version 2");
}

#[test]
fn quiet_commands_print_what_was_asked_for() {
    let temp = TempDir::new("cli-quiet");
    let dir = temp.path().join("db");
    let file = temp.path().join("t.csv");
    let name = file.to_str().unwrap();
    let quiet = |command: &str, args: &[&str]| {
        let ran = frondb(command, &dir, &[args, &["--quiet"]].concat()).ok();
        assert_eq!(ran.err, "", "{command}");
        ran.text().to_owned()
    };
    assert_eq!(quiet("create", &["t"]), "");
    std::fs::write(&file, "k,v\na,1\n").unwrap();
    assert_eq!(quiet("load", &["t", name, "--header"]), "");
    assert_eq!(quiet("dump", &["t", name]), "");
    assert_eq!(quiet("verify", &[]), "");
    assert_eq!(quiet("put", &["t", "b", "2"]), "");
    assert_eq!(quiet("get", &["t", "b"]), "2\n");
    assert_eq!(quiet("scan", &["t"]), "a\t1\nb\t2\n");
    assert_eq!(quiet("dump", &["t", "--format", "csv"]), "key,value\na,1\nb,2\n");
    let json = frondb("load", &dir, &["t", name, "--quiet", "--json"]).ok().json();
    assert_eq!(json[0]["entries"], 1);
    frondb("get", &dir, &["t", "z", "--quiet"]).fails(1, "z");
}
