//! One locker after the other on one thread: which locks conflict, what is covered, what can be
//! unlocked. Requests use [`LockWait::NoWait`], so a conflict shows as `Busy`.
#![cfg(not(shuttle))]

use std::ops::Bound::{Excluded, Included, Unbounded};

use frondb_core::budget::{Budget, Part};
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Result, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::{Forever, NoWait, Upto};
use frondb_locks::{
    Acquired, LockInfo, LockManager, LockMode, LockOptions, LockTable, Locked, Locker,
};

fn manager() -> (Arc<LockManager>, Arc<LockTable>) {
    let manager = LockManager::new(LockOptions::default(), Budget::new(1 << 30));
    let table = manager.table(TreeId(3));
    (manager, table)
}

/// Whether the request was granted; any failure but `Busy` fails the test.
fn granted(result: Result<Acquired>) -> bool {
    match result {
        Ok(acquired) => !acquired.waited,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Busy, "{e}");
            false
        }
    }
}

const NEW: Acquired = Acquired { waited: false, was_held: false };
const HELD: Acquired = Acquired { waited: false, was_held: true };

/// A way to lock the key "m" and the keys around it.
type Take = fn(&mut Locker, &Arc<LockTable>) -> Result<Acquired>;

fn row(locker: &mut Locker, table: &Arc<LockTable>, mode: LockMode) -> Result<Acquired> {
    locker.lock_row(table, b"m", mode, NoWait)
}

fn range(locker: &mut Locker, table: &Arc<LockTable>, mode: LockMode) -> Result<Acquired> {
    locker.lock_range(table, b"c", Some(b"x"), mode, NoWait)
}

fn scan(locker: &mut Locker, table: &Arc<LockTable>, mode: LockMode) -> Result<Acquired> {
    locker.lock_next(table, Included(b"c"), Excluded(b"m"), b"m", mode, NoWait)
}

const ROW_S: Take = |locker, table| row(locker, table, Shared);
const ROW_X: Take = |locker, table| row(locker, table, Exclusive);
const GAP: Take = |locker, table| locker.lock_gap(table, Excluded(b"c"), Excluded(b"x"), NoWait);
const SCAN_S: Take = |locker, table| scan(locker, table, Shared);
const SCAN_X: Take = |locker, table| scan(locker, table, Exclusive);
const RANGE_S: Take = |locker, table| range(locker, table, Shared);
const RANGE_X: Take = |locker, table| range(locker, table, Exclusive);

/// The table of docs/design/transactions.md as seen from the outside: 1 means that the request
/// waits.
#[test]
fn requests_wait_as_the_compatibility_table_says() {
    let wanted = [ROW_S, ROW_X, GAP, RANGE_S, RANGE_X];
    let rows: [(&str, Take, [u8; 5]); 7] = [
        ("row shared", ROW_S, [0, 1, 0, 0, 1]),
        ("row exclusive", ROW_X, [1, 1, 1, 1, 1]),
        ("gap", GAP, [0, 1, 0, 0, 1]),
        ("scanned shared", SCAN_S, [0, 1, 0, 0, 1]),
        ("scanned exclusive", SCAN_X, [1, 1, 0, 1, 1]),
        ("range shared", RANGE_S, [0, 1, 0, 0, 1]),
        ("range exclusive", RANGE_X, [1, 1, 1, 1, 1]),
    ];
    for (name, held, waits) in rows {
        for (at, wanted) in wanted.iter().enumerate() {
            let (manager, table) = manager();
            let (mut one, mut two) = (manager.locker(1), manager.locker(2));
            assert!(granted(held(&mut one, &table)));
            assert_eq!(granted(wanted(&mut two, &table)), waits[at] == 0, "{name}, {at}");
            assert!(granted(wanted(&mut one, &table)) || waits[at] == 0, "own locks conflict");
            drop(one);
            assert!(granted(wanted(&mut two, &table)), "{name}, {at}: not free when released");
        }
    }
}

