//! The memory of locks stays within its limit, whatever is locked: in several trees, by several
//! transactions, in any order and mode, as rows, gaps and scans.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Bound::Excluded;

use frondb_core::budget::{Budget, Part};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::NoWait;
use frondb_locks::{LockManager, LockOptions, LockTable, Locker};

/// Limit for all locks, in bytes; one transaction may use a quarter.
const MAX: u64 = 256 << 10;
const SHARE: u64 = MAX / 4;

/// A transaction charges its memory in steps, of a sixteenth or this much.
const STEP: u64 = 4096;

struct Setup {
    budget: Arc<Budget>,
    manager: Arc<LockManager>,
    tables: Vec<Arc<LockTable>>,
}

impl Setup {
    fn new(trees: u32) -> Self {
        Self::with(trees, MAX)
    }

    fn with(trees: u32, bytes_max: u64) -> Self {
        let budget = Budget::new(1 << 30);
        let options = LockOptions { bytes_max, ..LockOptions::default() };
        let manager = LockManager::new(options, Arc::clone(&budget));
        let tables = (0..trees).map(|tree| manager.table(TreeId(tree))).collect();
        Self { budget, manager, tables }
    }

    /// Asserts that at most about `max` bytes were ever charged, and that all bytes of the locks
    /// are charged, except at most one step for each locker.
    fn stayed_below(&self, max: u64, lockers: u64, what: &str) {
        let (peak, now) = (self.budget.peak_of(Part::Locks), self.budget.used_by(Part::Locks));
        assert!(peak <= max + max / 8 + lockers * STEP, "{what}: {peak} bytes of {max}");
        let held = self.manager.stats().bytes;
        assert!(held <= now + lockers * STEP, "{what}: {held} bytes, of which {now} are charged");
    }

    fn is_empty(&self) -> bool {
        self.manager.locks(usize::MAX).is_empty() && self.budget.used_by(Part::Locks) == 0
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Writes,
    Reads,
    /// Shared and exclusive rows in turn.
    Both,
    /// Gaps that do not touch.
    Gaps,
    /// Ranges with a row each that do not touch.
    Scans,
    /// Most rows are unlocked at once, as at read committed.
    Unlocked,
}

fn lock(locker: &mut Locker, table: &Arc<LockTable>, n: u64, what: What) {
    let (key, next) = ((4 * n).to_be_bytes(), (4 * n + 2).to_be_bytes());
    let (lo, hi) = (Excluded(&key[..]), Excluded(&next[..]));
    match what {
        What::Writes => locker.lock_row(table, &key, Exclusive, NoWait).unwrap(),
        What::Reads => locker.lock_row(table, &key, Shared, NoWait).unwrap(),
        What::Both => {
            let mode = if n.is_multiple_of(2) { Shared } else { Exclusive };
            locker.lock_row(table, &key, mode, NoWait).unwrap()
        }
        What::Gaps => locker.lock_gap(table, lo, hi, NoWait).unwrap(),
        What::Scans => locker.lock_next(table, lo, hi, &next, Exclusive, NoWait).unwrap(),
        What::Unlocked => {
            let acquired = locker.lock_row(table, &key, Exclusive, NoWait).unwrap();
            if !n.is_multiple_of(8) && !acquired.was_held {
                locker.unlock_row(table, &key);
            }
            acquired
        }
    };
}

/// A transaction that packed its rows under a larger limit keeps to its share of the new one.
#[test]
fn a_smaller_limit_applies_to_transactions_with_packed_rows() {
    let setup = Setup::with(1, 64 * MAX);
    let mut locker = setup.manager.locker(1);
    let mut rows = 0;
    let mut lock_next = |locker: &mut Locker| {
        lock(locker, &setup.tables[0], rows, What::Writes);
        rows += 1;
        setup.budget.used_by(Part::Locks)
    };
    let mut before = 0;
    let packed = loop {
        let now = lock_next(&mut locker);
        if now < before {
            break now;
        }
        before = now;
    };
    setup.manager.set_bytes_max(MAX);
    for row in 0..100_000 {
        let now = lock_next(&mut locker);
        assert!(now <= packed / 4 * 5 + SHARE, "row {row}: {now} bytes, {packed} when packed");
    }
    let bytes = setup.manager.stats().bytes;
    assert!(bytes <= SHARE, "{bytes} bytes of {SHARE}");
}

#[test]
fn a_transaction_over_any_number_of_trees_keeps_to_its_share() {
    let kinds = [What::Writes, What::Reads, What::Both, What::Gaps, What::Scans, What::Unlocked];
    for what in kinds {
        for trees in [1, 2, 4, 30] {
            for in_order in [true, false] {
                let setup = Setup::new(trees);
                let mut locker = setup.manager.locker(1);
                let mut prng = Prng::new(u64::from(trees));
                for n in 0..24_000 {
                    let key = if in_order { n / u64::from(trees) } else { prng.next_u64() >> 8 };
                    lock(&mut locker, &setup.tables[n as usize % trees as usize], key, what);
                }
                let case = format!("{what:?}, {trees} trees, in order: {in_order}");
                setup.stayed_below(SHARE, 1, &case);
                let is_joined = setup.manager.counts().escalations > 0;
                assert!(is_joined || what == What::Unlocked, "{case}");
                drop(locker);
                assert!(setup.is_empty(), "{case}");
            }
        }
    }
}

/// Rows that others' locks keep apart stay locked, also if a key takes more memory than a range
/// lock.
#[test]
fn rows_with_keys_of_any_length_stay_locked() {
    for length in [8, 100, 300, 400, 1000, 4000] {
        let setup = Setup::with(1, 4 << 20);
        let table = &setup.tables[0];
        let mut lockers = [1, 2].map(|id| setup.manager.locker(id));
        let key = |n: u64| {
            let mut key = n.to_be_bytes().to_vec();
            key.resize(length, b'x');
            key
        };
        let mut locked = 0;
        // Lock rows until all locks together take too much memory, or until there are enough.
        'full: for n in 0..6000 {
            for (of, locker) in lockers.iter_mut().enumerate() {
                let key = key(2 * n + of as u64);
                match locker.lock_row(table, &key, Exclusive, NoWait) {
                    Ok(_) => locked += 1,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::TooManyLocks, "{error}");
                        break 'full;
                    }
                }
            }
        }
        assert!(locked > 1000, "{locked} keys of {length} bytes");
        let mut third = setup.manager.locker(3);
        for n in 0..locked {
            let result = third.lock_row(table, &key(n), Exclusive, NoWait);
            let kind = result.err().map(|error| error.kind());
            assert_eq!(kind, Some(ErrorKind::Busy), "key {n} of {locked}, {length} bytes");
        }
    }
}

