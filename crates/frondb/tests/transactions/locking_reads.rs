//! Which locks and snapshots remain after a locking read, and how batches and index builds, which
//! are not transactions, wait for locks.

use std::sync::Arc;
use std::time::Duration;

use frondb::{
    Batch, Db, Durability, ErrorKind, Isolation, TransactionCursorOptions, TransactionOptions,
    Tree, TreeOptions, Wait, WaitNotice,
};
use frondb_core::sync::Mutex;

use crate::support;

/// Rule 12: a locking read uses the newest data, so it leaves the transaction without a snapshot.
#[test]
fn a_serializable_transaction_that_gets_has_no_snapshot() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let options = TransactionOptions::new().isolation(Isolation::Serializable);
    let transaction = db.begin(options).unwrap();
    transaction.get(&tree, b"a").unwrap();
    transaction.multi_get(&tree, &[b"a", b"b"]).unwrap();
    transaction.exists(&tree, b"a").unwrap();
    assert_eq!(db.stats().snapshots, 0);
}

/// Two inserts have waited for the rollback of a third and first hold a shared lock. They release
/// it before they wait for the exclusive lock, so neither becomes the victim of a deadlock,
/// whichever comes first.
#[test]
fn two_inserts_that_waited_do_not_deadlock() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for round in 0..20_u8 {
        let first = db.begin(TransactionOptions::new()).unwrap();
        first.insert(&tree, [round], b"undone").unwrap();
        let insert = || {
            let transaction = db.begin(TransactionOptions::new()).unwrap();
            let inserted = transaction.insert_or_share(&tree, [round], b"kept");
            transaction.commit().unwrap();
            inserted.map(drop).map_err(|error| error.kind())
        };
        let inserted = std::thread::scope(|threads| {
            let both = [threads.spawn(insert), threads.spawn(insert)];
            while db.lock_waits().len() < 2 {
                std::thread::yield_now();
            }
            first.rollback().unwrap();
            both.map(|one| one.join().unwrap())
        });
        let exists = Err(ErrorKind::Exists);
        assert!(inserted.contains(&Ok(())) && inserted.contains(&exists), "{inserted:?}");
    }
}

#[test]
fn a_batch_that_loses_names_the_tree() {
    let db = support::database();
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
    assert!(lost.message().starts_with("tree \"accounts\": "), "{lost}");
    assert_eq!(lost.message().matches("tree").count(), 1, "{lost}");
}

/// Rule 23: a writer for which an index build waits may take more locks. The build lets the writer
/// proceed first, and is not chosen as a victim.
#[test]
fn a_snapshot_behind_writers_waits_for_one_that_locks_more() {
    let db = support::database();
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

/// Rule 23: with two-phase commit every transaction is prepared for a moment, and the snapshot
/// waits for it too. If a transaction is not resolved in time, the error names it.
#[test]
fn a_snapshot_behind_writers_waits_for_a_prepared_one() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    transaction.put(&tree, b"a", b"").unwrap();
    transaction.prepare(b"x").unwrap();
    let busy = db.snapshot_behind_writers(&[&tree], Duration::ZERO).unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy, "{busy}");
    let snapshot = std::thread::scope(|threads| {
        let build =
            threads.spawn(|| db.snapshot_behind_writers(&[&tree], Duration::from_secs(3600)));
        while db.lock_waits().is_empty() {
            assert!(!build.is_finished(), "it did not wait");
            std::thread::yield_now();
        }
        transaction.commit().unwrap();
        build.join().unwrap().unwrap()
    });
    assert_eq!(tree.get_at(b"a", &snapshot).unwrap().as_deref(), Some(&b""[..]));
}

fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation)
}

/// Returns whether no transaction holds a lock on `key`.
fn is_free(db: &Db, tree: &Tree, key: &[u8]) -> bool {
    let asks = db.begin(TransactionOptions::new()).unwrap();
    asks.get_for_update(tree, key, Wait::NoWait).is_ok()
}

/// At read committed, a row that a get has read and released can be locked by others.
#[test]
fn the_lock_of_a_get_can_be_given_up() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let reads = db.begin(at(Isolation::ReadCommitted)).unwrap();
    reads.get_for_update(&tree, b"a", Wait::NoWait).unwrap();
    assert!(!is_free(&db, &tree, b"a"));
    reads.unlock(&tree, b"b").unwrap();
    assert!(!is_free(&db, &tree, b"a"), "another key was given up");
    reads.unlock(&tree, b"a").unwrap();
    assert!(is_free(&db, &tree, b"a"));
}