#[test]
fn a_lock_held_is_not_taken_twice() {
    let (manager, table) = manager();
    let mut locker = manager.locker(1);
    assert_eq!(row(&mut locker, &table, Shared).unwrap(), NEW);
    assert_eq!(row(&mut locker, &table, Shared).unwrap(), HELD);
    assert_eq!(row(&mut locker, &table, Exclusive).unwrap(), NEW, "the shared lock is upgraded");
    assert_eq!(row(&mut locker, &table, Shared).unwrap(), HELD);
    assert_eq!(range(&mut locker, &table, Shared).unwrap(), NEW);
    assert_eq!(locker.lock_row(&table, b"d", Shared, NoWait).unwrap(), HELD);
    assert_eq!(locker.lock_row(&table, b"d", Exclusive, NoWait).unwrap(), NEW);
    assert_eq!(locker.lock_row(&table, b"x", Shared, NoWait).unwrap(), NEW, "the end is outside");
    let gap = locker.lock_gap(&table, Included(b"d"), Excluded(b"f"), NoWait);
    assert_eq!(gap.unwrap(), HELD);
    let stats = manager.stats();
    assert_eq!((stats.rows, stats.ranges), (3, 1));
    locker.release_all();
    assert!(manager.locks(usize::MAX).is_empty());
}

#[test]
fn a_scan_is_one_range_in_both_directions() {
    let (manager, table) = manager();
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    let key = |n: u32| n.to_be_bytes();
    for n in 1..1000 {
        let (lo, row) = (key(n - 1), key(n));
        one.lock_next(&table, Excluded(&lo), Excluded(&row), &row, Shared, NoWait).unwrap();
        let (hi, row) = (key(9000 - n + 1), key(9000 - n));
        one.lock_next(&table, Excluded(&row), Excluded(&hi), &row, Exclusive, NoWait).unwrap();
        assert_eq!(manager.stats().ranges, 2);
    }
    let first = [key(0).as_slice(), &[0]].concat();
    let after = [key(999).as_slice(), &[0]].concat();
    let scanned = Locked::Scanned { lo: first, hi: Some(after) };
    let expected = LockInfo { transaction: 1, tree: TreeId(3), locked: scanned, mode: Shared };
    assert_eq!(manager.locks(usize::MAX)[0], expected);
    assert!(granted(two.lock_row(&table, &key(500), Shared, NoWait)));
    assert!(!granted(two.lock_row(&table, &key(500), Exclusive, NoWait)));
    assert!(!granted(two.lock_row(&table, &key(8500), Shared, NoWait)));
    assert!(granted(two.lock_row(&table, &key(0), Exclusive, NoWait)), "where the scan began");
    assert!(granted(two.lock_gap(&table, Excluded(&key(998)), Excluded(&key(999)), NoWait)));
    assert!(granted(one.lock_gap(&table, Excluded(&key(999)), Unbounded, NoWait)), "its last gap");
    assert!(!granted(two.lock_row(&table, &key(77_777), Exclusive, NoWait)));
}

/// A scan waits for another transaction's lock on the row and in the gap before it.
#[test]
fn a_scan_stops_at_what_another_has_written() {
    let (manager, table) = manager();
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    assert!(granted(two.lock_row(&table, b"e", Exclusive, NoWait)));
    assert!(!granted(scan(&mut one, &table, Shared)), "an uncommitted insert lies in the gap");
    let beyond = one.lock_next(&table, Excluded(b"e"), Excluded(b"m"), b"m", Shared, NoWait);
    assert!(granted(beyond));
    assert!(!granted(two.lock_row(&table, b"f", Exclusive, NoWait)));
    assert!(!granted(two.lock_row(&table, b"m", Exclusive, NoWait)));
}

#[test]
fn a_row_that_did_not_match_is_unlocked() {
    let (manager, table) = manager();
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    for n in 0..5000_u32 {
        assert!(granted(one.lock_row(&table, &n.to_be_bytes(), Exclusive, NoWait)));
    }
    for n in (0..5000_u32).filter(|n| n % 100 != 0) {
        one.unlock_row(&table, &n.to_be_bytes());
    }
    assert_eq!(manager.stats().rows, 50);
    assert!(granted(two.lock_row(&table, &7_u32.to_be_bytes(), Exclusive, NoWait)));
    assert!(!granted(two.lock_row(&table, &700_u32.to_be_bytes(), Shared, NoWait)));
    one.unlock_row(&table, &7_u32.to_be_bytes());
    assert!(
        !granted(one.lock_row(&table, &7_u32.to_be_bytes(), Shared, NoWait)),
        "the other locker holds it"
    );
    assert_eq!(one.lock_row(&table, &700_u32.to_be_bytes(), Shared, NoWait).unwrap(), HELD);
}

