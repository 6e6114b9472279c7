//! Bulk statements. Their entries belong to the transaction like any other write (rules 18 to 20),
//! and they begin only on trees in which no other transaction can have entries (rule 21).

use std::sync::Arc;
use std::time::Duration;

use frondb::{
    BulkStatement, Db, Durability, ErrorKind, Isolation, LockMode, Transaction, TransactionOptions,
    Tree, TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_testkit::MemoryDevice;

use crate::support::{self, Rows, rows};

fn options() -> TransactionOptions {
    TransactionOptions::new().durability(Durability::NoSync).lock_timeout(Duration::ZERO)
}

fn begin(db: &Db) -> Transaction {
    db.begin(options()).unwrap()
}

fn tree(db: &Db) -> Tree {
    db.open_tree("t").unwrap_or_else(|_| db.create_tree("t", TreeOptions::new()).unwrap())
}

fn key(number: u64) -> Vec<u8> {
    // Makes scattered keys from ascending numbers.
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec()
}

fn value(rng: &mut Prng) -> Vec<u8> {
    let long = if rng.chance(1, 2000) { 100_000 } else { 90 };
    vec![rng.below(256) as u8; rng.below(long) as usize]
}

/// Makes `n` puts with a bulk statement, some of them of the same key; returns `n`.
fn write(bulk: &mut BulkStatement, tree: &Tree, rng: &mut Prng, model: &mut Rows, n: u64) -> u64 {
    for _ in 0..n {
        let (key, value) = (key(rng.below(n * 20)), value(rng));
        bulk.put(tree, &key, &value).unwrap();
        model.insert(key, value);
    }
    n
}

fn check_own(transaction: &Transaction, tree: &Tree, model: &Rows, when: &str) {
    let mut cursor = transaction.cursor(tree).unwrap();
    for (key, value) in model {
        assert!(cursor.next().unwrap(), "{when}");
        assert_eq!((cursor.key(), cursor.value().unwrap()), (&**key, &**value), "{when}");
    }
    assert!(!cursor.next().unwrap(), "{when}");
    let mut cursor = transaction.cursor(tree).unwrap();
    for key in model.keys().rev() {
        assert!(cursor.prev().unwrap() && cursor.key() == &**key, "{when}");
    }
    for number in 0..500 {
        let found = transaction.get(tree, &key(number)).unwrap();
        assert_eq!(found.as_ref(), model.get(&key(number)), "{when}");
    }
}

/// Makes `n` writes outside of the statement, puts and deletes; they spill if there are thousands.
fn write_more(
    transaction: &Transaction,
    trees: &[&Tree],
    rng: &mut Prng,
    models: &mut [Rows],
    n: u64,
) {
    for _ in 0..n {
        let at = rng.index(trees.len());
        let (key, value) = (key(rng.below(60_000)), value(rng));
        if rng.chance(1, 3) {
            transaction.delete(trees[at], &key).unwrap();
            models[at].remove(&key);
        } else {
            transaction.put(trees[at], &key, &value).unwrap();
            models[at].insert(key, value);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Commit,
    Rollback,
    Drop,
    Prepared(bool),
}

/// Histories of a transaction with a bulk statement on two trees, compared with a model: savepoints
/// before and after the statement, other writes after it, each kind of end, a reopen.
#[test]
fn histories_agree_with_a_model() {
    let ends = [End::Commit, End::Rollback, End::Prepared(true), End::Drop, End::Prepared(false)];
    for seed in 0..30_u64 {
        let when = format!("seed {seed}");
        let device = Arc::new(MemoryDevice::new());
        let mut db = support::open_small(device.clone());
        let mut rng = Prng::new(seed);
        let mut models = [Rows::new(), Rows::new()];
        let end = ends[seed as usize % 5];
        {
            let trees = ["a", "b"].map(|name| db.create_tree(name, TreeOptions::new()).unwrap());
            let all: Vec<&Tree> = trees.iter().collect();
            let transaction = begin(&db);
            if rng.chance(1, 2) {
                // Use up local numbers for messages that are then rolled back.
                let empty = transaction.set_savepoint().unwrap();
                write_more(&transaction, &all, &mut rng, &mut models, 10);
                transaction.roll_back_to(empty).unwrap();
                models = [Rows::new(), Rows::new()];
            }
            let before = transaction.set_savepoint().unwrap();
            let mut bulk = transaction.begin_bulk(&all).unwrap().unwrap();
            let n = [10, 1000, 20_000][rng.index(3)];
            let mut put = 0;
            for (tree, model) in trees.iter().zip(&mut models) {
                put += write(&mut bulk, tree, &mut rng, model, n);
            }
            assert!(transaction.get(&trees[0], &key(1)).unwrap().is_none());
            let report = bulk.finish(&mut |_| true).unwrap();
            let entries: usize = models.iter().map(Rows::len).sum();
            assert_eq!((report.entries, report.duplicates), (entries as u64, put - entries as u64));
            assert_eq!(bulk.duplicate().is_some(), report.duplicates > 0);
            drop(bulk);
            let after = transaction.set_savepoint().unwrap();
            let loaded = models.clone();
            let more = [0, 20, 8000][rng.index(3)];
            write_more(&transaction, &all, &mut rng, &mut models, more);
            for (tree, model) in trees.iter().zip(&models) {
                check_own(&transaction, tree, model, &when);
                assert!(rows(tree).is_empty(), "{when}: others see the rows");
            }
            if rng.chance(1, 3) {
                transaction.roll_back_to(after).unwrap();
                models = loaded;
                check_own(&transaction, &trees[0], &models[0], &when);
            }
            if rng.chance(1, 4) {
                transaction.roll_back_to(before).unwrap();
                models = [Rows::new(), Rows::new()];
                write_more(&transaction, &all, &mut rng, &mut models, 30);
                check_own(&transaction, &trees[1], &models[1], &when);
            }
            match end {
                End::Commit => transaction.commit().unwrap(),
                End::Rollback => transaction.rollback().unwrap(),
                End::Drop => drop(transaction),
                End::Prepared(_) => {
                    transaction.prepare(b"x").unwrap();
                    drop(transaction);
                }
            }
        }
        if rng.chance(1, 2) {
            db.close().unwrap();
            db = support::open_small(device.clone());
        }
        match end {
            End::Commit => {}
            End::Prepared(true) => db.commit_prepared(b"x", Durability::NoSync).unwrap(),
            End::Prepared(false) => db.rollback_prepared(b"x").unwrap(),
            End::Rollback | End::Drop => {}
        }
        if !matches!(end, End::Commit | End::Prepared(true)) {
            models = [Rows::new(), Rows::new()];
        }
        for round in 0..2 {
            for (name, model) in ["a", "b"].iter().zip(&models) {
                let tree = db.open_tree(name).unwrap();
                assert!(rows(&tree) == *model, "{when} round {round}: tree {name}");
                tree.verify(&mut |_, _| true).unwrap();
            }
            while db.run_one(true) {}
        }
        db.close().unwrap();
    }
}

/// A statement begins only on a tree in which no read of the transaction finds an entry.
#[test]
fn a_tree_with_entries_is_refused() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let (tree, other) = (tree(&db), db.create_tree("other", TreeOptions::new()).unwrap());
    let begins = |transaction: &Transaction| transaction.begin_bulk(&[&other, &tree]).unwrap();

    // An entry in the newest committed state. Then the statement locks nothing.
    tree.put(b"k", b"v").unwrap();
    let transaction = begin(&db);
    assert!(begins(&transaction).is_none());
    assert!(db.locks().is_empty());
    transaction.rollback().unwrap();

    // An entry only in the transaction's snapshot, whose plain reads would need the overlay.
    let transaction = begin(&db);
    assert!(transaction.get(&tree, b"k").unwrap().is_some());
    tree.delete(b"k").unwrap();
    assert!(begins(&transaction).is_none());
    transaction.rollback().unwrap();

    // An entry only in the snapshot of the current statement.
    tree.put(b"k", b"v").unwrap();
    let transaction = db.begin(options().isolation(Isolation::ReadCommitted)).unwrap();
    transaction.begin_statement().unwrap();
    tree.delete(b"k").unwrap();
    assert!(begins(&transaction).is_none());
    transaction.begin_statement().unwrap();
    assert!(begins(&transaction).is_some());
    transaction.rollback().unwrap();

    // An entry of the transaction's own writes.
    let transaction = begin(&db);
    let savepoint = transaction.set_savepoint().unwrap();
    transaction.put(&tree, b"k", b"v").unwrap();
    assert!(begins(&transaction).is_none());
    transaction.roll_back_to(savepoint).unwrap();
    assert!(begins(&transaction).is_some());
    transaction.rollback().unwrap();

    // Under snapshot isolation: a tree that has changed since the snapshot, although it is empty
    // again.
    let options = options().isolation(Isolation::RepeatableRead).snapshot_isolation(true);
    let transaction = db.begin(options).unwrap();
    transaction.take_snapshot().unwrap();
    tree.put(b"k", b"v").unwrap();
    tree.delete(b"k").unwrap();
    assert!(begins(&transaction).is_none());
    transaction.rollback().unwrap();
    assert!(begins(&begin(&db)).is_some());
}

/// The statement's lock keeps other transactions out until the transaction ends, and their locks
/// prevent the statement.
#[test]
fn the_whole_tree_is_locked() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let tree = tree(&db);
    let (transaction, other) = (begin(&db), begin(&db));
    other.lock_range(&tree, b"a", Some(b"b"), LockMode::Shared, Wait::NoWait).unwrap();
    assert!(transaction.begin_bulk(&[&tree]).unwrap().is_none());
    other.rollback().unwrap();

    let other = begin(&db);
    let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
    bulk.put(&tree, b"m", b"1").unwrap();
    let waits = |result: frondb::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::LockTimeout);
    };
    waits(other.put(&tree, b"z", b""));
    assert!(other.begin_bulk(&[&tree]).unwrap().is_none());
    bulk.finish(&mut |_| true).unwrap();
    waits(other.insert(&tree, b"m", b"2"));
    waits(other.get_for_share(&tree, b"a", Wait::Timeout).map(drop));
    assert_eq!(other.get(&tree, b"m").unwrap(), None);
    transaction.commit().unwrap();
    assert_eq!(other.insert(&tree, b"m", b"2").unwrap_err().kind(), ErrorKind::Exists);
}

