//! Transactions of a simulation. A single thread runs them all, so no call may wait for a lock:
//! calls that would wait are omitted, according to the locks that the database lists.
//! [`Simulation::check_prepared`] checks separately that the database holds the required locks.

use std::collections::BTreeSet;

use frondb::{
    Committing, Durability, ErrorKind, Isolation, Locked, Result, TransactionCursorOptions,
    TransactionOptions, Wait,
};

use super::Simulation;
use super::open_transaction::{LockedKeys, OpenTransaction, is_nothing};
use super::report::{add_to_digest, short};
use crate::crash::CommitPoint;
use crate::functions::Function;
use crate::history::{End, Op, Step};
use crate::model::{Bytes, Contents, Message, ModelCursor, Move, State, TreeNumber, apply};

/// Returns the first and the last key that a message writes; of a range delete, its bounds.
pub(super) fn extent_of(message: &Message) -> (&[u8], Option<&[u8]>) {
    match message {
        Message::Put(key, _) | Message::Delete(key) | Message::Update(key, _) => (key, Some(key)),
        Message::DeleteRange(lo, hi) => (lo, hi.as_deref()),
    }
}

/// Returns whether a key between `lo` and `hi`, both included, is locked.
pub(super) fn meets(locked: &LockedKeys, lo: &[u8], hi: Option<&[u8]>) -> bool {
    locked.iter().any(|(from, to)| {
        to.as_ref().is_none_or(|to| lo < &to[..]) && hi.is_none_or(|hi| &from[..] <= hi)
    })
}

impl Simulation {
    /// Returns the keys that transactions other than `except` have locked.
    pub(super) fn locked_keys(&self, except: Option<u64>) -> LockedKeys {
        if self.transactions.is_empty() && self.model.prepared.is_empty() {
            return Vec::new();
        }
        let others = self.db().locks().into_iter();
        let others = others.filter(|lock| Some(lock.transaction) != except);
        others
            .map(|lock| match lock.locked {
                Locked::Row { key } => (key.clone(), Some([&key[..], &[0]].concat())),
                Locked::Gap { lo, hi } | Locked::Scanned { lo, hi } | Locked::Range { lo, hi } => {
                    (lo, hi)
                }
            })
            .collect()
    }

    /// Returns whether writing the message would wait.
    pub(super) fn would_wait(locked: &LockedKeys, message: &Message) -> bool {
        let (lo, hi) = extent_of(message);
        !is_nothing(message) && meets(locked, lo, hi)
    }

    /// Returns the commit point of the model's current state, to which the commit about to be made
    /// has already been applied. `writes`: whether that commit puts messages into trees.
    pub(super) fn commit_point(&self, writes: bool) -> CommitPoint {
        let (state, prepared) = (self.model.state.clone(), self.model.prepared.clone());
        CommitPoint { state, prepared, in_log_only: !writes }
    }

