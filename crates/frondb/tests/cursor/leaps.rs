//! Seeks relative to the current position of a cursor: near and far, in both directions, over
//! memtables, runs and base, with versions, range deletes, updates and a transaction's own writes,
//! compared with a map.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use frondb::testing::TestDb;
use frondb::{
    Batch, CursorOptions, Db, Durability, Options, Transaction, TransactionCursorOptions,
    TransactionOptions, Tree, TreeOptions,
};
use frondb_core::clock::ManualClock;
use frondb_core::prng::Prng;
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions::AppendEach;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 3000;

fn key(n: u64) -> Vec<u8> {
    // Keys have two lengths, and a key may be a prefix of another.
    let mut key = (n / 2).to_be_bytes()[4..].to_vec();
    if n % 2 == 1 {
        key.push(0);
    }
    key
}

fn open(clock: &Arc<ManualClock>) -> (Db, Tree) {
    let device = Arc::new(MemoryDevice::new());
    let db = TestDb::on(device)
        .options(Options::small().memory_bytes(16 << 20).update_fn(AppendEach))
        .clock(clock.clone())
        .open()
        .unwrap();
    let shape = TreeOptions::new().update_fn("append", 1).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (16 << 10, 16 << 10);
        (shape.base_block_bytes, shape.run_block_bytes) = (512, 512);
        shape.slice_bytes_min = 512;
    });
    let tree = db.create_tree("t", shape).unwrap();
    (db, tree)
}

