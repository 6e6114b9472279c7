//! A database whose log has its own directory opens only with that directory. Otherwise durable
//! commits would be silently missing.

use frondb::{Db, ErrorKind, Options, TreeOptions};
use frondb_testkit::TempDir;

use crate::support::names;

fn options() -> Options {
    Options::small().memory_bytes(8 << 20)
}

/// Creates a database in `dir` with its log in `log`. Without `close`, one commit is only in the
/// log.
fn make(dir: &TempDir, log: &TempDir, close: bool) {
    let db = Db::open(dir.path(), options().log_dir(log.path())).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put(b"k", b"v").unwrap();
    if close {
        db.close().unwrap();
    }
}

fn refused(opened: frondb::Result<Db>, words: &str) {
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn only_its_own_log_will_do() {
    for close in [false, true] {
        let (dir, log) = (TempDir::new("log_dir"), TempDir::new("log_dir_log"));
        make(&dir, &log, close);
        refused(Db::open(dir.path(), options()), "log of this database");
        assert!(!dir.path().join("wal").exists());

        let empty = TempDir::new("log_dir_empty");
        refused(Db::open(dir.path(), options().log_dir(empty.path())), "it holds no log");
        assert!(names(&empty).is_empty());

        let none = empty.path().join("none");
        refused(Db::open(dir.path(), options().log_dir(&none)), "does not exist");
        assert!(!none.exists());

        let (other, others_log) = (TempDir::new("log_dir_other"), TempDir::new("log_dir_others"));
        make(&other, &others_log, close);
        let before = names(&others_log);
        refused(Db::open(dir.path(), options().log_dir(others_log.path())), "the log of database");
        assert_eq!(names(&others_log), before);

        for _ in 0..2 {
            let db = Db::open(dir.path(), options().log_dir(log.path())).unwrap();
            let tree = db.open_tree("t").unwrap();
            assert_eq!(tree.get(b"k").unwrap(), Some(b"v".to_vec()));
        }
    }
}

#[test]
fn a_database_with_its_log_inside_takes_no_other() {
    let (dir, empty) = (TempDir::new("log_dir"), TempDir::new("log_dir_empty"));
    let db = Db::open(dir.path(), options()).unwrap();
    db.create_tree("t", TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
    drop(db);
    refused(Db::open(dir.path(), options().log_dir(empty.path())), "log of this database");
    // The same directory under another path is accepted.
    let db = Db::open(dir.path(), options().log_dir(dir.path().join("wal"))).unwrap();
    assert_eq!(db.open_tree("t").unwrap().get(b"k").unwrap(), Some(b"v".to_vec()));
}

/// Inside the directory of a new database, only `wal` may be the log's directory. Any other is
/// refused before a directory is made.
#[test]
fn a_log_does_not_lie_elsewhere_in_a_new_database() {
    for make_first in [false, true] {
        let parent = TempDir::new("log_dir_inside");
        let dir = parent.path().join("db");
        if make_first {
            std::fs::create_dir(&dir).unwrap();
        }
        for inside in ["log", "wal/deeper", "data/../log"] {
            let error = Db::open(&dir, options().log_dir(dir.join(inside)));
            refused(error, "lies in the directory of the database");
        }
        assert_eq!(dir.exists(), make_first);
        assert!(!make_first || std::fs::read_dir(&dir).unwrap().next().is_none());
        for _ in 0..2 {
            Db::open(&dir, options().log_dir(dir.join("wal"))).unwrap();
        }
        Db::open(&dir, options()).unwrap();
    }
}

#[test]
fn one_log_directory_serves_one_database() {
    for (open, close) in [(true, false), (false, false), (false, true)] {
        let (dir, log) = (TempDir::new("log_dir"), TempDir::new("log_dir_log"));
        make(&dir, &log, close);
        let held = open.then(|| Db::open(dir.path(), options().log_dir(log.path())).unwrap());
        let before = names(&log);
        let parent = TempDir::new("log_dir_second");
        let second = parent.path().join("db");
        refused(Db::open(&second, options().log_dir(log.path())), "another database");
        assert!(!second.exists(), "nothing is left of the refused one");
        assert_eq!(names(&log), before);
        drop(held);
        let db = Db::open(dir.path(), options().log_dir(log.path())).unwrap();
        assert!(db.open_tree("t").unwrap().exists(b"k").unwrap());
    }
}

/// A database without the file `LOG`, as earlier versions created it: the log segments identify the
/// database.
#[test]
fn a_segment_proves_as_much_as_the_marker() {
    let (dir, log) = (TempDir::new("log_dir"), TempDir::new("log_dir_log"));
    make(&dir, &log, false);
    for damage in [false, true] {
        if damage {
            std::fs::write(log.path().join("LOG"), b"something").unwrap();
        } else {
            std::fs::remove_file(log.path().join("LOG")).unwrap();
        }
        let db = Db::open(dir.path(), options().log_dir(log.path())).unwrap();
        assert!(db.open_tree("t").unwrap().exists(b"k").unwrap());
        assert_eq!(std::fs::read(log.path().join("LOG")).unwrap().len(), 64);
    }
}
