//! Settings of a transaction, at its begin and later: the lock timeout, what its commit waits for,
//! and options that exclude each other.

use std::time::Duration;

use frondb::{Db, Durability, ErrorKind, Isolation, Transaction, TransactionOptions, TreeOptions};

use crate::support;

fn kind<T>(result: frondb::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn the_lock_timeout_may_be_changed_between_calls() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let holder = db.begin(TransactionOptions::new()).unwrap();
    holder.put(&tree, b"a", b"1").unwrap();
    let other = db.begin(TransactionOptions::new().lock_timeout(HOUR)).unwrap();
    other.set_lock_timeout(Duration::ZERO).unwrap();
    assert_eq!(kind(other.put(&tree, b"a", b"2")), Some(ErrorKind::LockTimeout));
    // After the timeout is raised, the put waits until the row is free.
    other.set_lock_timeout(HOUR).unwrap();
    std::thread::scope(|threads| {
        let put = threads.spawn(|| other.put(&tree, b"a", b"2"));
        while db.lock_waits().is_empty() {
            std::thread::yield_now();
        }
        holder.commit().unwrap();
        put.join().unwrap().unwrap();
    });
    other.commit().unwrap();
    assert_eq!(tree.get(b"a").unwrap().unwrap(), b"2");
    assert_eq!(kind(other.set_lock_timeout(HOUR)), Some(ErrorKind::Invalid));
}

/// Counts the log's syncs while a transaction ends.
fn syncs(db: &Db, transaction: &Transaction, end: impl FnOnce(&Transaction)) -> u64 {
    let before = db.stats().wal_syncs;
    end(transaction);
    db.stats().wal_syncs - before
}

#[test]
fn durability_may_be_changed_until_the_commit() {
    let db = support::database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let begin = |durability| {
        let transaction = db.begin(TransactionOptions::new().durability(durability)).unwrap();
        transaction.put(&tree, b"a", b"1").unwrap();
        transaction
    };
    let commit = |transaction: &Transaction| transaction.commit().unwrap();
    assert_eq!(syncs(&db, &begin(Durability::Sync), commit), 1);
    assert_eq!(syncs(&db, &begin(Durability::NoSync), commit), 0);
    let less = begin(Durability::Sync);
    less.set_durability(Durability::NoSync).unwrap();
    assert_eq!(syncs(&db, &less, commit), 0);
    let more = begin(Durability::NoSync);
    more.set_durability(Durability::Sync).unwrap();
    let in_order =
        |transaction: &Transaction| transaction.commit_in_order().unwrap().wait().unwrap();
    assert_eq!(syncs(&db, &more, in_order), 1);
    assert_eq!(kind(more.set_durability(Durability::Sync)), Some(ErrorKind::Invalid));

    // The prepare is durable. The commit need not be durable, since the coordinator has it in its
    // log.
    let both = begin(Durability::Sync);
    assert_eq!(syncs(&db, &both, |both| both.prepare(b"x").unwrap()), 1);
    assert_eq!(kind(both.set_lock_timeout(HOUR)), Some(ErrorKind::Invalid));
    both.set_durability(Durability::NoSync).unwrap();
    assert_eq!(syncs(&db, &both, commit), 0);
    assert_eq!(tree.get(b"a").unwrap().unwrap(), b"1");
}

/// At other levels the option would have no effect, and a caller that relies on it would lose
/// updates.
#[test]
fn snapshot_isolation_at_another_level_is_refused() {
    let db = support::database();
    let options = TransactionOptions::new().snapshot_isolation(true);
    for level in [Isolation::ReadUncommitted, Isolation::ReadCommitted, Isolation::Serializable] {
        let error = db.begin(options.clone().isolation(level)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let message = error.message();
        assert!(message.contains("begin at RepeatableRead"), "{message}");
        assert!(message.contains(&format!("{level:?}")), "{message}");
    }
    db.begin(options.isolation(Isolation::RepeatableRead)).unwrap();
}
