//! Random histories of queues, compared with a model: pops at both ends with cursors of all kinds,
//! rows that are written again, savepoints, commits, snapshots, and commits of others during the
//! transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use frondb::{
    Batch, CursorOptions, Db, Durability, Isolation, Savepoint, Snapshot, Transaction,
    TransactionCursor, TransactionCursorOptions, TransactionOptions, Tree, TreeOptions, Wait,
};
use frondb_core::prng::Prng;
use frondb_testkit::TempDir;
use frondb_testkit::seed::from_env;

use crate::queue::{id, key, open};

type Rows = BTreeMap<u64, u64>;

/// The state of a history: the database, a transaction, and the rows that they must show.
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
    /// The committed rows that the transaction's snapshot shows; `None` if the transaction reads
    /// the newest committed rows.
    base: Option<Rows>,
    /// The transaction's own writes.
    own: BTreeMap<u64, Option<u64>>,
    /// The rows that the transaction has locked. A rollback to a savepoint unlocks none.
    locked: BTreeSet<u64>,
    /// Whether plain reads lock rows, as at serializable.
    locks_reads: bool,
    savepoints: Vec<(Savepoint, BTreeMap<u64, Option<u64>>)>,
}

const IDS: u64 = 600;

const ISOLATIONS: [Isolation; 3] =
    [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];

/// How a transaction reads with a sequence of cursors.
struct Reading {
    lower: Option<u64>,
    upper: Option<u64>,
    lock: Option<Wait>,
    shared: bool,
    gaps: bool,
    from_end: bool,
    /// The id to which cursors are positioned; `None` for the first or the last entry.
    at: Option<u64>,
    /// Steps after the positioning, in one direction and then in the other.
    steps: u64,
    steps_back: u64,
    /// Whether the row is deleted while the cursor is open.
    deletes_open: bool,
    /// Rows that another transaction has locked, which these cursors skip.
    passed: BTreeSet<u64>,
}

impl Reading {
    fn random(prng: &mut Prng) -> Self {
        let lock = match prng.below(6) {
            0 | 1 => Some(Wait::Timeout),
            2 => Some(Wait::SkipLocked),
            _ => None,
        };
        let mut some = |one_in: u64| (prng.below(one_in) == 0).then(|| prng.below(IDS));
        let (lower, upper, at) = (some(6), some(6), some(3));
        let (steps, steps_back) = (some(3).map_or(0, |n| n % 4), some(4).map_or(0, |n| n % 3));
        let mut coin = || some(2).is_some();
        let (shared, gaps, from_end, deletes_open) = (coin(), coin(), coin(), coin());
        let passed = BTreeSet::new();
        Self {
            lower,
            upper,
            lock,
            shared,
            gaps,
            from_end,
            at,
            steps,
            steps_back,
            deletes_open,
            passed,
        }
    }

    fn options(&self) -> TransactionCursorOptions {
        let low = self.lower.map_or(Bound::Unbounded, |id| Bound::Included(key(id)));
        let high = self.upper.map_or(Bound::Unbounded, |id| Bound::Excluded(key(id)));
        let mut options = TransactionCursorOptions::new().range((low, high));
        if let Some(wait) = self.lock {
            let is_shared = self.shared;
            options = if is_shared { options.for_share(wait) } else { options.for_update(wait) };
        }
        if self.gaps { options } else { options.without_gaps() }
    }

