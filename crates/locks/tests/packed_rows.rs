//! Random row locks of transactions whose rows are packed all the time, compared with a model.
//!
//! The first transaction locks far more rows than the others, so that often all packs of the table
//! are its own: the case that a large statement meets.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::{ErrorKind, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::NoWait;
use frondb_locks::{LockManager, LockMode, LockOptions, Locked, Locker};

const KEYS: u64 = 3000;
const LOCKERS: usize = 3;

/// The granted locks: the mode of each transaction at each key.
#[derive(Default)]
struct Model {
    rows: BTreeMap<(u64, u64), LockMode>,
}

impl Model {
    fn held(&self, key: u64, locker: u64) -> Option<LockMode> {
        self.rows.get(&(key, locker)).copied()
    }

    fn is_free(&self, key: u64, locker: u64, mode: LockMode) -> bool {
        let mut of_others =
            self.rows.range((key, 0)..(key + 1, 0)).filter(|((_, holder), _)| *holder != locker);
        of_others.all(|(_, held)| mode == Shared && *held == Shared)
    }

    fn grant(&mut self, key: u64, locker: u64, mode: LockMode) {
        let held = self.rows.entry((key, locker)).or_insert(mode);
        *held = mode.max(*held);
    }
}

/// The locks that the manager lists, with the stronger mode where a row is listed twice.
fn listed(manager: &LockManager) -> BTreeMap<(u64, u64), LockMode> {
    let mut rows = BTreeMap::new();
    for lock in manager.locks(usize::MAX) {
        let Locked::Row { key } = lock.locked else { panic!("a row became a range") };
        let key = u64::from_be_bytes(key.as_slice().try_into().unwrap());
        let held = rows.entry((key, lock.transaction)).or_insert(lock.mode);
        *held = lock.mode.max(*held);
    }
    rows
}

#[test]
fn packed_rows_lock_what_they_locked_before() {
    for seed in 0..20 {
        let mut prng = Prng::new(seed);
        // Room for about 200 rows a transaction before they are packed, and for all when packed.
        let options = LockOptions { bytes_max: 160 << 10, ..LockOptions::default() };
        let manager = LockManager::new(options, Budget::new(1 << 30));
        let table = manager.table(TreeId(1));
        let mut lockers: Vec<Locker> = (0..LOCKERS as u64).map(|id| manager.locker(id)).collect();
        let mut model = Model::default();
        let mut packed = 0;
        for step in 0..6000 {
            let at = if prng.chance(1, 12) { 1 + prng.index(LOCKERS - 1) } else { 0 };
            let (id, locker) = (at as u64, &mut lockers[at]);
            if at != 0 && prng.chance(1, 60) {
                locker.release_all();
                model.rows.retain(|(_, holder), _| *holder != id);
                continue;
            }
            let key = prng.below(KEYS);
            let mode = if prng.chance(1, 3) { Shared } else { Exclusive };
            let held = model.held(key, id);
            match locker.lock_row(&table, &key.to_be_bytes(), mode, NoWait) {
                Ok(acquired) => {
                    assert!(model.is_free(key, id, mode), "seed {seed}, step {step}, key {key}");
                    let was_held = held.is_some_and(|held| held >= mode);
                    assert_eq!(acquired.was_held, was_held, "seed {seed}, step {step}, key {key}");
                    model.grant(key, id, mode);
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                    assert!(!model.is_free(key, id, mode), "seed {seed}, step {step}, key {key}");
                }
            }
            if step % 500 == 0 {
                assert_eq!(listed(&manager), model.rows, "seed {seed}, step {step}");
                let of_first = model.rows.keys().filter(|(_, holder)| *holder == 0).count() as u64;
                packed += u64::from(manager.stats().bytes < of_first * 100);
            }
        }
        assert_eq!(listed(&manager), model.rows, "seed {seed}");
        assert!(packed > 3, "seed {seed}: rows were packed at {packed} of 12 checks");
        drop(lockers);
        assert!(manager.locks(usize::MAX).is_empty());
    }
}

/// Locks of transactions that were prepared before a restart: the first gets all of its own before
/// the second asks for keys between them.
#[test]
fn a_locker_without_joins_locks_only_its_rows() {
    let options = LockOptions { bytes_max: 4 << 10, ..LockOptions::default() };
    let manager = LockManager::new(options, Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let lock = |locker: &mut Locker, keys: u64| {
        (0..KEYS).map(|n| 2 * n + keys).find_map(|key| {
            locker.lock_row(&table, &key.to_be_bytes(), Exclusive, NoWait).err().map(|_| key)
        })
    };
    let mut even = manager.locker(1).without_joins();
    assert_eq!(lock(&mut even, 0), None);
    let mut odd = manager.locker(2).without_joins();
    assert_eq!(lock(&mut odd, 1), None, "a key between those of the first locker is locked");
    drop((even, odd));
    let mut joining = manager.locker(3);
    assert_eq!(lock(&mut joining, 0), None);
    assert!(lock(&mut manager.locker(4), 1).is_some(), "the limit does not suffice to join rows");
}