/// A row that an earlier statement locked shared and a later statement upgraded stays locked when
/// the later statement unlocks it.
#[test]
fn an_upgraded_row_stays_locked() {
    let (manager, table) = manager();
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    assert!(granted(row(&mut one, &table, Shared)) && granted(row(&mut one, &table, Exclusive)));
    one.unlock_row(&table, b"m");
    assert!(!granted(row(&mut two, &table, Shared)));
    range(&mut one, &table, Exclusive).unwrap();
    one.unlock_row(&table, b"n");
    assert!(!granted(two.lock_row(&table, b"n", Shared, NoWait)), "a range stays locked");
}

#[test]
fn plain_batches_pass_while_no_locker_has_locks() {
    let (manager, table) = manager();
    let other = manager.table(TreeId(4));
    let mut locker = manager.locker(1);
    let (first, second) = (table.begin_unlocked(), table.begin_unlocked());
    assert!(first.is_some() && second.is_some());
    drop((first, second));
    row(&mut locker, &table, Shared).unwrap();
    assert!(table.begin_unlocked().is_none());
    assert!(other.begin_unlocked().is_some());
    locker.release_all();
    assert!(table.begin_unlocked().is_some());
}

#[test]
fn a_million_rows_become_few_ranges_around_another_lock() {
    let budget = Budget::new(1 << 30);
    let options = LockOptions { bytes_max: 4 << 20, ..LockOptions::default() };
    let manager = LockManager::new(options, Arc::clone(&budget));
    let table = manager.table(TreeId(1));
    let key = |n: u64| (2 * n).to_be_bytes();
    let between = |n: u64| (2 * n + 1).to_be_bytes();
    let (mut big, mut other) = (manager.locker(1), manager.locker(2));
    assert!(granted(other.lock_row(&table, &between(500_000), Exclusive, NoWait)));
    for n in 0..1_000_000 {
        assert!(granted(big.lock_row(&table, &key(n), Exclusive, NoWait)), "row {n}");
    }
    let stats = manager.stats();
    assert!(stats.counts.escalations > 0);
    assert!(stats.bytes < 2 << 20, "{stats:?}");
    assert!(budget.used_by(Part::Locks) < 2 << 20, "{budget:?}");
    for n in (0..1_000_000).step_by(1013) {
        assert!(!granted(other.lock_row(&table, &key(n), Shared, NoWait)), "row {n}");
    }
    assert_eq!(big.lock_row(&table, &key(17), Exclusive, NoWait).unwrap(), HELD);
    assert_eq!(other.lock_row(&table, &between(500_000), Shared, NoWait).unwrap(), HELD);
    drop(big);
    assert_eq!(manager.locks(usize::MAX).len(), 1);
    drop(other);
    assert_eq!((manager.stats().bytes, budget.used_by(Part::Locks)), (0, 0));
}

