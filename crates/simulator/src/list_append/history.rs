//! The record of transactions over lists.
//!
//! Every value is appended at most once in a history, so a value identifies its append. Ticks come
//! from one counter for all threads: one before a transaction begins, one after its end has
//! returned. A transaction whose last tick is below another's first tick therefore ended before the
//! other began.

use std::collections::BTreeMap;

/// A list, by number.
pub type KeyNumber = u32;

/// An action of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Appended a value to a list.
    Append(KeyNumber, u64),
    /// Read a list.
    Read(KeyNumber, Vec<u64>),
    /// Set a savepoint; they are numbered from 0 in each transaction.
    SetSavepoint,
    /// Rolled back the appends since the savepoint with this number, which stays set.
    RollBackTo(usize),
}

/// The end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its commit returned.
    Committed,
    /// It was rolled back, by its thread or by the database.
    RolledBack,
}

/// One transaction as seen by its thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// Tick before the transaction began.
    pub begin: u64,
    /// Tick after the transaction had ended.
    pub end: u64,
    /// The end of the transaction.
    pub outcome: Outcome,
    /// The transaction's actions, in order.
    pub events: Vec<Event>,
}

/// An append, or a read of a list. `own`: the values that the reading transaction had appended to
/// the list by then and not rolled back.
pub(crate) enum Replayed<'a> {
    Append(u64),
    Read { key: KeyNumber, values: &'a [u64], own: &'a [u64] },
}

impl Recorded {
    /// Creates a committed transaction without events, from `begin` to `end`.
    #[must_use]
    pub fn new(begin: u64, end: u64) -> Self {
        Self { begin, end, outcome: Outcome::Committed, events: Vec::new() }
    }

    /// Adds an append.
    #[must_use]
    pub fn append(mut self, key: KeyNumber, value: u64) -> Self {
        self.events.push(Event::Append(key, value));
        self
    }

    /// Adds a read.
    #[must_use]
    pub fn read(mut self, key: KeyNumber, values: &[u64]) -> Self {
        self.events.push(Event::Read(key, values.to_vec()));
        self
    }

    /// Adds a savepoint.
    #[must_use]
    pub fn set_savepoint(mut self) -> Self {
        self.events.push(Event::SetSavepoint);
        self
    }

    /// Rolls back to a savepoint.
    #[must_use]
    pub fn roll_back_to(mut self, savepoint: usize) -> Self {
        self.events.push(Event::RollBackTo(savepoint));
        self
    }

    /// Marks the transaction as rolled back.
    #[must_use]
    pub fn rolled_back(mut self) -> Self {
        self.outcome = Outcome::RolledBack;
        self
    }

    /// Returns whether the transaction committed.
    #[must_use]
    pub fn is_committed(&self) -> bool {
        self.outcome == Outcome::Committed
    }

    /// Calls `visit` for each append and read in order. Returns the appends that were not rolled
    /// back.
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

/// All transactions of all threads, and the final lists.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct History {
    /// In any order.
    pub transactions: Vec<Recorded>,
    /// The lists after all transactions had ended; a missing list is empty.
    pub last: BTreeMap<KeyNumber, Vec<u64>>,
}
