//! What the manifest has of transactions that are not part of the trees yet: their private runs
//! (*pending*), and those that were prepared and need the log no more (rule 19).
//!
//! ```text
//!  runs synced -> Pending durable -> record of the commit or the prepare -> ... -> EndPending
//! ```
//!
//! A pending part says nothing by itself: without a record in the log that commits or prepares its
//! transaction, or a `Prepared` beside it, recovery drops it and its space is free. So giving up needs
//! no durable edit.
//!
//! [`PendingState`] is what the edits make; recovery builds it, and the open engine keeps it in step with
//! the manifest for the next snapshot of it. Thread-safe behind its lock, which is a leaf; it changes
//! only with the gate held for reading.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::sync::Arc;
use frondb_core::{Lsn, TreeId};
use frondb_records::{Edit, PendingPart};

use crate::attachment::Attachment;

/// What edits have said and not taken back.
#[derive(Clone, Debug, Default)]
pub struct PendingState {
    /// By transaction and place.
    pub parts: BTreeMap<(u64, u32), Arc<PendingPart>>,
    /// Transactions that are prepared and whose writes are all in their parts.
    pub prepared: BTreeMap<u64, PreparedInManifest>,
    /// Such transactions that were rolled back, while the log may still have their record.
    pub rolled_back: BTreeMap<u64, Lsn>,
    /// Trees that exist if their transaction commits.
    pub made_by: BTreeMap<TreeId, u64>,
}

/// A transaction that the manifest has as prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreparedInManifest {
    /// Its name.
    pub xid: Box<[u8]>,
    /// Where the record of the prepare began.
    pub logged: Lsn,
    /// How many parts it has had.
    pub parts: u32,
}

impl PendingState {
    /// A part is pending.
    pub fn add_part(&mut self, part: PendingPart) {
        self.parts.insert((part.txn, part.part), Arc::new(part));
    }

    /// A part is in its tree's trunk, or given up; the last one takes its transaction with it.
    pub fn end_part(&mut self, txn: u64, part: u32) {
        if let Some(part) = self.parts.remove(&(txn, part))
            && self.made_by.get(&part.tree) == Some(&txn)
        {
            self.made_by.remove(&part.tree);
        }
        if self.parts_of(txn).next().is_none() {
            self.prepared.remove(&txn);
        }
    }

    /// A transaction is prepared with so many parts. The edit that gave others up may be lost.
    pub fn add_prepared(&mut self, txn: u64, prepared: PreparedInManifest) {
        self.parts.retain(|key, _| key.0 != txn || key.1 < prepared.parts);
        self.prepared.insert(txn, prepared);
    }

    /// A prepared transaction was rolled back.
    pub fn end_prepared(&mut self, txn: u64, logged: Lsn) {
        self.parts.retain(|key, _| key.0 != txn);
        self.prepared.remove(&txn);
        self.rolled_back.insert(txn, logged);
    }

    /// A tree is gone, and what was written to it.
    pub fn drop_tree(&mut self, tree: TreeId) {
        self.made_by.remove(&tree);
        let gone = self.parts.values().filter(|part| part.tree == tree);
        let gone: Vec<(u64, u32)> = gone.map(|part| (part.txn, part.part)).collect();
        for (txn, part) in gone {
            self.end_part(txn, part);
        }
    }

    /// The parts of a transaction, in their order.
    pub fn parts_of(&self, txn: u64) -> impl Iterator<Item = &Arc<PendingPart>> {
        self.parts.range((txn, 0)..=(txn, u32::MAX)).map(|(_, part)| part)
    }

    /// Takes out the trees whose transaction has no part of them that is left: it did not commit.
    pub fn take_unmade(&mut self) -> Vec<TreeId> {
        let parts: BTreeSet<(u64, TreeId)> =
            self.parts.values().map(|part| (part.txn, part.tree)).collect();
        let unmade = self.made_by.iter().filter(|(tree, txn)| !parts.contains(&(**txn, **tree)));
        let unmade: Vec<TreeId> = unmade.map(|(tree, _)| *tree).collect();
        self.made_by.retain(|tree, _| !unmade.contains(tree));
        unmade
    }

    /// The log begins at `start`: records below are gone.
    pub fn log_begins(&mut self, start: Lsn) {
        self.rolled_back.retain(|_, logged| *logged >= start);
    }

    /// The edits that make this state from nothing.
    pub fn edits(&self) -> impl Iterator<Item = Edit> {
        let parts = self.parts.values().map(|part| Edit::Pending((**part).clone()));
        let prepared = self.prepared.iter().map(|(txn, prepared)| Edit::Prepared {
            txn: *txn,
            xid: prepared.xid.clone(),
            logged: prepared.logged,
            parts: prepared.parts,
        });
        let rolled_back = self.rolled_back.iter();
        let rolled_back =
            rolled_back.map(|(txn, logged)| Edit::EndPrepared { txn: *txn, logged: *logged });
        let made_by = self.made_by.iter();
        let made_by = made_by.map(|(tree, txn)| Edit::MadeBy { tree: *tree, txn: *txn });
        rolled_back.chain(parts).chain(prepared).chain(made_by)
    }
}

/// The parts of a transaction as the manifest has them; the first has place `from` and takes SeqNos
/// behind `offset` others.
pub fn parts(txn: u64, from: u32, mut offset: u64, attachments: &[Attachment]) -> Vec<PendingPart> {
    let parts = attachments.iter().zip(from..).map(|(attachment, part)| {
        let before = offset;
        offset += attachment.numbers;
        PendingPart {
            txn,
            part,
            tree: attachment.tree.id,
            offset: before,
            numbers: attachment.numbers,
            are_base: attachment.are_base,
            runs: attachment.runs.iter().map(|run| run.meta().clone()).collect(),
            range_deletes: attachment.range_deletes.clone(),
            values: attachment.values.clone(),
        }
    });
    parts.collect()
}
