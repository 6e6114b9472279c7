//! Opening a directory that is not a database, or not one any more, returns an error of the right
//! kind that names the reason, and changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use frondb::{Batch, Db, Durability, Error, ErrorKind, Options, TreeOptions};
use frondb_core::checksum::xxh3;
use frondb_testkit::TempDir;

fn options() -> Options {
    Options::small()
}

/// Creates a database with data in every file: runs, and a last commit that is only in the log.
fn make(path: &Path) {
    let db = Db::open(path, options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = Batch::new();
    for i in 0..2000_u32 {
        batch.put(&tree, &i.to_be_bytes(), &[5; 100]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.checkpoint().unwrap();
    tree.put(b"last", b"in the log").unwrap();
}

fn refused(path: &Path, options: Options, kind: ErrorKind, words: &[&str]) -> Error {
    let error = Db::open(path, options).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error}: does not say {word:?}");
    }
    error
}

/// Returns the last file, by path, whose name begins with `prefix`, in the directories of the
/// database and of its log.
fn file(dir: &Path, prefix: &str) -> PathBuf {
    let list = |dir: &Path| fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = list(dir).chain(list(&dir.join("wal"))).collect();
    files.sort();
    let named = |path: &&PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        path.is_file() && name.starts_with(prefix)
    };
    files.iter().rfind(named).unwrap().clone()
}

#[test]
fn a_path_that_is_a_file() {
    let dir = TempDir::new("bad_databases");
    let path = dir.path().join("file");
    fs::write(&path, "text").unwrap();
    refused(&path, options(), ErrorKind::Invalid, &["file", "directory"]);
    refused(&path, options().create(false), ErrorKind::Invalid, &["file", "directory"]);
    refused(&path.join("below"), options(), ErrorKind::Invalid, &["file", "directory"]);
    assert_eq!(fs::read(&path).unwrap(), b"text");
}

#[test]
fn a_database_that_does_not_exist_or_exists_already() {
    let dir = TempDir::new("bad_databases");
    let path = dir.path().join("db");
    refused(&path, options().create(false), ErrorKind::NotFound, &["db"]);
    assert!(!path.exists());
    fs::create_dir(&path).unwrap();
    refused(&path, options().create(false), ErrorKind::NotFound, &["no FronDB database"]);
    make(&path);
    refused(&path, options().create_new(true), ErrorKind::Exists, &["already"]);
    Db::open(&path, options().create(false)).unwrap();
}

#[test]
fn a_directory_with_other_files_is_refused() {
    let dir = TempDir::new("bad_databases");
    fs::write(dir.path().join("ibdata1"), "somebody's").unwrap();
    refused(dir.path(), options(), ErrorKind::Invalid, &["not empty", "ibdata1"]);
    let root = TempDir::new("mount-point");
    std::fs::create_dir(root.path().join("lost+found")).unwrap();
    let says = ["root of a file system", "a new directory below it"];
    refused(root.path(), options(), ErrorKind::Invalid, &says);
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    Db::open(root.path().join("below"), options()).unwrap().close().unwrap();
    assert_eq!(fs::read(dir.path().join("ibdata1")).unwrap(), b"somebody's");
}

#[test]
fn a_database_that_is_open_is_busy() {
    let dir = TempDir::new("bad_databases");
    let db = Db::open(dir.path(), options()).unwrap();
    let pid = format!("in use by pid {}", std::process::id());
    refused(dir.path(), options(), ErrorKind::Busy, &[&pid]);
    // After the close, the directory can be opened again.
    db.close().unwrap();
    drop(db);
    Db::open(dir.path(), options()).unwrap();
}

/// Changes a header of `len` bytes to a newer format version, with a valid checksum.
fn make_newer(bytes: &mut [u8], len: usize) {
    bytes[8..12].copy_from_slice(&77_u32.to_le_bytes());
    let checksum = xxh3(&bytes[..len - 8]).to_le_bytes();
    bytes[len - 8..len].copy_from_slice(&checksum);
}

#[test]
fn a_newer_format_is_unsupported_and_left_unchanged() {
    for (name, len) in [("SUPER", 4096), ("MANIFEST", 64), ("0", 64)] {
        let dir = TempDir::new("bad_databases");
        make(dir.path());
        let path = file(dir.path(), name);
        let mut bytes = fs::read(&path).unwrap();
        make_newer(&mut bytes, len);
        if name == "SUPER" {
            make_newer(&mut bytes[len..], len);
        }
        fs::write(&path, &bytes).unwrap();
        refused(dir.path(), options(), ErrorKind::Unsupported, &["77", "newer"]);
        assert_eq!(fs::read(&path).unwrap(), bytes, "the file was changed");
    }
}

#[test]
fn a_foreign_file_in_place_of_ours_is_refused() {
    for name in ["SUPER", "MANIFEST", "0"] {
        let dir = TempDir::new("bad_databases");
        make(dir.path());
        let path = file(dir.path(), name);
        fs::write(&path, "#!/bin/sh\n".repeat(1000)).unwrap();
        if name == "SUPER" {
            // The directory belongs to another program, so it must not be reported as damaged.
            refused(dir.path(), options(), ErrorKind::Invalid, &["SUPER", "another program"]);
            continue;
        }
        let error = refused(dir.path(), options(), ErrorKind::Corruption, &[]);
        let place = error.place().unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(place.file.ends_with(name) && !place.what.is_empty(), "{error}");
    }
}

#[test]
fn a_reader_finds_a_data_file_of_another_database() {
    let dir = TempDir::new("bad_databases");
    make(dir.path());
    let path = file(dir.path(), "data");
    let len = fs::metadata(&path).unwrap().len() as usize;
    fs::write(&path, vec![0x55; len]).unwrap();
    let db = Db::open(dir.path(), options()).unwrap();
    let tree = db.open_tree("t").unwrap();
    let error = tree.get(&1000_u32.to_be_bytes()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.place().unwrap().file.starts_with("data"), "{error}");
    assert!(!db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
    // A new tree of this database still works.
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    other.put(b"k", b"v").unwrap();
    assert_eq!(other.get(b"k").unwrap(), Some(b"v".to_vec()));
}

#[test]
fn a_file_that_is_missing_or_another_databases() {
    for name in ["SUPER", "MANIFEST", "data", "0"] {
        let [dir, other] = ["bad_databases", "bad_databases_other"].map(TempDir::new);
        make(dir.path());
        make(other.path());
        let path = file(dir.path(), name);
        let ours = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        if name != "0" {
            let opened = Db::open(dir.path(), options().create(false));
            let error = opened.and_then(|db| db.open_tree("t")?.get(b"\0\0\0\x07")).unwrap_err();
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::Corruption | ErrorKind::NotFound), "{name}: {error}");
        }
        if name == "data" {
            // Blocks do not record their database, so a foreign file is detected only if its
            // contents differ.
            continue;
        }
        fs::write(&path, fs::read(file(other.path(), name)).unwrap()).unwrap();
        let error = Db::open(dir.path(), options()).map(|_| ()).unwrap_err();
        let kind = error.kind();
        assert!(matches!(kind, ErrorKind::Corruption | ErrorKind::Invalid), "{name}: {error}");
        // With the original file the database is intact: the failed open changed nothing.
        fs::write(&path, ours).unwrap();
        let db = Db::open(dir.path(), options()).unwrap();
        assert_eq!(db.open_tree("t").unwrap().get(b"\0\0\0\x07").unwrap(), Some(vec![5; 100]));
    }
}
