//! A transaction that begins in the handle of an ended one.

use std::time::Duration;

use frondb::{Durability, ErrorKind, Transaction, TransactionOptions, Tree};

use crate::support;

fn kind<T>(result: frondb::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn get(transaction: &Transaction, tree: &Tree) -> Option<Vec<u8>> {
    transaction.get(tree, b"a").unwrap()
}

#[test]
fn the_next_transaction_has_its_own_id_snapshot_writes_and_locks() {
    let (db, tree) = support::database_with_tree();
    let mut transaction = db.begin(TransactionOptions::new()).unwrap();
    for round in 0..4_u8 {
        let before = round.checked_sub(1).map(|before| vec![before]);
        assert_eq!(get(&transaction, &tree), before, "a snapshot of its own");
        transaction.put(&tree, b"a", b"mine").unwrap();
        assert_eq!(db.locks().len(), 1);
        assert_eq!(kind(transaction.begin_next()), Some(ErrorKind::Invalid), "it has not ended");
        assert_eq!(get(&transaction, &tree).as_deref(), Some(&b"mine"[..]));
        let id = transaction.id();
        if round % 2 == 0 {
            transaction.commit().unwrap()
        } else {
            transaction.rollback().unwrap()
        }
        assert_eq!((db.transactions().len(), db.locks().len()), (0, 0));
        tree.put(b"a", &[round]).unwrap();
        transaction.begin_next().unwrap();
        assert!(transaction.id() > id);
        assert_eq!(db.transactions()[0].transaction, transaction.id());
        assert_eq!(db.transactions()[0].messages, 0);
    }
    drop(transaction);
    assert_eq!((db.transactions().len(), db.locks().len()), (0, 0));
}

#[test]
fn settings_are_those_of_the_first_begin() {
    let (db, tree) = support::database_with_tree();
    let options =
        TransactionOptions::new().lock_timeout(Duration::ZERO).durability(Durability::NoSync);
    let mut transaction = db.begin(options).unwrap();
    transaction.set_lock_timeout(Duration::from_secs(3600)).unwrap();
    transaction.set_durability(Durability::Sync).unwrap();
    transaction.commit().unwrap();
    transaction.begin_next().unwrap();
    let holder = db.begin(TransactionOptions::new()).unwrap();
    holder.put(&tree, b"a", b"1").unwrap();
    assert_eq!(kind(transaction.put(&tree, b"a", b"2")), Some(ErrorKind::LockTimeout));
    transaction.put(&tree, b"b", b"2").unwrap();
    let syncs = db.stats().wal_syncs;
    transaction.commit().unwrap();
    assert_eq!(db.stats().wal_syncs, syncs);
}

#[test]
fn a_cursor_of_the_ended_one_stays_ended() {
    let (db, tree) = support::database_with_tree();
    tree.put(b"a", b"1").unwrap();
    tree.put(b"b", b"1").unwrap();
    let mut transaction = db.begin(TransactionOptions::new()).unwrap();
    let mut cursor = transaction.cursor(&tree).unwrap();
    cursor.next().unwrap();
    transaction.commit().unwrap();
    transaction.begin_next().unwrap();
    assert_eq!(kind(cursor.next().map(drop)), Some(ErrorKind::Invalid));
    transaction.put(&tree, b"a", b"2").unwrap();
    drop(cursor);
    assert_eq!(get(&transaction, &tree).as_deref(), Some(&b"2"[..]));
    transaction.commit().unwrap();
    assert_eq!(tree.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
}

#[test]
fn a_cancel_of_the_ended_one_does_not_reach_it() {
    let (db, tree) = support::database_with_tree();
    let holder = db.begin(TransactionOptions::new()).unwrap();
    holder.put(&tree, b"a", b"1").unwrap();
    let options = TransactionOptions::new().lock_timeout(Duration::ZERO);
    let mut transaction = db.begin(options).unwrap();
    let old = transaction.canceller();
    transaction.canceller().cancel();
    transaction.rollback().unwrap();
    transaction.begin_next().unwrap();
    old.cancel();
    assert_eq!(kind(transaction.put(&tree, b"a", b"2")), Some(ErrorKind::LockTimeout));
    transaction.set_lock_timeout(Duration::from_secs(3600)).unwrap();
    transaction.canceller().cancel();
    assert_eq!(kind(transaction.put(&tree, b"a", b"2")), Some(ErrorKind::Cancelled));
}

#[test]
fn the_next_transaction_may_follow_a_prepared_one_that_was_decided() {
    let (db, tree) = support::database_with_tree();
    let mut transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(&tree, b"a", b"1").unwrap();
    transaction.prepare(b"x").unwrap();
    assert_eq!(kind(transaction.begin_next()), Some(ErrorKind::Invalid), "it is undecided");
    transaction.commit().unwrap();
    transaction.begin_next().unwrap();
    assert_eq!(get(&transaction, &tree).as_deref(), Some(&b"1"[..]));
    transaction.put(&tree, b"a", b"2").unwrap();
    transaction.prepare(b"y").unwrap();
    transaction.rollback().unwrap();
    transaction.begin_next().unwrap();
    assert_eq!(get(&transaction, &tree).as_deref(), Some(&b"1"[..]));
}

#[test]
fn a_closed_database_begins_none() {
    let (db, _tree) = support::database_with_tree();
    let mut transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.commit().unwrap();
    db.close().unwrap();
    assert_eq!(kind(transaction.begin_next()), Some(ErrorKind::Closed));
}
