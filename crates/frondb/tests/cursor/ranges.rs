//! Iterators over ranges and prefixes, from both ends, of a tree, a snapshot and a transaction;
//! calls for the first or last entry; and calls that return the previous value.

use std::collections::BTreeMap;

use frondb::{
    Db, ErrorKind, Isolation, Options, TransactionCursorOptions, TransactionOptions, Tree,
    TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::TempDir;

use crate::support;

type Entry = (Vec<u8>, Vec<u8>);

fn database() -> Db {
    support::open_small(Arc::new(MemoryDevice::new()))
}

fn key(n: u64) -> [u8; 4] {
    (n as u32).to_be_bytes()
}

/// Takes entries from random ends of an iterator and of the model's iterator; both must be equal
/// until they are empty.
fn same(
    mut found: impl DoubleEndedIterator<Item = frondb::Result<Entry>>,
    mut expected: impl DoubleEndedIterator<Item = Entry>,
    prng: &mut Prng,
    seed: u64,
) {
    // Entries come only from one end, mostly from one end, or from both.
    let front = [0, 1, 5, 10][prng.index(4)];
    loop {
        let from_front = prng.below(10) < front;
        let (found, expected) = match from_front {
            true => (found.next(), expected.next()),
            false => (found.next_back(), expected.next_back()),
        };
        assert_eq!(found.transpose().unwrap(), expected, "seed {seed}");
        if expected.is_none() {
            break;
        }
    }
    assert!(found.next().is_none() && found.next_back().is_none(), "seed {seed}: it is over");
}

#[test]
fn both_ends_return_what_a_model_has() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let db = database();
        let tree = db.create_tree("t", TreeOptions::new()).unwrap();
        let mut model = BTreeMap::new();
        for _ in 0..prng.below(60) {
            let (key, value) = (key(prng.below(80)), vec![prng.next_u32() as u8; prng.index(4)]);
            tree.put(key, &value).unwrap();
            model.insert(key.to_vec(), value);
            if prng.chance(1, 20) {
                db.flush().unwrap();
            }
        }
        let at = db.snapshot().unwrap();
        let txn = db.begin(TransactionOptions::new()).unwrap();
        let mut own = model.clone();
        for _ in 0..prng.below(20) {
            let key = key(prng.below(80));
            if prng.chance(1, 2) {
                txn.delete(&tree, key).unwrap();
                own.remove(&key[..]);
            } else {
                txn.put(&tree, key, "own").unwrap();
                own.insert(key.to_vec(), b"own".to_vec());
            }
        }
        let (a, b) = (prng.below(80), prng.below(80));
        let (lo, hi) = (key(a.min(b)), key(a.max(b)));
        let in_range = |model: &BTreeMap<Vec<u8>, Vec<u8>>| -> Vec<Entry> {
            model.range(lo.to_vec()..hi.to_vec()).map(|(k, v)| (k.clone(), v.clone())).collect()
        };
        let committed = in_range(&model);
        same(tree.range(lo..hi).unwrap(), committed.clone().into_iter(), &mut prng, seed);
        same(txn.range(&tree, lo..hi).unwrap(), in_range(&own).into_iter(), &mut prng, seed);
        let locking = TransactionCursorOptions::new().range(lo..hi).for_update(Wait::NoWait);
        let locking = txn.range_with(&tree, locking).unwrap();
        same(locking, in_range(&own).into_iter(), &mut prng, seed);
        txn.commit().unwrap();
        same(tree.range_at(lo..hi, &at).unwrap(), committed.into_iter(), &mut prng, seed);
        same(tree.range(lo..hi).unwrap(), in_range(&own).into_iter(), &mut prng, seed);
    }
}

fn keys(range: impl Iterator<Item = frondb::Result<Entry>>) -> Vec<String> {
    range.map(|entry| String::from_utf8(entry.unwrap().0).unwrap()).collect()
}