/// Another transaction has a lock between any two rows: all rows stay rows, and no request fails.
#[test]
fn locks_that_cannot_be_joined_stay() {
    let options = LockOptions { bytes_max: 64 << 10, ..LockOptions::default() };
    let manager = LockManager::new(options, Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    for n in 0..10_000_u32 {
        let locker = if n % 2 == 0 { &mut one } else { &mut two };
        assert!(granted(locker.lock_row(&table, &n.to_be_bytes(), Exclusive, NoWait)), "row {n}");
    }
    let stats = manager.stats();
    assert_eq!(stats.rows, 10_000);
    assert!(stats.counts.escalations < 40, "each attempt waits for twice as many: {stats:?}");
}

/// A transaction with many rows locks these and no others, although it is over its share: two
/// transactions that write alternating keys neither wait for each other nor deadlock.
#[test]
fn many_rows_are_packed_and_lock_no_key_between() {
    let options = LockOptions { bytes_max: 1 << 20, ..LockOptions::default() };
    let budget = Budget::new(1 << 30);
    let manager = LockManager::new(options, Arc::clone(&budget));
    let table = manager.table(TreeId(1));
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    let key = |n: u32| (n * 3).to_be_bytes();
    for n in 0..20_000 {
        let (locker, other) = if n % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
        let mode = if n % 10 < 8 { Exclusive } else { Shared };
        assert!(granted(locker.lock_row(&table, &key(n), mode, NoWait)), "row {n}");
        // A range of one key, which becomes a row; and a range and a gap between rows.
        let between = |more: u32| (n * 3 + more).to_be_bytes();
        let after = [&between(1)[..], &[0]].concat();
        match n % 500 {
            0 => drop(locker.lock_range(&table, &between(1), Some(&after), mode, NoWait).unwrap()),
            7 => {
                let (lo, hi) = (between(1), between(2));
                assert!(granted(other.lock_range(&table, &lo, Some(&hi), Exclusive, NoWait)));
            }
            8 => {
                let (lo, hi) = (between(1), between(2));
                assert!(granted(other.lock_gap(&table, Included(&lo), Excluded(&hi), NoWait)));
            }
            _ => {}
        }
    }
    let stats = manager.stats();
    assert_eq!((stats.rows, stats.counts.escalations), (20_040, 0));
    // The rows that a locker has not packed yet take a share. If none were packed, all rows would
    // take 3.7 MB.
    assert!(stats.bytes < 512 << 10, "{stats:?}");
    assert!(budget.used_by(Part::Locks) < 512 << 10, "{budget:?}");
    for n in 0..20_000 {
        let (locker, other) = if n % 2 == 0 { (&mut one, &mut two) } else { (&mut two, &mut one) };
        let exclusive = n % 10 < 8;
        assert!(!granted(other.lock_row(&table, &key(n), Exclusive, NoWait)), "row {n}");
        let (lo, hi) = (key(n), (n * 3 + 1).to_be_bytes());
        let ranged = other.lock_range(&table, &lo, Some(&hi), Exclusive, NoWait);
        assert!(!granted(ranged), "row {n}");
        if exclusive {
            let gap = other.lock_gap(&table, Included(&lo), Excluded(&hi), NoWait);
            assert!(!granted(gap), "row {n}");
        }
        let again = locker.lock_row(&table, &key(n), Shared, NoWait).unwrap();
        assert_eq!(again, HELD);
    }
    // Packed shared rows can be upgraded, and stay locked until the end.
    assert!(granted(one.lock_row(&table, &key(8), Exclusive, NoWait)));
    one.unlock_row(&table, &key(8));
    one.unlock_row(&table, &key(18));
    assert!(!granted(two.lock_row(&table, &key(8), Shared, NoWait)));
    assert!(!granted(two.lock_row(&table, &key(18), Exclusive, NoWait)));
    assert_eq!(
        manager.locks(usize::MAX).iter().filter(|lock| lock.transaction == 1).count(),
        10_081
    );
    assert_eq!(manager.locks(5000).len(), 5000);
    drop(one);
    assert!(granted(two.lock_row(&table, &key(8), Exclusive, NoWait)));
    drop(two);
    assert!(manager.locks(usize::MAX).is_empty());
    assert_eq!((manager.stats().bytes, budget.used_by(Part::Locks)), (0, 0));
}

/// Shared rows are joined with exclusive ones only if joining rows of one mode saves too little
/// memory. Here it saves enough, so rows that were read stay shared.
#[test]
fn rows_of_one_mode_are_joined_first() {
    let options = LockOptions { bytes_max: 48 << 10, ..LockOptions::default() };
    let manager = LockManager::new(options, Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    for n in 0..10_000_u32 {
        let mode = if n < 5000 { Shared } else { Exclusive };
        assert!(granted(one.lock_row(&table, &n.to_be_bytes(), mode, NoWait)));
    }
    assert!(manager.stats().counts.escalations > 1);
    assert!(granted(two.lock_row(&table, &2500_u32.to_be_bytes(), Shared, NoWait)));
    assert!(!granted(two.lock_row(&table, &7500_u32.to_be_bytes(), Shared, NoWait)));
    assert!(!granted(two.lock_row(&table, &2501_u32.to_be_bytes(), Exclusive, NoWait)));
}

/// Rows of both modes, gaps and scans of one locker are joined too, and lock no less than before.
#[test]
fn all_kinds_of_locks_are_joined() {
    let options = LockOptions { bytes_max: 64 << 10, ..LockOptions::default() };
    let manager = LockManager::new(options, Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let (mut one, mut two) = (manager.locker(1), manager.locker(2));
    for n in 0..3000_u32 {
        let (key, next) = ((n * 10).to_be_bytes(), (n * 10 + 5).to_be_bytes());
        let done = match n % 4 {
            0 => one.lock_row(&table, &key, Shared, NoWait),
            1 => one.lock_row(&table, &key, Exclusive, NoWait),
            2 => one.lock_gap(&table, Included(&key), Excluded(&next), NoWait),
            _ => one.lock_next(&table, Excluded(&key), Excluded(&next), &next, Exclusive, NoWait),
        };
        assert!(granted(done), "lock {n}");
    }
    let stats = manager.stats();
    assert!(stats.counts.escalations > 0 && stats.bytes < 64 << 10, "{stats:?}");
    for n in 0..3000_u32 {
        let inside = (n * 10 + if n % 4 == 3 { 5 } else { 0 }).to_be_bytes();
        assert!(!granted(two.lock_row(&table, &inside, Exclusive, NoWait)), "lock {n}");
        let shared = granted(two.lock_row(&table, &inside, Shared, NoWait));
        assert!(!shared || n % 2 == 0, "lock {n}");
        two.release_all();
    }
}

#[test]
fn messages_name_the_lock_and_its_holders() {
    let (manager, table) = manager();
    let (mut one, mut two) = (manager.locker(71), manager.locker(72));
    assert!(granted(row(&mut one, &table, Shared)));
    let error = row(&mut two, &table, Exclusive).unwrap_err();
    let message = "the exclusive lock on row \"m\" is held or requested by transactions 71";
    assert!(error.message().starts_with(message), "{error}");
    let long = [0xfe; 300];
    assert!(granted(one.lock_row(&table, &long, Exclusive, NoWait)));
    let error = two.lock_range(&table, b"", None, Shared, NoWait).unwrap_err();
    assert!(error.message().contains("range [\"\", end) is held"), "{error}");
    let error = two.lock_row(&table, &long, Shared, NoWait).unwrap_err();
    assert!(error.message().contains("\\xfe\"... (300 bytes)"), "{error}");
}

#[test]
fn a_locker_renewed_with_its_canceller_has_no_pending_cancel() {
    let manager = LockManager::new(LockOptions::default(), Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let mut other = manager.locker(9);
    other.lock_row(&table, b"a", Exclusive, NoWait).unwrap();
    let (mut locker, mut stranger) = (manager.locker(1), manager.locker(2));
    let refused =
        |locker: &mut Locker, wait| locker.lock_row(&table, b"a", Shared, wait).unwrap_err().kind();
    let at_once = Upto(std::time::Duration::ZERO);
    let mut canceller = locker.canceller();
    canceller.cancel();
    locker.renew_with(&mut canceller, 3);
    assert_eq!((locker.id(), refused(&mut locker, at_once)), (3, ErrorKind::LockTimeout));
    canceller.cancel();
    assert_eq!(
        refused(&mut locker, Forever),
        ErrorKind::Cancelled,
        "it is a canceller of the new one"
    );
    // Another canceller of the old transaction exists.
    let old = locker.canceller();
    locker.renew_with(&mut canceller, 4);
    old.cancel();
    assert_eq!(refused(&mut locker, at_once), ErrorKind::LockTimeout);
    canceller.cancel();
    assert_eq!(refused(&mut locker, Forever), ErrorKind::Cancelled);
    // The canceller is that of another locker.
    stranger.renew_with(&mut canceller, 5);
    locker.canceller().cancel();
    assert_eq!((stranger.id(), refused(&mut stranger, at_once)), (5, ErrorKind::LockTimeout));
    canceller.cancel();
    assert_eq!(refused(&mut stranger, Forever), ErrorKind::Cancelled);
}

#[test]
fn a_renewed_locker_has_no_locks_and_no_pending_cancel() {
    let manager = LockManager::new(LockOptions::default(), Budget::new(1 << 30));
    let table = manager.table(TreeId(1));
    let mut locker = manager.locker(1);
    locker.lock_row(&table, b"a", Exclusive, NoWait).unwrap();
    let old = locker.canceller();
    // No canceller of this locker is left when it is renewed.
    let mut quiet = manager.locker(2);
    quiet.canceller().cancel();
    locker.renew(3);
    quiet.renew(4);
    old.cancel();
    assert_eq!((locker.id(), quiet.id()), (3, 4));
    let mut other = manager.locker(5);
    other.lock_row(&table, b"a", Exclusive, NoWait).unwrap();
    for locker in [&mut locker, &mut quiet] {
        let wait = Upto(std::time::Duration::ZERO);
        let error = locker.lock_row(&table, b"a", Shared, wait).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}");
    }
}
