//! Explores the schedules of lockers, batches and cancellers: `RUSTFLAGS="--cfg shuttle" cargo test
//! -p frondb-locks --test lock_schedules`.
//!
//! Nearly all waits have no timeout: a lost wake-up or a missed deadlock stops all threads, and
//! shuttle reports that.
#![cfg(shuttle)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Bound::Excluded;
use std::time::Duration;

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{ErrorKind, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::{Forever, NoWait, Upto};
use frondb_locks::{LockManager, LockOptions, LockTable};
use frondb_testkit::StillClock;
use shuttle::thread;

const SCHEDULES: usize = 3000;

struct Setup {
    manager: Arc<LockManager>,
    tables: Vec<Arc<LockTable>>,
    /// The object that the locks protect.
    inside: AtomicU64,
}

impl Setup {
    fn new() -> Arc<Self> {
        let options = LockOptions { bytes_max: 1 << 20, clock: Arc::new(StillClock) };
        let manager = LockManager::new(options, Budget::new(1 << 20));
        let tables = vec![manager.table(TreeId(1)), manager.table(TreeId(2))];
        Arc::new(Self { manager, tables, inside: AtomicU64::new(0) })
    }

    /// Asserts that the thread is alone inside.
    fn alone(&self) {
        assert_eq!(self.inside.fetch_add(1, Ordering::SeqCst), 0, "two lockers are inside");
        thread::yield_now();
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    fn nothing_is_left(&self) {
        assert!(self.manager.locks(usize::MAX).is_empty() && self.manager.waits().is_empty());
        assert_eq!(self.manager.stats().waiting, 0);
        assert!(self.tables.iter().all(|table| table.begin_unlocked().is_some()));
    }
}

/// Runs `body` in this many threads, each with its number; afterwards nothing may be left.
fn run(threads: u64, body: fn(&Setup, u64)) {
    let schedule = move || {
        let setup = Setup::new();
        let spawn = |number| {
            let setup = Arc::clone(&setup);
            thread::spawn(move || body(&setup, number))
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        setup.nothing_is_left();
    };
    shuttle::check_random(schedule, SCHEDULES);
    shuttle::check_pct(schedule, SCHEDULES, 3);
}

#[test]
fn an_exclusive_lock_is_alone_and_no_wake_up_is_lost() {
    run(3, |setup, number| {
        for round in 0..2 {
            let mut locker = setup.manager.locker(3 * round + number);
            locker.lock_row(&setup.tables[0], b"a", Exclusive, Forever).unwrap();
            setup.alone();
        }
    });
}

/// An insert into a gap waits for the transaction that scanned it, and a scan waits for the one
/// that inserted.
#[test]
fn scans_and_writes_exclude_each_other() {
    run(3, |setup, number| {
        let (mut locker, table) = (setup.manager.locker(number), &setup.tables[0]);
        if number == 0 {
            let (lo, hi) = (Excluded(&b"a"[..]), Excluded(&b"m"[..]));
            locker.lock_next(table, lo, hi, b"m", Shared, Forever).unwrap();
        } else {
            let key: &[u8] = if number == 1 { b"c" } else { b"m" };
            locker.lock_range(table, key, Some(b"x"), Exclusive, Forever).unwrap();
        }
        setup.alone();
    });
}

/// Two tables in both orders, and upgrades of shared locks: every cycle is found, and every
/// transaction that is not a victim gets all its locks.
#[test]
fn every_deadlock_is_found() {
    run(3, |setup, number| {
        let mut locker = setup.manager.locker(number);
        let first = number as usize % 2;
        let order = [(first, Shared), (1 - first, Exclusive), (first, Exclusive)];
        for (table, mode) in order {
            match locker.lock_row(&setup.tables[table], b"a", mode, Forever) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Deadlock => return,
                Err(e) => panic!("{e}"),
            }
        }
        setup.alone();
    });
}

/// Transactions that lock in one order are never victims.
#[test]
fn no_deadlock_is_found_where_there_is_none() {
    run(3, |setup, number| {
        let mut locker = setup.manager.locker(number);
        for table in &setup.tables {
            let mode = if number == 0 { Shared } else { Exclusive };
            locker.lock_row(table, b"a", mode, Forever).unwrap();
            let (lo, hi) = (Excluded(&b"a"[..]), Excluded(&b"c"[..]));
            locker.lock_gap(table, lo, hi, Forever).unwrap();
        }
    });
}

/// A request with a timeout of zero races with grants; the waiters in the queue continue.
#[test]
fn a_timeout_leaves_nothing() {
    run(3, |setup, number| {
        let mut locker = setup.manager.locker(number);
        let wait = if number == 1 { Upto(Duration::ZERO) } else { Forever };
        match locker.lock_row(&setup.tables[0], b"a", Exclusive, wait) {
            Ok(_) => setup.alone(),
            Err(e) => assert_eq!((e.kind(), number), (ErrorKind::LockTimeout, 1)),
        }
    });
}

/// A cancellation ends the wait under way or the next one, and is never lost.
#[test]
fn a_cancel_hits_one_wait() {
    let schedule = || {
        let setup = Setup::new();
        let mut holder = setup.manager.locker(1);
        holder.lock_row(&setup.tables[0], b"a", Exclusive, Forever).unwrap();
        let mut keeper = setup.manager.locker(2);
        keeper.lock_row(&setup.tables[0], b"b", Exclusive, Forever).unwrap();
        let mut locker = setup.manager.locker(3);
        let canceller = locker.canceller();
        let waiter = thread::spawn({
            let table = Arc::clone(&setup.tables[0]);
            move || {
                let first = locker.lock_row(&table, b"a", Exclusive, Forever);
                let first = first.map_err(|e| assert_eq!(e.kind(), ErrorKind::Cancelled));
                if first.is_ok() {
                    let second = locker.lock_row(&table, b"b", Exclusive, Forever);
                    assert_eq!(second.unwrap_err().kind(), ErrorKind::Cancelled);
                }
                first.is_ok()
            }
        });
        let cancel = thread::spawn(move || canceller.cancel());
        drop(holder);
        cancel.join().unwrap();
        waiter.join().unwrap();
        drop(keeper);
        setup.nothing_is_left();
    };
    shuttle::check_random(schedule, SCHEDULES);
    shuttle::check_pct(schedule, SCHEDULES, 3);
}

/// A batch without locks and a locker are never inside at the same time.
#[test]
fn batches_without_locks_exclude_lockers() {
    run(3, |setup, number| {
        for round in 0..2 {
            let table = &setup.tables[0];
            let batch = if number == 0 { table.begin_unlocked() } else { None };
            if batch.is_some() {
                setup.alone();
            } else {
                let mut locker = setup.manager.locker(3 * round + number);
                locker.lock_row(table, b"a", Exclusive, Forever).unwrap();
                setup.alone();
            }
        }
    });
}

/// Two batches may be inside at the same time; a locker waits for both batches.
#[test]
fn a_locker_waits_for_all_batches_inside() {
    run(3, |setup, number| {
        let table = &setup.tables[0];
        if number < 2 {
            if let Some(_batch) = table.begin_unlocked() {
                setup.inside.fetch_add(1 << 8, Ordering::SeqCst);
                thread::yield_now();
                assert_eq!(setup.inside.load(Ordering::SeqCst) & 255, 0, "a locker is inside");
                setup.inside.fetch_sub(1 << 8, Ordering::SeqCst);
            }
        } else {
            let mut locker = setup.manager.locker(number);
            locker.lock_row(table, b"a", Shared, Forever).unwrap();
            setup.alone();
        }
    });
}

/// A locker packs its rows and joins them into ranges while another locker takes and releases a row
/// between them: no range covers the row while the other locker holds it.
#[test]
fn joined_rows_leave_out_the_row_of_another() {
    // Long keys that share no bytes: a range takes less memory than ten packed rows.
    fn key(n: u8) -> [u8; 40] {
        [n; 40]
    }
    let schedule = || {
        // So few bytes that a locker packs and joins its rows whenever it charges memory.
        let options = LockOptions { bytes_max: 256, clock: Arc::new(StillClock) };
        let manager = LockManager::new(options, Budget::new(1 << 20));
        let table = manager.table(TreeId(1));
        // Odd while the other locker holds the row.
        let holds = Arc::new(AtomicU64::new(0));
        let other = thread::spawn({
            let (manager, table, holds) = (Arc::clone(&manager), Arc::clone(&table), holds.clone());
            move || {
                for id in 2..4 {
                    let mut locker = manager.locker(id);
                    if locker.lock_row(&table, &key(21), Exclusive, NoWait).is_ok() {
                        holds.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        holds.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        let mut locker = manager.locker(1);
        for n in 0..60 {
            locker.lock_row(&table, &key(2 * n), Exclusive, Forever).unwrap();
            if n >= 20 && n % 4 == 0 {
                let before = holds.load(Ordering::SeqCst);
                let between = locker.lock_row(&table, &key(21), Exclusive, NoWait);
                let was_held = before % 2 == 1 && before == holds.load(Ordering::SeqCst);
                assert!(!was_held || between.is_err(), "two lockers hold a row");
            }
        }
        other.join().unwrap();
        assert!(manager.counts().escalations > 0);
        drop(locker);
        assert!(manager.locks(usize::MAX).is_empty());
    };
    shuttle::check_random(schedule, SCHEDULES);
    shuttle::check_pct(schedule, SCHEDULES, 3);
}