/// The keys of ranges count, each with its copies. If they did not count, gaps of long keys would
/// take many times the limit.
#[test]
fn ranges_count_with_their_keys() {
    let long_key = |n: u64| {
        let mut key = n.to_be_bytes().to_vec();
        key.resize(4000, b'x');
        key
    };
    let setup = Setup::with(1, 1 << 30);
    let mut locker = setup.manager.locker(1);
    for n in 0..500 {
        let (lo, hi) = (long_key(2 * n), long_key(2 * n + 1));
        let (lo, hi) = (Excluded(&lo[..]), Excluded(&hi[..]));
        locker.lock_gap(&setup.tables[0], lo, hi, NoWait).unwrap();
    }
    let used = setup.budget.used_by(Part::Locks);
    assert!((500 * 4 * 4000..500 * 5 * 4000).contains(&used), "{used} bytes of 500 gaps");
    drop(locker);
    assert!(setup.is_empty());

    // In any order, rows and gaps keep to the share, in a few ranges.
    let setup = Setup::with(2, 64 << 20);
    let mut locker = setup.manager.locker(1);
    let mut prng = Prng::new(5);
    for n in 0..6000 {
        let (at, table) = (prng.below(1 << 20), &setup.tables[n % 2]);
        let (lo, hi) = (long_key(2 * at), long_key(2 * at + 1));
        let (from, to) = (Excluded(&lo[..]), Excluded(&hi[..]));
        match prng.below(3) {
            0 => locker.lock_gap(table, from, to, NoWait).unwrap(),
            1 => locker.lock_next(table, from, to, &hi, Shared, NoWait).unwrap(),
            _ => locker.lock_row(table, &lo, Exclusive, NoWait).unwrap(),
        };
    }
    setup.stayed_below(16 << 20, 1, "long keys");
    drop(locker);
    assert!(setup.is_empty());
}

/// The trees differ: two get many rows, one in key order and one at random keys; one gets shared
/// rows of a parent; the others get a few rows.
#[test]
fn trees_of_different_sizes_keep_to_the_share() {
    let setup = Setup::new(10);
    let mut locker = setup.manager.locker(1);
    let mut prng = Prng::new(1);
    for n in 0..60_000 {
        lock(&mut locker, &setup.tables[0], n, What::Writes);
        lock(&mut locker, &setup.tables[1], prng.next_u64() >> 8, What::Writes);
        lock(&mut locker, &setup.tables[2], prng.below(50_000), What::Reads);
        if n % 20_000 == 0 {
            (3..10).for_each(|at| lock(&mut locker, &setup.tables[at], n, What::Writes));
        }
    }
    setup.stayed_below(SHARE, 1, "trees of different sizes");
    // In the trees with few rows no rows are joined.
    let other = &mut setup.manager.locker(2);
    for table in &setup.tables[3..] {
        let between = other.lock_row(table, &1_u64.to_be_bytes(), Exclusive, NoWait);
        assert!(between.is_ok());
    }
}

