//! Loads tables and JSON lines of other programs: what `load` guesses, what it prints about the
//! guess, and the entries in the tree.

use std::path::Path;

use frondb_testkit::TempDir;

use crate::program::{Ran, frondb, frondb_with};

fn load(dir: &Path, name: &str, text: &str, args: &[&str]) -> Ran {
    let file = dir.join(name);
    std::fs::write(&file, text).unwrap();
    frondb("load", &dir.join("db"), &[&["t", file.to_str().unwrap()], args].concat())
}

fn rows(dir: &Path) -> String {
    frondb("scan", &dir.join("db"), &["t"]).ok().text().to_owned()
}

/// Creates a database without the tree.
fn empty(temp: &TempDir) -> &Path {
    let _ = std::fs::remove_dir_all(temp.path().join("db"));
    frondb("create", &temp.path().join("db"), &[]).ok();
    temp.path()
}

#[test]
fn all_columns_of_any_table_are_loaded() {
    let temp = TempDir::new("cli-tables");
    let typed = "1\t{\"city\":\"Ulm, D\",\"people\":128928,\"big\":true}\n\
                 2\t{\"city\":\"Oy\",\"people\":null,\"big\":false}\n";
    for (name, delimiter) in
        [("a.csv", ','), ("b.csv", ';'), ("c.txt", '\t'), ("d", '|'), ("e.tsv", '\t')]
    {
        let d = delimiter;
        let text = format!(
            "id{d}city{d}people{d}big\n1{d}\"Ulm, D\"{d}128928{d}true\n2{d}Oy{d}{d}false\n"
        );
        let ran = load(empty(&temp), name, &text, &[]).ok();
        assert_eq!(rows(temp.path()), typed, "{name}");
        let says = "the first row is a header (id, city, people, big); key: id; value: a JSON object of city \
                    (text), people (number), big (boolean)";
        assert!(ran.err.contains(says), "{}", ran.err);
    }
    let text = "id,city,people\n1,Ulm,128928\n";
    load(empty(&temp), "text.csv", text, &["--types", "text", "--key-column", "city"]).ok();
    assert_eq!(rows(temp.path()), "Ulm\t{\"id\":\"1\",\"people\":\"128928\"}\n");
    let json =
        load(empty(&temp), "one.csv", "a:b:c\n", &["--delimiter", ":", "--json", "--no-header"])
            .ok();
    let json = &json.json()[0];
    assert_eq!(json["delimiter"], ":");
    assert!(json["header"].is_null());
    assert_eq!((&json["format"], &json["key"]), (&"csv".into(), &"1".into()));
    assert_eq!(rows(temp.path()), "a\t{\"2\":\"b\",\"3\":\"c\"}\n");
}

/// The types are guessed from the beginning of the file.
#[test]
fn texts_in_a_column_of_numbers_are_kept_and_counted() {
    let temp = TempDir::new("cli-mixed");
    let mut text = String::from("id,people,big\n");
    for id in 10_000..20_000 {
        text.push_str(&format!("{id},{id},true\n"));
    }
    text.push_str("30000,unknown,false\n");
    let ran = load(empty(&temp), "a.csv", &text, &[]).ok();
    assert!(ran.err.contains("1 cells of columns of numbers or booleans are texts"), "{}", ran.err);
    assert!(rows(temp.path()).ends_with("30000\t{\"people\":\"unknown\",\"big\":false}\n"));
    let ran = load(empty(&temp), "a.csv", &text, &["--json"]).ok();
    assert_eq!(ran.json()[0]["kept_as_text"], 1);
}

#[test]
fn files_that_are_no_table_are_refused_with_a_hint() {
    let temp = TempDir::new("cli-no-tables");
    let dir = empty(&temp);
    let file = dir.join("latin.csv");
    std::fs::write(&file, b"id,n\xe9,x\n1,2,3\n").unwrap();
    let args = ["t", file.to_str().unwrap()];
    let ran = frondb("load", &dir.join("db"), &args).fails(10, "header row has bytes");
    assert!(ran.err.contains("convert the file"), "{}", ran.err);
    for json in ["[{\"id\":1}]\n", "{\n  \"id\": 1\n}\n"] {
        let ran = load(dir, "json", json, &[]).fails(10, "line 1: no JSON object");
        assert!(ran.err.contains("jq -c"), "{}", ran.err);
    }
    frondb_with("load", &dir.join("db"), &["t", "-"], b"").fails(10, "the input is empty");
}

