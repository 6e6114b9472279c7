//! Rule 19: prepared transactions whose handles still exist, names that are used again, and trees
//! that another caller wants to drop.

use std::sync::Arc;

use frondb::testing::TestDb;
use frondb::{
    Db, Durability, ErrorKind, Options, Transaction, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_testkit::MemoryDevice;

const MEMORY_BYTES: u64 = 16 << 20;

fn database() -> (Db, Tree) {
    let device = Arc::new(MemoryDevice::new());
    let db = TestDb::on(device)
        .options(Options::small().memory_bytes(MEMORY_BYTES))
        .still()
        .open()
        .unwrap();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    (db, tree)
}

fn begin(db: &Db) -> Transaction {
    db.begin(TransactionOptions::new().durability(Durability::NoSync)).unwrap()
}

/// Prepares, under the name `xid`, a transaction that has put `key`.
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

/// The next transaction with the same name gets its own locks, however soon it follows.
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

/// The writes of a prepared transaction are in the log. So once its handle has ended, in any way,
/// the transaction takes no memory of the budget of write sets. Otherwise other transactions would
/// spill unnecessarily.
#[test]
fn a_prepared_transaction_is_not_in_the_budget_of_write_sets() {
    let (db, tree) = database();
    let bytes = MEMORY_BYTES / 16 / 8;
    for round in 0..32_u32 {
        let transaction = begin(&db);
        for i in 0..bytes / 128 {
            let key = [&round.to_be_bytes()[..], &i.to_be_bytes()].concat();
            transaction.put(&tree, &key, &[7; 128]).unwrap();
        }
        transaction.prepare(b"x").unwrap();
        if round % 2 == 0 {
            drop(transaction);
            db.commit_prepared(b"x", Durability::NoSync).unwrap();
        } else {
            db.rollback_prepared(b"x").unwrap();
            drop(transaction);
        }
        assert_eq!(db.stats().spills, 0, "round {round}");
    }
}

/// Rule 24: the memory that a prepared transaction keeps for its coordinator is charged until a
/// checkpoint has written the transaction to disk.
#[test]
fn the_memory_of_prepared_transactions_is_counted() {
    let (db, tree) = database();
    let bytes = MEMORY_BYTES / 32;
    let used = db.stats().memory_used;
    let transaction = begin(&db);
    for i in 0..bytes / 1024 {
        transaction.put(&tree, &i.to_be_bytes(), &[7; 1024]).unwrap();
    }
    transaction.prepare(b"x").unwrap();
    drop(transaction);
    assert!(db.stats().memory_used >= used + bytes);
    db.checkpoint().unwrap();
    assert!(db.stats().memory_used < used + bytes);
}

#[test]
fn a_prepared_transaction_lets_go_of_its_snapshot_and_its_cursors_stop() {
    let (db, tree) = database();
    tree.put(b"a", b"v").unwrap();
    tree.put(b"b", b"v").unwrap();
    let transaction = begin(&db);
    let mut cursor = transaction.cursor(&tree).unwrap();
    assert!(cursor.next().unwrap());
    transaction.put(&tree, b"c", b"v").unwrap();
    transaction.prepare(b"x").unwrap();
    assert_eq!(cursor.value().unwrap_err().kind(), ErrorKind::Invalid);
    let error = cursor.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.message().contains("prepared"), "{error}");
    drop(cursor);
    assert_eq!(db.stats().snapshots, 0);
}

#[test]
fn a_tree_with_prepared_writes_is_not_dropped() {
    let (db, tree) = database();
    let transaction = prepare(&db, &tree, b"a", b"x\xff");
    let error = db.drop_tree("t").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    let says = "the prepared transaction \"x\\xff\" has written to tree \"t\": commit it or roll it \
                back first";
    assert!(error.message().contains(says), "{error}");
    transaction.rollback().unwrap();
    db.drop_tree("t").unwrap();
}
