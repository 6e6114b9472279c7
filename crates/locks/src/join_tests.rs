//! Random histories in which locks are packed and joined while others wait: no granted lock is
//! lost, no two lockers hold locks that exclude each other, and every waiter waits for exactly the
//! lockers that block it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Bound::{Excluded, Included};

use frondb_core::budget::Budget;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, TreeId};

use crate::class::Class;
use crate::graph::WaitState;
use crate::key::{Area, Key, hi_of, lo_of};
use crate::queue::Request;
use crate::wait::{Pending, Requested};
use crate::{LockManager, LockMode, LockOptions, LockTable, LockWait, Locker};

const LOCKERS: usize = 5;
const KEYS: u64 = 500;

/// A locker, its wait with the areas for which it waits, and the areas that it was granted.
struct Actor {
    locker: Locker,
    waits: Option<(Box<Pending>, Vec<Area>)>,
    granted: Vec<Area>,
}

struct World {
    manager: Arc<LockManager>,
    table: Arc<LockTable>,
    actors: Vec<Actor>,
    next_id: u64,
    seed: u64,
    prng: Prng,
}

impl World {
    fn new(seed: u64) -> Self {
        let options = LockOptions { bytes_max: 16 << 10, ..LockOptions::default() };
        let manager = LockManager::new(options, Budget::new(1 << 30));
        let table = manager.table(TreeId(0));
        let actors = (0..LOCKERS as u64).map(|id| Actor {
            locker: manager.locker(id),
            waits: None,
            granted: Vec::new(),
        });
        let actors = actors.collect();
        Self { manager, table, actors, next_id: LOCKERS as u64, seed, prng: Prng::new(seed) }
    }

    /// Returns a random key, usually from the part of the keys that belongs to locker `at`, so that
    /// its locks can be joined.
    fn key(&mut self, at: usize) -> u64 {
        let part = if self.prng.chance(1, 12) { self.prng.index(LOCKERS) } else { at };
        part as u64 * (KEYS / LOCKERS as u64) + self.prng.below(KEYS / LOCKERS as u64)
    }

    fn step(&mut self) {
        let at = self.prng.index(LOCKERS);
        if self.actors[at].waits.is_some() {
            if self.prng.chance(1, 6) {
                let locker = &self.actors[at].locker;
                assert!(self.manager.graph.lock().decide(locker.id(), WaitState::TimedOut));
            }
        } else if self.prng.chance(1, 150) {
            self.release(at);
        } else {
            self.request(at);
        }
        self.settle();
        self.check();
    }

    fn release(&mut self, at: usize) {
        self.actors[at].locker.renew(self.next_id);
        self.actors[at].granted.clear();
        self.next_id += 1;
    }

