//! Faults of either device during a backup: the database continues, and the incomplete backup is
//! refused as incomplete.

use frondb::testing::TestDb;
use frondb::{BackupOptions, Db, ErrorKind, Options};
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::faults::Faults;
use frondb_testkit::{MemoryDevice, TempDir};

use crate::{Store, backup, check_restored, empty, restore, support};

/// Makes a backup to a device on which the `nth` call of this kind fails. Returns the device and
/// the kind of the error; `None` if the backup succeeded.
fn onto_fault(db: &Db, kind: &str, nth: u64, error: &str) -> Option<(SharedDevice, ErrorKind)> {
    let script = format!("fail {kind} nth={nth} error={error}").parse().unwrap();
    let target: SharedDevice = Arc::new(Faults::over(empty(), &script));
    let result = db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| true);
    result.err().map(|error| (target, error.kind()))
}

#[test]
fn every_fault_of_the_target_fails_the_backup_and_nothing_else() {
    let mut store = Store::new(7);
    store.change("t", 40);
    store.settle();
    store.change("t", 5);
    let mut faults = 0;
    for (kind, error) in
        [("write *", "ENOSPC"), ("sync *", "EIO"), ("open *", "EIO"), ("sync_dir *", "EIO")]
    {
        for nth in 1.. {
            let Some((target, found)) = onto_fault(&store.db, kind, nth, error) else { break };
            let expected = if error == "ENOSPC" { ErrorKind::NoSpace } else { ErrorKind::Io };
            assert_eq!(found, expected, "{kind} {nth}");
            match restore(&[target]) {
                Err(error) => {
                    let refused = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Io);
                    assert!(refused, "{kind} {nth}: {error}");
                }
                // The file that lists the backup's files was complete. Only the name of this file
                // may not be durable.
                Ok(db) => assert!(support::contents(&db) == store.model, "{kind} {nth}"),
            }
            faults += 1;
            store.change("t", 1);
        }
    }
    assert!(faults > 20, "{faults}");
    store.check();
    let (target, _) = backup(&store.db, None);
    check_restored(&[target], &store.model, "after the faults");
}

/// On a full disk the backup fails, so that writers get the space that it kept.
#[test]
fn a_full_disk_ends_the_backup_and_not_the_writers() {
    let device = MemoryDevice::new();
    let options =
        Options::new().memory_bytes(16 << 20).background_threads(0).reserve_bytes(1 << 20);
    let db = TestDb::on(Arc::new(device.clone())).options(options).open().unwrap();
    let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
    let mut prng = frondb_core::prng::Prng::new(1);
    let mut value = vec![0; 4000];
    let mut put = |row: u64| {
        prng.fill(&mut value);
        tree.put(&(row % 2000).to_be_bytes(), &value)
    };
    (0..2000).for_each(|row| put(row).unwrap());
    db.flush().unwrap();
    while db.run_one(true) {}
    // Leave free twice the space of the rows, plus the log: enough for merges, but not for all the
    // replaced runs that the backup keeps.
    device.set_capacity(device.used_bytes() + (24 << 20));
    let mut rows = 0;
    let error = db.backup_to(&empty(), None, &BackupOptions::new(), &mut |_, _| {
        if rows == 0 {
            for row in 0..40_000 {
                put(row).unwrap();
                rows += 1;
                if row % 2000 == 0 {
                    while db.run_one(false) {}
                }
            }
        }
        true
    });
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains("given up"), "{error}");
    assert_eq!(rows, 40_000);
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
}

/// A fault of the database's own device fails the backup. Afterwards the database can be read as
/// before.
#[test]
fn faults_of_the_source_fail_the_backup() {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &"".parse().unwrap()));
    let db = support::open_small(Arc::clone(&faults) as _);
    let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
    for row in 0..3000u32 {
        tree.put(&row.to_be_bytes(), &row.to_le_bytes().repeat(40)).unwrap();
    }
    db.flush().unwrap();
    tree.put(b"in the log", b"1").unwrap();
    let rows = support::rows(&tree);
    for nth in 1.. {
        faults.set_script(&format!("fail read * nth={nth}").parse().unwrap());
        let result = db.backup_to(&empty(), None, &BackupOptions::new(), &mut |_, _| true);
        faults.set_script(&"".parse().unwrap());
        assert!(support::rows(&tree) == rows);
        match result {
            Err(error) => assert_eq!(error.kind(), ErrorKind::Io, "{nth}: {error}"),
            Ok(_) => {
                assert!(nth > 2, "the log and the runs are read");
                break;
            }
        }
    }
    tree.put(b"later", b"1").unwrap();
}

#[test]
fn a_read_only_database_is_refused_before_anything_is_made() {
    let mut store = Store::new(1);
    store.change("t", 5);
    store.db.close().unwrap();
    let options = Options::new().memory_bytes(16 << 20).read_only(true);
    let db = TestDb::on(Arc::new(store.device)).options(options).open().unwrap();
    let target = empty();
    let error = db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| true).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(target.list("").unwrap().is_empty());
}

/// A refused call creates neither the target's directory nor a directory above it.
#[test]
fn a_refused_backup_leaves_no_directory() {
    let dir = TempDir::new("backup-refused");
    let at = |name: &str| dir.path().join(name);
    let options = || Options::new().memory_bytes(16 << 20);
    let back_up = |db: &Db, options: &BackupOptions| {
        let error = db.backup(at("above/full"), options, &mut |_, _| true).unwrap_err();
        assert!(!at("above").exists(), "{error}");
        error.kind()
    };
    let db = Db::open(at("db"), options()).unwrap();
    std::fs::create_dir(at("none")).unwrap();
    let since = BackupOptions::new().since(at("none"));
    assert_eq!(back_up(&db, &since), ErrorKind::NotFound);
    db.close().unwrap();
    assert_eq!(back_up(&db, &BackupOptions::new()), ErrorKind::Closed);
    let db = Db::open(at("db"), options().read_only(true)).unwrap();
    assert_eq!(back_up(&db, &BackupOptions::new()), ErrorKind::Invalid);
}

#[test]
fn a_target_with_files_is_refused() {
    let mut store = Store::new(1);
    store.change("t", 5);
    let (target, _) = backup(&store.db, None);
    let error = store.db.backup_to(&target, None, &BackupOptions::new(), &mut |_, _| true);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Exists);
    check_restored(std::slice::from_ref(&target), &store.model, "it stays");
    let error = Db::restore_from(std::slice::from_ref(&target), &target, &mut |_, _| true);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Exists);
}
