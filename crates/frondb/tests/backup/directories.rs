//! Backups in directories of a file system.

use frondb::{BackupOptions, Db, Durability, ErrorKind, Options, TreeOptions};
use frondb_testkit::TempDir;

#[test]
fn a_directory_is_backed_up_and_restored() {
    let dir = TempDir::new("backup");
    let at = |name: &str| dir.path().join(name);
    let options = Options::new().memory_bytes(32 << 20).log_dir(at("log"));
    let db = Db::open(at("db"), options).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let mut batch = frondb::Batch::new();
    for i in 0..50_000u32 {
        batch.put(&tree, &i.to_be_bytes(), &[7; 100]);
    }
    db.write(&batch, Durability::NoSync).unwrap();
    db.flush().unwrap();
    let all = &mut |_, _| true;
    for inside in ["db/backup", "log/backup", "."] {
        let error = db.backup(at(inside), &BackupOptions::new(), all).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{inside}: {error}");
    }
    db.backup(at("full"), &BackupOptions::new().file_mode(0o640), all).unwrap();
    tree.put(b"later", b"1").unwrap();
    let since = BackupOptions::new().since(at("full"));
    let error = db.backup(at("full/inc"), &since, all).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    db.backup(at("inc"), &since, all).unwrap();
    tree.put(b"last", b"1").unwrap();

    // The database is still open here, and its log is in another directory.
    Db::restore(&[at("full"), at("inc")], at("copy"), &Options::new(), all).unwrap();
    let copy = Db::open(at("copy"), Options::new().memory_bytes(32 << 20)).unwrap();
    let rows = copy.open_tree("t").unwrap();
    assert_eq!(rows.get(&49_999u32.to_be_bytes()).unwrap(), Some(vec![7; 100]));
    assert!(rows.get(b"later").unwrap().is_some() && rows.get(b"last").unwrap().is_none());
    copy.close().unwrap();
    let error = Db::restore(&[at("full")], at("copy"), &Options::new(), all).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Exists, "{error}");
    db.close().unwrap();
}

#[test]
fn a_restore_that_fails_leaves_nothing() {
    let dir = TempDir::new("backup");
    let at = |name: &str| dir.path().join(name);
    let db = Db::open(at("db"), Options::new().memory_bytes(32 << 20)).unwrap();
    db.create_tree("t", TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
    db.backup(at("full"), &BackupOptions::new(), &mut |_, _| true).unwrap();
    let cancelled = Db::restore(&[at("full")], at("copy"), &Options::new(), &mut |_, _| false);
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!at("copy").exists());
    let missing = Db::restore(&[at("nowhere")], at("copy"), &Options::new(), &mut |_, _| true);
    assert_eq!(missing.unwrap_err().kind(), ErrorKind::NotFound);
    db.close().unwrap();
}

/// A user who may write to the folder of a backup can replace a file by a named pipe. Opening the
/// pipe must not wait for a writer.
#[test]
fn named_pipes_in_place_of_files_are_refused_at_once() {
    let dir = TempDir::new("backup");
    let at = |name: &str| dir.path().join(name);
    let options = || Options::new().memory_bytes(32 << 20);
    let db = Db::open(at("db"), options()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put(b"k", &[7; 100]).unwrap();
    db.flush().unwrap();
    tree.put(b"in the log", b"v").unwrap();
    db.backup(at("full"), &BackupOptions::new(), &mut |_, _| true).unwrap();
    let log = std::fs::read_dir(at("full/wal")).unwrap().next().unwrap().unwrap().file_name();
    let log = format!("wal/{}", log.to_str().unwrap());
    let swap = |file: &std::path::Path| {
        std::fs::rename(file, at("aside")).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success());
    };
    let swap_back = |file: &std::path::Path| std::fs::rename(at("aside"), file).unwrap();
    for name in ["BACKUP", "manifest", "data-0000.fdb", &log] {
        let file = at("full").join(name);
        swap(&file);
        match Db::verify_backup(at("full"), &mut |_, _| true) {
            Ok(found) => {
                assert!(
                    found.faults.iter().any(|fault| fault.contains("a named pipe")),
                    "{found:?}"
                );
            }
            Err(error) => {
                assert_eq!((error.kind(), name), (ErrorKind::Invalid, "BACKUP"), "{error}")
            }
        }
        let restored = Db::restore(&[at("full")], at("copy"), &options(), &mut |_, _| true);
        assert_eq!(restored.unwrap_err().kind(), ErrorKind::Invalid, "{name}");
        if name == "BACKUP" {
            let since = BackupOptions::new().since(at("full"));
            let error = db.backup(at("more"), &since, &mut |_, _| true).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        }
        swap_back(&file);
    }
    db.close().unwrap();
    drop((tree, db));
    let mut names: Vec<_> =
        std::fs::read_dir(at("db")).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|path| path.is_file());
    for file in names {
        swap(&file);
        // An open does not read every file: some only help other calls, such as the list of backup
        // names.
        if let Err(error) = Db::open(at("db"), options()) {
            assert_eq!(error.kind(), ErrorKind::Invalid, "{}: {error}", file.display());
        }
        swap_back(&file);
    }
    Db::open(at("db"), options()).unwrap().close().unwrap();
}
