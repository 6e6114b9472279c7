//! Transactions larger than their share of the memory spill to private runs, and have all
//! guarantees of a small transaction (rules 18 to 20).

use std::sync::Arc;

use frondb::{
    Batch, Db, Durability, ErrorKind, Isolation, Savepoint, Transaction, TransactionOptions, Tree,
    TreeOptions,
};
use frondb_core::prng::Prng;
use frondb_testkit::MemoryDevice;

use crate::support::{self, Rows, rows};

fn trees(db: &Db) -> [Tree; 2] {
    ["plain", "updated"].map(|name| {
        db.open_tree(name).unwrap_or_else(|_| {
            let options = TreeOptions::new();
            let updated = name == "updated";
            let options = if updated { options.update_fn("append", 1) } else { options };
            db.create_tree(name, options).unwrap()
        })
    })
}

fn check(trees: &[Tree; 2], models: &[Rows; 2], when: &str) {
    for (tree, model) in trees.iter().zip(models) {
        let found = rows(tree);
        assert!(
            found == *model,
            "{when}: {} has {} keys, not {}",
            tree.name(),
            found.len(),
            model.len()
        );
        let mut cursor = tree.cursor().unwrap();
        for (key, value) in model.iter().rev() {
            assert!(cursor.prev().unwrap(), "{when}");
            assert_eq!((cursor.key(), cursor.value().unwrap()), (&**key, &**value), "{when}");
        }
        assert!(!cursor.prev().unwrap());
    }
}

/// Makes the writes of one transaction, in the database and in the models.
struct History {
    rng: Prng,
    models: [Rows; 2],
    savepoints: Vec<(Savepoint, [Rows; 2])>,
}

impl History {
    fn key(&mut self) -> Vec<u8> {
        (self.rng.below(20_000) as u32 * 7919).to_be_bytes().to_vec()
    }

    fn step(&mut self, transaction: &Transaction, trees: &[Tree; 2]) {
        let at = self.rng.index(2);
        let (tree, key) = (&trees[at], self.key());
        let value = vec![self.rng.below(256) as u8; 20 + self.rng.below(60) as usize];
        match self.rng.below(1000) {
            0..700 => {
                transaction.put(tree, &key, &value).unwrap();
                self.models[at].insert(key, value);
            }
            700..850 => {
                transaction.delete(tree, &key).unwrap();
                self.models[at].remove(&key);
            }
            850..950 if at == 1 => {
                transaction.update(tree, &key, &value[..3]).unwrap();
                self.models[at].entry(key).or_default().extend_from_slice(&value[..3]);
            }
            950..951 => {
                let other = self.key();
                let (lo, hi) = (key.clone().min(other.clone()), key.max(other));
                transaction.delete_range(tree, &lo, Some(&hi)).unwrap();
                self.models[at].retain(|key, _| *key < lo || *key >= hi);
            }
            951..953 => {
                let large = vec![value[0]; 70_000];
                transaction.put(tree, &key, &large).unwrap();
                self.models[at].insert(key, large);
            }
            953..955 => {
                let savepoint = transaction.set_savepoint().unwrap();
                self.savepoints.push((savepoint, self.models.clone()));
            }
            955..956 if !self.savepoints.is_empty() => {
                let to = self.rng.index(self.savepoints.len());
                transaction.roll_back_to(self.savepoints[to].0).unwrap();
                self.savepoints.truncate(to + 1);
                self.models = self.savepoints[to].1.clone();
            }
            956..957 if !self.savepoints.is_empty() => {
                let to = self.rng.index(self.savepoints.len());
                transaction.release(self.savepoints[to].0).unwrap();
                self.savepoints.truncate(to);
            }
            _ => {
                let found = transaction.get(tree, &key).unwrap();
                assert_eq!(found.as_ref(), self.models[at].get(&key));
            }
        }
    }

