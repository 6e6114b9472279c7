//! A transaction that has written to a tree that is dropped: its commit fails, until it forgets what it has
//! written there.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::{Db, ErrorKind, Options, Transaction, TransactionOptions, Tree, TreeOptions};
use frondb_core::clock::ManualClock;
use frondb_core::executor::ThreadExecutor;
use frondb_device::MemoryDevice;

/// Rows of which a transaction keeps all in memory, and rows of which it must write some to the disk.
const SIZES: [u32; 2] = [20, 30_000];

fn open(device: &Arc<MemoryDevice>) -> Db {
    let options = Options::new().memory_bytes(4 << 20).background_threads(0).reserve_bytes(0);
    let (device, clock) = (Arc::clone(device), Arc::new(ManualClock::new()));
    Db::open_on(device, None, options, clock, &ThreadExecutor::shared()).unwrap()
}

fn fill(transaction: &Transaction, tree: &Tree, rows: u32, value: u8) {
    for i in 0..rows {
        transaction.put(tree, &i.to_be_bytes(), &[value; 60]).unwrap();
    }
}

fn count(tree: &Tree, value: u8) -> u32 {
    let mut cursor = tree.cursor().unwrap();
    let mut rows = 0;
    while cursor.next().unwrap() {
        assert_eq!(cursor.value().unwrap(), [value; 60]);
        rows += 1;
    }
    rows
}

#[test]
fn the_rest_is_committed() {
    for rows in SIZES {
        let device = Arc::new(MemoryDevice::new());
        let db = open(&device);
        let [stays, goes] =
            ["stays", "goes"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        fill(&transaction, &goes, rows, 1);
        fill(&transaction, &stays, rows, 2);
        db.drop_tree("goes").unwrap();
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::NotFound);
        transaction.forget_dropped_trees().unwrap();
        // A second time there is nothing to forget.
        transaction.forget_dropped_trees().unwrap();
        transaction.commit().unwrap();
        assert_eq!(count(&stays, 2), rows);
        assert_eq!(transaction.forget_dropped_trees().unwrap_err().kind(), ErrorKind::Invalid);
        drop((stays, goes, transaction, db));
        let db = open(&device);
        assert_eq!(count(&db.open_tree("stays").unwrap(), 2), rows, "after a restart");
        assert_eq!(db.open_tree("goes").unwrap_err().kind(), ErrorKind::NotFound);
    }
}

/// Savepoints that were set before the tree was dropped are as good as others.
#[test]
fn savepoints_stay_set() {
    for rows in SIZES {
        let db = open(&Arc::new(MemoryDevice::new()));
        let [stays, goes] =
            ["stays", "goes"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
        let transaction = db.begin(TransactionOptions::new()).unwrap();
        fill(&transaction, &stays, rows, 3);
        fill(&transaction, &goes, rows / 2, 3);
        let savepoint = transaction.set_savepoint().unwrap();
        fill(&transaction, &goes, rows, 4);
        fill(&transaction, &stays, rows, 4);
        db.drop_tree("goes").unwrap();
        transaction.forget_dropped_trees().unwrap();
        transaction.roll_back_to(savepoint).unwrap();
        transaction.commit().unwrap();
        assert_eq!(count(&stays, 3), rows);
    }
}
