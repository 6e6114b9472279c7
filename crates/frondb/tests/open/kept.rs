//! Files of earlier formats open, answer as before, and can be written to.
//!
//! In `tests/kept/format-N.tar.gz` each tree has rows 0 to 499 on disk, and rows 500 to 599 and the
//! delete of row 7 only in the log; `chosen` lacks rows 100 to 199. Every 97th value is a large one.
//! The process was killed while a transaction was prepared. The files of format 7 are of commit
//! fc0a527d; [`keep_files_of_this_format`] wrote the later ones, each before the next format.

use std::path::Path;
use std::process::Command;

use frondb::{Codec, Db, Durability, FilterPolicy, Options, TransactionOptions, Tree, TreeOptions};
use frondb_testkit::TempDir;

/// The trees of the file, and the options with which they were created.
fn trees() -> [(&'static str, TreeOptions); 5] {
    let chosen = TreeOptions::new().codec(Codec::Zstd(3)).block_bytes(4096).fanout(8);
    [
        ("aggressive", TreeOptions::aggressive()),
        ("chosen", chosen.filter(FilterPolicy::Prefix(3))),
        ("none", TreeOptions::new().codec(Codec::None).filter(FilterPolicy::None)),
        ("plain", TreeOptions::new()),
        ("secondary", TreeOptions::secondary()),
    ]
}

fn options() -> Options {
    Options::new().memory_bytes(16 << 20)
}

fn unpack(name: &str, directory: &Path) {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept").join(name);
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--gzip", "--no-same-owner", "--file"]).arg(packed);
    assert!(tar.arg("--directory").arg(directory).status().unwrap().success());
}

fn value(row: u32) -> Vec<u8> {
    if row.is_multiple_of(97) {
        vec![row as u8; 70_000]
    } else {
        format!("value {row} of the kept data").into_bytes()
    }
}

/// Returns the value of a row in the kept files; `None` if it was deleted or never written.
fn expected(tree: &str, row: u32) -> Option<Vec<u8>> {
    let deleted = row == 7 || tree == "chosen" && (100..200).contains(&row);
    (!deleted && row < 600).then(|| value(row))
}

fn check_rows(name: &str, tree: &Tree) {
    let mut cursor = tree.cursor().unwrap();
    let mut is_valid = cursor.first().unwrap();
    for row in 0..601_u32 {
        let key = row.to_be_bytes();
        let value = expected(name, row);
        assert_eq!(tree.get(key).unwrap(), value, "{name}: {row}");
        if let Some(value) = value {
            assert!(is_valid && cursor.key() == key, "{name}: {row}");
            assert_eq!(cursor.value().unwrap(), value, "{name}: {row}");
            is_valid = cursor.next().unwrap();
        }
    }
}

#[test]
fn files_of_each_promised_format_open() {
    for format in ["format-7", "format-8"] {
        opens(format);
    }
}

fn opens(format: &str) {
    let dir = TempDir::new(format);
    unpack(&format!("{format}.tar.gz"), dir.path());
    let open = || Db::open(dir.path(), options()).unwrap();
    let db = open();
    assert_eq!(db.list_trees(), trees().map(|(name, _)| name));
    for (name, options) in trees() {
        let tree = db.open_tree(name).unwrap();
        assert_eq!(tree.options(), options, "{name}");
        check_rows(name, &tree);
    }
    assert_eq!(db.prepared(), [b"kept"]);
    db.commit_prepared(b"kept", Durability::Sync).unwrap();
    let plain = db.open_tree("plain").unwrap();
    assert_eq!(plain.get([9; 4]).unwrap().unwrap(), b"prepared");
    plain.delete([9; 4]).unwrap();
    db.close().unwrap();
    drop((plain, db));

    // Now the files have the newest format.
    let db = open();
    for (name, _) in trees() {
        check_rows(name, &db.open_tree(name).unwrap());
    }
    assert_eq!(db.verify(&mut |_, _, _| true).unwrap().faults.len(), 0);
}

/// Writes the files of the present format: run it with KEEP=FOLDER, and pack the folder's content.
#[test]
#[ignore = "writes a new file of tests/kept when the format changes"]
fn keep_files_of_this_format() {
    let folder = std::env::var_os("KEEP").expect("KEEP names no folder");
    let db = Db::open(&folder, options()).unwrap();
    let write = |rows: std::ops::Range<u32>, name: &str, tree: &Tree| {
        for row in rows.filter(|row| expected(name, *row).is_some() || *row < 500) {
            tree.put(row.to_be_bytes(), value(row)).unwrap();
        }
    };
    for (name, options) in trees() {
        let tree = db.create_tree(name, options).unwrap();
        write(0..500, name, &tree);
        if name == "chosen" {
            tree.delete_range(100_u32.to_be_bytes(), Some(&200_u32.to_be_bytes())).unwrap();
        }
    }
    db.checkpoint().unwrap();
    for (name, _) in trees() {
        let tree = db.open_tree(name).unwrap();
        write(500..600, name, &tree);
        tree.delete(7_u32.to_be_bytes()).unwrap();
    }
    let prepared = db.begin(TransactionOptions::new()).unwrap();
    prepared.put(&db.open_tree("plain").unwrap(), [9; 4], b"prepared").unwrap();
    prepared.prepare(b"kept").unwrap();
    db.sync().unwrap();
    // Ends the process as a kill does.
    std::process::abort();
}
