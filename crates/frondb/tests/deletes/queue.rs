//! Queues: rows are taken at one end or both with a new cursor each time. A pop steps over a bounded
//! number of deletes however many came before, and every reader sees exactly its rows.

use std::collections::{BTreeMap, BTreeSet};

use frondb::{
    Batch, CursorOptions, Db, Durability, Isolation, Options, Savepoint, Snapshot, Transaction,
    TransactionCursorOptions, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;
use frondb_testkit::seed::from_env;

type Rows = BTreeMap<u64, u64>;

fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

fn id(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

fn open(dir: &TempDir) -> Db {
    Db::open(dir.path(), Options::new().memory_bytes(32 << 20).background_threads(0)).unwrap()
}

fn fill(db: &Db, tree: &Tree, rows: u64) {
    let mut batch = Batch::new();
    for n in 0..rows {
        batch.put(tree, &key(n), &key(n));
    }
    db.write(&batch, Durability::NoSync).unwrap();
}

/// How a queue is emptied.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Pops of a transaction.
    commit_rows: u64,
    from_end: bool,
    /// Whether pops lock what they read.
    locks: bool,
    has_snapshot: bool,
    /// Whether the rows are in runs.
    is_flushed: bool,
}

/// Deletes that a pop may step over, besides those of the transaction before.
const STEPS_MAX: u64 = 64;

fn popped_in_bounds(way: Way) {
    const ROWS: u64 = 4_000;
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    fill(&db, &tree, ROWS);
    if way.is_flushed {
        db.flush().unwrap();
    }
    let snapshot = way.has_snapshot.then(|| db.snapshot().unwrap());
    let options = TransactionOptions::new().durability(Durability::NoSync);
    let mut transaction = None;
    let (mut all, pops) = (0, ROWS - 100);
    for n in 0..pops {
        let open = transaction.get_or_insert_with(|| db.begin(options.clone()).unwrap());
        let before = db.stats().tombstones_skipped;
        let cursor_options = match way.locks {
            true => TransactionCursorOptions::new().for_update(Wait::Timeout),
            false => TransactionCursorOptions::new(),
        };
        let mut cursor = open.cursor_with(&tree, cursor_options).unwrap();
        let there = if way.from_end { cursor.last() } else { cursor.first() };
        assert!(there.unwrap());
        let expected = if way.from_end { ROWS - 1 - n } else { n };
        assert_eq!(id(cursor.key()), expected, "{way:?}");
        drop(cursor);
        let passed = db.stats().tombstones_skipped - before;
        let batch = if way.commit_rows < ROWS { way.commit_rows } else { 0 };
        assert!(passed <= STEPS_MAX + batch, "pop {n} steps over {passed} deletes, {way:?}");
        all += passed;
        open.delete(&tree, &key(expected)).unwrap();
        if (n + 1) % way.commit_rows == 0 {
            transaction.take().unwrap().commit().unwrap();
        }
    }
    assert!(all <= pops * 12, "{all} deletes for {pops} pops, {way:?}");
    let left = if way.from_end { 0..100 } else { ROWS - 100..ROWS };
    if let Some(transaction) = transaction {
        transaction.commit().unwrap();
    }
    assert_eq!(forward(&tree, None), left.collect::<Vec<_>>());
    if let Some(snapshot) = &snapshot {
        assert_eq!(forward(&tree, Some(snapshot)).len() as u64, ROWS);
    }
    // Beyond the deletes, and in them.
    let before = db.stats().tombstones_skipped;
    let mut cursor = tree.cursor().unwrap();
    let (at, hit) = if way.from_end { (ROWS + 5, 99) } else { (0, ROWS - 100) };
    let found = if way.from_end { cursor.seek_for_prev(&key(at)) } else { cursor.seek(&key(at)) };
    assert!(found.unwrap() && id(cursor.key()) == hit);
    drop(cursor);
    let passed = db.stats().tombstones_skipped - before;
    assert!(passed <= STEPS_MAX, "a seek steps over {passed} deletes, {way:?}");
}

fn forward(tree: &Tree, snapshot: Option<&Snapshot>) -> Vec<u64> {
    let mut options = CursorOptions::new();
    if let Some(snapshot) = snapshot {
        options = options.at(snapshot);
    }
    let mut cursor = tree.cursor_with(options).unwrap();
    let (mut ids, mut there) = (Vec::new(), cursor.first().unwrap());
    while there {
        ids.push(id(cursor.key()));
        there = cursor.next().unwrap();
    }
    ids
}

#[test]
fn a_pop_steps_over_few_deletes() {
    for commit_rows in [1, 10, u64::MAX] {
        for from_end in [false, true] {
            for (locks, has_snapshot, is_flushed) in [
                (false, false, true),
                (true, false, false),
                (false, true, false),
                (true, true, true),
            ] {
                popped_in_bounds(Way { commit_rows, from_end, locks, has_snapshot, is_flushed });
            }
        }
    }
}

/// A queue that is emptied is polled, and gets new rows.
#[test]
fn an_empty_queue_is_polled_cheaply() {
    let dir = TempDir::new("queue");
    let db = open(&dir);
    let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
    fill(&db, &tree, 1_000);
    for n in 0..1_000 {
        assert!(tree.cursor().unwrap().first().unwrap());
        tree.delete(&key(n)).unwrap();
    }
    assert!(!tree.cursor().unwrap().first().unwrap());
    assert!(!tree.cursor().unwrap().last().unwrap());
    let before = db.stats().tombstones_skipped;
    for n in 1_000..2_000 {
        assert!(!tree.cursor().unwrap().first().unwrap());
        assert!(!tree.cursor().unwrap().last().unwrap());
        tree.put(&key(n), b"").unwrap();
        for is_last in [false, true] {
            let mut cursor = tree.cursor().unwrap();
            assert!(if is_last { cursor.last() } else { cursor.first() }.unwrap());
            assert_eq!(id(cursor.key()), n);
        }
        tree.delete(&key(n)).unwrap();
    }
    let passed = db.stats().tombstones_skipped - before;
    assert!(passed <= 40_000, "{passed} deletes for 4,000 reads");
}

/// The state of a history: the database, a transaction, and what they must show.
struct World {
    db: Db,
    tree: Tree,
    prng: Prng,
    committed: Rows,
    open: Option<Open>,
    snapshots: Vec<(Snapshot, Rows)>,
    value: u64,
}

struct Open {
    transaction: Transaction,
    /// What it reads below its own writes; `None` if that is what is committed last.
    base: Option<Rows>,
    /// Its own writes.
    own: BTreeMap<u64, Option<u64>>,
    /// The rows that it has locked. A rollback to a savepoint releases none.
    locked: BTreeSet<u64>,
    savepoints: Vec<(Savepoint, BTreeMap<u64, Option<u64>>)>,
}

const IDS: u64 = 600;

impl World {
    fn view(&self) -> Rows {
        let Some(open) = &self.open else { return self.committed.clone() };
        let mut rows = open.base.clone().unwrap_or_else(|| self.committed.clone());
        for (&id, value) in &open.own {
            match value {
                Some(value) => rows.insert(id, *value),
                None => rows.remove(&id),
            };
        }
        rows
    }

    fn begin(&mut self) {
        let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][self.prng.index(2)];
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = self.db.begin(options.durability(Durability::NoSync)).unwrap();
        // The first read takes the snapshot.
        transaction.get(&self.tree, &key(0)).unwrap();
        let base = (isolation == Isolation::RepeatableRead).then(|| self.committed.clone());
        let (own, locked, savepoints) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        self.open = Some(Open { transaction, base, own, locked, savepoints });
    }

    fn write(&mut self, id: u64, value: Option<u64>) {
        let (tree, k) = (&self.tree, key(id));
        if let Some(open) = &mut self.open {
            open.locked.insert(id);
        }
        match (&mut self.open, value) {
            (Some(open), Some(value)) => {
                open.transaction.put(tree, &k, &value.to_be_bytes()).unwrap();
                open.own.insert(id, Some(value));
            }
            (Some(open), None) => {
                open.transaction.delete(tree, &k).unwrap();
                open.own.insert(id, None);
            }
            (None, Some(value)) => {
                tree.put(&k, &value.to_be_bytes()).unwrap();
                self.committed.insert(id, value);
            }
            (None, None) => {
                tree.delete(&k).unwrap();
                self.committed.remove(&id);
            }
        }
    }

    fn delete_range(&mut self, from: u64, upto: u64) {
        match &mut self.open {
            Some(open) => {
                let hi = key(upto);
                open.transaction.delete_range(&self.tree, &key(from), Some(&hi)).unwrap();
                open.locked.extend(from..upto);
                open.own.extend((from..upto).map(|id| (id, None)));
            }
            None => {
                let mut batch = Batch::new();
                batch.delete_range(&self.tree, &key(from), Some(&key(upto)));
                self.db.write(&batch, Durability::NoSync).unwrap();
                self.committed.retain(|id, _| !(from..upto).contains(id));
            }
        }
    }

    /// Writes beside the transaction, which must not have locked the row.
    fn write_beside(&mut self, id: u64, value: Option<u64>) {
        if self.open.as_ref().is_some_and(|open| open.locked.contains(&id)) {
            return;
        }
        let open = self.open.take();
        self.write(id, value);
        self.open = open;
    }

    fn pop(&mut self, from_end: bool) {
        let view = self.view();
        let expected = if from_end { view.last_key_value() } else { view.first_key_value() };
        let expected = expected.map(|(&id, &value)| (id, value));
        let shown = |there: bool, key: &[u8], value: &[u8]| {
            there.then(|| (id(key), u64::from_be_bytes(value.try_into().unwrap())))
        };
        let found = match &self.open {
            Some(open) => {
                let mut cursor = open.transaction.cursor(&self.tree).unwrap();
                let there = if from_end { cursor.last() } else { cursor.first() }.unwrap();
                shown(there, cursor.key(), cursor.value().unwrap())
            }
            None => {
                let mut cursor = self.tree.cursor().unwrap();
                let there = if from_end { cursor.last() } else { cursor.first() }.unwrap();
                shown(there, cursor.key(), cursor.value().unwrap())
            }
        };
        assert_eq!(found, expected);
        if let Some((id, _)) = expected {
            self.write(id, None);
        }
    }

    fn check(&mut self) {
        let (view, at) = (self.view(), self.prng.below(IDS));
        let mut shown: Vec<(Vec<u64>, Vec<u64>)> = Vec::new();
        macro_rules! scan {
            ($cursor:expr) => {{
                let mut cursor = $cursor;
                let (mut up, mut down) = (Vec::new(), Vec::new());
                let mut there = cursor.seek(&key(at)).unwrap();
                while there {
                    up.push(id(cursor.key()));
                    there = cursor.next().unwrap();
                }
                let mut there = cursor.seek_for_prev(&key(at)).unwrap();
                while there {
                    down.push(id(cursor.key()));
                    there = cursor.prev().unwrap();
                }
                shown.push((up, down));
            }};
        }
        match &self.open {
            Some(open) => scan!(open.transaction.cursor(&self.tree).unwrap()),
            None => scan!(self.tree.cursor().unwrap()),
        }
        let mut expected = vec![view];
        for (snapshot, rows) in &self.snapshots {
            scan!(self.tree.cursor_with(CursorOptions::new().at(snapshot)).unwrap());
            expected.push(rows.clone());
        }
        for ((up, down), rows) in shown.into_iter().zip(&expected) {
            assert_eq!(up, rows.range(at..).map(|(&id, _)| id).collect::<Vec<_>>());
            assert_eq!(down, rows.range(..=at).rev().map(|(&id, _)| id).collect::<Vec<_>>());
        }
    }

    fn step(&mut self) {
        self.value += 1;
        let value = self.value;
        match self.prng.below(20) {
            0..=5 => {
                let (from_end, pops) = (self.prng.below(3) == 0, self.prng.below(80));
                for _ in 0..pops {
                    self.pop(from_end);
                }
            }
            6 | 7 => {
                // Rows come back: single ones, or many.
                for _ in 0..[1, 2, 100][self.prng.index(3)] {
                    let id = self.prng.below(IDS);
                    self.write(id, Some(value));
                }
            }
            8 => {
                let id = self.prng.below(IDS);
                let value = (self.prng.below(3) > 0).then_some(value);
                self.write_beside(id, value);
            }
            9 => {
                let from = self.prng.below(IDS);
                let upto = (from + self.prng.below(60)).min(IDS);
                if self.prng.below(2) == 0 {
                    return self.delete_range(from, upto);
                }
                for id in from..upto {
                    self.write(id, None);
                }
            }
            10 | 11 if self.open.is_none() => self.begin(),
            10 => {
                let Some(open) = &mut self.open else { return };
                let savepoint = open.transaction.set_savepoint().unwrap();
                open.savepoints.push((savepoint, open.own.clone()));
            }
            11 | 12 => {
                let Some(open) = &mut self.open else { return };
                if open.savepoints.is_empty() {
                    return;
                }
                let at = self.prng.index(open.savepoints.len());
                open.savepoints.truncate(at + 1);
                let (savepoint, own) = &open.savepoints[at];
                open.transaction.roll_back_to(*savepoint).unwrap();
                open.own = own.clone();
            }
            13 => {
                let Some(open) = self.open.take() else { return };
                open.transaction.commit().unwrap();
                for (id, value) in open.own {
                    match value {
                        Some(value) => self.committed.insert(id, value),
                        None => self.committed.remove(&id),
                    };
                }
            }
            14 if self.prng.below(2) == 0 => {
                let Some(open) = self.open.take() else { return };
                open.transaction.rollback().unwrap();
            }
            15 if self.snapshots.len() < 3 => {
                self.snapshots.push((self.db.snapshot().unwrap(), self.committed.clone()));
            }
            16 if !self.snapshots.is_empty() => {
                let at = self.prng.index(self.snapshots.len());
                self.snapshots.swap_remove(at);
            }
            17 if self.prng.below(8) == 0 => self.db.flush().unwrap(),
            _ => self.check(),
        }
    }
}

/// Pops at both ends, rows that come back, savepoints, commits, snapshots and commits beside the
/// transaction, against a model.
#[test]
fn every_reader_of_a_queue_sees_its_rows() {
    let seeds = from_env("QUEUE_SEEDS", 4_u64);
    let first_seed = from_env("QUEUE_SEED", 1_u64);
    for seed in first_seed..first_seed + seeds {
        println!("QUEUE_SEED={seed}");
        let dir = TempDir::new("queue");
        let db = open(&dir);
        let tree = db.create_tree("rows", TreeOptions::new()).unwrap();
        let prng = Prng::new(seed);
        let (committed, snapshots) = (Rows::new(), Vec::new());
        let mut world = World { db, tree, prng, committed, open: None, snapshots, value: 0 };
        for n in 0..IDS {
            world.write(n, Some(0));
        }
        for _ in 0..300 {
            world.step();
        }
        world.check();
    }
}