/// A statement that is dropped, cancelled or rolled back leaves no entry and no used space.
#[test]
fn a_statement_without_effect_gives_its_space_back() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let tree = tree(&db);
    let used = || db.stats().data_used_bytes;
    let (before, mut rng) = (used(), Prng::new(1));
    let fill = |transaction: &Transaction, rng: &mut Prng| {
        let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
        write(&mut bulk, &tree, rng, &mut Rows::new(), 20_000);
        bulk.put(&tree, b"large", &[7; 200_000]).unwrap();
        assert!(used() > before);
        bulk
    };
    let transaction = begin(&db);
    drop(fill(&transaction, &mut rng));
    assert_eq!(used(), before);
    let mut bulk = fill(&transaction, &mut rng);
    let mut calls = 0;
    let stopped = bulk.finish(&mut |_| {
        calls += 1;
        calls < 3
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(bulk.finish(&mut |_| true).is_err() && bulk.put(&tree, b"k", b"v").is_err());
    drop(bulk);
    assert_eq!(used(), before);
    let savepoint = transaction.set_savepoint().unwrap();
    fill(&transaction, &mut rng).finish(&mut |_| true).unwrap();
    transaction.roll_back_to(savepoint).unwrap();
    assert_eq!(used(), before);
    fill(&transaction, &mut rng).finish(&mut |_| true).unwrap();
    transaction.rollback().unwrap();
    assert_eq!((used(), db.stats().bulk_statements), (before, 2));
    assert!(rows(&tree).is_empty() && db.locks().is_empty());
}

/// Other writes to the trees during the statement would count as older than the statement's entries
/// although they are newer. So the statement fails, and the other writes stay.
#[test]
fn other_writes_to_its_trees_make_it_fail() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let (tree, other) = (tree(&db), db.create_tree("other", TreeOptions::new()).unwrap());
    let transaction = begin(&db);
    let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
    bulk.put(&tree, b"a", b"1").unwrap();
    assert_eq!(bulk.put(&other, b"a", b"1").unwrap_err().kind(), ErrorKind::Invalid);
    transaction.put(&tree, b"b", b"2").unwrap();
    assert_eq!(bulk.finish(&mut |_| true).unwrap_err().kind(), ErrorKind::Invalid);
    // A statement whose transaction has ended.
    let ended = begin(&db);
    let mut late = ended.begin_bulk(&[&other]).unwrap().unwrap();
    late.put(&other, b"a", b"1").unwrap();
    ended.commit().unwrap();
    assert_eq!(late.finish(&mut |_| true).unwrap_err().kind(), ErrorKind::Invalid);
    // A statement whose tree was dropped.
    let dropped = begin(&db);
    let mut gone = dropped.begin_bulk(&[&other]).unwrap().unwrap();
    gone.put(&other, b"a", b"1").unwrap();
    db.drop_tree("other").unwrap();
    assert_eq!(gone.finish(&mut |_| true).unwrap_err().kind(), ErrorKind::NotFound);
    transaction.commit().unwrap();
    assert_eq!(rows(&tree), Rows::from([(b"b".to_vec(), b"2".to_vec())]));
}