#[test]
fn no_row_is_lost_as_a_header() {
    let temp = TempDir::new("cli-headers");
    let ran = load(empty(&temp), "data.csv", "7,x\n8,y\n", &[]).ok();
    assert!(ran.err.contains("no header: the first row is data"), "{}", ran.err);
    assert_eq!(rows(temp.path()), "7\tx\n8\ty\n");
    let ran = load(empty(&temp), "data.csv", "7,x\n8,y\n", &["--header"]).ok();
    assert!(ran.err.contains("the first row is a header (7, x)"), "{}", ran.err);
    assert_eq!(rows(temp.path()), "8\ty\n");
    // A cell that occurs again in its column, or that begins like a number, is data and not a name.
    let dates = "2024-01-31,ada\n2024-02-01,bob\n";
    let ran = load(empty(&temp), "dates.csv", dates, &[]).ok();
    assert!(ran.err.contains("no header: the first row is data"), "{}", ran.err);
    load(empty(&temp), "same.csv", "fern,leaf\nfrond,leaf\n", &[]).ok();
    assert_eq!(rows(temp.path()), "fern\tleaf\nfrond\tleaf\n");
    // Here nothing distinguishes names from words: a note says what was done.
    let ran = load(empty(&temp), "words.csv", "fern,leaf\nfrond,stem\n", &[]).ok();
    assert!(ran.err.contains("the first row is a header (fern, leaf)"), "{}", ran.err);
    load(empty(&temp), "words.csv", "fern,leaf\nfrond,stem\n", &["--no-header"]).ok();
    assert_eq!(rows(temp.path()), "fern\tleaf\nfrond\tstem\n");
    let quiet = load(empty(&temp), "data.csv", "7,x\n", &["--quiet"]).ok();
    assert_eq!(quiet.err, "");
    let words = ["--quiet"];
    load(empty(&temp), "words.csv", "fern,leaf\nfrond,stem\n", &words).fails(10, "--no-header");
    let given = ["--quiet", "--no-header"];
    load(empty(&temp), "words.csv", "fern,leaf\nfrond,stem\n", &given).ok();
    let given = ["--quiet", "--header"];
    load(empty(&temp), "words.csv", "fern,leaf\nfrond,stem\n", &given).ok();
    assert_eq!(rows(temp.path()), "frond\tstem\n");
    load(empty(&temp), "data.csv", "7,x\n", &["--header", "--no-header"]).fails(2, "--no-header");
    load(temp.path(), "data.csv", "7,x\n", &["--delimiter", "::"]).fails(2, "one ASCII character");
}

#[test]
fn json_lines_are_loaded_as_they_are_written() {
    let temp = TempDir::new("cli-lines");
    let lines = "{\"id\": 12345678901234567890123, \"name\": \"\u{e9}\\n\", \"tags\": [1, 2.50]}\n\
                 \n{\"name\":\"b\",\"id\":\"x\"}\n";
    for name in ["a.jsonl", "b.ndjson", "c"] {
        let ran = load(empty(&temp), name, lines, &[]).ok();
        assert!(ran.err.contains("read as jsonl; key: id; value: the other fields"), "{}", ran.err);
        let object = "{\"name\":\"\u{e9}\\\\n\",\"tags\":[1, 2.50]}";
        let expected = format!("12345678901234567890123\t{object}\nx\t{{\"name\":\"b\"}}\n");
        assert_eq!(rows(temp.path()), expected);
    }
    let chosen = ["--key-column", "name", "--value-column", "id"];
    load(empty(&temp), "a.jsonl", "{\"id\":1,\"name\":\"a\",\"x\":0}\n", &chosen).ok();
    assert_eq!(rows(temp.path()), "a\t1\n");
    // What `scan` prints is read back.
    let printed = frondb("scan", &temp.path().join("db"), &["t", "--json"]).ok().text().to_owned();
    load(empty(&temp), "printed.jsonl", &printed, &[]).ok();
    assert_eq!(rows(temp.path()), "a\t1\n");
    frondb("dump", &temp.path().join("db"), &["t", "--format", "jsonl"])
        .fails(2, "csv, tsv or binary");
    for (wrong, why) in [
        ("{\"id\":1}\n{\"x\":2}\n", "line 2"),
        ("{\"id\":1,\"v\":2}\n{\"id\":2,\"v\":2,\"w\":3}\n", "`w` is not in the first line"),
        ("{\"id\":null,\"v\":2}\n", "no key"),
        ("{\"id\":1,\"id\":2}\n", "twice"),
        ("{\"id\":1\n", "line 1"),
        ("[1]\n", "line 1"),
        ("\n", "empty"),
    ] {
        load(empty(&temp), "wrong.jsonl", wrong, &[]).fails(10, why);
    }
}

#[test]
fn a_note_on_a_wide_table_is_short() {
    let temp = TempDir::new("cli-wide");
    let table: Vec<String> = (0..300).map(|column| format!("c{column}")).collect();
    let ran = load(empty(&temp), "wide.csv", &format!("{}\n", table.join(",")), &[]).ok();
    assert!(ran.err.contains("c18, c19 and 280 more)") && !ran.err.contains("c200"), "{}", ran.err);
}

/// The first 64 KiB, from which `load` guesses the format, end inside a row, and many rows follow.
#[test]
fn a_table_longer_than_the_sample_is_loaded_whole() {
    let temp = TempDir::new("cli-long-table");
    let table: String = (0..9000).map(|i| format!("{i:06};\"name; {i}\";{i}\n")).collect();
    let ran = frondb_with("load", &empty(&temp).join("db"), &["t", "-"], table.as_bytes()).ok();
    assert_eq!(ran.text(), "loaded 9000 entries into t\n");
    let last = frondb("get", &temp.path().join("db"), &["t", "008999"]).ok();
    assert_eq!(last.text(), "{\"2\":\"name; 8999\",\"3\":8999}\n");
}
