//! Large transactions on a full disk (rule 25): writes that free space, or that use no space in the
//! end, may use the reserve.

use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{Db, Durability, ErrorKind, Options, Transaction, TransactionOptions, Tree};
use frondb_core::prng::Prng;
use frondb_device::Device;
use frondb_testkit::MemoryDevice;

use crate::support::{Rows, rows};

fn open(device: &Arc<MemoryDevice>) -> Db {
    let options = Options::new().memory_bytes(8 << 20).background_threads(0);
    TestDb::on(Arc::clone(device) as _).options(options.reserve_bytes(8 << 20)).open().unwrap()
}

/// Returns a value that does not compress.
fn value(prng: &mut Prng) -> Vec<u8> {
    let mut value = vec![0; 1000];
    prng.fill(&mut value);
    value
}

/// Fills the disk, so that no write finds space while the returned transaction exists.
#[must_use]
fn fill(device: &MemoryDevice, db: &Db, tree: &Tree, prng: &mut Prng) -> Transaction {
    device.set_capacity(device.used_bytes());
    let error = loop {
        let key = prng.next_u64().to_be_bytes();
        if let Err(error) = tree.put(&[b"filler", &key[..]].concat(), &value(prng)) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    let filler = db.begin(TransactionOptions::new()).unwrap();
    // A large value takes its space at once, so the space that remains is smaller than such a
    // value.
    let error = loop {
        if let Err(error) = filler.put(tree, &prng.next_u64().to_be_bytes(), &[7; 70_000]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    filler
}

/// Puts rows until the transaction has written another private run.
fn put_until_spill(db: &Db, transaction: &Transaction, tree: &Tree, from: u32, all: &mut Rows) {
    let spills = db.stats().spills;
    let mut prng = Prng::new(u64::from(from));
    for i in from.. {
        let value = value(&mut prng);
        transaction.put(tree, &i.to_be_bytes(), &value).unwrap();
        all.insert(i.to_be_bytes().to_vec(), value);
        if db.stats().spills > spills {
            break;
        }
    }
}

#[test]
fn a_savepoint_inside_a_run_can_be_returned_to() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
    let other = db.create_tree("filler", frondb::TreeOptions::new()).unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let mut model = Rows::new();
    put_until_spill(&db, &transaction, &tree, 0, &mut model);
    let (spills, mut prng) = (db.stats().spills, Prng::new(2));
    for i in 0..200_u32 {
        let (key, value) = (format!("before {i:03}").into_bytes(), value(&mut prng));
        transaction.put(&tree, &key, &value).unwrap();
        model.insert(key, value);
    }
    assert_eq!(db.stats().spills, spills, "the savepoint lies inside a run");
    let savepoint = transaction.set_savepoint().unwrap();
    put_until_spill(&db, &transaction, &tree, 1 << 20, &mut Rows::new());
    let filler = fill(&device, &db, &other, &mut Prng::new(9));

    transaction.roll_back_to(savepoint).unwrap();
    let mut cursor = transaction.cursor(&tree).unwrap();
    for (key, value) in &model {
        assert!(cursor.next().unwrap());
        assert_eq!((cursor.key(), cursor.value().unwrap()), (&**key, &**value));
    }
    assert!(!cursor.next().unwrap());
    drop(cursor);

    filler.rollback().unwrap();
    device.set_capacity(u64::MAX);
    while db.run_one(true) {}
    transaction.commit().unwrap();
    assert_eq!(rows(&tree), model);
}

/// A DELETE whose write set is larger than its share of the memory.
#[test]
fn a_large_delete_commits_and_makes_space() {
    let device = Arc::new(MemoryDevice::new());
    let db = open(&device);
    let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
    let other = db.create_tree("filler", frondb::TreeOptions::new()).unwrap();
    let (mut prng, mut batch) = (Prng::new(1), frondb::Batch::new());
    for i in 0..60_000_u32 {
        let key = format!("{:0>60}", i.wrapping_mul(2_654_435_761));
        batch.put(&tree, key.as_bytes(), &value(&mut prng)[..400]);
        if i % 1000 == 999 {
            db.write(&batch, Durability::NoSync).unwrap();
            batch.clear();
        }
    }
    db.flush().unwrap();
    while db.run_one(true) {}
    let filler = fill(&device, &db, &other, &mut Prng::new(9));

    let spills = db.stats().spills;
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let mut cursor = tree.cursor().unwrap();
    while cursor.next().unwrap() {
        transaction.delete(&tree, cursor.key()).unwrap();
    }
    drop(cursor);
    assert!(db.stats().spills > spills + 2, "it did not spill");
    transaction.commit().unwrap();
    assert!(rows(&tree).is_empty());
    filler.rollback().unwrap();
    while db.run_one(true) {}
    let again = |prng: &mut Prng| other.put(b"again", &value(prng));
    if again(&mut prng).is_err() {
        while db.run_one(true) {}
        again(&mut prng).unwrap();
    }
    let found = rows(&other);
    db.close().unwrap();
    drop((tree, other, db));
    let db = open(&device);
    assert!(rows(&db.open_tree("t").unwrap()).is_empty());
    assert_eq!(rows(&db.open_tree("filler").unwrap()), found);
}

/// Returns whether the disk is no longer full: apart from the reserve, the data files have no more
/// free space than the disk. `all` is the free space of the disk before the test.
fn is_given_back(device: &MemoryDevice, all: u64) -> bool {
    device.free_bytes().unwrap() * 2 + (8 << 20) >= all
}

/// A transaction that finds the disk full returns its space to the file system when it ends. The
/// database is idle afterwards, so no other work would return the space.
#[test]
fn a_rolled_back_transaction_does_not_leave_the_disk_full() {
    let (device, all) = (Arc::new(MemoryDevice::new()), 64 << 20);
    let db = open(&device);
    let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
    device.set_capacity(device.used_bytes() + all);
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let mut prng = Prng::new(1);
    let error = loop {
        let key = prng.next_u64().to_be_bytes();
        if let Err(error) = transaction.put(&tree, &key, &value(&mut prng)) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
    assert!(!is_given_back(&device, all));
    transaction.rollback().unwrap();
    assert!(is_given_back(&device, all), "{} of {all}", device.free_bytes().unwrap());
}

/// A bulk statement that finds the disk full, while it collects or while it merges entries, changes
/// nothing in its transaction and returns its space.
#[test]
fn a_bulk_statement_that_finds_no_space_changes_nothing() {
    let mut ends = [0, 0, 0];
    for more in (0..36_u64).map(|n| n << 20) {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let tree = db.create_tree("t", frondb::TreeOptions::new()).unwrap();
        let used = db.stats().data_used_bytes;
        device.set_capacity(device.used_bytes() + more);
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
        let mut prng = Prng::new(more);
        let mut put = || -> frondb::Result<()> {
            (0..12_000).try_for_each(|_| {
                bulk.put(&tree, &prng.next_u64().to_be_bytes(), &value(&mut prng))
            })
        };
        let (at, result) = match put() {
            Err(error) => (0, Err(error)),
            Ok(()) => match bulk.finish(&mut |_| true) {
                Err(error) => (1, Err(error)),
                Ok(_) => (2, Ok(())),
            },
        };
        ends[at] += 1;
        drop(bulk);
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error}");
            assert_eq!(db.stats().data_used_bytes, used);
            assert!(is_given_back(&device, more), "after {more} bytes");
            assert!(!transaction.cursor(&tree).unwrap().first().unwrap());
            device.set_capacity(u64::MAX);
            transaction.put(&tree, b"k", b"v").unwrap();
        }
        device.set_capacity(u64::MAX);
        transaction.commit().unwrap();
        assert_eq!(rows(&tree).len(), if at == 2 { 12_000 } else { 1 });
    }
    assert!(ends.iter().all(|&n| n > 1), "gathering, merging, none: {ends:?}");
}
