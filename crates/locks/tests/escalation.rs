//! Random histories in which rows constantly become ranges: no transaction loses a granted lock,
//! and none is granted what another one holds.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Bound::{Excluded, Included};

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::NoWait;
use frondb_locks::{LockManager, LockMode, LockOptions, LockTable, Locked, Locker};

const KEYS: u16 = 600;
const LOCKERS: usize = 3;
const TREES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Row,
    Gap,
    Scan,
    Range,
}

type Sort = (Kind, LockMode);

/// The keys of a history: in some, most are short and some are long, up to the limit.
#[derive(Clone, Copy)]
struct Keys {
    has_long: bool,
}

impl Keys {
    fn key(self, n: u16) -> Vec<u8> {
        if n == 0 {
            return Vec::new();
        }
        let mut key = n.to_be_bytes().to_vec();
        if self.has_long {
            key.resize([2, 2, 2, 23, 24, 25, 400, 32 << 10][usize::from(n * 7 % 17).min(7)], b'x');
        }
        key
    }

    fn number(key: &[u8]) -> u16 {
        key.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes))
    }

    /// A limit so small that the locks of each transaction soon exceed its share.
    fn bytes_max(self) -> u64 {
        if self.has_long { 2 << 20 } else { 8 << 10 }
    }
}

/// A granted lock: keys from `lo` to before `hi`.
#[derive(Debug)]
struct Granted {
    locker: u64,
    tree: usize,
    keys: std::ops::Range<u16>,
    sort: Sort,
}

/// The table of docs/design/transactions.md, for locks held at the same time. Scans are shared
/// here, because an exclusive scan may overlap what others hold in its gaps.
fn excludes(a: Sort, b: Sort) -> bool {
    let shared = |(kind, mode): Sort| kind == Kind::Gap || mode == Shared;
    !shared(a) || !shared(b)
}

/// Whether a held lock is at least as strong as the requested one.
fn is_as_good(held: Sort, asked: Sort) -> bool {
    match asked {
        (Kind::Gap, _) => held.0 != Kind::Row,
        (Kind::Row, Shared) => held.0 != Kind::Gap,
        (Kind::Range, Shared) => held.0 == Kind::Range,
        (Kind::Row, _) => held == (Kind::Row, Exclusive) || held == (Kind::Range, Exclusive),
        _ => held == (Kind::Range, Exclusive),
    }
}

/// The locks at each key of each tree.
fn locks_at(manager: &LockManager, keys: Keys) -> Vec<Vec<Vec<(u64, Sort)>>> {
    let mut of_trees = vec![vec![Vec::new(); usize::from(KEYS)]; TREES];
    for lock in manager.locks(usize::MAX) {
        let at = &mut of_trees[lock.tree.get() as usize];
        let (kind, lo, hi) = match lock.locked {
            Locked::Row { key } => {
                let n = Keys::number(&key);
                at[usize::from(n)].push((lock.transaction, (Kind::Row, lock.mode)));
                continue;
            }
            Locked::Gap { lo, hi } => (Kind::Gap, lo, hi),
            Locked::Scanned { lo, hi } => (Kind::Scan, lo, hi),
            Locked::Range { lo, hi } => (Kind::Range, lo, hi),
        };
        for n in 0..KEYS {
            let key = keys.key(n);
            if key[..] >= lo[..] && hi.as_ref().is_none_or(|hi| key[..] < hi[..]) {
                at[usize::from(n)].push((lock.transaction, (kind, lock.mode)));
            }
        }
    }
    of_trees
}

fn check(manager: &LockManager, keys: Keys, granted: &[Granted], seed: u64) {
    let at = locks_at(manager, keys);
    for (n, locks) in at.iter().flat_map(|tree| tree.iter().enumerate()) {
        for (a, a_sort) in locks {
            for (b, b_sort) in locks {
                let clash = a != b && excludes(*a_sort, *b_sort);
                assert!(!clash, "seed {seed}, key {n}: {a} {a_sort:?}, {b} {b_sort:?}");
            }
        }
    }
    for lock in granted {
        for n in lock.keys.clone() {
            let there = &at[lock.tree][usize::from(n)];
            let mut held = there.iter().filter(|(locker, _)| *locker == lock.locker);
            let good = held.any(|(_, held)| is_as_good(*held, lock.sort));
            assert!(good, "seed {seed}, key {n}: {lock:?} is lost, there is {there:?}");
        }
    }
}

