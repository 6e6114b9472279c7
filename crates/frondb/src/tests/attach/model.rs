//! The model: what readers must see, and random transactions.

use std::collections::BTreeMap;

use frondb_core::MessageKind;
use frondb_core::prng::Prng;

use super::private_runs::PrivateMessage;

/// Keys of both trees and their values.
pub(super) type State = BTreeMap<(usize, Vec<u8>), Vec<u8>>;

/// A message for one of the trees.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) tree: usize,
    pub(super) message: PrivateMessage,
}

/// The contents that a database must have.
#[derive(Clone, Debug, Default)]
pub(super) struct Expected {
    pub(super) state: State,
    /// Prepared transactions by name, with all their writes.
    pub(super) prepared: BTreeMap<Vec<u8>, Vec<Change>>,
}

/// Applies a transaction to a state.
pub(super) fn apply(state: &mut State, changes: &[Change]) {
    for Change { tree, message } in changes {
        match message {
            PrivateMessage::Point(MessageKind::Delete, key, _) => {
                state.remove(&(*tree, key.clone()));
            }
            PrivateMessage::Point(MessageKind::Update, key, value) => {
                let old = state.entry((*tree, key.clone())).or_default();
                old.extend_from_slice(value);
            }
            PrivateMessage::Point(_, key, value) => {
                state.insert((*tree, key.clone()), value.clone());
            }
            PrivateMessage::DeleteRange(lo, hi) => {
                let inside = |key: &(usize, Vec<u8>)| {
                    key.0 == *tree && *lo <= key.1 && hi.as_ref().is_none_or(|hi| key.1 < *hi)
                };
                state.retain(|key, _| !inside(key));
            }
        }
    }
}

/// A transaction: the parts that are written as private runs, and the messages of its log record.
#[derive(Clone, Debug, Default)]
pub(super) struct Txn {
    /// For each part: the number of the tree (0 or 1), the messages, the number of runs, and
    /// whether the runs are base runs.
    pub(super) parts: Vec<(usize, Vec<Change>, usize, bool)>,
    pub(super) record: Vec<Change>,
}

impl Txn {
    /// Returns all writes, in the order in which they apply.
    pub(super) fn changes(&self) -> Vec<Change> {
        let parts = self.parts.iter().flat_map(|part| part.1.iter().cloned());
        parts.chain(self.record.iter().cloned()).collect()
    }
}

/// Generates random messages and transactions from a seed.
pub(super) struct Author {
    pub(super) prng: Prng,
    /// Number of different keys in random writes.
    pub(super) keys: u64,
    /// Largest number of messages in a part.
    pub(super) part_messages: u64,
    /// One put in this many writes a large value.
    pub(super) large_in: u64,
    /// Number of keys appended so far; they are larger than all random keys.
    appended: u64,
}

pub(super) fn key(number: u64) -> Vec<u8> {
    format!("key{number:07}").into_bytes()
}

impl Author {
    pub(super) fn new(seed: u64, keys: u64, part_messages: u64, large_in: u64) -> Self {
        Self { prng: Prng::new(seed), keys, part_messages, large_in, appended: 0 }
    }

    fn value(&mut self) -> Vec<u8> {
        let bytes = if self.prng.chance(1, self.large_in) {
            70_000 + self.prng.index(40_000)
        } else {
            self.prng.index(60)
        };
        let mut value = vec![0; bytes];
        self.prng.fill(&mut value);
        value
    }

    /// Makes a random message for a tree; only tree 1 has an update function.
    pub(super) fn change(&mut self, tree: usize) -> Change {
        let key_of = key(self.prng.below(self.keys));
        let roll = self.prng.below(100);
        let message = match roll {
            0..3 => {
                let lo = self.prng.below(self.keys);
                let hi = self.prng.chance(9, 10).then(|| key(lo + self.prng.below(self.keys / 3)));
                PrivateMessage::DeleteRange(key(lo), hi)
            }
            3..25 => PrivateMessage::Point(MessageKind::Delete, key_of, Vec::new()),
            25..45 if tree == 1 => {
                let operand = vec![b'0' + self.prng.below(10) as u8];
                PrivateMessage::Point(MessageKind::Update, key_of, operand)
            }
            _ => PrivateMessage::Point(MessageKind::Put, key_of, self.value()),
        };
        Change { tree, message }
    }

    pub(super) fn changes(&mut self, tree: usize, most: u64) -> Vec<Change> {
        let n = 1 + self.prng.below(most);
        (0..n).map(|_| self.change(tree)).collect()
    }

    /// Makes puts in key order, with keys above all earlier ones.
    fn appends(&mut self, tree: usize) -> Vec<Change> {
        let n = 1 + self.prng.below(self.part_messages);
        let puts = (0..n).map(|_| {
            self.appended += 1;
            let key = key(self.keys * 2 + self.appended);
            let message = PrivateMessage::Point(MessageKind::Put, key, vec![7; 40]);
            Change { tree, message }
        });
        puts.collect()
    }

    fn part(&mut self, tree: usize) -> (usize, Vec<Change>, usize, bool) {
        let runs = 1 + self.prng.index(4);
        if self.prng.chance(1, 4) {
            let base = self.prng.chance(1, 2);
            return (tree, self.appends(tree), runs, base);
        }
        (tree, self.changes(tree, self.part_messages), runs, false)
    }

    /// Makes a random transaction with private runs in up to two trees, and in some cases messages
    /// in its record.
    pub(super) fn txn(&mut self) -> Txn {
        let mut txn = Txn::default();
        for tree in 0..2 {
            if self.prng.chance(2, 3) {
                txn.parts.push(self.part(tree));
            }
        }
        if txn.parts.is_empty() || self.prng.chance(1, 2) {
            txn.record = self.record();
        }
        txn
    }

    pub(super) fn record(&mut self) -> Vec<Change> {
        let mut record = Vec::new();
        for tree in 0..2 {
            if self.prng.chance(2, 3) {
                record.extend(self.changes(tree, 12));
            }
        }
        record
    }
}
