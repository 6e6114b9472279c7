//! A database opened read-only gives every answer that a recovery would give, changes no byte on
//! disk, and refuses every call that would write.

use frondb::testing::TestDb;
use frondb::{
    Batch, BulkOptions, Db, Durability, Error, ErrorKind, Options, TransactionOptions, TreeOptions,
};
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::TempDir;
use frondb_testkit::trace::Detail;
use frondb_testkit::{CrashMode, MemoryDevice, Trace};

fn options() -> Options {
    Options::new().memory_bytes(4 << 20).background_threads(0)
}

fn open(device: SharedDevice, options: Options) -> Db {
    TestDb::on(device).options(options).open().unwrap()
}

fn rows(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = db.open_tree("t").unwrap().cursor().unwrap();
    let mut rows = Vec::new();
    while cursor.next().unwrap() {
        rows.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
    }
    rows
}

/// Returns the device of a killed database with runs, with a log to replay, and with a torn tail of
/// the log.
fn killed() -> MemoryDevice {
    let device = MemoryDevice::new();
    let db = open(Arc::new(device.clone()), options());
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for row in 0..2000_u32 {
        tree.put(&row.to_be_bytes(), &[7; 100]).unwrap();
        if row == 1000 {
            db.flush().unwrap();
        }
    }
    let killed = device.crash(CrashMode::KeepAll);
    let name = killed_segment(&killed);
    let file = frondb_device::Device::open(&killed, &name, frondb_device::OpenOptions::WRITE);
    let file = file.unwrap();
    let end = {
        let mut bytes = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(0, &mut bytes).unwrap();
        bytes.iter().rposition(|&byte| byte != 0).unwrap() as u64 + 1
    };
    file.write_at(end + 20, b"torn").unwrap();
    killed
}

fn killed_segment(device: &MemoryDevice) -> String {
    let names = frondb_device::Device::list(device, "wal").unwrap();
    format!("wal/{}", names.iter().rfind(|name| name.ends_with(".wal")).unwrap())
}

fn refused(result: Result<(), Error>) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    assert!(error.message().contains("read-only"), "{error}");
}

#[test]
fn a_read_only_open_changes_nothing_and_reads_everything() {
    let device = killed();
    let expected = rows(&open(Arc::new(device.crash(CrashMode::KeepAll)), options()));
    assert_eq!(expected.len(), 2000);
    let traced = Arc::new(Trace::over(Arc::new(device.clone()), Detail::Mutations));
    for _ in 0..2 {
        let db = open(Arc::clone(&traced) as SharedDevice, options().read_only(true));
        assert!(db.recovery().log_tail.is_some() && db.recovery().records > 0);
        assert_eq!(rows(&db), expected);
        let tree = db.open_tree("t").unwrap();
        assert_eq!(tree.get(&5_u32.to_be_bytes()).unwrap(), Some(vec![7; 100]));
        assert!(db.verify(&mut |_, _, _| true).unwrap().faults.is_empty());
        assert_eq!(db.stats().commits, 0);
        assert!(!db.run_one(true), "there is no background work");
        db.close().unwrap();
    }
    // The open calls `create_dir` for the log's directory; the device traces this call even if the
    // directory exists.
    let calls = traced.take();
    let changes: Vec<&str> = calls.lines().filter(|line| *line != "create_dir wal").collect();
    assert_eq!(changes, [""; 0], "the files are as they were");
}

#[test]
fn every_call_that_writes_is_refused() {
    let db = open(Arc::new(killed()), options().read_only(true));
    let tree = db.open_tree("t").unwrap();
    refused(tree.put(b"k", b"v"));
    refused(tree.delete(b"k"));
    let mut batch = Batch::new();
    batch.delete_range(&tree, b"", None);
    refused(db.write(&batch, Durability::NoSync));
    refused(db.create_tree("u", TreeOptions::new()).map(drop));
    refused(db.rename_tree("t", "u"));
    refused(db.drop_tree("t"));
    refused(db.flush());
    refused(db.sync());
    refused(db.checkpoint());
    refused(db.bulk_load(BulkOptions::default()).map(drop));
    let txn = db.begin(TransactionOptions::default()).unwrap();
    refused(txn.put(&tree, b"k", b"v"));
    refused(txn.delete(&tree, b"k"));
    refused(txn.delete_range(&tree, b"", None));
    refused(txn.insert(&tree, b"k", b"v"));
    assert_eq!(txn.get(&tree, &5_u32.to_be_bytes()).unwrap(), Some(vec![7; 100]));
    txn.commit().unwrap();
    assert_eq!(rows(&db).len(), 2000);
}

/// The memory option belongs to the process and not to the files, so it can be changed.
#[test]
fn the_memory_can_be_changed() {
    let device = killed();
    let expected = rows(&open(Arc::new(device.crash(CrashMode::KeepAll)), options()));
    let traced = Arc::new(Trace::over(Arc::new(device), Detail::Mutations));
    let db = open(Arc::clone(&traced) as SharedDevice, options().read_only(true));
    let _ = traced.take();
    let before = db.memory_bytes();
    for bytes in [2 * before, before] {
        db.set_memory_bytes(bytes).unwrap();
        assert_eq!((db.memory_bytes(), db.stats().memory_total), (bytes, bytes));
        assert_eq!(rows(&db), expected);
    }
    assert_eq!(db.set_memory_bytes(1).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!db.run_one(true), "there is no background work");
    assert_eq!(traced.take(), "", "the files are as they were");
    db.close().unwrap();
    assert_eq!(db.set_memory_bytes(before).unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn readers_share_a_directory_and_keep_writers_out() {
    let dir = TempDir::new("read-only");
    let read_only = || options().read_only(true);
    let missing = Db::open(dir.path().join("none"), read_only()).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(!dir.path().join("none").exists(), "nothing is made");
    let empty = Db::open(dir.path(), read_only()).unwrap_err();
    assert_eq!(empty.kind(), ErrorKind::NotFound);

    let db = Db::open(dir.path(), options()).unwrap();
    db.create_tree("t", TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
    assert_eq!(Db::open(dir.path(), read_only()).unwrap_err().kind(), ErrorKind::Busy);
    db.close().unwrap();
    let readers = [0, 1].map(|_| Db::open(dir.path(), read_only()).unwrap());
    assert!(readers.iter().all(|db| rows(db) == [(b"k".to_vec(), b"v".to_vec())]));
    assert_eq!(Db::open(dir.path(), options()).unwrap_err().kind(), ErrorKind::Busy);
    drop(readers);
    Db::open(dir.path(), options()).unwrap().close().unwrap();
}