    fn request(&mut self, at: usize) {
        let lo = self.key(at);
        let (lo, hi) = (lo.to_be_bytes(), (lo + 1 + self.prng.below(3)).to_be_bytes());
        let mode = if self.prng.chance(1, 3) { LockMode::Shared } else { LockMode::Exclusive };
        let row = |key: &[u8]| Area::row(Key::new(key), Class::row(mode));
        let (from, to) = (Included(&lo[..]), Excluded(&hi[..]));
        let gap = Area::range(lo_of(from), hi_of(to), Class::Gap);
        let (want, areas) = match self.prng.below(12) {
            0 => {
                let (lo, hi) = (lo_of(from), hi_of(to));
                (Request::Range { lo, hi, class: Class::Gap }, vec![gap])
            }
            1 => {
                // Shared, because an exclusive scan may overlap locks of others in its gaps.
                let row = Area::row(Key::new(&hi), Class::RowShared);
                (crate::request::step(from, to, &hi, LockMode::Shared), vec![gap, row])
            }
            2 => {
                let class = Class::range(mode);
                let (lo, hi) = (lo_of(from), hi_of(to));
                let area = Area::range(lo.clone(), hi.clone(), class);
                (Request::Range { lo, hi, class }, vec![area])
            }
            _ => (Request::Row { key: Key::new(&lo), mode }, vec![row(&lo)]),
        };
        let wait = if self.prng.chance(1, 4) { LockWait::NoWait } else { LockWait::Forever };
        let actor = &mut self.actors[at];
        let requested = match &want {
            Request::Row { mode, .. } => actor.locker.request_row(&self.table, &lo, *mode, wait),
            _ => actor.locker.request(&self.table, want, wait),
        };
        match requested {
            Ok(Requested::Waits(pending)) => actor.waits = Some((pending, areas)),
            Ok(Requested::Done(acquired)) => {
                let is_row = areas.len() == 1 && areas[0].is_row();
                if is_row && !acquired.was_held && self.prng.chance(1, 8) {
                    actor.locker.unlock_row(&self.table, &lo);
                } else {
                    actor.granted.extend(areas);
                }
            }
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Busy | ErrorKind::TooManyLocks), "{error}");
            }
        }
    }

    /// Ends the waits that are decided.
    fn settle(&mut self) {
        loop {
            let is_decided = |actor: &Actor| {
                let graph = self.manager.graph.lock();
                graph.get(actor.locker.id()).is_some_and(|wait| !wait.is_open())
            };
            let Some(at) = self.actors.iter().position(is_decided) else { return };
            let actor = &mut self.actors[at];
            let (pending, areas) = actor.waits.take().unwrap();
            match actor.locker.conclude(pending, LockWait::Forever) {
                Ok(_) => actor.granted.extend(areas),
                Err(error) if error.kind() == ErrorKind::Deadlock => self.release(at),
                Err(error) => assert_eq!(error.kind(), ErrorKind::LockTimeout, "{error}"),
            }
        }
    }

    fn check(&self) {
        let seed = self.seed;
        let state = self.table.state.lock();
        let graph = self.manager.graph.lock();
        for waiter in &state.waiters {
            let wait = graph.get(waiter.locker).unwrap();
            assert!(
                wait.is_open() && !wait.blockers.is_empty(),
                "seed {seed}: nobody is waited for"
            );
            let mut holders = Vec::new();
            for part in &waiter.parts {
                state.holders_against(waiter.locker, &part.area, &mut |holder| {
                    holders.push(holder);
                    true
                });
            }
            for holder in &holders {
                let is_known = graph.has_edge(waiter.locker, *holder);
                assert!(is_known, "seed {seed}: {} does not wait for {holder}", waiter.locker);
            }
            for blocker in &wait.blockers {
                let is_queued = state.waiters.iter().any(|other| other.locker == *blocker);
                assert!(
                    is_queued || holders.contains(blocker),
                    "seed {seed}: {} waits for {blocker}",
                    waiter.locker
                );
            }
        }
        drop(graph);
        drop(state);
        if self.prng_is_due() {
            self.check_granted();
        }
    }

    fn prng_is_due(&self) -> bool {
        self.actors.iter().map(|actor| actor.granted.len()).sum::<usize>() % 7 == 0
    }

    /// Checks that a granted lock still refuses other lockers the requests that it excludes.
    fn check_granted(&self) {
        let state = self.table.state.lock();
        for actor in &self.actors {
            let id = actor.locker.id();
            for area in &actor.granted {
                // A write conflicts with a shared lock or a gap.
                let class = match area.class.mode() {
                    LockMode::Shared => Class::RowExclusive,
                    LockMode::Exclusive => Class::RowShared,
                };
                let probe = Area::row(area.lo.clone(), class);
                let mut is_locked = false;
                state.holders_against(u64::MAX, &probe, &mut |holder| {
                    is_locked |= holder == id;
                    true
                });
                assert!(is_locked, "seed {}: {area:?} of {id} is lost", self.seed);
            }
        }
        // No two lockers have rows or ranges that exclude each other.
        for actor in &self.actors {
            for area in &actor.granted {
                let free = state.holders_against(actor.locker.id(), area, &mut |_| false);
                assert!(free || area.class == Class::Gap, "seed {}: {area:?} is shared", self.seed);
            }
        }
    }
}

#[test]
fn joins_beside_waits_lose_no_lock_and_no_edge() {
    let mut joins = 0;
    for seed in 0..40 {
        let mut world = World::new(seed);
        for _ in 0..3000 {
            world.step();
        }
        let counts = world.manager.counts();
        assert!(counts.waits > 20, "{counts:?}");
        joins += counts.escalations;
    }
    assert!(joins > 400, "{joins} joins");
}
