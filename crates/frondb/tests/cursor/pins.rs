//! Rule 12: an idle cursor pins no memtable. A flush takes the cursor's version away; the next move
//! takes a new version and continues from the cursor's key at its snapshot, with the same result.

use std::collections::BTreeMap;

use frondb::testing::TestDb;
use frondb::{
    Batch, Codec, Cursor, CursorOptions, Db, Durability, ErrorKind, Options, TransactionOptions,
    Tree, TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_testkit::MemoryDevice;
use frondb_testkit::functions;
use frondb_testkit::seed::from_env;

const MEMORY: u64 = 16 << 20;

fn open() -> Db {
    let options = Options::small().memory_bytes(MEMORY).update_fn(functions::Append);
    // The clock does not advance, so no version expires by age.
    let device = Arc::new(MemoryDevice::new());
    TestDb::on(device).options(options).still().open().unwrap()
}

fn create(db: &Db, name: &str) -> Tree {
    let options = TreeOptions::new().codec(Codec::None).update_fn("append", 1).shape(|shape| {
        (shape.leaf_bytes_min, shape.leaf_bytes_max) = (16 << 10, 16 << 10);
        (shape.base_block_bytes, shape.run_block_bytes) = (512, 512);
        shape.slice_bytes_min = 1 << 10;
    });
    db.create_tree(name, options).unwrap()
}

fn put(db: &Db, tree: &Tree, rows: std::ops::Range<u64>, value: &[u8]) {
    for from in rows.clone().step_by(500) {
        let mut batch = Batch::new();
        for row in from..rows.end.min(from + 500) {
            batch.put(tree, &row.to_be_bytes(), value);
        }
        db.write(&batch, Durability::NoSync).unwrap();
    }
}

/// Memtables stay within their share, however many cursors are opened while they fill.
#[test]
fn cursors_that_stand_still_pin_no_memtable() {
    let db = open();
    let tree = create(&db, "t");
    let mut cursors = Vec::new();
    let mut largest = 0;
    for round in 0..40 {
        put(&db, &tree, round * 5000..(round + 1) * 5000, &[round as u8; 100]);
        let mut at_first = tree.cursor().unwrap();
        assert!(at_first.first().unwrap());
        let mut in_the_middle = tree.cursor().unwrap();
        assert!(in_the_middle.seek(&(round * 5000 + 1234).to_be_bytes()).unwrap());
        let unmoved = tree.cursor().unwrap();
        cursors.push([at_first, in_the_middle, unmoved]);
        largest = largest.max(db.stats().memtable_bytes);
    }
    // Rule 4: memtables get a quarter of the memory, and up to half under load.
    assert!(largest <= MEMORY / 2, "{largest} bytes of memtables");
    db.flush().unwrap();
    let left = db.stats().memtable_bytes;
    assert!(left < 64 << 10, "{left} bytes of memtables after a flush");

    for (round, [at_first, in_the_middle, unmoved]) in (0u64..).zip(&mut cursors) {
        let of = |cursor: &Cursor| u64::from_be_bytes(cursor.key().try_into().unwrap());
        assert_eq!((of(at_first), at_first.value().unwrap()), (0, &[0; 100][..]));
        assert!(at_first.next().unwrap());
        assert_eq!(of(at_first), 1);
        assert!(in_the_middle.prev().unwrap());
        assert_eq!(of(in_the_middle), round * 5000 + 1233);
        assert_eq!(in_the_middle.value().unwrap(), [round as u8; 100]);
        // The snapshot shows the last key that its round wrote.
        assert!(unmoved.last().unwrap());
        assert_eq!(of(unmoved), round * 5000 + 4999);
        assert!(!unmoved.next().unwrap());
    }
}

/// A key and a value that the cursor returned before the flush stay valid after the flush.
#[test]
fn keys_and_values_that_a_cursor_lent_stay_valid() {
    let db = open();
    let tree = create(&db, "t");
    put(&db, &tree, 0..1000, b"first");
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.seek(&500u64.to_be_bytes()).unwrap());
    let (key, value) = (cursor.key(), cursor.value().unwrap());
    put(&db, &tree, 0..1000, b"second");
    db.flush().unwrap();
    while db.run_one(true) {}
    assert_eq!((key, value), (&500u64.to_be_bytes()[..], &b"first"[..]));
    assert!(cursor.next().unwrap());
    assert_eq!((cursor.key(), cursor.value().unwrap()), (&501u64.to_be_bytes()[..], &b"first"[..]));
}

