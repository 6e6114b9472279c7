//! Transactions and batches without common keys. None waits for another and none is the victim of a
//! deadlock, however many locks they hold and however their keys are interleaved. Each exception in
//! docs/design/transactions.md has a test here.

use frondb::{
    Batch, Db, Durability, ErrorKind, Isolation, Options, Result, Transaction,
    TransactionCursorOptions, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_testkit::{TempDir, seed};

/// Number of keys of an owner in each tree.
const KEYS: u64 = 200;
const OWNERS: u64 = 4;
const ROUNDS: u64 = 80;

/// How the keys of the owners are interleaved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    /// Each owner has a contiguous range of keys; its range locks may be anywhere in that range.
    Apart,
    /// Neighbouring keys belong to different owners in turn; each range lock covers one key.
    InTurn,
}

/// Runs random operations of an owner on its own keys.
struct Owner<'a> {
    db: &'a Db,
    trees: &'a [Tree],
    me: u64,
    layout: Layout,
    calls: u64,
    scans: bool,
}

impl Owner<'_> {
    fn key(&self, n: u64) -> Vec<u8> {
        let n = match self.layout {
            Layout::Apart => self.me * KEYS + n,
            Layout::InTurn => n * OWNERS + self.me,
        };
        n.to_be_bytes().to_vec()
    }

    fn any(&self, random: &mut Prng) -> Vec<u8> {
        self.key(random.below(KEYS))
    }

    fn range(&self, random: &mut Prng) -> (Vec<u8>, Vec<u8>) {
        let first = random.below(KEYS);
        let last = match self.layout {
            Layout::Apart => first + random.below(KEYS - first),
            Layout::InTurn => first,
        };
        (self.key(first), [&self.key(last)[..], &[0]].concat())
    }

    fn batch(&self, random: &mut Prng) -> Result<()> {
        let mut batch = Batch::new();
        for _ in 0..1 + random.below(self.calls) {
            let Some(tree) = random.pick(self.trees) else { continue };
            match random.below(4) {
                0 => {
                    let (lo, hi) = self.range(random);
                    batch.delete_range(tree, &lo, Some(&hi));
                }
                1 => batch.delete(tree, &self.any(random)),
                _ => batch.put(tree, &self.any(random), b"batch"),
            }
        }
        self.db.write(&batch, Durability::NoSync)
    }

    fn call(&self, txn: &Transaction, random: &mut Prng) -> Result<()> {
        let tree = &self.trees[random.index(self.trees.len())];
        let key = self.any(random);
        match random.below(8) {
            0 => txn.put(tree, &key, b"put"),
            1 => txn.delete(tree, &key),
            2 => match txn.insert(tree, &key, b"insert") {
                Err(error) if error.kind() == ErrorKind::Exists => Ok(()),
                other => other,
            },
            3 => txn.get_for_update(tree, &key, Wait::Timeout).map(drop),
            4 => txn.get_for_share(tree, &key, Wait::Timeout).map(drop),
            5 => {
                let (lo, hi) = self.range(random);
                txn.delete_range(tree, &lo, Some(&hi))
            }
            6 if self.scans => self.scan(txn, tree, random),
            _ => txn.get(tree, &key).map(drop),
        }
    }

    fn scan(&self, txn: &Transaction, tree: &Tree, random: &mut Prng) -> Result<()> {
        let (lo, hi) = self.range(random);
        let options = TransactionCursorOptions::new().range(&lo[..]..&hi[..]);
        let options = match random.below(2) {
            0 => options.for_update(Wait::Timeout),
            _ => options.for_share(Wait::Timeout),
        };
        let mut cursor = txn.cursor_with(tree, options)?;
        let backward = random.chance(1, 2);
        for _ in 0..random.below(20) {
            if !(if backward { cursor.prev()? } else { cursor.next()? }) {
                break;
            }
        }
        Ok(())
    }

    fn transaction(&self, random: &mut Prng) -> Result<()> {
        let levels = [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
        let options = TransactionOptions::new()
            .isolation(levels[random.index(levels.len())])
            .durability(Durability::NoSync);
        let txn = self.db.begin(options)?;
        for _ in 0..1 + random.below(self.calls) {
            self.call(&txn, random)?;
        }
        txn.commit()
    }

    fn run(&self, mut random: Prng) {
        for round in 0..ROUNDS {
            let done = match random.below(3) {
                0 => self.batch(&mut random),
                _ => self.transaction(&mut random),
            };
            assert!(done.is_ok(), "owner {}, round {round}: {done:?}", self.me);
        }
    }
}