fn write(db: &Db, tree: &Tree, model: &mut Model, count: u64, prng: &mut Prng) {
    let mut batch = Batch::new();
    for i in 0..count {
        let key = key(prng.below(KEYS));
        let value = format!("{i}-{}", "v".repeat(prng.index(20))).into_bytes();
        match prng.below(40) {
            0 => {
                let end = self::key(prng.below(KEYS));
                let (lo, hi) = (key.clone().min(end.clone()), key.max(end));
                // Only one range delete in four covers many keys.
                let hi = if prng.chance(1, 4) { hi } else { [&lo[..], &[0, 1]].concat() };
                batch.delete_range(tree, &lo, Some(&hi));
                let range = (Bound::Included(lo), Bound::Excluded(hi));
                let gone: Vec<_> = model.range(range).map(|(key, _)| key.clone()).collect();
                gone.iter().for_each(|key| drop(model.remove(key)));
            }
            1..=8 => {
                batch.delete(tree, &key);
                model.remove(&key);
            }
            9..=14 => {
                batch.update(tree, &key, &value);
                model.entry(key).or_default().extend(value);
            }
            _ => {
                batch.put(tree, &key, &value);
                model.insert(key, value);
            }
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// A cursor of a tree or of a transaction.
trait Moves {
    fn seek(&mut self, key: &[u8]) -> bool;
    fn seek_for_prev(&mut self, key: &[u8]) -> bool;
    fn step(&mut self, forward: bool) -> bool;
    /// Calls `next_entries`; returns the number of entries that it has passed.
    fn step_many(&mut self, max: usize) -> usize;
    fn entry(&self) -> (Vec<u8>, Vec<u8>);
}

macro_rules! moves {
    ($cursor:ty) => {
        impl Moves for $cursor {
            fn seek(&mut self, key: &[u8]) -> bool {
                self.seek(key).unwrap()
            }
            fn seek_for_prev(&mut self, key: &[u8]) -> bool {
                self.seek_for_prev(key).unwrap()
            }
            fn step(&mut self, forward: bool) -> bool {
                if forward { self.next().unwrap() } else { self.prev().unwrap() }
            }
            fn step_many(&mut self, max: usize) -> usize {
                self.next_entries(max, 1 << 20).len()
            }
            fn entry(&self) -> (Vec<u8>, Vec<u8>) {
                assert!(self.is_valid());
                (self.key().to_vec(), self.value().unwrap().to_vec())
            }
        }
    };
}

moves!(frondb::Cursor);
moves!(frondb::TransactionCursor);

/// Moves a cursor over `[lo, hi)`, in both directions by few or many keys, with steps in between,
/// and compares with the model.
fn walk(cursor: &mut impl Moves, model: &Model, lo: u64, hi: u64, prng: &mut Prng) {
    let range = || (Bound::Included(key(lo)), Bound::Excluded(key(hi)));
    let shown: Vec<_> = model.range(range()).collect();
    let mut at = prng.below(KEYS);
    for _ in 0..60 {
        let far = *prng.pick(&[2, 20, 200, 1500]).unwrap();
        let forward = prng.chance(1, 2);
        // Several seeks in one direction, so that most of them start near the cursor's position.
        for _ in 0..1 + prng.below(6) {
            let moved = 1 + prng.below(far);
            at = if forward { at + moved } else { at.saturating_sub(moved) } % (KEYS + 2);
            let target = key(at);
            let (found, mut place) = if forward {
                let place = shown.partition_point(|(key, _)| **key < target);
                (cursor.seek(&target), Some(place))
            } else {
                let place = shown.partition_point(|(key, _)| **key <= target);
                (cursor.seek_for_prev(&target), place.checked_sub(1))
            };
            for step in 0..=prng.index(3) {
                let here = place.and_then(|place| shown.get(place));
                let what = format!("{} {at}, step {step}", if forward { "seek" } else { "back" });
                let (found, wanted) = match step {
                    0 => (found, here),
                    _ if here.is_none() => break,
                    _ => {
                        let next = |place: usize| {
                            if forward { Some(place + 1) } else { place.checked_sub(1) }
                        };
                        place = place.and_then(next);
                        (cursor.step(forward), place.and_then(|place| shown.get(place)))
                    }
                };
                assert_eq!(found, wanted.is_some(), "{what}");
                let Some((key, value)) = wanted else { continue };
                assert_eq!(cursor.entry(), ((*key).clone(), (*value).clone()), "{what}");
                if step > 0 && prng.chance(1, 3) {
                    let many = cursor.step_many(prng.index(30));
                    place = place.map(|place| place + many);
                    let here = place.and_then(|place| shown.get(place));
                    let (key, value) = here.unwrap();
                    assert_eq!(
                        cursor.entry(),
                        ((*key).clone(), (*value).clone()),
                        "{what}, {many}"
                    );
                }
            }
        }
    }
}

/// Bounds of the whole tree or of a part.
fn bounds(prng: &mut Prng) -> (u64, u64) {
    let (a, b) = (prng.below(KEYS), prng.below(KEYS));
    if prng.chance(1, 2) { (0, KEYS + 10) } else { (a.min(b), a.max(b) + 1) }
}

fn own_writes(txn: &Transaction, tree: &Tree, model: &mut Model, prng: &mut Prng) {
    for _ in 0..prng.below(40) {
        let key = key(prng.below(KEYS));
        if prng.chance(1, 3) {
            txn.delete(tree, &key).unwrap();
            model.remove(&key);
        } else {
            txn.put(tree, &key, b"own").unwrap();
            model.insert(key, b"own".to_vec());
        }
    }
}

#[test]
fn seeks_onward_agree_with_a_map() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        let clock = Arc::new(ManualClock::stepping());
        let (db, tree) = open(&clock);
        let mut model = Model::new();
        for round in 0..8 {
            write(&db, &tree, &mut model, 1 + prng.below(900), &mut prng);
            match prng.below(4) {
                0 => db.flush().unwrap(),
                1 => {
                    db.flush().unwrap();
                    while db.run_one(round % 2 == 0) {}
                }
                _ => {}
            }
            let ((lo, hi), at) = (bounds(&mut prng), db.snapshot().unwrap());
            let (lower, upper) = (key(lo), key(hi));
            let options = CursorOptions::new().range(&*lower..&*upper).at(&at);
            let mut cursor = tree.cursor_with(options).unwrap();
            walk(&mut cursor, &model, lo, hi, &mut prng);
            // Later writes and background work must not show, even if the cursor takes a newer
            // version.
            let then = model.clone();
            write(&db, &tree, &mut model, 300, &mut prng);
            walk(&mut cursor, &then, lo, hi, &mut prng);
            db.flush().unwrap();
            while db.run_one(true) {}
            clock.advance(Duration::from_secs(2));
            walk(&mut cursor, &then, lo, hi, &mut prng);
        }
    }
}

#[test]
fn seeks_onward_show_the_writes_of_the_transaction_so_far() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut prng = Prng::new(100 + seed);
        let clock = Arc::new(ManualClock::stepping());
        let (db, tree) = open(&clock);
        let mut model = Model::new();
        for _ in 0..4 {
            write(&db, &tree, &mut model, 700, &mut prng);
            db.flush().unwrap();
        }
        let txn = db.begin(TransactionOptions::new()).unwrap();
        let mut cursor = txn.cursor_with(&tree, TransactionCursorOptions::new()).unwrap();
        for _ in 0..6 {
            walk(&mut cursor, &model, 0, KEYS + 10, &mut prng);
            own_writes(&txn, &tree, &mut model, &mut prng);
            walk(&mut cursor, &model, 0, KEYS + 10, &mut prng);
            let savepoint = txn.set_savepoint().unwrap();
            let before = model.clone();
            own_writes(&txn, &tree, &mut model, &mut prng);
            walk(&mut cursor, &model, 0, KEYS + 10, &mut prng);
            txn.roll_back_to(savepoint).unwrap();
            model = before;
        }
        // Delete so many neighbouring keys that the transaction hides all rows of whole leaves.
        for n in 500..1500 {
            txn.delete(&tree, &key(n)).unwrap();
            model.remove(&key(n));
        }
        walk(&mut cursor, &model, 0, KEYS + 10, &mut prng);
    }
}
