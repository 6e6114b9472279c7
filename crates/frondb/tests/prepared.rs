//! Prepared transactions: what is theirs and what is another's, among handles that stay, names that are
//! used again and trees that somebody wants to drop (rule 19).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use frondb::{
    Db, Durability, ErrorKind, Options, Transaction, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_core::clock::ManualClock;
use frondb_core::executor::ThreadExecutor;
use frondb_device::MemoryDevice;

const MEMORY_BYTES: u64 = 16 << 20;

fn database() -> (Db, Tree) {
    let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(ManualClock::new()));
    let options = Options::new().memory_bytes(MEMORY_BYTES).background_threads(0).reserve_bytes(0);
    let db = Db::open_on(device, None, options, clock, &ThreadExecutor::shared()).unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

fn begin(db: &Db) -> Transaction {
    db.begin(TransactionOptions::new().durability(Durability::NoSync)).unwrap()
}

/// Prepares under `xid` a transaction that has put `key`.
fn prepare(db: &Db, tree: &Tree, key: &[u8], xid: &[u8]) -> Transaction {
    let transaction = begin(db);
    transaction.put(tree, key, b"v").unwrap();
    transaction.prepare(xid).unwrap();
    transaction
}

#[test]
fn a_handle_does_not_decide_the_next_transaction_of_its_name() {
    let (db, tree) = database();
    let first = prepare(&db, &tree, b"a", b"x");
    db.commit_prepared(b"x", Durability::NoSync).unwrap();
    let second = prepare(&db, &tree, b"b", b"x");
    for decided in [first.commit(), first.rollback()] {
        assert_eq!(decided.unwrap_err().kind(), ErrorKind::NotFound);
    }
    assert_eq!(db.prepared(), [b"x"]);
    second.commit().unwrap();
    assert_eq!(tree.get(b"b").unwrap().as_deref(), Some(&b"v"[..]));
}

/// Whoever comes next with a name has its locks, however close behind it comes.
#[test]
fn the_locks_of_a_name_that_is_used_again_stay() {
    let (db, tree) = database();
    drop(prepare(&db, &tree, b"0", b"x"));
    for round in 1..300_u32 {
        let key = round.to_string();
        let next = begin(&db);
        next.put(&tree, key.as_bytes(), b"v").unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| db.commit_prepared(b"x", Durability::NoSync).unwrap());
            while let Err(error) = next.prepare(b"x") {
                assert_eq!(error.kind(), ErrorKind::Exists);
            }
        });
        let locked = begin(&db).get_for_update(&tree, key.as_bytes(), Wait::NoWait);
        assert_eq!(locked.unwrap_err().kind(), ErrorKind::Busy, "round {round}");
    }
}