fn open(dir: &TempDir) -> (Db, Vec<Tree>) {
    // A transaction's share of memory for locks is 32 KiB: 178 rows that are not packed.
    let db =
        Db::open(dir.path(), Options::new().memory_bytes(4 << 20).background_threads(0)).unwrap();
    let make = |name: &str| db.create_tree(name, TreeOptions::new()).unwrap();
    let trees = ["one", "other"].map(make).to_vec();
    (db, trees)
}

#[test]
fn owners_of_different_keys_do_not_meet() {
    let seed = seed::from_env("FRONDB_SEED", 1);
    println!("FRONDB_SEED={seed}");
    // Scans lock gaps and ranges, which cannot be packed. So the case with many calls has no scans.
    let cases =
        [(Layout::Apart, 30, true), (Layout::InTurn, 30, true), (Layout::InTurn, 1000, false)];
    for (layout, calls, scans) in cases {
        let dir = TempDir::new("disjoint");
        let (db, trees) = open(&dir);
        let mut random = Prng::new(seed);
        std::thread::scope(|scope| {
            for me in 0..OWNERS {
                let owner = Owner { db: &db, trees: &trees, me, layout, calls, scans };
                let random = Prng::new(random.next_u64());
                scope.spawn(move || owner.run(random));
            }
        });
        let stats = db.stats();
        let met = (stats.lock_waits, stats.deadlocks, stats.lock_escalations);
        assert_eq!(met, (0, 0, 0), "{layout:?}, {calls} calls");
        db.close().unwrap();
    }
}

/// First exception: both transactions have read that a gap has no row, and then each puts a row
/// into the gap.
#[test]
fn rows_put_into_a_gap_that_both_have_read_are_a_deadlock() {
    let dir = TempDir::new("disjoint-gap");
    let (db, trees) = open(&dir);
    let look = || {
        let txn = db.begin(TransactionOptions::new()).unwrap();
        let options = TransactionCursorOptions::new().for_update(Wait::Timeout);
        let found = txn.cursor_with(&trees[0], options).unwrap().first().unwrap();
        assert!(!found);
        txn
    };
    let (one, two) = (look(), look());
    let ends = std::thread::scope(|scope| {
        let put = |txn: Transaction, key: &'static [u8]| {
            let tree = &trees[0];
            scope.spawn(move || txn.put(tree, key, b"v").and_then(|()| txn.commit()))
        };
        let ends = [put(one, b"a"), put(two, b"b")];
        ends.map(|end| end.join().unwrap().err().map(|error| error.kind()))
    });
    assert!(ends.contains(&Some(ErrorKind::Deadlock)) && ends.contains(&None), "{ends:?}");
}

/// Second exception: a transaction has more rows than its lock memory can hold one by one, so it
/// also locks keys between them.
#[test]
fn more_rows_than_memory_lock_keys_between() {
    let dir = TempDir::new("disjoint-memory");
    let (db, trees) = open(&dir);
    let txn = db.begin(TransactionOptions::new()).unwrap();
    let mut few = None;
    for n in 0..40_000_u64 {
        txn.put(&trees[0], &(2 * n).to_be_bytes(), b"v").unwrap();
        if db.stats().lock_escalations > 0 {
            few = Some(n);
            break;
        }
    }
    let few = few.unwrap();
    assert!(few > 3000, "only {few} rows could be packed");
    let other = db.begin(TransactionOptions::new()).unwrap();
    let between = other.get_for_update(&trees[0], &101_u64.to_be_bytes(), Wait::NoWait);
    assert_eq!(between.unwrap_err().kind(), ErrorKind::Busy);
    txn.commit().unwrap();
    assert!(other.get_for_update(&trees[0], &101_u64.to_be_bytes(), Wait::NoWait).is_ok());
}