/// A row stays locked if the caller may rely on the lock: if the row was locked before, or written
/// or locked since, or if the isolation level guarantees repeatable reads.
#[test]
fn unlock_keeps_locks_that_the_transaction_relies_on() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let reads = db.begin(at(Isolation::ReadCommitted)).unwrap();
    reads.get_for_update(&tree, b"held", Wait::NoWait).unwrap();
    reads.get_for_update(&tree, b"held", Wait::NoWait).unwrap();
    reads.unlock(&tree, b"held").unwrap();
    reads.get_for_update(&tree, b"written", Wait::NoWait).unwrap();
    reads.put(&tree, b"written", b"").unwrap();
    reads.unlock(&tree, b"written").unwrap();
    reads.get_for_update(&tree, b"earlier", Wait::NoWait).unwrap();
    reads.get_for_share(&tree, b"later", Wait::NoWait).unwrap();
    reads.unlock(&tree, b"earlier").unwrap();
    for key in ["held", "written", "earlier", "later"] {
        assert!(!is_free(&db, &tree, key.as_bytes()), "{key} is free");
    }
    let repeats = db.begin(at(Isolation::RepeatableRead)).unwrap();
    repeats.get_for_update(&tree, b"repeated", Wait::NoWait).unwrap();
    repeats.unlock(&tree, b"repeated").unwrap();
    assert!(!is_free(&db, &tree, b"repeated"));
}

/// Rule 12: between statements, a transaction at read committed has no snapshot.
#[test]
fn a_statement_that_has_ended_has_no_snapshot() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let reads = db.begin(at(Isolation::ReadCommitted)).unwrap();
    reads.begin_statement().unwrap();
    tree.put(b"a", b"later").unwrap();
    assert_eq!(reads.get(&tree, b"a").unwrap(), None);
    assert_eq!(db.stats().snapshots, 1);
    reads.end_statement().unwrap();
    assert_eq!(db.stats().snapshots, 0);
    assert_eq!(reads.get(&tree, b"a").unwrap().as_deref(), Some(&b"later"[..]));
}

/// The database calls the hook, and a panic in the hook does not affect the wait.
#[test]
fn the_hook_is_called_for_a_wait_and_its_panic_is_contained() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let holder = db.begin(TransactionOptions::new()).unwrap();
    holder.put(&tree, b"a", b"").unwrap();
    let waiter = db.begin(TransactionOptions::new()).unwrap();
    let expected = (waiter.id(), vec![holder.id()]);
    let notified: Arc<Mutex<Vec<_>>> = Arc::default();
    let noted = Arc::clone(&notified);
    db.set_wait_hook(Some(Arc::new(move |notice: WaitNotice<'_>| {
        noted.lock().push((notice.waiter, notice.blockers.to_vec()));
        panic!("of the hook: expected");
    })));
    std::thread::scope(|threads| {
        let waits = threads.spawn(|| waiter.put(&tree, b"a", b""));
        while notified.lock().is_empty() {
            std::thread::yield_now();
        }
        holder.commit().unwrap();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(*notified.lock(), [expected]);
}

/// A seek outside of the bounds of a locking cursor reads and locks nothing, so it meets no
/// conflict, whatever another transaction has deleted there since the snapshot.
#[test]
fn a_seek_behind_the_bounds_of_a_locking_cursor_meets_no_conflict() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put("c", "1").unwrap();
    let reader = db.begin(TransactionOptions::new().snapshot_isolation(true)).unwrap();
    assert!(reader.get(&tree, "c").unwrap().is_some());
    let deletes = db.begin(TransactionOptions::new()).unwrap();
    deletes.delete_range(&tree, "k", None).unwrap();
    deletes.delete_range(&tree, "", Some(b"bb")).unwrap();
    deletes.commit().unwrap();
    let options = TransactionCursorOptions::new().range("b".."m").for_update(Wait::NoWait);
    let mut cursor = reader.cursor_with(&tree, options).unwrap();
    assert!(!cursor.seek(b"z").unwrap());
    assert!(!cursor.seek_for_prev(b"a").unwrap());
    assert_eq!(cursor.first().unwrap_err().kind(), ErrorKind::Conflict);
}
