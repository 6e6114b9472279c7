//! Lockers that wait for each other. [`LockManager::waits`] shows when a thread waits, so nothing
//! sleeps and nothing depends on time.
#![cfg(not(shuttle))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hook;

use std::ops::Bound::{Excluded, Included};
use std::time::Duration;

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Result, TreeId};
use frondb_locks::LockMode::{Exclusive, Shared};
use frondb_locks::LockWait::{Forever, NoWait, Upto};
use frondb_locks::{
    Acquired, LockInfo, LockManager, LockMode, LockOptions, LockTable, Locked, Locker,
};

/// The waiter, the tree, the row, the mode, and the blockers.
type Waiting<'a> = (u64, u32, &'a [u8], LockMode, &'a [u64]);

type Outcome = std::thread::JoinHandle<(Locker, Result<Acquired>)>;

struct Setup {
    manager: Arc<LockManager>,
    tables: [Arc<LockTable>; 2],
}

impl Setup {
    fn new() -> Self {
        let manager = LockManager::new(LockOptions::default(), Budget::new(1 << 30));
        let tables = [manager.table(TreeId(1)), manager.table(TreeId(2))];
        Self { manager, tables }
    }

    /// Returns a locker that holds these rows; each is the number of a table and a key.
    fn holder(&self, id: u64, rows: &[(usize, &[u8])], mode: LockMode) -> Locker {
        let mut locker = self.manager.locker(id);
        for (table, key) in rows {
            locker.lock_row(&self.tables[*table], key, mode, NoWait).unwrap();
        }
        locker
    }

    /// Requests a row on another thread, and returns when that thread waits.
    fn waits(&self, locker: Locker, table: usize, key: &'static [u8], mode: LockMode) -> Outcome {
        let id = locker.id();
        let thread = self.asks(locker, table, key, mode);
        while !self.is_waiting(id) {
            std::thread::yield_now();
        }
        thread
    }

    /// Requests a row on another thread.
    fn asks(
        &self,
        mut locker: Locker,
        table: usize,
        key: &'static [u8],
        mode: LockMode,
    ) -> Outcome {
        let table = Arc::clone(&self.tables[table]);
        std::thread::spawn(move || {
            let result = locker.lock_row(&table, key, mode, Forever);
            (locker, result)
        })
    }

    fn is_waiting(&self, id: u64) -> bool {
        self.manager.waits().iter().any(|wait| wait.transaction == id)
    }

    fn nothing_is_left(&self) {
        assert_eq!(self.manager.locks(usize::MAX), []);
        assert_eq!(self.manager.waits(), []);
        assert_eq!(self.manager.stats().waiting, 0);
        assert!(self.tables.iter().all(|table| table.begin_unlocked().is_some()));
    }
}

fn granted(outcome: Outcome) -> Locker {
    let (locker, result) = outcome.join().unwrap();
    assert_eq!(result.unwrap(), Acquired { waited: true, was_held: false });
    locker
}

fn failed(outcome: Outcome, kind: ErrorKind) -> Locker {
    let (locker, result) = outcome.join().unwrap();
    let error = result.unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    locker
}

#[test]
fn a_waiter_goes_on_when_the_row_is_free() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Exclusive);
    let waiter = setup.waits(setup.manager.locker(2), 0, b"a", Exclusive);
    let waits = setup.manager.waits();
    assert_eq!((waits[0].transaction, &waits[0].blockers[..]), (2, &[1][..]));
    assert_eq!(setup.manager.stats().waiting, 1);
    drop(holder);
    let waiter = granted(waiter);
    assert_eq!(setup.manager.locks(usize::MAX)[0].transaction, 2);
    assert_eq!(setup.manager.stats().counts.waits, 1);
    drop(waiter);
    setup.nothing_is_left();
}

#[test]
fn waiting_is_first_come_first_served() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Shared);
    let writer = setup.waits(setup.manager.locker(2), 0, b"a", Exclusive);
    // Compatible with the holder, but queued behind the writer.
    let reader = setup.waits(setup.manager.locker(3), 0, b"a", Shared);
    let other = setup.waits(setup.manager.locker(4), 0, b"a", Shared);
    let table = &setup.tables[0];
    let skipped = setup.manager.locker(5).lock_row(table, b"a", Shared, NoWait);
    assert_eq!(skipped.unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(setup.manager.waits()[1].blockers, [2]);
    drop(holder);
    let writer = granted(writer);
    assert_eq!(setup.manager.stats().waiting, 2, "the readers wait for the writer");
    drop(writer);
    drop((granted(reader), granted(other)));
    setup.nothing_is_left();
}

