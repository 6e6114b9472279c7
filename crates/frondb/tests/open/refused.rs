//! An open that fails creates nothing: no lock, no log, no directory.

use frondb::{Db, ErrorKind, Options, SyncMode};
use frondb_testkit::TempDir;

use crate::support::names;

fn options() -> Options {
    Options::small().memory_bytes(8 << 20)
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    for foreign in ["hello.txt", "SUPER"] {
        for options in [options(), options().create(false), options().create_new(true)] {
            let (dir, parent) = (TempDir::new("refused"), TempDir::new("refused_log"));
            std::fs::write(dir.path().join(foreign), b"hello").unwrap();
            let log = parent.path().join("log");
            let error = Db::open(dir.path(), options.log_dir(&log)).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotFound), "{error}");
            assert_eq!(names(&dir), [foreign]);
            assert!(!log.exists());
        }
    }
}

#[test]
fn create_false_and_create_new_are_obeyed() {
    let dir = TempDir::new("refused");
    let error = Db::open(dir.path(), options().create(false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(names(&dir).is_empty());
    let error = Db::open(dir.path().join("db"), options().create(false)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(names(&dir).is_empty());
    Db::open(dir.path(), options()).unwrap();
    let error = Db::open(dir.path(), options().create_new(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists);
}

#[test]
fn options_are_checked_first() {
    let dir = TempDir::new("refused");
    let wrong = [
        options().memory_bytes(1),
        options().write_buffer_bytes(1),
        options().background_threads(1000),
        options().sync(SyncMode::EveryMillis(0)),
        options().sync(SyncMode::EveryMillis(SyncMode::MILLIS_MAX + 1)),
        options().log_segment_bytes((64 << 10) - 1),
        options().log_segment_bytes((1 << 30) + 1),
    ];
    for wrong in wrong {
        for path in [dir.path().to_owned(), dir.path().join("db")] {
            let log = dir.path().join("log");
            let error = Db::open(path, wrong.clone().log_dir(log)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(names(&dir).is_empty());
        }
    }
}