/// A large value is read when the caller calls `value`; its extents stay as long as a snapshot sees
/// it.
#[test]
fn a_large_value_is_read_after_the_version_went() {
    let db = open();
    let tree = create(&db, "t");
    let large = |n: u8| vec![n; 100_000];
    for key in 0..20u8 {
        tree.put(&[key], &large(key)).unwrap();
    }
    let mut cursor = tree.cursor().unwrap();
    assert!(cursor.seek(&[7]).unwrap());
    db.flush().unwrap();
    for round in 0..3 {
        for key in 0..20u8 {
            tree.put(&[key], &large(100 + round)).unwrap();
        }
        db.flush().unwrap();
        while db.run_one(true) {}
    }
    assert_eq!(cursor.value().unwrap(), large(7));
    for key in 8..20 {
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.value().unwrap(), large(key), "value {key}");
    }
    assert!(!cursor.next().unwrap());
}

/// A cursor on a dropped tree works, even if it lost its version before the drop or never had one.
#[test]
fn a_cursor_on_a_dropped_tree_goes_on() {
    let db = open();
    let tree = create(&db, "t");
    put(&db, &tree, 0..2000, b"value");
    let mut taken = tree.cursor().unwrap();
    assert!(taken.seek(&100u64.to_be_bytes()).unwrap());
    let mut unmoved = tree.cursor().unwrap();
    put(&db, &tree, 0..2000, b"other");
    db.flush().unwrap();
    let mut kept = tree.cursor().unwrap();
    assert!(kept.first().unwrap());
    db.drop_tree("t").unwrap();
    while db.run_one(true) {}
    for (cursor, from, value) in
        [(&mut taken, 101, "value"), (&mut unmoved, 0, "value"), (&mut kept, 1, "other")]
    {
        for row in from..2000u64 {
            assert!(cursor.next().unwrap(), "row {row}");
            assert_eq!(cursor.key(), row.to_be_bytes());
            assert_eq!(cursor.value().unwrap(), value.as_bytes());
        }
        assert!(!cursor.next().unwrap());
    }
    assert_eq!(tree.cursor().unwrap_err().kind(), ErrorKind::NotFound);
}