#[test]
fn many_transactions_keep_to_the_limit_together() {
    for transactions in [5, 40] {
        let setup = Setup::new(3);
        let lockers = (0..transactions).map(|id| setup.manager.locker(id));
        let mut lockers: Vec<Locker> = lockers.collect();
        let mut prng = Prng::new(transactions);
        for n in 0..120_000 {
            let at = prng.index(lockers.len());
            // Each transaction has a key range of its own, so its locks can be joined.
            let key = (at as u64) << 32 | prng.below(1 << 32);
            lock(&mut lockers[at], &setup.tables[n % 3], key, What::Writes);
        }
        // Each transaction may use 8 KiB, however many transactions there are.
        let left = transactions * (8 << 10);
        setup.stayed_below(MAX + left, transactions, &format!("{transactions} transactions"));
        drop(lockers);
        assert!(setup.is_empty());
    }
}

/// Two transactions lock alternating rows of two trees: nothing can be joined. When all locks take
/// eight times the limit, requests of both fail, and other transactions continue. When one of the
/// two has ended, the other continues.
#[test]
fn rows_that_cannot_be_joined_end_at_eight_times_the_limit() {
    let setup = Setup::with(2, MAX / 4);
    let mut lockers = [setup.manager.locker(1), setup.manager.locker(2)];
    let row = |locker: &mut Locker, n: u64, of: u64| {
        let table = &setup.tables[(n % 2) as usize];
        locker.lock_row(table, &(8 * n + of).to_be_bytes(), Exclusive, NoWait).map(drop)
    };
    let (mut failed, mut locked) = ([false; 2], [0; 2]);
    let mut n = 0;
    while failed != [true; 2] {
        for (of, locker) in lockers.iter_mut().enumerate() {
            if failed[of] {
                continue;
            }
            match row(locker, n, of as u64) {
                Ok(()) => locked[of] = n + 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooManyLocks, "{error}");
                    failed[of] = true;
                }
            }
        }
        n += 1;
        assert!(n < 4_000_000, "no request fails: {:?}", setup.manager.stats());
    }
    assert!(n > 30_000, "{n} rows of each transaction");
    setup.stayed_below(2 * MAX, 2, "alternating rows");
    // A transaction with few locks is spared.
    let mut small = setup.manager.locker(3);
    (0..20).for_each(|n| row(&mut small, n, 2).unwrap());
    drop(small);
    // Every row is still locked, and nothing between.
    let mut other = setup.manager.locker(4);
    for n in (0..n).step_by(997) {
        for of in [0, 1] {
            let is_locked = row(&mut other, n, of).map_err(|error| error.kind());
            let expected = if n < locked[of as usize] { Err(ErrorKind::Busy) } else { Ok(()) };
            assert_eq!(is_locked, expected, "row {n} of {of}");
        }
        assert!(row(&mut other, n, 3).is_ok());
        other.release_all();
    }
    // The locks of the second transaction are gone, so those of the first become ranges.
    let [mut one, two] = lockers;
    drop(two);
    row(&mut one, n, 0).unwrap();
    (0..30_000).for_each(|more| row(&mut one, n + more, 0).unwrap());
    assert!(setup.budget.used_by(Part::Locks) < SHARE / 2, "{:?}", setup.manager.stats());
    drop(one);
    drop(other);
    assert!(setup.is_empty());
}

/// Locks that are taken again after a restart are never joined, and their requests never fail.
#[test]
fn a_locker_without_joins_is_never_full() {
    let setup = Setup::with(1, MAX / 8);
    let mut locker = setup.manager.locker(1).without_joins();
    for n in 0..120_000_u64 {
        let key = (2 * n).to_be_bytes();
        locker.lock_row(&setup.tables[0], &key, Exclusive, NoWait).unwrap();
    }
    assert!(setup.budget.used_by(Part::Locks) > MAX);
    let mut other = setup.manager.locker(2);
    other.lock_row(&setup.tables[0], &1_u64.to_be_bytes(), Exclusive, NoWait).unwrap();
}

/// A few rows of one transaction lie between many rows of another. The many rows become ranges, but
/// not where a range would take more memory than its rows.
#[test]
fn groups_of_few_rows_stay_rows() {
    let setup = Setup::new(1);
    let (mut big, mut small) = (setup.manager.locker(1), setup.manager.locker(2));
    let table = &setup.tables[0];
    // Every tenth of the first 5,000 rows is the small transaction's, and one row after them.
    let between = |n: u64| if n < 5_000 { n % 10 == 9 } else { n == 40_000 };
    for n in 0..100_000_u64 {
        let (locker, key) = match between(n) {
            true => (&mut small, n.to_be_bytes()),
            false => (&mut big, n.to_be_bytes()),
        };
        locker.lock_row(table, &key, Exclusive, NoWait).unwrap();
    }
    let stats = setup.manager.stats();
    assert!(stats.counts.escalations > 0 && stats.ranges < 20, "{stats:?}");
    setup.stayed_below(SHARE + MAX / 8, 2, "groups of few rows");
    for n in (0..100_000_u64).step_by(7) {
        let other = if between(n) { &mut big } else { &mut small };
        let error = other.lock_row(table, &n.to_be_bytes(), Shared, NoWait).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "row {n}");
    }
}
