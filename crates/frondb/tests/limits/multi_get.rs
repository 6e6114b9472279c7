//! Lookups of several keys with one call, in trees larger than the cache. Single gets at the same
//! snapshot return the same answers and errors.

use frondb::testing::TestDb;
use frondb::{
    Batch, Db, Durability, ErrorKind, Options, Snapshot, TransactionOptions, Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{PosixDevice, SharedDevice};
use frondb_testkit::TempDir;
use frondb_testkit::faults::Script;
use frondb_testkit::functions::Append;
use frondb_testkit::{Faults, MemoryDevice};

const KEYS: u64 = 60_000;

fn options() -> Options {
    Options::small().update_fn(Append)
}

fn created(db: &Db) -> Tree {
    db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap()
}

fn key(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

/// Returns a random value that does not compress; one value in 5,000 is a large value.
fn value(prng: &mut Prng) -> Vec<u8> {
    let words = if prng.chance(1, 5000) { 10_000 } else { 4 + prng.below(30) };
    (0..words).flat_map(|_| prng.next_u64().to_le_bytes()).collect()
}

/// Writes a batch of random messages.
fn write(db: &Db, tree: &Tree, prng: &mut Prng) {
    let mut batch = Batch::new();
    for _ in 0..1_000 {
        let key = key(prng.below(KEYS));
        match prng.below(10) {
            0..6 => batch.put(tree, &key, &value(prng)),
            6..8 => batch.update(tree, &key, &prng.next_u64().to_le_bytes()),
            _ => batch.delete(tree, &key),
        };
    }
    if prng.chance(1, 5) {
        let lo = prng.below(KEYS);
        batch.delete_range(tree, &key(lo), Some(&key(lo + prng.below(300))));
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// Returns random keys: far apart or close to each other, and some of them twice.
fn random_keys(prng: &mut Prng) -> Vec<[u8; 8]> {
    let (count, from) = (prng.below(150), prng.below(KEYS));
    let width = if prng.chance(1, 2) { 60 } else { KEYS };
    (0..count).map(|_| key((from + prng.below(width)) % (KEYS + 50))).collect()
}

fn check(tree: &Tree, at: Option<&Snapshot>, prng: &mut Prng) {
    let keys = random_keys(prng);
    let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let many = match at {
        Some(at) => tree.multi_get_at(&slices, at).unwrap(),
        None => tree.multi_get(&slices).unwrap(),
    };
    assert_eq!(many.len(), keys.len());
    for (key, many) in slices.iter().zip(many) {
        let one = match at {
            Some(at) => tree.get_at(key, at).unwrap(),
            None => tree.get(key).unwrap(),
        };
        assert!(one == many, "{key:?}: {:?}", (one.map(|v| v.len()), many.map(|v| v.len())));
    }
}

fn history(db: &Db, tree: &Tree, seed: u64) {
    let mut prng = Prng::new(seed);
    let mut snapshots: Vec<Snapshot> = Vec::new();
    for step in 0..100 {
        write(db, tree, &mut prng);
        if prng.chance(1, 8) {
            db.flush().unwrap();
        }
        if prng.chance(1, 10) {
            snapshots.push(db.snapshot().unwrap());
        }
        if snapshots.len() > 3 {
            snapshots.remove(0);
        }
        if step > 20 {
            check(tree, None, &mut prng);
            snapshots.iter().for_each(|at| check(tree, Some(at), &mut prng));
        }
    }
    let stats = db.stats();
    assert!(stats.reads > 3_000, "most blocks come from the device: {stats:?}");
}

#[test]
fn many_keys_have_the_values_of_single_gets() {
    let seed = 5;
    println!("seed {seed}");
    // First in memory, then in files, whose reads run at the same time.
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options()).still().open().unwrap();
    history(&db, &created(&db), seed);
    db.close().unwrap();
    let dir = TempDir::new("multi-get");
    let files = PosixDevice::open(dir.path()).unwrap();
    let db = TestDb::on(Arc::new(files)).options(options()).still().open().unwrap();
    history(&db, &created(&db), seed + 1);
    db.close().unwrap();
}

#[test]
fn own_writes_of_a_transaction_are_above_all_else() {
    let seed = 8;
    println!("seed {seed}");
    let mut prng = Prng::new(seed);
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options()).still().open().unwrap();
    let tree = created(&db);
    for _ in 0..60 {
        write(&db, &tree, &mut prng);
    }
    db.flush().unwrap();
    let txn = db.begin(TransactionOptions::new()).unwrap();
    for _ in 0..40 {
        let key = key(prng.below(KEYS));
        match prng.below(3) {
            0 => txn.put(&tree, &key, &value(&mut prng)).unwrap(),
            1 => txn.update(&tree, &key, b"+").unwrap(),
            _ => txn.delete(&tree, &key).unwrap(),
        }
        let mut keys = random_keys(&mut prng);
        keys.push(key);
        let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let many = txn.multi_get(&tree, &slices).unwrap();
        for (key, many) in slices.iter().zip(many) {
            assert!(txn.get(&tree, key).unwrap() == many, "{key:?}");
        }
    }
    txn.rollback().unwrap();
}

/// A failed read ends the call with the read's error and has no later effect: the next call
/// succeeds.
#[test]
fn a_failed_read_ends_the_call() {
    let memory: SharedDevice = Arc::new(MemoryDevice::new());
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let db =
        TestDb::on(Arc::clone(&faults) as SharedDevice).options(options()).still().open().unwrap();
    let tree = created(&db);
    let mut prng = Prng::new(3);
    for _ in 0..150 {
        write(&db, &tree, &mut prng);
    }
    db.flush().unwrap();
    let mut failures = 0;
    for nth in 1..60 {
        let keys: Vec<[u8; 8]> = (0..100).map(|_| key(prng.below(KEYS))).collect();
        let slices: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        faults.set_script(&format!("fail read data nth={nth}").parse().unwrap());
        if let Err(error) = tree.multi_get(&slices) {
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
            failures += 1;
        }
        faults.set_script(&Script::default());
        let singles: Vec<_> = slices.iter().map(|key| tree.get(key).unwrap()).collect();
        assert_eq!(tree.multi_get(&slices).unwrap(), singles);
    }
    assert!(failures > 10, "{failures} failures");
    drop(tree);
    db.close().unwrap();
}