#[test]
fn an_upgrade_goes_before_waiters() {
    let setup = Setup::new();
    let mut one = setup.holder(1, &[(0, b"a")], Shared);
    let two = setup.holder(2, &[(0, b"a")], Shared);
    let writer = setup.waits(setup.manager.locker(3), 0, b"a", Exclusive);
    let same = one.lock_row(&setup.tables[0], b"a", Shared, NoWait).unwrap();
    assert!(same.was_held, "a locker does not wait for its own locks");
    let upgrade = setup.waits(one, 0, b"a", Exclusive);
    drop(two);
    let one = granted(upgrade);
    assert!(setup.is_waiting(3));
    drop(one);
    drop(granted(writer));
    setup.nothing_is_left();
}

/// Several transactions take the first row of a queue. One of them has waited for a row that was
/// then deleted. It scans again from the beginning, while another transaction waits for its lock on
/// the deleted row.
#[test]
fn a_scan_goes_before_waiters_that_wait_for_it() {
    let setup = Setup::new();
    let table = &setup.tables[0];
    let mut scanner = setup.manager.locker(1);
    let next = |scanner: &mut Locker, row: &[u8]| {
        scanner.lock_next(table, Included(b"a"), Excluded(row), row, Exclusive, NoWait)
    };
    next(&mut scanner, b"c").unwrap();
    let behind = setup.waits(setup.manager.locker(2), 0, b"c", Exclusive);
    let acquired = next(&mut scanner, b"e").unwrap();
    assert!(!acquired.waited && !acquired.was_held);
    // The scanner still waits for lockers that do not wait for it.
    let other = setup.holder(3, &[(0, b"k")], Exclusive);
    let busy = next(&mut scanner, b"k").unwrap_err();
    assert_eq!(busy.kind(), ErrorKind::Busy);
    drop(other);
    drop(scanner);
    drop(granted(behind));
    setup.nothing_is_left();
}

/// Works as the test above, with a chain of waits: the third transaction waits for the second,
/// which waits for the scanner.
#[test]
fn a_scan_goes_before_waiters_that_wait_for_it_through_others() {
    let setup = Setup::new();
    let table = &setup.tables[0];
    let mut scanner = setup.holder(1, &[(0, b"c")], Exclusive);
    let second = setup.waits(setup.holder(2, &[(0, b"d")], Exclusive), 0, b"c", Exclusive);
    // Its gap contains "d", which the second holds, but not "c". So it waits for the scanner only
    // through the second.
    let mut third = setup.manager.locker(3);
    let third = std::thread::spawn({
        let table = Arc::clone(table);
        move || {
            let next =
                third.lock_next(&table, Included(b"d"), Excluded(b"e"), b"e", Exclusive, Forever);
            (third, next)
        }
    });
    while !setup.is_waiting(3) {
        std::thread::yield_now();
    }
    scanner.lock_row(table, b"e", Exclusive, NoWait).unwrap();
    drop(scanner);
    drop(granted(second));
    drop(granted(third));
    setup.nothing_is_left();
}

#[test]
fn two_upgrades_are_a_deadlock_at_once() {
    let setup = Setup::new();
    let one = setup.holder(1, &[(0, b"a")], Shared);
    let mut two = setup.holder(2, &[(0, b"a")], Shared);
    let first = setup.waits(one, 0, b"a", Exclusive);
    let error = two.lock_row(&setup.tables[0], b"a", Exclusive, Forever).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadlock, "of equal work, the younger is the victim");
    assert!(error.message().contains("the exclusive lock on row \"a\", and"), "{error}");
    assert!(setup.is_waiting(1), "the victim holds the row until it rolls back");
    drop(two);
    drop(granted(first));
    assert_eq!(setup.manager.stats().counts.deadlocks, 1);
    setup.nothing_is_left();
}

