//! What is recorded of transactions over lists.
//!
//! Every value is appended at most once in a history, so that a value names its append. Ticks come
//! from one counter of all threads: one before a transaction begins, one after its end returned. So
//! a transaction whose last tick is below another's first one was over before that began.

use std::collections::BTreeMap;

/// A list, by number.
pub type KeyNumber = u32;

/// What a transaction did, in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Appended a value to a list.
    Append(KeyNumber, u64),
    /// Read a list.
    Read(KeyNumber, Vec<u64>),
    /// Set a savepoint; they are numbered from 0 in each transaction.
    SetSavepoint,
    /// Gave up the appends since the savepoint of this number, which stays set.
    RollBackTo(usize),
}

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its commit returned.
    Committed,
    /// It was rolled back, by its thread or by the database.
    RolledBack,
}

/// One transaction as its thread saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Tick before it began.
    pub begin: u64,
    /// Tick after it had ended.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did.
    pub events: Vec<Event>,
}

/// A step of a transaction with what the transaction had appended itself at that moment, without
/// what it had given up.
pub(crate) enum Replayed<'a> {
    Append(u64),
    Read { key: KeyNumber, values: &'a [u64], own: &'a [u64] },
}

impl Recorded {
    /// A committed transaction without events, from `begin` to `end`.
    #[must_use]
    pub fn new(begin: u64, end: u64) -> Self {
        Self { begin, end, outcome: Outcome::Committed, events: Vec::new() }
    }

    /// With one more append.
    #[must_use]
    pub fn append(mut self, key: KeyNumber, value: u64) -> Self {
        self.events.push(Event::Append(key, value));
        self
    }

    /// With one more read.
    #[must_use]
    pub fn read(mut self, key: KeyNumber, values: &[u64]) -> Self {
        self.events.push(Event::Read(key, values.to_vec()));
        self
    }

    /// With a savepoint.
    #[must_use]
    pub fn set_savepoint(mut self) -> Self {
        self.events.push(Event::SetSavepoint);
        self
    }

    /// With what came since a savepoint given up.
    #[must_use]
    pub fn roll_back_to(mut self, savepoint: usize) -> Self {
        self.events.push(Event::RollBackTo(savepoint));
        self
    }

    /// Rolled back at the end.
    #[must_use]
    pub fn rolled_back(mut self) -> Self {
        self.outcome = Outcome::RolledBack;
        self
    }

    /// Whether it committed.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.outcome == Outcome::Committed
    }

    /// Tells `visit` of each append and read in order. Returns the appends that were not given up.
    pub(crate) fn replay(&self, mut visit: impl FnMut(Replayed<'_>)) -> Vec<(KeyNumber, u64)> {
        let mut appended: Vec<(KeyNumber, u64)> = Vec::new();
        let mut savepoints = Vec::new();
        for event in &self.events {
            match event {
                Event::Append(key, value) => {
                    visit(Replayed::Append(*value));
                    appended.push((*key, *value));
                }
                Event::Read(key, values) => {
                    let own = appended.iter().filter(|(of, _)| of == key);
                    let own: Vec<u64> = own.map(|(_, value)| *value).collect();
                    visit(Replayed::Read { key: *key, values, own: &own });
                }
                Event::SetSavepoint => savepoints.push(appended.len()),
                Event::RollBackTo(savepoint) => {
                    appended.truncate(savepoints.get(*savepoint).copied().unwrap_or_default());
                    savepoints.truncate(savepoint + 1);
                }
            }
        }
        appended
    }
}

/// All transactions of all threads, and the lists as they were at the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// In any order.
    pub transactions: Vec<Recorded>,
    /// Lists when all transactions had ended; one that is not here is empty.
    pub last: BTreeMap<KeyNumber, Vec<u64>>,
}
