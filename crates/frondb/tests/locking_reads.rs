//! What a locking read leaves behind, and what becomes of who meets locks and is no transaction: a batch,
//! an index build.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

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

/// Rule 23: a writer that an index build waits for may lock more. The build lets it go first, and is no
/// victim.
#[test]
fn a_snapshot_behind_writers_waits_for_one_that_locks_more() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(&tree, b"a", b"").unwrap();
    let snapshot = std::thread::scope(|threads| {
        let build =
            threads.spawn(|| db.snapshot_behind_writers(&[&tree], Duration::from_secs(3600)));
        let waits = || db.lock_waits().iter().any(|wait| wait.transaction != transaction.id());
        for key in [b"b", b"c", b"d"] {
            while !waits() {
                assert!(!build.is_finished(), "it gave up before {key:?}");
                std::thread::yield_now();
            }
            transaction.put(&tree, key, b"").unwrap();
        }
        transaction.commit().unwrap();
        build.join().unwrap().unwrap()
    });
    for key in [b"a", b"b", b"c", b"d"] {
        assert_eq!(tree.get_at(key, &snapshot).unwrap().as_deref(), Some(&b""[..]));
    }
}