/// The victim is the transaction that has done least, whichever one closes the cycle, over two
/// tables.
#[test]
fn the_victim_of_three_has_done_least() {
    for (work, victim) in [([0, 5, 5], 1), ([5, 0, 5], 2), ([5, 5, 0], 3), ([5, 5, 5], 3)] {
        let setup = Setup::new();
        let rows: [(usize, &'static [u8]); 3] = [(0, b"a"), (1, b"a"), (0, b"c")];
        let mut lockers = Vec::new();
        for id in 1..=3_u64 {
            let at = id as usize - 1;
            lockers.push(setup.holder(id, &rows[at..=at], Exclusive));
            lockers[at].add_work(work[at]);
        }
        let three = lockers.pop().unwrap();
        let two = lockers.pop().unwrap();
        let one = lockers.pop().unwrap();
        let first = setup.waits(one, rows[1].0, rows[1].1, Exclusive);
        let second = setup.waits(two, rows[2].0, rows[2].1, Exclusive);
        let third = setup.asks(three, 0, b"a", Exclusive);
        let mut outcomes = [Some(first), Some(second), Some(third)];
        drop(failed(outcomes[victim - 1].take().unwrap(), ErrorKind::Deadlock));
        // Each locker waits for the next one, so the row that the victim releases goes to the
        // locker before the victim.
        for before in [1, 2] {
            let next = (victim - 1 + 3 - before) % 3;
            drop(granted(outcomes[next].take().unwrap()));
        }
        assert_eq!(setup.manager.stats().counts.deadlocks, 1);
        let last = setup.manager.last_deadlock().unwrap();
        assert_eq!((last.victim, last.transactions), (victim as u64, 3));
        let waits = last.waits.iter().map(|wait| {
            let Locked::Row { key } = &wait.wanted else { panic!("{:?}", wait.wanted) };
            (wait.transaction, wait.tree.get(), &key[..], wait.mode, &wait.blockers[..])
        });
        let (a, c) = (&b"a"[..], &b"c"[..]);
        let cycle: [Waiting<'_>; 3] =
            [(3, 1, a, Exclusive, &[1]), (1, 2, a, Exclusive, &[2]), (2, 1, c, Exclusive, &[3])];
        assert!(waits.eq(cycle), "the cycle begins with the transaction that closed it: {last:?}");
        setup.nothing_is_left();
    }
}

/// A cycle of forty with keys of two KiB is recorded in part: the record is bounded.
#[test]
fn the_record_of_a_deadlock_is_bounded() {
    const MEMBERS: u64 = 40;
    let key =
        |id: u64| &*Box::leak([&[b'k'; 2000][..], &id.to_be_bytes()].concat().into_boxed_slice());
    let setup = Setup::new();
    assert_eq!(setup.manager.last_deadlock(), None);
    let mut lockers: Vec<_> =
        (1..=MEMBERS).map(|id| setup.holder(id, &[(0, key(id))], Exclusive)).collect();
    let mut last = lockers.pop().unwrap();
    let waiters =
        (1..).zip(lockers).map(|(id, locker)| setup.waits(locker, 0, key(id + 1), Exclusive));
    let waiters: Vec<_> = waiters.collect();
    let error = last.lock_row(&setup.tables[0], key(1), Exclusive, Forever).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Deadlock);
    let found = setup.manager.last_deadlock().unwrap();
    assert_eq!((found.victim, found.transactions), (MEMBERS, MEMBERS as usize));
    assert_eq!(found.waits.len(), 16);
    for wait in &found.waits {
        assert!(matches!(&wait.wanted, Locked::Row { key } if key.len() == 1024));
    }
    // Once the victim has released its locks, each waiter is granted its lock when the next one has
    // released its own.
    drop(last);
    waiters.into_iter().rev().for_each(|waiter| drop(granted(waiter)));
    setup.nothing_is_left();
}

#[test]
fn one_wait_may_close_several_cycles() {
    let setup = Setup::new();
    let big = setup.holder(1, &[(0, b"a"), (0, b"b")], Exclusive);
    big.add_work(100);
    let two = setup.holder(2, &[(1, b"x")], Shared);
    let three = setup.holder(3, &[(1, b"x")], Shared);
    let two = setup.waits(two, 0, b"a", Exclusive);
    let three = setup.waits(three, 0, b"b", Exclusive);
    let big = setup.waits(big, 1, b"x", Exclusive);
    drop((failed(two, ErrorKind::Deadlock), failed(three, ErrorKind::Deadlock)));
    drop(granted(big));
    assert_eq!(setup.manager.stats().counts.deadlocks, 2);
    setup.nothing_is_left();
}

#[test]
fn a_wait_ends_at_its_timeout() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Exclusive);
    let mut late = setup.manager.locker(4);
    let timeout = Duration::from_micros(50);
    let error = late.lock_row(&setup.tables[0], b"a", Shared, Upto(timeout)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockTimeout);
    assert!(error.message().contains("transactions 1 hold or requested"), "{error}");
    let zero = late.lock_row(&setup.tables[0], b"a", Shared, Upto(Duration::ZERO));
    assert_eq!(zero.unwrap_err().kind(), ErrorKind::LockTimeout);
    assert_eq!((setup.manager.stats().counts.timeouts, setup.manager.waits().len()), (2, 0));
    drop((holder, late));
    setup.nothing_is_left();
}

