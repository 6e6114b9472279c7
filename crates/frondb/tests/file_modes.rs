//! Only the owner may read the files of a database, whatever the umask is, unless the options also
//! allow other users. The test checks every file and directory that a workload creates. It is a
//! separate program, because the umask belongs to the process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use frondb::{BulkOptions, Db, ErrorKind, Options, TransactionOptions, TreeOptions};
use frondb_testkit::TempDir;
use rustix::fs::Mode;
use rustix::process::umask;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Checks the modes of everything below a directory; returns the number of files.
fn check(dir: &Path, file: u32, directory: u32) -> usize {
    assert_eq!(mode(dir), directory, "{}", dir.display());
    let mut files = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += check(&path, file, directory);
        } else {
            assert_eq!(mode(&path), file, "{} {:o}", path.display(), mode(&path));
            files += 1;
        }
    }
    files
}

fn options() -> Options {
    Options::new().memory_bytes(16 << 20).log_segment_bytes(64 << 10).background_threads(1)
}

/// Creates files of all kinds: log segments, data, large values, private runs, a bulk load, several
/// manifests. Calls `look` while the files are in use.
fn work(db: &Db, look: &dyn Fn()) {
    let tree = match db.create_tree("t", TreeOptions::new()) {
        Err(error) if error.kind() == ErrorKind::Exists => db.open_tree("t").unwrap(),
        other => other.unwrap(),
    };
    let large = db.begin(TransactionOptions::new()).unwrap();
    for i in 0..30_000_u64 {
        large.put(&tree, &i.to_be_bytes(), &[7; 100]).unwrap();
    }
    tree.put(b"large value", &vec![1; 300_000]).unwrap();
    look();
    large.commit().unwrap();
    let load = db.bulk_load(BulkOptions::default()).unwrap();
    let mut writer = load.writer();
    for i in 0..30_000_u64 {
        writer.put(&tree, &(i * 7919 % 30_000).to_le_bytes(), &[8; 100]).unwrap();
    }
    look();
    writer.finish().unwrap();
    load.finish(&mut |_| true).unwrap();
    db.checkpoint().unwrap();
    let prepared = db.begin(TransactionOptions::new()).unwrap();
    prepared.put(&tree, b"prepared", b"").unwrap();
    prepared.prepare(b"x").unwrap();
    db.rollback_prepared(b"x").unwrap();
    db.flush().unwrap();
    look();
}

#[test]
fn files_have_the_mode_of_the_options() {
    for bits in [0o000, 0o077] {
        umask(Mode::from_raw_mode(bits));
        let temp = TempDir::new("modes");
        let (dir, log) = (temp.path().join("a/db"), temp.path().join("b/log"));
        let options = options().log_dir(&log);
        for _ in 0..2 {
            let db = Db::open(&dir, options.clone()).unwrap();
            let look = || {
                let files = check(&dir, 0o600, 0o700) + check(&log, 0o600, 0o700);
                assert!(files > 5, "{files} files under {bits:o}");
            };
            work(&db, &look);
            db.close().unwrap();
            look();
        }
        // The open has also created the parent directories, with the same mode.
        assert_eq!([mode(&temp.path().join("a")), mode(&temp.path().join("b"))], [0o700; 2]);

        let (dir, log) = (temp.path().join("shared/db"), temp.path().join("shared/log"));
        let shared = options.clone().log_dir(&log);
        let db = Db::open(&dir, shared.clone().file_mode(0o660)).unwrap();
        work(&db, &|| assert!(check(&dir, 0o660, 0o770) + check(&log, 0o660, 0o770) > 5));
        db.close().unwrap();
        // Existing files keep their mode; new files get the mode of the current options.
        let db = Db::open(&dir, shared).unwrap();
        work(&db, &|| {});
        db.close().unwrap();
        assert_eq!([mode(&dir), mode(&log)], [0o770; 2]);
        let logs = fs::read_dir(&log).unwrap().map(|entry| mode(&entry.unwrap().path()));
        let logs: Vec<u32> = logs.collect();
        assert!(logs.contains(&0o600), "{logs:?}");

        let (dir, log) = (temp.path().join("server/db"), temp.path().join("server/log"));
        let server = options.log_dir(&log).file_mode(0o640).dir_mode(0o700);
        let db = Db::open(&dir, server).unwrap();
        work(&db, &|| assert!(check(&dir, 0o640, 0o700) + check(&log, 0o640, 0o700) > 5));
        db.close().unwrap();
    }
    for wrong in [0o400, 0o700, 0o1600] {
        let temp = TempDir::new("modes-wrong");
        let dir = temp.path().join("db");
        let error = Db::open(&dir, options().file_mode(wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(!dir.exists());
    }
}

/// A directory that another program created keeps its mode, and passes its set-group-id bit on to
/// its contents.
#[test]
fn a_directory_that_exists_keeps_its_mode() {
    let temp = TempDir::new("modes-there");
    let dir = temp.path().join("db");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o2750)).unwrap();
    let db = Db::open(&dir, options()).unwrap();
    work(&db, &|| {});
    db.close().unwrap();
    assert_eq!(mode(&dir), 0o2750);
    for entry in fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), if path.is_dir() { 0o2700 } else { 0o600 }, "{}", path.display());
    }
}
