//! A change of the catalog that fails because the disk is full changes nothing: not immediately,
//! not after a snapshot of the manifest, and not after a restart. The caller may repeat the change.

use frondb::testing::TestDb;
use frondb::{Db, ErrorKind, Options, TreeOptions};
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::{FaultDevice, Faults, MemoryDevice};

fn open(device: SharedDevice) -> Db {
    TestDb::on(device).options(Options::small().memory_bytes(8 << 20)).open().unwrap()
}

/// Creates the trees that [`check`] expects. Their rows are only in memory and in the log.
fn made(device: &Arc<FaultDevice>) -> Db {
    let db = open(Arc::clone(device) as _);
    for name in ["a", "b"] {
        let tree = db.create_tree(name, TreeOptions::new()).unwrap();
        tree.put(b"key", name.as_bytes()).unwrap();
    }
    db
}

fn check(db: &Db) {
    assert_eq!(db.list_trees(), ["a", "b"]);
    for name in ["a", "b"] {
        let tree = db.open_tree(name).unwrap();
        assert_eq!(tree.name(), name);
        assert_eq!(tree.get(b"key").unwrap(), Some(name.as_bytes().to_vec()));
    }
}

fn fails_and_changes_nothing(change: fn(&Db) -> frondb::Result<()>) {
    let full: Script = "fail write MANIFEST count=all error=ENOSPC".parse().unwrap();
    for rotate in [false, true] {
        let memory = Arc::new(MemoryDevice::new());
        let device = Arc::new(Faults::over(Arc::clone(&memory) as _, &Script::default()));
        let db = made(&device);
        device.set_script(&full);
        for _ in 0..2 {
            assert_eq!(change(&db).unwrap_err().kind(), ErrorKind::NoSpace);
            check(&db);
        }
        device.set_script(&Script::default());
        if rotate {
            // Replaces the edits of the manifest by a snapshot, and frees log that is not needed
            // any more.
            db.checkpoint().unwrap();
            check(&db);
        }
        let tree = db.open_tree("a").unwrap();
        tree.put(b"later", b"value").unwrap();
        drop((tree, db));
        let db = open(Arc::clone(&device) as _);
        check(&db);
        assert_eq!(db.open_tree("a").unwrap().get(b"later").unwrap(), Some(b"value".to_vec()));
        // Once there is space, the change succeeds.
        change(&db).unwrap();
        let after = db.list_trees();
        drop(db);
        assert_eq!(open(Arc::clone(&device) as _).list_trees(), after);
    }
}

#[test]
fn a_rename_that_fails() {
    fails_and_changes_nothing(|db| db.rename_tree("a", "c"));
}

#[test]
fn a_drop_that_fails() {
    fails_and_changes_nothing(|db| db.drop_tree("a"));
}

#[test]
fn a_creation_that_fails() {
    fails_and_changes_nothing(|db| db.create_tree("c", TreeOptions::new()).map(|_| ()));
}