/// The cursor of a transaction shows the transaction's own writes in place of committed rows,
/// before and after the flush.
#[test]
fn a_cursor_of_a_transaction_goes_on_with_its_own_writes() {
    let db = open();
    let tree = create(&db, "t");
    put(&db, &tree, 0..1000, b"committed");
    let txn = db.begin(TransactionOptions::default()).unwrap();
    for row in (0..1000u64).step_by(3) {
        txn.put(&tree, &row.to_be_bytes(), b"own").unwrap();
    }
    txn.delete(&tree, &500u64.to_be_bytes()).unwrap();
    let mut cursor = txn.cursor(&tree).unwrap();
    assert!(cursor.first().unwrap());
    for row in 0..1000u64 {
        if row % 48 == 6 {
            // A row that the transaction has not locked.
            put(&db, &tree, row + 1..row + 2, b"newer");
            db.flush().unwrap();
        }
        if row == 500 {
            continue;
        }
        assert_eq!(cursor.key(), row.to_be_bytes());
        let value = if row % 3 == 0 { &b"own"[..] } else { b"committed" };
        assert_eq!(cursor.value().unwrap(), value, "row {row}");
        assert_eq!(cursor.next().unwrap(), row < 999);
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A cursor, the rows of its snapshot, and its expected key.
struct Reader {
    cursor: Cursor,
    model: Model,
    at: Option<Vec<u8>>,
}

impl Reader {
    fn new(tree: &Tree, model: &Model) -> Self {
        Self {
            cursor: tree.cursor_with(CursorOptions::new()).unwrap(),
            model: model.clone(),
            at: None,
        }
    }

    /// Makes a random move and compares the entry with the model.
    fn step(&mut self, prng: &mut Prng) {
        let key = key(prng);
        let cursor = &mut self.cursor;
        let below = |key: &[u8]| self.model.range(..key.to_vec()).next_back();
        let above = |key: &[u8]| self.model.range([key, &[0]].concat()..).next();
        let (found, entry) = match (prng.below(10), &self.at) {
            (0, _) => (cursor.seek(&key), self.model.range(key..).next()),
            (1, _) => (cursor.seek_for_prev(&key), self.model.range(..=key).next_back()),
            (2..=6, Some(at)) => (cursor.next(), above(at)),
            (7..=9, Some(at)) => (cursor.prev(), below(at)),
            (even, None) if even % 2 == 0 => (cursor.first(), self.model.iter().next()),
            _ => (cursor.last(), self.model.iter().next_back()),
        };
        assert_eq!(found.unwrap(), entry.is_some());
        self.at = entry.map(|(key, _)| key.clone());
        self.check();
    }

    fn check(&self) {
        let Some(at) = &self.at else { return assert!(!self.cursor.is_valid()) };
        assert_eq!(self.cursor.key(), &**at);
        assert_eq!(self.cursor.value().unwrap(), &*self.model[at]);
    }
}

fn key(prng: &mut Prng) -> Vec<u8> {
    let key = prng.below(400).to_string().into_bytes();
    key[..key.len().min(3)].to_vec()
}

fn write(db: &Db, tree: &Tree, model: &mut Model, prng: &mut Prng) {
    let mut batch = Batch::new();
    for _ in 0..1 + prng.below(60) {
        let key = key(prng);
        let value = vec![prng.below(256) as u8; 1 + prng.index(30)];
        match prng.below(20) {
            0..=9 => {
                batch.put(tree, &key, &value);
                model.insert(key, value);
            }
            10..=13 => {
                batch.update(tree, &key, &value);
                model.entry(key).or_default().extend(value);
            }
            14..=18 => {
                batch.delete(tree, &key);
                model.remove(&key);
            }
            _ => {
                let mut hi = key.clone();
                hi.push(b'5');
                batch.delete_range(tree, &key, Some(&hi));
                let gone: Vec<_> = model.range(key..hi).map(|(key, _)| key.clone()).collect();
                gone.iter().for_each(|key| drop(model.remove(key)));
            }
        }
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// Cursors make random moves while everything that they read is flushed and merged. They show their
/// snapshots.
#[test]
fn random_moves_between_flushes_show_the_snapshot() {
    let seed = from_env("FRONDB_SEED", 1);
    for round in 0..from_env("FRONDB_ROUNDS", 24) {
        println!("FRONDB_SEED={seed}, round {round}");
        let mut prng = Prng::new(seed * 1000 + round);
        let db = open();
        let tree = create(&db, "t");
        let (mut model, mut readers) = (Model::new(), Vec::new());
        // With 20 other cursors open, the memory is under pressure and scans read small chunks.
        // With 200, the pressure is high and every move is a seek.
        let others = [0, 20, 200][round as usize % 3];
        let _others: Vec<Cursor> = (0..others).map(|_| tree.cursor().unwrap()).collect();
        for _ in 0..200 {
            match prng.below(8) {
                0..=2 => write(&db, &tree, &mut model, &mut prng),
                3 => db.flush().unwrap(),
                4 => drop((0..prng.below(6)).all(|_| db.run_one(true))),
                5 if readers.len() < 8 => readers.push(Reader::new(&tree, &model)),
                6 if readers.len() > 4 => {
                    readers.swap_remove(prng.index(readers.len()));
                }
                _ => {
                    for reader in &mut readers {
                        let reader: &mut Reader = reader;
                        (0..prng.below(20)).for_each(|_| reader.step(&mut prng));
                    }
                }
            }
            readers.iter().for_each(Reader::check);
        }
    }
}
