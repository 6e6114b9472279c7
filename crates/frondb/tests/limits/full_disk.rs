//! Rule 25: on a full disk writers get `NoSpace`, readers are not affected, and deletes and drops
//! still work. Once these have freed space, writes work again without reopening. No acknowledged
//! row is lost, and no refused row exists.

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, ErrorKind, Options, Result, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::faults::Script;
use frondb_testkit::{Faults, MemoryDevice};

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(device: &MemoryDevice) -> Db {
    open_on(Arc::new(device.clone()))
}

fn open_on(device: SharedDevice) -> Db {
    let options = Options::new()
        .memory_bytes(32 << 20)
        .write_buffer_bytes(4 << 20)
        .background_threads(0)
        .reserve_bytes(32 << 20);
    TestDb::on(device).options(options).open().unwrap()
}

/// Puts a row that does not compress; adds the row to `rows` if the put was acknowledged.
fn put(tree: &Tree, rows: &mut Rows, prng: &mut Prng) -> Result<()> {
    let key = prng.next_u64().to_be_bytes().to_vec();
    let mut value = vec![0; 4000];
    prng.fill(&mut value);
    tree.put(&key, &value)?;
    rows.insert(key, value);
    Ok(())
}

fn fill(tree: &Tree, rows: &mut Rows, prng: &mut Prng) {
    let error = loop {
        if let Err(error) = put(tree, rows, prng) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
}

fn check(tree: &Tree, rows: &Rows) {
    let mut cursor = tree.cursor().unwrap();
    for (key, value) in rows {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), key);
        assert!(cursor.value().unwrap() == value);
    }
    assert!(!cursor.next().unwrap());
}

/// Puts a row once there is space: the first put may still fail, the second must succeed.
fn resume(tree: &Tree, rows: &mut Rows, prng: &mut Prng) {
    if let Err(error) = put(tree, rows, prng) {
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
        put(tree, rows, prng).unwrap();
    }
}

#[test]
fn a_full_disk_refuses_only_calls_that_take_space() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let (mut prng, mut rows, mut others) = (Prng::new(1), Rows::new(), Rows::new());
    let tree = db.create_tree("stays", TreeOptions::new()).unwrap();
    let other = db.create_tree("goes", TreeOptions::new()).unwrap();
    for _ in 0..3000 {
        put(&other, &mut others, &mut prng).unwrap();
    }
    device.set_capacity(device.used_bytes() + (16 << 20));
    fill(&tree, &mut rows, &mut prng);
    assert!(rows.len() > 100, "{} rows", rows.len());
    check(&tree, &rows);
    check(&other, &others);

    // A new tree still fits, and so does a batch that is marked as leading to freed space, such as
    // a row with the name of the tree.
    let mut names = Batch::new();
    names.put(&tree, b"name of the tree", b"1");
    assert_eq!(db.write(&names, Durability::Sync).unwrap_err().kind(), ErrorKind::NoSpace);
    names.set_frees_space();
    db.create_tree("in its place", TreeOptions::new()).unwrap();
    db.write(&names, Durability::Sync).unwrap();
    names.clear();
    names.put(&tree, b"name of the tree", b"2");
    let error = db.write(&names, Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSpace, "it is said of one use");
    tree.delete(b"name of the tree").unwrap();
    db.drop_tree("in its place").unwrap();

    // A drop frees space.
    db.drop_tree("goes").unwrap();
    for _ in 0..500 {
        resume(&tree, &mut rows, &mut prng);
    }
    fill(&tree, &mut rows, &mut prng);
    check(&tree, &rows);

    // Single deletes and range deletes also free space.
    let gone: Vec<Vec<u8>> = rows.keys().step_by(2).cloned().collect();
    for keys in gone.chunks(100) {
        let mut batch = Batch::new();
        keys.iter().for_each(|key| batch.delete(&tree, key));
        db.write(&batch, Durability::Sync).unwrap();
        keys.iter().for_each(|key| drop(rows.remove(key)));
    }
    let middle = rows.keys().nth(rows.len() / 2).unwrap().clone();
    tree.delete_range(&middle, None).unwrap();
    rows.split_off(&middle);
    check(&tree, &rows);
    for _ in 0..500 {
        resume(&tree, &mut rows, &mut prng);
    }
    check(&tree, &rows);
    let report = db.verify(&mut |_, _, _| true).unwrap();
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    db.close().unwrap();
    drop((db, tree, other));
    let db = open(&device);
    assert_eq!(db.list_trees(), ["stays"]);
    check(&db.open_tree("stays").unwrap(), &rows);
}

