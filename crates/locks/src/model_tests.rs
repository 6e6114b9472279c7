//! Random histories of lockers, compared with a naive model: locks are sets of points, and every
//! question is a loop over all of them. All lockers run in one thread: one call makes a request,
//! and another call ends the wait once the wait is decided. So the granted lockers, the victims and
//! the edges of the graph must be the same on both sides after every step.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod model;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, TreeId};

use crate::graph::WaitState;
use crate::key::{Key, hi_of, lo_of};
use crate::queue::Request;
use crate::wait::{Pending, Requested};
use crate::{LockManager, LockMode, LockOptions, LockTable, LockWait, Locked, Locker};
use model::{Actor, Answer, END, KEYS, Kind, Model, ModelRequest, Part, Points, S, Sort, X};

const LOCKERS: usize = 6;
const SEEDS: u64 = 400;
const STEPS: u32 = 250;

/// The lock manager under test and the model.
struct World {
    manager: Arc<LockManager>,
    tables: [Arc<LockTable>; 2],
    lockers: Vec<(Locker, Option<Box<Pending>>)>,
    model: Model,
    next_id: u64,
    seed: u64,
    prng: Prng,
}

fn key(n: u8) -> [u8; 1] {
    [n]
}

/// Returns the set of the points from `lo` on and below `hi`.
fn points(lo: u8, hi: u8) -> Points {
    (0..END).filter(|p| *p >= lo && *p < hi).fold(0, |points, p| points | 1 << p)
}