#[test]
fn keys_of_every_type_are_taken() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    let (owned, bytes) = ("frond".to_owned(), vec![b'g']);
    tree.put("fern", String::from("1")).unwrap();
    tree.put(&owned, b"2").unwrap();
    tree.put(b"root", [3_u8]).unwrap();
    tree.put(&bytes, &bytes[..]).unwrap();
    assert_eq!(tree.get(&owned).unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(keys(tree.range("f".."g").unwrap()), ["fern", "frond"]);
    assert_eq!(keys(tree.range("frond"..="g").unwrap().rev()), ["g", "frond"]);
    assert_eq!(keys(tree.range(&owned..).unwrap()), ["frond", "g", "root"]);
    assert_eq!(keys(tree.range(..&bytes).unwrap()), ["fern", "frond"]);
    assert_eq!(keys(tree.range([b'g']..[b's']).unwrap()), ["g", "root"]);
    assert_eq!(keys(tree.range(..).unwrap()).len(), 4);
    assert_eq!(keys(tree.range("x".."a").unwrap()).len(), 0);
    assert_eq!(keys(tree.prefix("fr").unwrap()), ["frond"]);
    let at = db.snapshot().unwrap();
    tree.delete("fern").unwrap();
    assert_eq!(keys(tree.prefix_at("f", &at).unwrap()), ["fern", "frond"]);
    assert_eq!(keys(tree.prefix("f").unwrap()), ["frond"]);
}

/// At read committed each new cursor is a new statement, but one iterator is one statement.
#[test]
fn both_ends_of_a_transaction_show_one_state() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    for word in ["a", "b", "c"] {
        tree.put(word, "old").unwrap();
    }
    let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
    let txn = db.begin(options).unwrap();
    let mut range = txn.range(&tree, ..).unwrap();
    let value = |entry: Option<frondb::Result<Entry>>| entry.unwrap().unwrap().1;
    assert_eq!(value(range.next()), b"old");
    for word in ["a", "b", "c", "d"] {
        tree.put(word, "new").unwrap();
    }
    assert_eq!(value(range.next_back()), b"old");
    assert_eq!(value(range.next()), b"old");
    assert!(range.next_back().is_none());
}

#[test]
fn an_iterator_ends_after_its_first_error() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    tree.put("a", "1").unwrap();
    let mut range = tree.range(..).unwrap();
    db.close().unwrap();
    assert_eq!(range.next().unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(range.next().is_none() && range.next_back().is_none());
}

#[test]
fn entries_at_the_ends_are_found_and_removed() {
    let db = database();
    let tree = db.create_tree("jobs", TreeOptions::new()).unwrap();
    let begin = || db.begin(TransactionOptions::new()).unwrap();
    let txn = begin();
    assert_eq!((tree.first().unwrap(), tree.last().unwrap()), (None, None));
    assert_eq!(txn.pop_first(&tree, Wait::NoWait).unwrap(), None);
    for word in ["a", "b", "c", "d"] {
        txn.put(&tree, word, word).unwrap();
    }
    let pair = |word: &str| Some((Vec::from(word), Vec::from(word)));
    assert_eq!((txn.first(&tree).unwrap(), txn.last(&tree).unwrap()), (pair("a"), pair("d")));
    txn.commit().unwrap();
    assert_eq!((tree.first().unwrap(), tree.last().unwrap()), (pair("a"), pair("d")));
    let (one, two) = (begin(), begin());
    assert_eq!(one.pop_first(&tree, Wait::SkipLocked).unwrap(), pair("a"));
    assert_eq!(one.pop_first(&tree, Wait::SkipLocked).unwrap(), pair("b"));
    let locked = two.pop_first(&tree, Wait::NoWait).unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Busy);
    let shown = two.pop_first(&tree, Wait::ShowLocked).unwrap_err();
    assert_eq!(shown.kind(), ErrorKind::Invalid, "both would take the entry");
    assert_eq!(two.pop_first(&tree, Wait::SkipLocked).unwrap(), pair("c"));
    assert_eq!(one.pop_last(&tree, Wait::SkipLocked).unwrap(), pair("d"));
    one.rollback().unwrap();
    two.commit().unwrap();
    assert_eq!(keys(tree.range(..).unwrap()), ["a", "b", "d"]);
}