/// Recovery writes nothing that needs space, whether the database was closed or not, and the calls
/// that free space work at once. (`posix/lock.rs` tests the lock file.)
#[test]
fn a_database_opens_on_a_full_disk() {
    for closed in [true, false] {
        let device = MemoryDevice::new();
        let db = open(&device);
        let (mut prng, mut rows) = (Prng::new(1), Rows::new());
        let tree = db.create_tree("stays", TreeOptions::new()).unwrap();
        db.create_tree("goes", TreeOptions::new()).unwrap().put(b"k", b"v").unwrap();
        for _ in 0..2000 {
            put(&tree, &mut rows, &mut prng).unwrap();
        }
        if closed {
            db.close().unwrap();
        }
        drop((tree, db));
        device.set_capacity(device.used_bytes());
        for _ in 0..3 {
            let db = open(&device);
            let tree = db.open_tree("stays").unwrap();
            check(&tree, &rows);
            let key = rows.keys().next().unwrap().clone();
            tree.delete(&key).unwrap();
            rows.remove(&key);
            check(&tree, &rows);
            if closed {
                db.close().unwrap();
            }
        }
        let db = open(&device);
        db.drop_tree("goes").unwrap();
        assert_eq!(db.list_trees(), ["stays"]);
        check(&db.open_tree("stays").unwrap(), &rows);
    }
}

/// A delete that finds the log full gets a part of the reserve. If the device fails to return this
/// part to the file system, the delete fails with the device's error and changes nothing. It
/// succeeds once the device works again.
#[test]
fn a_delete_reports_that_the_reserve_cannot_be_lent() {
    let memory = MemoryDevice::new();
    let faults = Arc::new(Faults::over(Arc::new(memory.clone()), &Script::default()));
    let db = open_on(Arc::clone(&faults) as SharedDevice);
    let (mut prng, mut rows) = (Prng::new(1), Rows::new());
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    memory.set_capacity(64 << 20);
    fill(&tree, &mut rows, &mut prng);
    memory.set_capacity(memory.used_bytes());

    let broken = "fail set_len data count=all error=EIO; fail punch data count=all error=EIO";
    faults.set_script(&broken.parse().unwrap());
    let keys: Vec<_> = rows.keys().cloned().collect();
    // Fill the log's remaining space: each batch also deletes a long key that does not exist.
    let refused = keys.iter().find_map(|key| {
        let mut absent = key.clone();
        absent.resize(4000, 0);
        let mut batch = Batch::new();
        batch.delete(&tree, key);
        batch.delete(&tree, &absent);
        let error = db.write(&batch, Durability::Sync).err();
        if error.is_none() {
            rows.remove(key);
        }
        error.map(|error| (key.clone(), error))
    });
    let (key, error) = refused.expect("the log never needed the reserve");
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(faults.injected() > 0);
    check(&tree, &rows);

    faults.set_script(&Script::default());
    tree.delete(&key).unwrap();
    rows.remove(&key);
    check(&tree, &rows);
}

/// Range deletes with long bounds cut the runs into views with long bounds. The edit of their flush
/// is then larger than the space that the manifest has allocated ahead.
#[test]
fn ranges_with_long_ends_are_deleted_on_a_full_disk() {
    let device = MemoryDevice::new();
    let db = open(&device);
    let (mut prng, mut rows) = (Prng::new(1), Rows::new());
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    device.set_capacity(64 << 20);
    fill(&tree, &mut rows, &mut prng);
    device.set_capacity(device.used_bytes());
    let mut end = vec![0; 4000];
    for key in rows.keys() {
        end[..key.len()].copy_from_slice(key);
        tree.delete_range(key, Some(&end)).unwrap();
    }
    check(&tree, &Rows::new());
    drop((tree, db));
    check(&open(&device).open_tree("rows").unwrap(), &Rows::new());
}
