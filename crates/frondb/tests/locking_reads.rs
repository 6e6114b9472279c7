//! What a locking read, and a batch that meets locks, leaves behind and says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::{
    Batch, Db, Durability, ErrorKind, Isolation, Options, TransactionOptions, TreeOptions,
};
use frondb_core::clock::ManualClock;
use frondb_core::executor::ThreadExecutor;
use frondb_device::MemoryDevice;

fn database() -> Db {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(ManualClock::new()));
    let options = Options::new().memory_bytes(4 << 20).background_threads(0).reserve_bytes(0);
    Db::open_on(device, None, options, clock, &ThreadExecutor::shared()).unwrap()
}

/// It reads the newest data, so it keeps no version of anything alive to its end (rule 12).
#[test]
fn a_serializable_transaction_that_gets_has_no_snapshot() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let transaction = db.begin(options).unwrap();
    transaction.get(&tree, b"a").unwrap();
    transaction.multi_get(&tree, &[b"a", b"b"]).unwrap();
    transaction.exists(&tree, b"a").unwrap();
    assert_eq!(db.stats().snapshots, 0);
}

#[test]
fn a_batch_that_loses_names_the_tree() {
    let db = database();
    let tree = db.create_tree("accounts", TreeOptions::new()).unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    for i in 0..9_u8 {
        transaction.put(&tree, &[b'b', i], b"").unwrap();
    }
    let lost = std::thread::scope(|threads| {
        let write = threads.spawn(|| {
            let mut batch = Batch::new();
            batch.put(&tree, b"a", b"");
            batch.delete_range(&tree, b"b", None);
            db.write(&batch, Durability::NoSync)
        });
        while db.lock_waits().is_empty() {
            std::thread::yield_now();
        }
        transaction.put(&tree, b"a", b"").unwrap();
        write.join().unwrap().unwrap_err()
    });
    assert_eq!(lost.kind(), ErrorKind::Deadlock);
    assert!(lost.message().contains("tree \"accounts\""), "{lost}");
}