fn bounds<'a>(
    lo: &'a [u8; 1],
    hi: &'a [u8; 1],
    how: u64,
) -> (Bound<&'a [u8]>, Bound<&'a [u8]>, Points) {
    let (a, b) = (2 * lo[0], 2 * hi[0]);
    match how {
        0 => (Included(lo), Excluded(hi), points(a, b)),
        1 => (Included(lo), Included(hi), points(a, b + 1)),
        2 => (Excluded(lo), Unbounded, points(a + 1, END)),
        3 => (Unbounded, Excluded(hi), points(0, b)),
        _ => (Excluded(lo), Excluded(hi), points(a + 1, b)),
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let manager = LockManager::new(LockOptions::default(), Budget::new(1 << 30));
        let tables = [manager.table(TreeId(0)), manager.table(TreeId(1))];
        let mut world = Self {
            manager,
            tables,
            lockers: Vec::new(),
            model: Model::default(),
            next_id: 1,
            seed,
            prng: Prng::new(seed),
        };
        for _ in 0..LOCKERS {
            let (locker, actor) = world.fresh();
            world.lockers.push((locker, None));
            world.model.actors.push(actor);
        }
        world
    }

    fn fresh(&mut self) -> (Locker, Actor) {
        let id = self.next_id;
        self.next_id += 1;
        (self.manager.locker(id), Actor { id, ..Actor::default() })
    }

    fn step(&mut self) {
        let at = self.prng.index(LOCKERS);
        if self.lockers[at].1.is_some() {
            if self.prng.chance(1, 4) {
                self.cancel_wait(at);
            }
        } else {
            match self.prng.below(20) {
                0..8 => self.row(at),
                8..10 => self.gap(at),
                10..13 => self.scan(at),
                13..15 => self.range(at),
                15..17 => self.unlock(at),
                17 => self.share(at),
                18 => {
                    self.lockers[at].0.add_work(2);
                    self.model.actors[at].work += 2;
                }
                _ => self.release(at),
            }
        }
        self.settle();
        self.compare();
    }

    fn mode(&mut self) -> LockMode {
        if self.prng.chance(2, 3) { S } else { X }
    }

    fn two_keys(&mut self) -> ([u8; 1], [u8; 1]) {
        let mut any = || 1 + self.prng.below(KEYS.into()) as u8;
        let (a, b) = (any(), any());
        (key(a.min(b)), key(a.max(b)))
    }

    fn row(&mut self, at: usize) {
        let (n, mode) = (self.two_keys().0, self.mode());
        let part = Part { points: 1 << (2 * n[0]), sort: (Kind::Row, mode) };
        self.request(at, Request::Row { key: Key::new(&n), mode }, &[part], part);
    }

    fn gap(&mut self, at: usize) {
        let ((lo, hi), how) = (self.two_keys(), self.prng.below(6));
        let (lo, hi, points) = bounds(&lo, &hi, how);
        let part = Part { points, sort: (Kind::Gap, S) };
        let class = crate::class::Class::Gap;
        self.request(at, Request::Range { lo: lo_of(lo), hi: hi_of(hi), class }, &[part], part);
    }

    fn range(&mut self, at: usize) {
        let ((lo, hi), mode) = (self.two_keys(), self.mode());
        let part = Part { points: points(2 * lo[0], 2 * hi[0]), sort: (Kind::Range, mode) };
        let class = crate::class::Class::range(mode);
        let want = Request::Range { lo: Key::new(&lo), hi: Some(Key::new(&hi)), class };
        self.request(at, want, &[part], part);
    }

    fn scan(&mut self, at: usize) {
        let ((lo, hi), mode) = (self.two_keys(), self.mode());
        let backward = self.prng.chance(1, 2);
        let row = if backward { lo } else { hi };
        let how = if backward { 2 * self.prng.below(2) + 2 } else { 3 + self.prng.below(2) };
        let (gap_lo, gap_hi, points) = bounds(&lo, &hi, how);
        let gap = Part { points, sort: (Kind::Gap, S) };
        let row_part = Part { points: 1 << (2 * row[0]), sort: (Kind::Row, mode) };
        let held = Part { points: points | row_part.points, sort: (Kind::Scan, mode) };
        let want = crate::request::step(gap_lo, gap_hi, &row, mode);
        self.request(at, want, &[gap, row_part], held);
    }

    fn request(&mut self, at: usize, want: Request, parts: &[Part], held: Part) {
        let table = self.prng.index(2);
        let wait = if self.prng.chance(1, 5) { LockWait::NoWait } else { LockWait::Forever };
        let (locker, pending) = &mut self.lockers[at];
        let requested = match &want {
            Request::Row { key, mode } => {
                locker.request_row(&self.tables[table], key.as_slice(), *mode, wait)
            }
            _ => locker.request(&self.tables[table], want.clone(), wait),
        };
        let ours = match requested {
            Ok(Requested::Done(acquired)) if acquired.was_held => Answer::Held,
            Ok(Requested::Done(_)) => Answer::Granted,
            Ok(Requested::Waits(waits)) => {
                *pending = Some(waits);
                Answer::Waits
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Busy, "{e}");
                Answer::Busy
            }
        };
        let request = ModelRequest {
            table,
            parts: parts.to_vec(),
            first: Vec::new(),
            passed: BTreeSet::new(),
            held,
        };
        let theirs = self.model.request(at, request, wait != LockWait::NoWait);
        assert_eq!(ours, theirs, "seed {}: {want:?}", self.seed);
    }

    fn cancel_wait(&mut self, at: usize) {
        let (locker, pending) = &mut self.lockers[at];
        let kind = if self.prng.chance(1, 2) {
            locker.canceller().cancel();
            ErrorKind::Cancelled
        } else {
            assert!(self.manager.graph.lock().decide(locker.id(), WaitState::TimedOut));
            ErrorKind::LockTimeout
        };
        let error = locker.conclude(pending.take().unwrap(), LockWait::Forever).unwrap_err();
        assert_eq!(error.kind(), kind, "seed {}", self.seed);
        self.model.actors[at].waits = None;
    }

    /// Returns one of the rows that a locker holds: its table, its point and its key.
    fn held_row(&mut self, at: usize) -> Option<(usize, Points, [u8; 1])> {
        let rows = self.model.actors[at].held.iter();
        let rows = rows.filter(|(_, part)| part.sort.0 == Kind::Row);
        let rows: Vec<(usize, Points)> = rows.map(|(table, part)| (*table, part.points)).collect();
        let &(table, points) = self.prng.pick(&rows)?;
        Some((table, points, key(points.trailing_zeros() as u8 / 2)))
    }

    fn share(&mut self, at: usize) {
        let Some((table, points, n)) = self.held_row(at) else { return };
        self.lockers[at].0.share_row(&self.tables[table], &n);
        let actor = &mut self.model.actors[at];
        actor.upgraded.remove(&(table, points));
        for (of, part) in &mut actor.held {
            if *of == table && part.sort.0 == Kind::Row && part.points == points {
                part.sort.1 = S;
            }
        }
    }

    fn unlock(&mut self, at: usize) {
        let Some((table, points, n)) = self.held_row(at) else { return };
        self.lockers[at].0.unlock_row(&self.tables[table], &n);
        let actor = &mut self.model.actors[at];
        if !actor.upgraded.contains(&(table, points)) {
            let is = |part: &Part| part.sort.0 == Kind::Row && part.points == points;
            actor.held.retain(|(of, part)| *of != table || !is(part));
        }
    }

    fn release(&mut self, at: usize) {
        let (locker, actor) = self.fresh();
        self.lockers[at] = (locker, None);
        self.model.actors[at] = actor;
    }

    /// Ends all waits and releases all locks. Then no lock may be left.
    fn end(mut self) {
        for at in 0..LOCKERS {
            if self.lockers[at].1.is_some() {
                self.cancel_wait(at);
            }
            self.release(at);
            self.settle();
            self.compare();
        }
        assert!(self.lockers.iter().all(|(_, pending)| pending.is_none()));
        assert!(self.tables.iter().all(|table| table.begin_unlocked().is_some()));
        let graph = self.manager.graph.lock();
        assert!((1..self.next_id).all(|id| !graph.is_awaited(id) && graph.get(id).is_none()));
    }

    /// Asserts that the lock manager and the model have decided the same waits in the same way.
    fn settle(&mut self) {
        let expected = self.model.settle();
        let mut found = BTreeMap::new();
        loop {
            let mut again = false;
            for (locker, pending) in &mut self.lockers {
                let state =
                    self.manager.graph.lock().get(locker.id()).map(|wait| wait.state.clone());
                let Some(state) = state.filter(|state| *state != WaitState::Waiting) else {
                    continue;
                };
                let result = locker.conclude(pending.take().unwrap(), LockWait::Forever);
                let state = match state {
                    WaitState::Victim(_) => WaitState::Victim(Vec::new()),
                    state => state,
                };
                assert_eq!(result.is_ok(), state == WaitState::Granted);
                found.insert(locker.id(), state);
                again = true;
            }
            if !again {
                break;
            }
        }
        assert_eq!(found, expected, "seed {}", self.seed);
    }

    fn compare(&self) {
        assert_eq!(self.locks(), self.model_locks(), "seed {}", self.seed);
        let waits = self.manager.waits().into_iter();
        let ours: BTreeMap<u64, Vec<u64>> =
            waits.map(|wait| (wait.transaction, wait.blockers)).collect();
        let waiting = (0..LOCKERS).filter(|at| self.model.actors[*at].waits.is_some());
        let theirs: BTreeMap<u64, Vec<u64>> =
            waiting.map(|at| (self.model.actors[at].id, self.model.blockers(at))).collect();
        assert_eq!(ours, theirs, "seed {}", self.seed);
    }

    /// Returns the lock that each locker holds at each point: rows and ranges separately, and of
    /// several ranges the strongest.
    fn locks(&self) -> BTreeMap<(usize, u64, bool, u32), Sort> {
        let mut locks = BTreeMap::new();
        for lock in self.manager.locks(usize::MAX) {
            let of = |key: &[u8]| 2 * key[0] + u8::from(key.len() > 1);
            let (kind, points) = match &lock.locked {
                Locked::Row { key } => (Kind::Row, 1 << of(key)),
                Locked::Gap { lo, hi } | Locked::Scanned { lo, hi } | Locked::Range { lo, hi } => {
                    let lo = if lo.is_empty() { 0 } else { of(lo) };
                    let hi = hi.as_ref().map_or(END, |hi| of(hi));
                    let kind = match &lock.locked {
                        Locked::Gap { .. } => Kind::Gap,
                        Locked::Scanned { .. } => Kind::Scan,
                        _ => Kind::Range,
                    };
                    (kind, points(lo, hi))
                }
            };
            let table = lock.tree.get() as usize;
            add(&mut locks, table, lock.transaction, Part { points, sort: (kind, lock.mode) });
        }
        locks
    }

    fn model_locks(&self) -> BTreeMap<(usize, u64, bool, u32), Sort> {
        let mut locks = BTreeMap::new();
        for actor in &self.model.actors {
            for (table, part) in &actor.held {
                add(&mut locks, *table, actor.id, *part);
            }
        }
        locks
    }
}

fn add(locks: &mut BTreeMap<(usize, u64, bool, u32), Sort>, table: usize, locker: u64, part: Part) {
    // A scan is stronger than a gap, a range than a scan; exclusive is stronger than shared.
    let strength = |sort: Sort| (sort.1, sort.0);
    for point in (0..64).filter(|point| part.points & (1 << point) != 0) {
        let place = (table, locker, part.sort.0 == Kind::Row, point);
        let sort = locks.entry(place).or_insert(part.sort);
        if strength(part.sort) > strength(*sort) {
            *sort = part.sort;
        }
    }
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        let stats = world.manager.stats();
        assert!(seed > 0 || (stats.counts.waits > 10 && stats.counts.deadlocks > 0), "{stats:?}");
        world.end();
    }
}