fn ask(
    locker: &mut Locker,
    tables: &[Arc<LockTable>],
    keys_of: Keys,
    prng: &mut Prng,
) -> Vec<Granted> {
    let tree = prng.index(TREES);
    let table = &tables[tree];
    let lo = prng.below(u64::from(KEYS)) as u16;
    let hi = (lo + 1 + prng.below(4) as u16).min(KEYS);
    let mode = if prng.chance(1, 2) { Shared } else { Exclusive };
    let (lo_key, hi_key) = (keys_of.key(lo), keys_of.key(hi));
    let (gap_lo, gap_hi) = (Included(&lo_key[..]), Excluded(&hi_key[..]));
    let mut row_behind = None;
    let (result, keys, sort) = match prng.below(10) {
        0 => (locker.lock_gap(table, gap_lo, gap_hi, NoWait), lo..hi, (Kind::Gap, Shared)),
        1 => {
            // A gap and the row at its end.
            row_behind = (hi < KEYS).then_some(hi..hi + 1);
            let done = locker.lock_next(table, gap_lo, gap_hi, &hi_key, Shared, NoWait);
            (done, lo..hi, (Kind::Gap, Shared))
        }
        2 => {
            let done = locker.lock_range(table, &lo_key, Some(&hi_key), mode, NoWait);
            (done, lo..hi, (Kind::Range, mode))
        }
        _ => {
            let done = locker.lock_row(table, &lo_key, mode, NoWait);
            let mut mode = mode;
            if done.as_ref().is_ok_and(|acquired| !acquired.was_held) {
                match prng.below(6) {
                    // The row may stay locked, but nothing relies on that.
                    0 => {
                        locker.unlock_row(table, &lo_key);
                        return Vec::new();
                    }
                    1 => {
                        locker.share_row(table, &lo_key);
                        mode = Shared;
                    }
                    _ => {}
                }
            }
            (done, lo..lo + 1, (Kind::Row, mode))
        }
    };
    match result {
        Ok(_) => {
            let locker = locker.id();
            let row =
                row_behind.map(|keys| Granted { locker, tree, keys, sort: (Kind::Row, Shared) });
            std::iter::once(Granted { locker, tree, keys, sort }).chain(row).collect()
        }
        Err(e) => {
            let is_full = keys_of.has_long && e.kind() == ErrorKind::TooManyLocks;
            assert!(is_full || e.kind() == ErrorKind::Busy, "{e}");
            Vec::new()
        }
    }
}

#[test]
fn escalation_neither_loses_locks_nor_takes_those_of_others() {
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let keys = Keys { has_long: seed % 6 == 5 };
        let options = LockOptions { bytes_max: keys.bytes_max(), ..LockOptions::default() };
        let manager = LockManager::new(options, Budget::new(1 << 30));
        let tables: Vec<_> = (0..TREES as u32).map(|tree| manager.table(TreeId(tree))).collect();
        let mut lockers: Vec<Locker> = (0..LOCKERS as u64).map(|id| manager.locker(id)).collect();
        let mut granted = Vec::new();
        for step in 0..900 {
            let locker = &mut lockers[prng.index(LOCKERS)];
            granted.extend(ask(locker, &tables, keys, &mut prng));
            if step % 25 == 0 {
                check(&manager, keys, &granted, seed);
            }
            if prng.chance(1, 300) {
                locker.release_all();
                granted.retain(|lock| lock.locker != locker.id());
            }
        }
        check(&manager, keys, &granted, seed);
        assert!(manager.stats().counts.escalations > 0, "seed {seed}");
        drop(lockers);
        assert!(manager.locks(usize::MAX).is_empty());
    }
}