/// The base runs of a statement are attached unchanged, even if the commit has to spill other
/// writes to the same tree: the entries are neither written again nor merged before the commit.
#[test]
fn the_commit_writes_the_entries_no_second_time() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let tree = tree(&db);
    let transaction = begin(&db);
    let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
    for number in 0..60_000 {
        bulk.put(&tree, &key(number), &[7; 400]).unwrap();
    }
    bulk.finish(&mut |_| true).unwrap();
    let used = db.stats().data_used_bytes;
    transaction.put(&tree, b"one more", b"1").unwrap();
    let log = db.stats().wal_written_bytes;
    transaction.commit().unwrap();
    let stats = db.stats();
    assert!(stats.data_used_bytes < used + used / 10, "{} of {used}", stats.data_used_bytes);
    assert!(stats.wal_written_bytes < log + 100_000, "the log has the entries");
    assert_eq!(rows(&tree).len(), 60_001);
}

/// Rule 19: after a restart, a transaction that was prepared has locked the whole tree again,
/// without a lock for each key.
#[test]
fn a_prepared_statement_locks_its_tree_again() {
    let device = Arc::new(MemoryDevice::new());
    let db = support::open_small(device.clone());
    {
        let tree = tree(&db);
        let transaction = begin(&db);
        let mut bulk = transaction.begin_bulk(&[&tree]).unwrap().unwrap();
        for number in 0..5000 {
            bulk.put(&tree, &key(number), b"v").unwrap();
        }
        bulk.finish(&mut |_| true).unwrap();
        transaction.prepare(b"x").unwrap();
    }
    db.close().unwrap();
    let db = support::open_small(device.clone());
    assert_eq!((db.locks().len(), db.transactions()[0].messages), (1, 5000));
    let (tree, other) = (tree(&db), begin(&db));
    let waits = other.put(&tree, &key(10_000), b"").unwrap_err();
    assert_eq!(waits.kind(), ErrorKind::LockTimeout);
    db.commit_prepared(b"x", Durability::NoSync).unwrap();
    other.put(&tree, &key(10_000), b"").unwrap();
    assert_eq!(rows(&tree).len(), 5000);
}
