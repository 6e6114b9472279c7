//! An in-memory database of lists with selectable isolation, correct or broken, to test the checks:
//! they must accept correct histories and report incorrect ones.
//!
//! Sessions take turns at random, one step at a time, in one thread, so a seed determines a
//! history.

use std::collections::BTreeMap;

use frondb_core::prng::Prng;

use super::history::{Event, History, KeyNumber, Outcome, Recorded};

/// How transactions are isolated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// One transaction after the other.
    Serial,
    /// Snapshot isolation: a snapshot at the beginning, and the first transaction to commit a list
    /// wins.
    Snapshot,
    /// Each read sees the newest version; appends go to the newest version.
    ReadCommitted,
    /// Like [`Snapshot`](Self::Snapshot), but lists with odd numbers are read at a later snapshot.
    TwoSnapshots,
    /// Like [`Snapshot`](Self::Snapshot), but without the first-committer check: the later
    /// transaction overwrites.
    LostUpdates,
    /// Appends are visible immediately, and removed again by a rollback.
    Dirty,
}

const SESSIONS: usize = 4;
const KEYS: u64 = 5;

type Lists = BTreeMap<KeyNumber, Vec<u64>>;

struct Session {
    recorded: Recorded,
    own: Vec<(KeyNumber, u64)>,
    snapshot: Lists,
    second: Option<Lists>,
    steps: u64,
}

struct World {
    isolation: Isolation,
    prng: Prng,
    tick: u64,
    value: u64,
    lists: Lists,
    sessions: Vec<Option<Session>>,
    done: Vec<Recorded>,
}

/// Generates a history of `transactions` transactions under `isolation` from `seed`. Transactions
/// that are open at its end are rolled back and recorded in addition.
#[must_use]
pub fn history(isolation: Isolation, seed: u64, transactions: usize) -> History {
    let mut world = World {
        isolation,
        prng: Prng::new(seed),
        tick: 0,
        value: 0,
        lists: Lists::new(),
        sessions: (0..SESSIONS).map(|_| None).collect(),
        done: Vec::new(),
    };
    while world.done.len() < transactions {
        let at = world.prng.index(SESSIONS);
        world.step(at);
        while isolation == Isolation::Serial && world.sessions[at].is_some() {
            world.step(at);
        }
    }
    // Roll back the open transactions: appends that are visible before the commit must be removed.
    for at in 0..SESSIONS {
        if let Some(session) = world.sessions[at].take() {
            world.roll_back(session);
        }
    }
    History { transactions: world.done, last: world.lists }
}

impl World {
    fn tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    fn step(&mut self, at: usize) {
        let Some(mut session) = self.sessions[at].take() else {
            let begin = self.tick();
            self.sessions[at] = Some(Session {
                recorded: Recorded::new(begin, begin),
                own: Vec::new(),
                snapshot: self.lists.clone(),
                second: None,
                steps: 1 + self.prng.below(6),
            });
            return;
        };
        if session.steps == 0 {
            return self.end(session);
        }
        session.steps -= 1;
        let key = self.prng.below(KEYS) as KeyNumber;
        if self.prng.chance(1, 2) {
            let values = self.read(&mut session, key);
            session.recorded.events.push(Event::Read(key, values));
        } else {
            self.value += 1;
            session.recorded.events.push(Event::Append(key, self.value));
            session.own.push((key, self.value));
            if self.isolation == Isolation::Dirty {
                self.lists.entry(key).or_default().push(self.value);
            }
        }
        self.sessions[at] = Some(session);
    }

    fn read(&self, session: &mut Session, key: KeyNumber) -> Vec<u64> {
        let lists = match self.isolation {
            Isolation::Dirty => return self.lists.get(&key).cloned().unwrap_or_default(),
            Isolation::ReadCommitted => &self.lists,
            Isolation::TwoSnapshots if key % 2 == 1 => {
                session.second.get_or_insert_with(|| self.lists.clone())
            }
            _ => &session.snapshot,
        };
        let mut list = lists.get(&key).cloned().unwrap_or_default();
        list.extend(session.own.iter().filter(|(of, _)| *of == key).map(|(_, value)| *value));
        list
    }

    fn end(&mut self, mut session: Session) {
        let is_first = session.own.iter().all(|(key, _)| {
            let seen = match &session.second {
                Some(second) if key % 2 == 1 => second,
                _ => &session.snapshot,
            };
            seen.get(key) == self.lists.get(key)
        });
        let must_be = matches!(self.isolation, Isolation::Snapshot | Isolation::TwoSnapshots);
        if must_be && !is_first || self.prng.chance(1, 12) {
            return self.roll_back(session);
        }
        if self.isolation == Isolation::LostUpdates {
            for (key, _) in &session.own {
                let old = session.snapshot.get(key).cloned().unwrap_or_default();
                self.lists.insert(*key, old);
            }
        }
        if self.isolation != Isolation::Dirty {
            for (key, value) in &session.own {
                self.lists.entry(*key).or_default().push(*value);
            }
        }
        session.recorded.end = self.tick();
        self.done.push(session.recorded);
    }

    fn roll_back(&mut self, mut session: Session) {
        if self.isolation == Isolation::Dirty {
            for (key, value) in &session.own {
                self.lists.entry(*key).or_default().retain(|found| found != value);
            }
        }
        session.recorded.end = self.tick();
        session.recorded.outcome = Outcome::RolledBack;
        self.done.push(session.recorded);
    }
}