#[test]
fn replace_and_take_return_the_old_value() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new()).unwrap();
    assert_eq!(tree.replace("k", "1").unwrap(), None);
    assert_eq!(tree.replace("k", "2").unwrap(), Some(b"1".to_vec()));
    let txn = db.begin(TransactionOptions::new()).unwrap();
    assert_eq!(txn.replace(&tree, "k", "3").unwrap(), Some(b"2".to_vec()));
    assert_eq!(txn.take(&tree, "k").unwrap(), Some(b"3".to_vec()));
    assert_eq!(txn.take(&tree, "k").unwrap(), None);
    txn.rollback().unwrap();
    assert_eq!(tree.take("k").unwrap(), Some(b"2".to_vec()));
    assert_eq!(tree.take("k").unwrap(), None);
    assert_eq!(tree.get("k").unwrap(), None);
}

/// Several threads exchange the value of one key. Each value except the last one is returned
/// exactly once.
#[test]
fn no_exchange_is_lost() {
    let dir = TempDir::new("exchange");
    let db = Db::open(dir.path(), Options::new().memory_bytes(16 << 20)).unwrap();
    let tree = db.with_commit_sync(frondb::Durability::NoSync);
    let tree = tree.create_tree("t", TreeOptions::new()).unwrap();
    let mut returned: Vec<Vec<u8>> = std::thread::scope(|scope| {
        let tree = &tree;
        let exchange = |thread: u64| {
            let keys = (0..50).map(move |i| key(thread * 50 + i));
            keys.filter_map(|value| tree.replace("k", value).unwrap()).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || exchange(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    returned.extend(tree.get("k").unwrap());
    returned.sort();
    assert_eq!(returned, (0..200).map(|n| key(n).to_vec()).collect::<Vec<_>>());
}

/// Rows of all kinds: in memory, flushed, updated, deleted, and a large value.
#[test]
fn a_value_is_read_into_memory_of_the_caller() {
    let db = database();
    let tree = db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap();
    let large = vec![7; 100 << 10];
    tree.put("flushed", "1").unwrap();
    tree.put("large", &large).unwrap();
    db.flush().unwrap();
    tree.put("memory", "2").unwrap();
    tree.put("gone", "x").unwrap();
    tree.delete("gone").unwrap();
    tree.update("flushed", "+").unwrap();
    let at = db.snapshot().unwrap();
    let txn = db.begin(TransactionOptions::new()).unwrap();
    let mut value = Vec::with_capacity(1 << 20);
    let memory = value.as_ptr();
    for word in ["memory", "gone", "missing", "memory"] {
        let found = tree.get_into(word, &mut value).unwrap();
        assert_eq!(found.then(|| value.clone()), tree.get(word).unwrap());
        assert_eq!((value.as_ptr(), value.is_empty()), (memory, !found), "the memory is kept");
    }
    for word in ["flushed", "large", "memory", "gone"] {
        let expected = tree.get(word).unwrap();
        assert_eq!(tree.get_into(word, &mut value).unwrap().then(|| value.clone()), expected);
        let found = tree.get_into_at(word, &mut value, &at).unwrap();
        assert_eq!(found.then(|| value.clone()), expected);
        let found = txn.get_into(&tree, word, &mut value).unwrap();
        assert_eq!((found.then(|| value.clone()), value.is_empty()), (expected, !found));
    }
    db.close().unwrap();
    assert!(tree.get_into("memory", &mut value).is_err() && value.is_empty());
}

fn open_or_create(db: &Db, options: TreeOptions) -> frondb::Result<Tree> {
    db.open_or_create_tree("t", options)
}

#[test]
fn a_tree_is_created_once() {
    let db = database();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| open_or_create(&db, TreeOptions::new()).unwrap().put("k", "v").unwrap());
        }
    });
    assert_eq!(db.list_trees(), ["t"]);
    let other = TreeOptions::new().update_fn("append", 1);
    let refused = open_or_create(&db, other.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(refused.message().contains("without an update function"), "{refused}");
    db.open_or_create_tree("u", other.clone()).unwrap().update("k", "v").unwrap();
    assert!(db.open_or_create_tree("u", other).is_ok());
    assert!(db.open_or_create_tree("u", TreeOptions::new()).is_ok());
    let refused = db.open_or_create_tree("u", TreeOptions::new().update_fn("append", 2));
    assert!(refused.unwrap_err().message().contains("version 1"));
}