    /// Returns the rows of `rows` that these cursors show.
    fn shown(&self, rows: &Rows) -> Rows {
        let is_shown = |id: u64| {
            self.lower.is_none_or(|lower| lower <= id)
                && self.upper.is_none_or(|upper| id < upper)
                && !self.passed.contains(&id)
        };
        rows.iter().filter(|(id, _)| is_shown(**id)).map(|(&id, &value)| (id, value)).collect()
    }
}

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
        let isolation = ISOLATIONS[self.prng.index(ISOLATIONS.len())];
        let options = TransactionOptions::new().isolation(isolation);
        let transaction = self.db.begin(options.durability(Durability::NoSync)).unwrap();
        // The first read takes the snapshot.
        transaction.get(&self.tree, &key(0)).unwrap();
        let base = (isolation == Isolation::RepeatableRead).then(|| self.committed.clone());
        let (own, locked, savepoints) = (BTreeMap::new(), BTreeSet::from([0]), Vec::new());
        let locks_reads = isolation == Isolation::Serializable;
        self.open = Some(Open { transaction, base, own, locked, locks_reads, savepoints });
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

    /// Writes a row outside the transaction, unless the transaction may have locked it.
    fn write_beside(&mut self, id: u64, value: Option<u64>) {
        if self.open.as_ref().is_some_and(|open| open.locked.contains(&id)) {
            return;
        }
        let open = self.open.take();
        self.write(id, value);
        self.open = open;
    }

    /// Counts all rows as locked if plain reads lock, because a read may have locked the rows that
    /// it passed.
    fn note_all_locked(&mut self) {
        if let Some(open) = self.open.as_mut().filter(|open| open.locks_reads) {
            open.locked.extend(0..=IDS);
        }
    }

    /// Reads the first or the last row with a new cursor, and deletes the row.
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
        self.note_all_locked();
        if let Some((id, _)) = expected {
            self.write(id, None);
        }
    }

    /// Reads with several new cursors one after another, and deletes the row that each has found.
    fn read_and_delete(&mut self) {
        let mut reading = Reading::random(&mut self.prng);
        let other = self.db.begin(TransactionOptions::new()).unwrap();
        if reading.lock == Some(Wait::SkipLocked) {
            for _ in 0..self.prng.below(4) {
                let id = self.prng.below(IDS);
                if other.get_for_update(&self.tree, &key(id), Wait::NoWait).is_ok() {
                    reading.passed.insert(id);
                }
            }
        }
        for _ in 0..self.prng.below(60) {
            let committed = self.committed.clone();
            let Some(open) = &self.open else { return };
            let mut cursor = open.transaction.cursor_with(&self.tree, reading.options()).unwrap();
            if self.prng.below(8) == 0 {
                let (id, value) = (self.prng.below(IDS), self.value + self.prng.below(1_000));
                if !reading.passed.contains(&id) {
                    match self.prng.below(4) {
                        0 => self.write(id, Some(value)),
                        1 => self.write(id, None),
                        2 => self.write_beside(id, Some(value)),
                        _ => self.write_beside(id, None),
                    }
                }
            }
            let found = self.read(&mut cursor, &reading, &committed);
            if !reading.deletes_open {
                drop(cursor);
            }
            match found {
                Some(id) if self.prng.below(if reading.steps > 0 { 3 } else { 20 }) > 0 => {
                    self.write(id, None);
                }
                Some(_) => {}
                None if self.prng.below(4) > 0 => return,
                None => {}
            }
        }
    }

    /// Positions a cursor that was created when the committed rows were `committed`, checks what it
    /// shows, and returns the first row that it shows.
    fn read(
        &mut self,
        cursor: &mut TransactionCursor,
        reading: &Reading,
        committed: &Rows,
    ) -> Option<u64> {
        let open = self.open.as_mut()?;
        let locks = reading.lock.is_some() || open.locks_reads;
        let mut rows = match &open.base {
            _ if locks => self.committed.clone(),
            Some(base) => base.clone(),
            None => committed.clone(),
        };
        for (&id, value) in &open.own {
            match value {
                Some(value) => rows.insert(id, *value),
                None => rows.remove(&id),
            };
        }
        let rows = reading.shown(&rows);
        let mut is_up = !reading.from_end;
        let mut expected = match (is_up, reading.at) {
            (true, at) => rows.range(at.unwrap_or(0)..).next(),
            (false, at) => rows.range(..=at.unwrap_or(IDS)).next_back(),
        };
        let mut there = match (is_up, reading.at) {
            (true, None) => cursor.first(),
            (true, Some(at)) => cursor.seek(key(at)),
            (false, None) => cursor.last(),
            (false, Some(at)) => cursor.seek_for_prev(key(at)),
        };
        let first = expected.map(|(&id, _)| id);
        let mut before = reading.at.unwrap_or(if is_up { 0 } else { IDS });
        let (mut steps, mut steps_back) = (reading.steps, reading.steps_back);
        loop {
            let found = there.unwrap().then(|| {
                let value = cursor.value().unwrap().try_into().unwrap();
                (id(cursor.key()), u64::from_be_bytes(value))
            });
            assert_eq!(found, expected.map(|(&id, &value)| (id, value)));
            let now = found.map_or(if is_up { IDS } else { 0 }, |(id, _)| id);
            if locks {
                open.locked.extend(before.min(now)..=before.max(now));
            }
            let Some((id, _)) = found else { break };
            before = now;
            if steps == 0 {
                if steps_back == 0 {
                    break;
                }
                (is_up, steps, steps_back) = (!is_up, steps_back, 0);
            }
            steps -= 1;
            if self.prng.below(3) == 0 {
                // The rollback undoes nothing, but makes the next step search again.
                let savepoint = open.transaction.set_savepoint().unwrap();
                open.transaction.roll_back_to(savepoint).unwrap();
                open.transaction.release(savepoint).unwrap();
            }
            expected = match is_up {
                true => rows.range(id + 1..).next(),
                false => rows.range(..id).next_back(),
            };
            there = if is_up { cursor.next() } else { cursor.prev() };
        }
        first
    }

    fn check(&mut self) {
        self.note_all_locked();
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
        match self.prng.below(24) {
            20.. if self.open.is_some() => self.read_and_delete(),
            0..=5 => {
                let (from_end, pops) = (self.prng.below(3) == 0, self.prng.below(80));
                for _ in 0..pops {
                    self.pop(from_end);
                }
            }
            6 | 7 => {
                // Write rows again: single ones or many.
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
