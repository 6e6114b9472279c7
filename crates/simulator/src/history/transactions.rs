//! Operations on transactions: up to two may be open at a time, and several prepared. The generator
//! does not know which calls would wait for a lock; the simulation omits such calls.

use frondb::Isolation;

use super::Generator;
use super::op::{End, Op, Step};
use crate::model::{Bytes, Message};

/// Maximum number of prepared transactions at a time.
const PREPARED_MAX: usize = 3;

impl Generator {
    /// Begins a transaction, continues one, ends one or decides one.
    pub(super) fn transaction(&mut self) {
        if self.open.is_empty() || self.open.len() < 2 && self.prng.chance(1, 3) {
            let transaction = self.number();
            self.open.push(transaction);
            let levels =
                [Isolation::ReadCommitted, Isolation::RepeatableRead, Isolation::Serializable];
            let isolation = levels[self.prng.index(3)];
            let sync = self.prng.chance(1, self.profile.sync_in);
            self.ops.push(Op::Begin { transaction, isolation, sync });
            return self.steps(transaction);
        }
        let must_decide = self.prepared.len() >= PREPARED_MAX;
        match self.prng.below(10) {
            0..=2 => {
                let transaction = self.open[self.prng.index(self.open.len())];
                self.steps(transaction);
            }
            3..=8 if !must_decide => self.end(),
            _ => self.decide(),
        }
    }

    fn steps(&mut self, transaction: u32) {
        let kind = self.prng.below(self.profile.spill_in.max(1));
        let steps = match kind {
            0 => self.large_steps(),
            1 => self.bulk_steps(),
            2 | 3 => self.bulk_statement_steps(),
            _ => (0..=self.prng.below(self.profile.batch)).map(|_| self.one_step()).collect(),
        };
        self.ops.push(Op::Steps { transaction, steps });
    }

    fn one_step(&mut self) -> Step {
        let tree = self.tree();
        match self.prng.below(100) {
            0..=54 => Step::Write(tree, self.message(tree, false, false, false)),
            55..=59 => Step::Insert(tree, self.key(), self.value(false)),
            60..=74 => Step::Get { tree, key: self.key(), locked: self.prng.chance(1, 3) },
            75..=81 => Step::Scan {
                tree,
                lower: self.bound(),
                upper: self.bound(),
                backward: self.prng.chance(1, 2),
                limit: 1 + self.prng.below(100) as usize,
                locked: self.prng.chance(1, 3),
            },
            82..=89 => Step::SetSavepoint,
            90..=96 => Step::RollBackTo(self.prng.index(4)),
            _ => Step::Release(self.prng.index(4)),
        }
    }

    /// Returns many small messages, with savepoints and rollbacks to savepoints between them.
    fn bulk_steps(&mut self) -> Vec<Step> {
        let sequential = self.prng.chance(1, 3);
        let mut steps = Vec::new();
        for _ in 0..self.profile.bulk {
            let tree = self.tree();
            steps.push(match self.prng.below(40) {
                0 => Step::SetSavepoint,
                1 => Step::RollBackTo(self.prng.index(4)),
                _ => Step::Write(tree, self.message(tree, sequential, false, true)),
            });
        }
        steps
    }

    /// Returns a savepoint, a bulk statement and other steps. Usually adds an operation before them
    /// that empties the statement's tree with a range delete.
    fn bulk_statement_steps(&mut self) -> Vec<Step> {
        let tree = self.tree();
        if self.prng.chance(3, 4) {
            let messages = vec![(tree, Message::DeleteRange(Vec::new().into(), None))];
            self.ops.push(Op::Write { messages, sync: false });
        }
        let mut steps = vec![Step::SetSavepoint];
        let n = self.prng.below(self.profile.bulk.max(1));
        let entries = (0..n).map(|_| (self.key(), self.value(true))).collect();
        steps.push(Step::Bulk(tree, entries));
        for _ in 0..self.prng.below(4) {
            steps.push(self.one_step());
        }
        steps
    }

    /// Returns puts of values of 16 to 40 KiB, enough to spill at the smallest memory. Some are
    /// rolled back.
    fn large_steps(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        for part in 0..3 {
            for _ in 0..6 {
                let tree = self.tree();
                let message = Message::Put(self.large_key(), self.large_value());
                steps.push(Step::Write(tree, message));
            }
            steps.push(self.one_step());
            if part == 0 && self.prng.chance(1, 2) {
                steps.push(Step::SetSavepoint);
            }
        }
        if self.prng.chance(1, 3) {
            steps.push(Step::RollBackTo(self.prng.index(4)));
        }
        steps
    }

    /// Returns one of few keys, so that the data does not grow.
    fn large_key(&mut self) -> Bytes {
        format!("b{:02}", self.prng.below(20)).into_bytes().into()
    }

    fn large_value(&mut self) -> Bytes {
        let n = self.prng.range(16 << 10..40 << 10);
        self.bytes(n)
    }

    fn end(&mut self) {
        if self.open.len() == 2 && self.prng.chance(1, 3) {
            let mut transactions = std::mem::take(&mut self.open);
            self.prng.shuffle(&mut transactions);
            return self.ops.push(Op::CommitTogether { transactions });
        }
        let transaction = self.open.swap_remove(self.prng.index(self.open.len()));
        let end = match self.prng.below(10) {
            0..=4 => End::Commit,
            5 => End::RollBack,
            6 => End::Drop,
            _ => End::Prepare,
        };
        if end == End::Prepare {
            self.prepared.push(transaction);
        }
        self.ops.push(Op::End { transaction, end });
    }

    fn decide(&mut self) {
        if self.prepared.is_empty() {
            return self.end();
        }
        let transaction = self.prepared.swap_remove(self.prng.index(self.prepared.len()));
        let (commit, sync) = (self.prng.chance(2, 3), self.prng.chance(1, self.profile.sync_in));
        self.ops.push(Op::Decide { transaction, commit, sync });
    }
}
