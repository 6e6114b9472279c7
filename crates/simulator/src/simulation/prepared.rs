//! Prepared transactions of a simulation: prepares and decides them, and checks their locks.

use std::collections::BTreeSet;

use frondb::{Durability, ErrorKind, Result};

use super::Simulation;
use super::open_transaction::is_nothing;
use super::transactions::{extent_of, meets};
use crate::functions::Function;
use crate::model::{Message, TreeNumber, apply, xid};

impl Simulation {
    pub(super) fn prepare(&mut self, number: u32) -> Result<()> {
        let Some(held) = self.transactions.remove(&number) else { return Ok(()) };
        let functions = &self.model.functions;
        let function = |tree| functions.get(tree).copied().unwrap_or(Function::None);
        let messages = held.messages.iter();
        let messages = messages.map(|(tree, message)| (*tree, function(tree), message.clone()));
        self.model.prepared.insert(number, std::sync::Arc::new(messages.collect()));
        let possible = self.has_all_trees(&held);
        if possible {
            self.known.committing(self.commit_point(false));
        }
        match held.transaction.prepare(&xid(number)) {
            Ok(()) => {
                assert!(possible, "prepared a write to a dropped tree");
                self.touched.insert(number, held.touched);
                if held.sync && self.setup.sync == frondb::SyncMode::Always {
                    self.known.all_durable();
                }
                Ok(())
            }
            Err(error) if self.lost_a_tree(&held, &error) => {
                self.model.prepared.remove(&number);
                if possible {
                    self.known.refused();
                }
                held.transaction.rollback()
            }
            Err(error) => {
                if error.kind() == ErrorKind::NoSpace {
                    self.model.prepared.remove(&number);
                    if possible {
                        self.known.refused();
                    }
                    self.transactions.insert(number, held);
                }
                Err(error)
            }
        }
    }

    pub(super) fn decide(&mut self, number: u32, commit: bool, sync: bool) -> Result<()> {
        let Some(messages) = self.model.prepared.get(&number).cloned() else { return Ok(()) };
        if commit {
            self.commit_prepared(number, &messages, sync)?;
        } else {
            self.known.rolling_back(number);
            let result = self.db().rollback_prepared(&xid(number));
            let refused = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace);
            if result.is_ok() || refused {
                self.known.rolled_back(number, result.is_ok());
            }
            result?;
            self.model.prepared.remove(&number);
        }
        self.touched.remove(&number);
        match self.db().rollback_prepared(&xid(number)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            // Background work has failed since the decision, because the device fails.
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Poisoned) => Err(error),
            again => panic!("decided twice: {again:?}"),
        }
    }

    fn commit_prepared(
        &mut self,
        number: u32,
        messages: &[(TreeNumber, Function, Message)],
        sync: bool,
    ) -> Result<()> {
        let before = (self.model.state.clone(), self.model.prepared.clone());
        for (tree, function, message) in messages {
            let contents = self.model.state.entry(*tree).or_default();
            apply(std::sync::Arc::make_mut(contents), *function, message);
        }
        self.model.prepared.remove(&number);
        self.known.committing(
            self.commit_point(!messages.iter().all(|(_, _, message)| is_nothing(message))),
        );
        let durability = if sync { Durability::Sync } else { Durability::NoSync };
        if let Err(error) = self.db().commit_prepared(&xid(number), durability) {
            if error.kind() == ErrorKind::NoSpace {
                (self.model.state, self.model.prepared) = before;
                self.known.refused();
            }
            return Err(error);
        }
        if sync && self.setup.sync == frondb::SyncMode::Always {
            self.known.all_durable();
        }
        Ok(())
    }

    /// Returns whether a prepared transaction has written to the tree, which then cannot be
    /// dropped.
    pub(super) fn has_prepared_writes(&self, tree: TreeNumber) -> bool {
        let writes = |(of, _, _): &(TreeNumber, Function, Message)| *of == tree;
        self.model.prepared.values().any(|messages| messages.iter().any(writes))
    }

    /// Returns whether a prepared transaction has ever written to the tree, including writes that
    /// it rolled back.
    pub(super) fn was_touched_by_prepared(&self, tree: TreeNumber) -> bool {
        self.touched.values().any(|trees| trees.contains(&tree))
    }

    /// Compares the prepared transactions with the model, and checks that all keys that they wrote
    /// are locked.
    pub(super) fn check_prepared(&self) {
        let names: BTreeSet<Vec<u8>> = self.model.prepared.keys().map(|n| xid(*n)).collect();
        let found: BTreeSet<Vec<u8>> = self.db().prepared().into_iter().collect();
        assert_eq!(found, names, "prepared transactions");
        let locked = self.locked_keys(None);
        for (number, messages) in &self.model.prepared {
            for (_, _, message) in messages.iter() {
                let (lo, hi) = extent_of(message);
                assert!(
                    meets(&locked, lo, hi),
                    "{message:?} of transaction {number} is not locked"
                );
            }
        }
        if self.transactions.is_empty() && names.is_empty() {
            assert_eq!(self.db().locks(), [], "locks without an owner");
        }
    }
}