#[test]
fn a_cancelled_writer_lets_the_queued_readers_pass() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Shared);
    let writer = setup.manager.locker(2);
    let canceller = writer.canceller();
    let writer = setup.waits(writer, 0, b"a", Exclusive);
    let reader = setup.waits(setup.manager.locker(3), 0, b"a", Shared);
    canceller.cancel();
    let mut writer = failed(writer, ErrorKind::Cancelled);
    drop(granted(reader));
    // A cancellation counts once: the next wait succeeds.
    let again = writer.lock_row(&setup.tables[0], b"a", Exclusive, Upto(Duration::ZERO));
    assert_eq!(again.unwrap_err().kind(), ErrorKind::LockTimeout);
    canceller.clone().cancel();
    let free = writer.lock_row(&setup.tables[0], b"z", Exclusive, Forever);
    assert!(!free.unwrap().waited, "a lock that is free needs no wait");
    let next = writer.lock_row(&setup.tables[0], b"a", Exclusive, Forever);
    assert_eq!(next.unwrap_err().kind(), ErrorKind::Cancelled);
    let after = writer.lock_row(&setup.tables[0], b"a", Exclusive, Upto(Duration::ZERO));
    assert_eq!(after.unwrap_err().kind(), ErrorKind::LockTimeout);
    drop((holder, writer));
    setup.nothing_is_left();
}

#[test]
fn a_pending_cancel_can_be_forgotten() {
    let setup = Setup::new();
    let holder = setup.holder(1, &[(0, b"a")], Exclusive);
    let mut waiter = setup.manager.locker(2);
    waiter.forget_cancel();
    let canceller = waiter.canceller();
    canceller.cancel();
    waiter.forget_cancel();
    let timed_out = waiter.lock_row(&setup.tables[0], b"a", Shared, Upto(Duration::ZERO));
    assert_eq!(timed_out.unwrap_err().kind(), ErrorKind::LockTimeout);
    // A later cancellation counts.
    canceller.cancel();
    let cancelled = waiter.lock_row(&setup.tables[0], b"a", Shared, Forever);
    assert_eq!(cancelled.unwrap_err().kind(), ErrorKind::Cancelled);
    drop((holder, waiter));
    setup.nothing_is_left();
}

/// A writer waits for a gap and a scan for the writer's row, all in one queue.
#[test]
fn ranges_wait_as_rows_do() {
    let setup = Setup::new();
    let table = &setup.tables[0];
    let mut scan = setup.manager.locker(1);
    scan.lock_gap(table, Excluded(b"a"), Excluded(b"k"), NoWait).unwrap();
    let writer = setup.waits(setup.manager.locker(2), 0, b"c", Exclusive);
    let mut late = setup.manager.locker(3);
    let gap = late.lock_gap(table, Excluded(b"b"), Excluded(b"d"), NoWait);
    assert_eq!(gap.unwrap_err().kind(), ErrorKind::Busy, "the scan waits for the earlier writer");
    assert!(scan.lock_gap(table, Excluded(b"b"), Excluded(b"d"), NoWait).unwrap().was_held);
    // The locker `scan` holds the gap, so it goes before the writer that waits for the gap.
    let insert = scan.lock_row(table, b"c", Exclusive, NoWait).unwrap();
    assert!(!insert.was_held);
    scan.release_all();
    let writer = granted(writer);
    let ranged = std::thread::spawn({
        let table = Arc::clone(table);
        move || {
            let result = late.lock_range(&table, b"", None, Exclusive, Forever);
            (late, result)
        }
    });
    while !setup.is_waiting(3) {
        std::thread::yield_now();
    }
    drop(writer);
    let mut late = granted(ranged);
    assert_eq!(setup.manager.stats().ranges, 1);
    assert!(late.lock_row(table, b"q", Exclusive, NoWait).unwrap().was_held);
    drop((late, scan));
    setup.nothing_is_left();
}

