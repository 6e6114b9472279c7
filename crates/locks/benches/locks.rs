//! Measures the cost of a row lock and its release, in transactions of 1 to 1,000 locks, in an
//! empty table and in one with a million locks, by one thread and by four; the cost of a scan's
//! step; and the cost of rows of large transactions.
//!
//! `cargo bench -p frondb-locks -- [rounds] [words of a case's name]`. Prints the third-fastest of
//! nine samples, in nanoseconds per lock: processor time if one thread runs (other processes do not
//! count), wall-clock time if several do.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints its table")]

use frondb_core::TreeId;
use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::{LockManager, LockOptions, LockTable, LockWait, Locker};
use rustix::time::{ClockId, clock_gettime};
use std::ops::Bound::Excluded;

const SAMPLES: usize = 9;
const OTHERS: u64 = 1_000_000;

struct Setup {
    manager: Arc<LockManager>,
    table: Arc<LockTable>,
    /// Lockers that hold the existing locks.
    others: Vec<Locker>,
}

impl Setup {
    fn new() -> Self {
        let options = LockOptions { bytes_max: 8 << 30, ..LockOptions::default() };
        let manager = LockManager::new(options, Budget::new(16 << 30));
        let table = manager.table(TreeId(1));
        Self { manager, table, others: Vec::new() }
    }

    /// Adds a million rows at random keys, held by a hundred lockers.
    fn with_others(mut self) -> Self {
        let mut prng = Prng::new(1);
        self.others = (0..100).map(|id| self.manager.locker(id)).collect();
        for n in 0..OTHERS {
            let locker = &mut self.others[n as usize % 100];
            let key = key(prng.next_u64() | 1);
            locker.lock_row(&self.table, &key, Shared, LockWait::Forever).unwrap();
        }
        self
    }
}

/// 9 bytes, as the tuple encoding writes an integer. No other locker holds even numbers.
fn key(n: u64) -> [u8; 9] {
    let mut key = [0x15; 9];
    key[1..].copy_from_slice(&n.to_be_bytes());
    key
}

/// Transactions of `rows` random rows each. `rounds` counts locks.
fn transactions(setup: &Setup, thread: u64, rounds: u64, rows: u64) {
    let mut prng = Prng::new(thread + 7);
    for round in 0..rounds / rows {
        let mut locker = setup.manager.locker(1000 + 4 * round + thread);
        for _ in 0..rows {
            // The last bits differ between threads, so that no thread waits.
            let key = key(prng.next_u64() & !15 | thread << 1);
            locker.lock_row(&setup.table, &key, Exclusive, LockWait::Forever).unwrap();
        }
        locker.release_all();
    }
}

fn scan(setup: &Setup, rounds: u64) {
    let mut locker = setup.manager.locker(1000);
    for n in 0..rounds {
        let (lo, row) = (key(4 * n), key(4 * n + 4));
        let (lo, hi) = (Excluded(&lo[..]), Excluded(&row[..]));
        locker.lock_next(&setup.table, lo, hi, &row, Shared, LockWait::Forever).unwrap();
    }
}

/// Transactions of so many rows that each packs them. The rows of each lie between those of all the
/// others, so no locks can be joined, and each request searches the packs of all transactions.
fn large_transactions(rows: u64) {
    let options = LockOptions { bytes_max: 2 << 20, ..LockOptions::default() };
    let manager = LockManager::new(options, Budget::new(64 << 20));
    let table = manager.table(TreeId(1));
    let mut lockers: Vec<Locker> = (0..8).map(|id| manager.locker(id)).collect();
    for n in 0..rows {
        let locker = &mut lockers[n as usize % 8];
        locker.lock_row(&table, &key(n), Exclusive, LockWait::Forever).unwrap();
    }
}

fn threads(setup: &Setup, count: u64, rounds: u64, rows: u64) {
    std::thread::scope(|scope| {
        for thread in 0..count {
            scope.spawn(move || transactions(setup, thread, rounds, rows));
        }
    });
}

fn now_ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * 1e9 + now.tv_nsec as f64
}

/// Nanoseconds per lock in the third-fastest sample.
fn measure(clock: ClockId, locks: u64, mut run: impl FnMut()) -> f64 {
    let mut samples: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            let start = now_ns(clock);
            run();
            (now_ns(clock) - start) / locks as f64
        })
        .collect();
    samples.sort_by(f64::total_cmp);
    samples[2]
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let rounds: u64 = args.next().and_then(|arg| arg.parse().ok()).unwrap_or(200_000);
    let words: Vec<String> = args.collect();
    let case = |name: &str, locks: u64, run: &mut dyn FnMut()| {
        if words.iter().all(|word| name.contains(word.as_str())) {
            let several = name.contains("threads");
            let clock = if several { ClockId::Monotonic } else { ClockId::ThreadCPUTime };
            println!("{name:45} {:8.0} ns a lock", measure(clock, locks, run));
        }
    };
    let empty = Setup::new();
    case("row, empty table, 1 a transaction", rounds, &mut || transactions(&empty, 0, rounds, 1));
    case("row, empty table, 10 a transaction", rounds, &mut || transactions(&empty, 0, rounds, 10));
    case("row, empty table, 1000 a transaction", rounds, &mut || {
        transactions(&empty, 0, rounds, 1000);
    });
    case("row, empty table, 4 threads, 1 a transaction", 4 * rounds, &mut || {
        threads(&empty, 4, rounds, 1);
    });
    case("scan step, empty table", rounds, &mut || scan(&empty, rounds));
    let mut ranged = Setup::new();
    ranged.others.push(ranged.manager.locker(1));
    let (lo, hi) = (key(1), key(2));
    let (lo, hi) = (Excluded(&lo[..]), Excluded(&hi[..]));
    ranged.others[0].lock_gap(&ranged.table, lo, hi, LockWait::Forever).unwrap();
    case("row, a gap elsewhere, 1 a transaction", rounds, &mut || {
        transactions(&ranged, 0, rounds, 1);
    });
    case("row, 8 large transactions", 4 * rounds, &mut || large_transactions(4 * rounds));
    let full = Setup::new().with_others();
    case("row, 1 M others, 1 a transaction", rounds, &mut || transactions(&full, 0, rounds, 1));
    case("row, 1 M others, 10 a transaction", rounds, &mut || transactions(&full, 0, rounds, 10));
    case("row, 1 M others, 4 threads, 1 a transaction", 4 * rounds, &mut || {
        threads(&full, 4, rounds, 1);
    });
    case("scan step, 1 M others", rounds, &mut || scan(&full, rounds));
}