    fn check_own(&self, transaction: &Transaction, trees: &[Tree; 2]) {
        for (tree, model) in trees.iter().zip(&self.models) {
            let mut cursor = transaction.cursor(tree).unwrap();
            for (key, value) in model {
                assert!(cursor.next().unwrap());
                assert_eq!((cursor.key(), cursor.value().unwrap()), (&**key, &**value));
            }
            assert!(!cursor.next().unwrap());
            assert!(cursor.last().unwrap() || model.is_empty());
            assert_eq!(cursor.key(), model.last_key_value().map_or(&b""[..], |(key, _)| key));
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

#[test]
fn histories_that_spill_agree_with_a_model() {
    let ends = [
        End::Commit,
        End::Commit,
        End::Rollback,
        End::Prepared(true),
        End::Drop,
        End::Prepared(false),
        End::Commit,
    ];
    for seed in 0..24 {
        let device = Arc::new(MemoryDevice::new());
        let mut db = support::open_small(device.clone());
        let mut models = [Rows::new(), Rows::new()];
        let mut rng = Prng::new(seed);
        for round in 0..4 {
            let trees = trees(&db);
            let when = format!("seed {seed} round {round}");
            // Older data, in memtables or in runs.
            let mut batch = Batch::new();
            for _ in 0..rng.below(400) {
                let (key, at) = ((rng.below(20_000) as u32 * 7919).to_be_bytes(), rng.index(2));
                batch.put(&trees[at], &key, b"old");
                models[at].insert(key.to_vec(), b"old".to_vec());
            }
            db.write(&batch, Durability::NoSync).unwrap();
            if rng.chance(1, 2) {
                db.flush().unwrap();
            }
            let end = ends[rng.index(ends.len())];
            models = one(&db, &trees, &mut rng, models, end, &when);
            check(&trees, &models, &when);
            drop(trees);
            if rng.chance(1, 2) {
                db.close().unwrap();
                db = support::open_small(device.clone());
                check(&self::trees(&db), &models, &format!("{when} reopened"));
            }
            while db.run_one(true) {}
            check(&self::trees(&db), &models, &format!("{when} settled"));
            for tree in self::trees(&db) {
                tree.verify(&mut |_, _| true).unwrap();
            }
        }
    }
}

/// Runs one large transaction; returns the models after it.
fn one(
    db: &Db,
    trees: &[Tree; 2],
    rng: &mut Prng,
    before: [Rows; 2],
    end: End,
    when: &str,
) -> [Rows; 2] {
    let options = TransactionOptions::new()
        .isolation(Isolation::RepeatableRead)
        .durability(Durability::NoSync);
    let transaction = db.begin(options).unwrap();
    let spills = db.stats().spills;
    let mut history =
        History { rng: Prng::new(rng.next_u64()), models: before.clone(), savepoints: Vec::new() };
    for _ in 0..20_000 {
        history.step(&transaction, trees);
    }
    history.check_own(&transaction, trees);
    assert!(db.stats().spills > spills + 2, "{when}: it did not spill");
    check(trees, &before, &format!("{when}, others"));
    match end {
        End::Commit => transaction.commit().unwrap(),
        End::Rollback => transaction.rollback().unwrap(),
        End::Drop => drop(transaction),
        End::Prepared(commits) => {
            transaction.prepare(b"x").unwrap();
            drop(transaction);
            check(trees, &before, &format!("{when}, prepared"));
            if commits {
                db.commit_prepared(b"x", Durability::NoSync).unwrap();
            } else {
                db.rollback_prepared(b"x").unwrap();
            }
        }
    }
    if matches!(end, End::Commit | End::Prepared(true)) { history.models } else { before }
}

/// Writes that were rolled back leave no used space.
#[test]
fn a_rollback_gives_all_space_back() {
    let device = Arc::new(MemoryDevice::new());
    let db = support::open_small(device.clone());
    let trees = trees(&db);
    let used = db.stats().data_used_bytes;
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    for i in 0..40_000_u32 {
        transaction.put(&trees[0], &i.to_be_bytes(), &[7; 50]).unwrap();
    }
    transaction.put(&trees[1], b"large", &[1; 100_000]).unwrap();
    assert!(db.stats().data_used_bytes > used);
    transaction.rollback().unwrap();
    assert_eq!(db.stats().data_used_bytes, used);
    assert!(db.stats().spills > 3);
    assert!(db.locks().is_empty());
}

/// After a rollback to a savepoint, a write set keeps memory but has no messages that could be
/// spilled. The search for memory to free must still end.
#[test]
fn room_that_a_savepoint_gave_up_is_found() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let trees = trees(&db);
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let savepoint = transaction.set_savepoint().unwrap();
    // Less than a sixteenth of the memory, in a buffer whose capacity is larger than a sixteenth.
    for i in 0..9_u32 {
        transaction.put(&trees[0], &i.to_be_bytes(), &[1; 20_000]).unwrap();
    }
    transaction.roll_back_to(savepoint).unwrap();
    for i in 0..40_u32 {
        transaction.put(&trees[1], &i.to_be_bytes(), &[2; 20_000]).unwrap();
    }
    transaction.commit().unwrap();
    let mut models = [Rows::new(), Rows::new()];
    models[1].extend((0..40_u32).map(|i| (i.to_be_bytes().to_vec(), vec![2; 20_000])));
    check(&trees, &models, "after the commit");
}

/// A commit that fails changes nothing: savepoints still exist, and a rollback to a savepoint
/// removes the cause of the failure.
#[test]
fn a_commit_that_fails_keeps_savepoints() {
    let db = support::open_small(Arc::new(MemoryDevice::new()));
    let trees = trees(&db);
    let transaction = db.begin(TransactionOptions::new()).unwrap();
    let mut models = [Rows::new(), Rows::new()];
    for i in 0..20_000_u32 {
        transaction.put(&trees[0], &i.to_be_bytes(), &[7; 50]).unwrap();
        models[0].insert(i.to_be_bytes().to_vec(), vec![7; 50]);
    }
    let savepoint = transaction.set_savepoint().unwrap();
    for i in 10_000..30_000_u32 {
        transaction.put(&trees[0], &i.to_be_bytes(), &[8; 50]).unwrap();
    }
    let other = db.create_tree("other", TreeOptions::new()).unwrap();
    transaction.put(&other, b"k", b"v").unwrap();
    db.drop_tree("other").unwrap();
    for _ in 0..2 {
        assert_eq!(transaction.commit().unwrap_err().kind(), ErrorKind::NotFound);
    }
    transaction.roll_back_to(savepoint).unwrap();
    transaction.commit().unwrap();
    check(&trees, &models, "after the second try");
}