/// Many rows become ranges around the key that another transaction waits for, although no lock
/// prevents a range over it.
#[test]
fn escalation_takes_nothing_that_another_waits_for() {
    let mut setup = Setup::new();
    let options = LockOptions { bytes_max: 64 << 10, ..LockOptions::default() };
    setup.manager = LockManager::new(options, Budget::new(1 << 30));
    setup.tables[0] = setup.manager.table(TreeId(1));
    let table = &setup.tables[0];
    let mut scan = setup.manager.locker(1);
    scan.lock_gap(table, Excluded(b"m"), Excluded(b"n"), NoWait).unwrap();
    let writer = setup.waits(setup.manager.locker(2), 0, b"mm", Exclusive);
    let mut big = setup.manager.locker(3);
    for letter in [b'l', b'n'] {
        for n in 0..10_000_u16 {
            let key = [&[letter][..], &n.to_be_bytes()].concat();
            big.lock_row(table, &key, Shared, NoWait).unwrap();
        }
    }
    assert!(setup.manager.stats().counts.escalations > 0);
    assert_eq!(setup.manager.waits()[0].blockers, [1]);
    drop(scan);
    let writer = granted(writer);
    let ranges = setup.manager.locks(usize::MAX).into_iter().filter(|lock| lock.transaction == 3);
    let over = |lock: &LockInfo| match &lock.locked {
        Locked::Range { lo, hi } => {
            lo[..] <= b"mm"[..] && hi.as_ref().is_none_or(|hi| hi[..] > b"mm"[..])
        }
        _ => false,
    };
    assert!(!ranges.clone().any(|lock| over(&lock)));
    assert!(ranges.filter(|lock| matches!(lock.locked, Locked::Range { .. })).count() >= 2);
    drop((writer, big));
    setup.nothing_is_left();
}

/// Threads lock at random over two tables: every wait ends by a grant or a deadlock, and at the end
/// nothing is left.
#[test]
fn a_storm_of_deadlocks_ends() {
    let setup = Setup::new();
    let seed = 77;
    let threads: Vec<_> = (0..8_u64)
        .map(|thread| {
            let (manager, tables) = (Arc::clone(&setup.manager), setup.tables.clone());
            std::thread::spawn(move || {
                let mut prng = Prng::new(seed + thread);
                let mut ended = [0_u64; 2];
                for round in 0..400 {
                    let mut locker = manager.locker(round * 8 + thread);
                    ended[usize::from(storm(&mut locker, &tables, &mut prng))] += 1;
                }
                ended
            })
        })
        .collect();
    let ended = threads.into_iter().map(|thread| thread.join().unwrap());
    let ended = ended.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
    assert_eq!(ended[0] + ended[1], 3200, "seed {seed}");
    assert_eq!(setup.manager.stats().counts.deadlocks, ended[1], "each victim is notified once");
    assert!(ended[0] > 0 && ended[1] > 0, "{ended:?}");
    setup.nothing_is_left();
}

/// Runs one transaction; returns whether it was the victim of a deadlock.
fn storm(locker: &mut Locker, tables: &[Arc<LockTable>; 2], prng: &mut Prng) -> bool {
    for _ in 0..prng.range(2..8) {
        let table = &tables[prng.index(2)];
        let mode = if prng.chance(1, 2) { Shared } else { Exclusive };
        let (a, b) = (prng.below(12) as u8, prng.below(12) as u8);
        let (lo, hi) = ([a.min(b)], [a.max(b)]);
        let done = match prng.below(8) {
            0 => locker.lock_gap(table, Excluded(&lo), Excluded(&hi), Forever),
            1 => locker.lock_next(table, Excluded(&lo), Excluded(&hi), &hi, mode, Forever),
            2 => locker.lock_range(table, &lo, Some(&hi), mode, Forever),
            _ => locker.lock_row(table, &lo, mode, Forever),
        };
        if let Err(e) = done {
            assert_eq!(e.kind(), ErrorKind::Deadlock, "{e}");
            return true;
        }
        std::thread::yield_now();
    }
    false
}

/// With a timeout of zero the request closes no cycle, is never a victim and blocks no other
/// request.
#[test]
fn a_wait_with_timeout_zero_fails_at_once() {
    let setup = Setup::new();
    let mut first = setup.holder(1, &[(0, b"a")], Exclusive);
    let second = setup.holder(2, &[(0, b"b")], Exclusive);
    let waits = setup.waits(second, 0, b"a", Exclusive);
    let refused = first.lock_row(&setup.tables[0], b"b", Exclusive, Upto(Duration::ZERO));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::LockTimeout);
    let stats = setup.manager.stats();
    assert_eq!((stats.counts.deadlocks, stats.counts.timeouts), (0, 1));
    first.release_all();
    waits.join().unwrap().1.unwrap();
}