    /// Executes one operation on transactions.
    pub(super) fn transact(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Begin { transaction, isolation, sync } => {
                let durability = if *sync { Durability::Sync } else { Durability::NoSync };
                let options = TransactionOptions::new().isolation(*isolation);
                let begun = self.db().begin(options.durability(durability))?;
                let held = OpenTransaction {
                    transaction: begun,
                    isolation: *isolation,
                    sync: *sync,
                    snapshot: None,
                    messages: Vec::new(),
                    savepoints: Vec::new(),
                    touched: BTreeSet::new(),
                    done: 0,
                };
                self.transactions.insert(*transaction, held);
                Ok(())
            }
            Op::Steps { transaction, steps } => self.steps(*transaction, steps),
            Op::End { transaction, end } => match end {
                End::Commit => self.commit_together(&[*transaction], false),
                End::Prepare => self.prepare(*transaction),
                End::RollBack => {
                    let held = self.transactions.remove(transaction);
                    held.map_or(Ok(()), |held| held.transaction.rollback())
                }
                End::Drop => {
                    self.transactions.remove(transaction);
                    Ok(())
                }
            },
            Op::CommitTogether { transactions } => self.commit_together(transactions, true),
            Op::Decide { transaction, commit, sync } => self.decide(*transaction, *commit, *sync),
            _ => Ok(()),
        }
    }

    fn steps(&mut self, number: u32, steps: &[Step]) -> Result<()> {
        let Some(mut held) = self.transactions.remove(&number) else { return Ok(()) };
        let locked = self.locked_keys(Some(held.transaction.id()));
        let mut result = Ok(());
        while let Some(step) = steps.get(held.done) {
            if step.tree().is_none_or(|tree| self.trees.contains_key(&tree)) {
                result = self.step_of(&mut held, step, &locked);
                if result.is_err() {
                    break;
                }
            }
            held.done += 1;
        }
        if result.is_ok() {
            held.done = 0;
        }
        self.transactions.insert(number, held);
        result
    }

    fn step_of(
        &mut self,
        held: &mut OpenTransaction,
        step: &Step,
        locked: &LockedKeys,
    ) -> Result<()> {
        match step {
            Step::Write(tree, message) => self.write_in(held, *tree, message, locked),
            Step::Insert(tree, key, value) => {
                if meets(locked, key, Some(key)) {
                    return Ok(());
                }
                let there = self.value_in(held, *tree, key, true).is_some();
                let result = held.transaction.insert(&self.trees[tree], key, value);
                if there {
                    let kind = result.err().map(|error| error.kind());
                    assert_eq!(kind, Some(ErrorKind::Exists), "insert {:?}", short(Some(key)));
                    return Ok(());
                }
                result?;
                held.wrote(*tree, Message::Put(key.clone(), value.clone()));
                Ok(())
            }
            Step::Bulk(tree, entries) => self.bulk_in(held, *tree, entries),
            Step::Get { tree, key, locked: locks } => self.get_in(held, *tree, key, *locks, locked),
            Step::Scan { .. } => self.scan_in(held, step, locked),
            Step::SetSavepoint => {
                let savepoint = held.transaction.set_savepoint()?;
                held.savepoints.push((savepoint, held.messages.len()));
                Ok(())
            }
            Step::RollBackTo(which) => {
                let Some(at) = which.checked_rem(held.savepoints.len()) else { return Ok(()) };
                let (savepoint, length) = held.savepoints[at];
                held.transaction.roll_back_to(savepoint)?;
                held.savepoints.truncate(at + 1);
                held.messages.truncate(length);
                Ok(())
            }
            Step::Release(which) => {
                let Some(at) = which.checked_rem(held.savepoints.len()) else { return Ok(()) };
                held.transaction.release(held.savepoints[at].0)?;
                held.savepoints.truncate(at);
                Ok(())
            }
        }
    }

    fn write_in(
        &mut self,
        held: &mut OpenTransaction,
        tree: TreeNumber,
        message: &Message,
        locked: &LockedKeys,
    ) -> Result<()> {
        if Self::would_wait(locked, message) {
            return Ok(());
        }
        let (transaction, handle) = (&held.transaction, &self.trees[&tree]);
        match message {
            Message::Put(key, value) => transaction.put(handle, key, value)?,
            Message::Delete(key) => transaction.delete(handle, key)?,
            Message::Update(key, operand) => transaction.update(handle, key, operand)?,
            Message::DeleteRange(lo, hi) => transaction.delete_range(handle, lo, hi.as_deref())?,
        }
        if !is_nothing(message) {
            held.wrote(tree, message.clone());
        }
        Ok(())
    }

    /// Writes with a bulk statement, which must begin if nothing prevents it.
    fn bulk_in(
        &mut self,
        held: &mut OpenTransaction,
        tree: TreeNumber,
        entries: &[(Bytes, Bytes)],
    ) -> Result<()> {
        let handle = &self.trees[&tree];
        let Some(mut bulk) = held.transaction.begin_bulk(&[handle])? else {
            let is_free = self.locked_keys(Some(held.transaction.id())).is_empty();
            let is_empty_in = |state: &State| state.get(&tree).is_none_or(|rows| rows.is_empty());
            let is_empty =
                is_empty_in(&self.model.state) && held.snapshot.as_ref().is_none_or(is_empty_in);
            let has_written = held.messages.iter().any(|(of, _)| *of == tree);
            assert!(!is_free || !is_empty || has_written, "no bulk statement began");
            return Ok(());
        };
        for (key, value) in entries {
            bulk.put(handle, key, value)?;
        }
        let report = bulk.finish(&mut |_| true)?;
        assert_eq!(report.entries + report.duplicates, entries.len() as u64);
        assert_eq!(bulk.duplicate().is_some(), report.duplicates > 0);
        for (key, value) in entries {
            held.wrote(tree, Message::Put(key.clone(), value.clone()));
        }
        Ok(())
    }

    /// Returns the committed content that a read of the transaction sees.
    fn seen(&self, held: &mut OpenTransaction, tree: TreeNumber, newest: bool) -> Contents {
        let state = if newest || held.isolation != Isolation::RepeatableRead {
            &self.model.state
        } else {
            held.snapshot.get_or_insert_with(|| self.model.state.clone())
        };
        state.get(&tree).cloned().unwrap_or_default()
    }

    /// Returns the committed content that a read sees, with the transaction's own writes applied.
    fn contents_in(&self, held: &mut OpenTransaction, tree: TreeNumber, newest: bool) -> Contents {
        let mut contents = self.seen(held, tree, newest);
        let function = self.model.functions.get(&tree).copied().unwrap_or(Function::None);
        for (_, message) in held.messages.iter().filter(|(of, _)| *of == tree) {
            apply(std::sync::Arc::make_mut(&mut contents), function, message);
        }
        contents
    }

    fn value_in(
        &self,
        held: &mut OpenTransaction,
        tree: TreeNumber,
        key: &Bytes,
        newest: bool,
    ) -> Option<Bytes> {
        self.contents_in(held, tree, newest).get(key).cloned()
    }

    fn get_in(
        &mut self,
        held: &mut OpenTransaction,
        tree: TreeNumber,
        key: &Bytes,
        locks: bool,
        locked: &LockedKeys,
    ) -> Result<()> {
        let asks = locks || held.isolation == Isolation::Serializable;
        if asks && meets(locked, key, Some(key)) {
            return Ok(());
        }
        let (transaction, handle) = (&held.transaction, &self.trees[&tree]);
        let found = if locks {
            transaction.get_for_update(handle, key, Wait::NoWait)?
        } else {
            let found = transaction.get(handle, key)?;
            assert_eq!(transaction.exists(handle, key)?, found.is_some());
            found
        };
        let wanted = self.value_in(held, tree, key, asks);
        assert_eq!(short(found.as_deref()), short(wanted.as_deref()), "{:?}", short(Some(key)));
        assert!(found.as_deref() == wanted.as_deref(), "get: same beginning, different bytes");
        self.digest = add_to_digest(self.digest, found.as_deref());
        Ok(())
    }

    fn scan_in(
        &mut self,
        held: &mut OpenTransaction,
        step: &Step,
        locked: &LockedKeys,
    ) -> Result<()> {
        let Step::Scan { tree, lower, upper, backward, limit, locked: locks } = step else {
            return Ok(());
        };
        let asks = *locks || held.isolation == Isolation::Serializable;
        if asks && meets(locked, lower.as_deref().unwrap_or_default(), upper.as_deref()) {
            return Ok(());
        }
        let options = TransactionCursorOptions::new();
        let options = if *locks { options.for_update(Wait::NoWait) } else { options };
        let options = match (lower.as_deref(), upper.as_deref()) {
            (None, None) => options,
            (Some(lower), None) => options.range(lower..),
            (None, Some(upper)) => options.range(..upper),
            (Some(lower), Some(upper)) => options.range(lower..upper),
        };
        let mut cursor = held.transaction.cursor_with(&self.trees[tree], options)?;
        let contents = self.contents_in(held, *tree, asks);
        let mut model = ModelCursor::new(contents, lower.clone(), upper.clone());
        let step = if *backward { Move::Prev } else { Move::Next };
        for _ in 0..*limit {
            let wanted = model.go(&step);
            let is_there = if *backward { cursor.prev()? } else { cursor.next()? };
            let found = if is_there { Some((cursor.key(), cursor.value()?)) } else { None };
            let wanted = wanted.as_ref().map(|(key, value)| (&**key, &**value));
            let keys = [found, wanted].map(|entry| short(entry.map(|(key, _)| key)));
            assert_eq!(keys[0], keys[1], "{step:?}");
            assert!(found == wanted, "{step:?}: a different value of {keys:?}");
            self.digest =
                add_to_digest(add_to_digest(self.digest, found.map(|e| e.0)), found.map(|e| e.1));
            if found.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a call failed because a tree was dropped. Panics if the call failed like
    /// that, but no tree was dropped.
    pub(super) fn lost_a_tree(&self, held: &OpenTransaction, error: &frondb::Error) -> bool {
        let lost = error.kind() == ErrorKind::NotFound;
        let mut dropped = held.touched.iter().filter(|tree| !self.trees.contains_key(tree));
        assert!(!lost || dropped.next().is_some(), "no tree was dropped: {error}");
        lost
    }

    /// Returns whether all kept writes of the transaction can be committed.
    pub(super) fn has_all_trees(&self, held: &OpenTransaction) -> bool {
        held.messages.iter().all(|(tree, _)| self.trees.contains_key(tree))
    }

    /// Commits transactions one after the other, then waits for all of them.
    fn commit_together(&mut self, numbers: &[u32], in_order: bool) -> Result<()> {
        let mut waits: Vec<(Committing, bool)> = Vec::new();
        let mut result = Ok(());
        for number in numbers {
            let Some(held) = self.transactions.remove(number) else { continue };
            let before = self.model.state.clone();
            let writes = !held.messages.is_empty() && self.has_all_trees(&held);
            if writes {
                self.model.write(&held.messages);
                self.known.committing(
                    self.commit_point(
                        !held.messages.iter().all(|(_, message)| is_nothing(message)),
                    ),
                );
            }
            let committed = held.transaction.commit_in_order();
            let sync = held.sync && self.setup.sync == frondb::SyncMode::Always;
            let durable = sync && writes;
            match committed {
                Ok(wait) => {
                    assert!(self.has_all_trees(&held), "committed into a dropped tree");
                    waits.push((wait, durable));
                }
                Err(error) if self.lost_a_tree(&held, &error) => {
                    self.undo_commit(before, writes);
                    held.transaction.rollback()?;
                }
                Err(error) => {
                    if error.kind() == ErrorKind::NoSpace {
                        self.undo_commit(before, writes);
                        self.transactions.insert(*number, held);
                    }
                    result = Err(error);
                    break;
                }
            }
            if !in_order {
                break;
            }
        }
        // Wait for the last commit first: its sync also covers the earlier ones.
        let all_durable = waits.last().is_some_and(|(_, durable)| *durable);
        waits.into_iter().rev().try_for_each(|(wait, _)| wait.wait())?;
        if all_durable && result.is_ok() {
            self.known.all_durable();
        }
        result
    }

    /// Undoes a refused commit in the model.
    fn undo_commit(&mut self, before: State, was_known: bool) {
        self.model.state = before;
        if was_known {
            self.known.refused();
        }
    }

    /// Checks that after a close, open transactions can only be rolled back.
    pub(super) fn check_closed(&mut self) {
        for held in std::mem::take(&mut self.transactions).into_values() {
            let result = held.transaction.commit();
            if !held.messages.is_empty() {
                let kind = result.err().map(|error| error.kind());
                assert_eq!(kind, Some(ErrorKind::Closed), "commit after close");
            }
        }
    }
}
