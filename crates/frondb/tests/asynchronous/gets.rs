//! Lookups: the same values as `get`, at once from memory, many at a time from the device.

use frondb::testing::TestDb;
use frondb::{Batch, Db, Durability, ErrorKind, Options, Snapshot, Tree, TreeOptions};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_device::{PosixDevice, SharedDevice};
use frondb_testkit::faults::Script;
use frondb_testkit::functions::Append;
use frondb_testkit::{Faults, MemoryDevice, TempDir};
use futures::executor::block_on;
use futures::future::join_all;

use crate::support::{KEYS, key, open_rows, opening, poll_once, rows_on_device, value};

/// Writes a batch of random messages: among them updates, deletes, range deletes and large values.
fn write(db: &Db, tree: &Tree, prng: &mut Prng) {
    let mut batch = Batch::new();
    for _ in 0..1_000 {
        let key = key(prng.below(40_000) as u32);
        match prng.below(10) {
            0..6 => {
                let words = if prng.chance(1, 3_000) { 10_000 } else { 4 + prng.below(40) };
                let value = (0..words).flat_map(|_| prng.next_u64().to_le_bytes());
                batch.put(tree, key, value.collect::<Vec<u8>>())
            }
            6..8 => batch.update(tree, key, prng.next_u64().to_le_bytes()),
            _ => batch.delete(tree, key),
        };
    }
    if prng.chance(1, 5) {
        let lo = prng.below(40_000) as u32;
        batch.delete_range(tree, key(lo), Some(&key(lo + prng.below(300) as u32)));
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// Compares many lookups at once with single ones. Returns how many answered at once.
fn check(tree: &Tree, at: Option<&Snapshot>, prng: &mut Prng) -> usize {
    let keys: Vec<_> = (0..100).map(|_| key(prng.below(40_050) as u32)).collect();
    let start = |key: &[u8; 4]| match at {
        Some(at) => tree.get_async_at(key, at),
        None => tree.get_async(key),
    };
    let (mut at_once, mut results, mut waiting) = (0, vec![None; keys.len()], Vec::new());
    for (i, mut pending) in keys.iter().map(start).enumerate() {
        match poll_once(&mut pending) {
            Some(value) => (at_once, results[i]) = (at_once + 1, value.unwrap()),
            None => waiting.push(async move { (i, pending.await.unwrap()) }),
        }
    }
    for (i, value) in block_on(join_all(waiting)) {
        results[i] = value;
    }
    for (key, result) in keys.iter().zip(results) {
        let one = match at {
            Some(at) => tree.get_at(key, at).unwrap(),
            None => tree.get(key).unwrap(),
        };
        assert!(one == result, "{key:?}: {:?}", (one.map(|v| v.len()), result.map(|v| v.len())));
    }
    at_once
}

fn history(db: &Db, seed: u64) {
    println!("seed {seed}");
    let tree = db.create_tree("t", TreeOptions::new().update_fn("append", 1)).unwrap();
    let mut prng = Prng::new(seed);
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let (mut at_once, mut checks) = (0, 0);
    for step in 0..80 {
        write(db, &tree, &mut prng);
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
            at_once += check(&tree, None, &mut prng);
            at_once += snapshots.iter().map(|at| check(&tree, Some(at), &mut prng)).sum::<usize>();
            checks += 100 * (1 + snapshots.len());
        }
    }
    assert!((checks / 100..checks / 10 * 9).contains(&at_once), "{at_once} of {checks} at once");
}

#[test]
fn lookups_have_the_values_of_gets() {
    let options = || Options::small().update_fn(Append);
    let db = TestDb::on(Arc::new(MemoryDevice::new())).options(options()).still().open().unwrap();
    history(&db, 11);
    db.close().unwrap();
    let dir = TempDir::new("async-gets");
    let files = PosixDevice::open(dir.path()).unwrap();
    let db = TestDb::on(Arc::new(files)).options(options()).still().open().unwrap();
    history(&db, 12);
    db.close().unwrap();
}

#[test]
fn thousands_of_lookups_wait_at_the_same_time() {
    let device = Arc::new(rows_on_device()) as SharedDevice;
    let (db, tree) = open_rows(opening(&device));
    let keys = || (0..KEYS + 10).chain(0..KEYS).chain((0..KEYS).rev());
    let all: Vec<_> = keys().map(|n| tree.get_async(key(n))).collect();
    for (n, found) in keys().zip(block_on(join_all(all))) {
        assert_eq!(found.unwrap(), (n < KEYS).then(|| value(n)), "{n}");
    }
    db.close().unwrap();
}

#[test]
fn what_is_in_memory_is_answered_at_the_first_poll() {
    let memory = Arc::new(rows_on_device()) as SharedDevice;
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let (db, tree) = open_rows(opening(&(Arc::clone(&faults) as SharedDevice)));
    assert_eq!(block_on(tree.get_async(key(7))).unwrap(), Some(value(7)));
    tree.put("new", "1").unwrap();
    tree.delete(key(8)).unwrap();
    tree.update(&key(7), b"+").unwrap();
    let snapshot = db.snapshot().unwrap();
    tree.put("new", "2").unwrap();
    let stats = db.stats();
    // The device would fail.
    faults.set_script(&"fail read data count=all".parse().unwrap());
    let now = |pending| {
        let mut pending: frondb::Pending<_> = pending;
        poll_once(&mut pending).expect("waits").unwrap()
    };
    assert_eq!(now(tree.get_async("new")), Some(b"2".to_vec()));
    assert_eq!(now(tree.get_async_at("new", &snapshot)), Some(b"1".to_vec()));
    assert_eq!(now(tree.get_async(key(8))), None);
    assert_eq!(now(tree.get_async(key(7))), Some([value(7), b"+".to_vec()].concat()));
    assert_eq!(now(tree.get_async(key(9))), Some(value(9)), "in the block of 7");
    assert_eq!(now(tree.get_async("zzz")), None, "beyond the last key of the run");
    let after = db.stats();
    assert_eq!((after.gets, after.reads), (stats.gets + 6, stats.reads));
    faults.set_script(&Script::default());
    db.close().unwrap();
}

/// An error of the device reaches only the futures of the keys that it concerns.
#[test]
fn a_failed_read_is_an_error_of_its_key() {
    let memory = Arc::new(rows_on_device()) as SharedDevice;
    let faults = Arc::new(Faults::over(memory, &Script::default()));
    let (db, tree) = open_rows(opening(&(Arc::clone(&faults) as SharedDevice)));
    let mut failures = 0;
    for nth in 1..20 {
        faults.set_script(&format!("fail read data nth={nth} count=3").parse().unwrap());
        let all: Vec<_> = (0..KEYS).step_by(40).map(|n| tree.get_async(key(n))).collect();
        for (n, found) in (0..KEYS).step_by(40).zip(block_on(join_all(all))) {
            match found {
                Ok(found) => assert_eq!(found, Some(value(n))),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    failures += 1;
                }
            }
        }
    }
    faults.set_script(&Script::default());
    assert!((1..20 * 50 / 2).contains(&failures), "{failures}");
    assert_eq!(block_on(tree.get_async(key(0))).unwrap(), Some(value(0)));
    db.close().unwrap();
}

#[test]
fn bad_calls_fail_at_the_first_poll() {
    let device = Arc::new(rows_on_device()) as SharedDevice;
    let (db, tree) = open_rows(opening(&device));
    let (other, _) = open_rows(opening(&(Arc::new(rows_on_device()) as SharedDevice)));
    let foreign = other.snapshot().unwrap();
    let kind = |pending| {
        let mut pending: frondb::Pending<_> = pending;
        poll_once(&mut pending).expect("waits").unwrap_err().kind()
    };
    assert_eq!(kind(tree.get_async_at("k", &foreign)), ErrorKind::Invalid);
    db.drop_tree("t").unwrap();
    assert_eq!(kind(tree.get_async("k")), ErrorKind::NotFound);
    db.close().unwrap();
    assert_eq!(kind(tree.get_async("k")), ErrorKind::Closed);
}
