//! Transactions in the manifest whose writes are not part of the trees yet (rule 19): the *pending*
//! parts, which are private runs, and prepared transactions that do not need the log any more.
//!
//! ```text
//!  runs synced -> Pending durable -> record of the commit or the prepare -> ... -> EndPending
//! ```
//!
//! A pending part has no effect by itself. Unless the log has a record that commits or prepares its
//! transaction, or the manifest has a `Prepared` for it, recovery drops the part and frees its
//! space. So abandoning a part needs no durable edit.
//!
//! [`PendingState`] is the result of the edits. Recovery builds it, and the open database keeps it
//! equal to the manifest, because the next snapshot of the manifest is made from it. A thread that
//! holds the lock of this state takes no other lock. The state changes only while the edit latch is
//! held.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::sync::Arc;
use frondb_core::{Lsn, TreeId};
use frondb_records::{Edit, PendingPart};

use crate::attachment::Attachment;

/// The pending parts and prepared transactions that edits have added and not removed.
#[derive(Clone, Debug, Default)]
pub struct PendingState {
    /// The pending parts, by transaction and position.
    pub parts: BTreeMap<(u64, u32), Arc<PendingPart>>,
    /// Prepared transactions whose parts contain all their writes, by transaction.
    pub prepared: BTreeMap<u64, PreparedInManifest>,
    /// Rolled-back prepared transactions whose prepare records the log may still contain, with the
    /// positions of these records.
    pub rolled_back: BTreeMap<u64, Lsn>,
    /// Trees that a transaction creates, each with the transaction. Without its commit they do not
    /// exist.
    pub created_by: BTreeMap<TreeId, u64>,
}

/// A transaction that is prepared according to the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PreparedInManifest {
    /// The name that the coordinator gave the transaction (XID).
    pub xid: Box<[u8]>,
    /// The beginning of the log record of its prepare.
    pub logged: Lsn,
    /// The number of parts that it was prepared with.
    pub parts: u32,
}

impl PendingState {
    /// Adds a pending part.
    pub fn add_part(&mut self, part: PendingPart) {
        self.parts.insert((part.txn, part.part), Arc::new(part));
    }

    /// Removes a part that is now in its tree's trunk or was abandoned. With the last part of a
    /// prepared transaction, also removes the transaction.
    pub fn end_part(&mut self, txn: u64, part: u32) {
        if let Some(part) = self.parts.remove(&(txn, part))
            && self.created_by.get(&part.tree) == Some(&txn)
        {
            self.created_by.remove(&part.tree);
        }
        if self.parts_of(txn).next().is_none() {
            self.prepared.remove(&txn);
        }
    }

    /// Adds a prepared transaction. Removes its parts with numbers from `prepared.parts` on: a
    /// failed earlier attempt left them, and the edit that abandoned them may be lost.
    pub fn add_prepared(&mut self, txn: u64, prepared: PreparedInManifest) {
        self.parts.retain(|key, _| key.0 != txn || key.1 < prepared.parts);
        self.prepared.insert(txn, prepared);
    }

    /// Records that a prepared transaction was rolled back, and removes it with its parts. `logged`
    /// is the Lsn of its prepare record.
    pub fn end_prepared(&mut self, txn: u64, logged: Lsn) {
        self.parts.retain(|key, _| key.0 != txn);
        self.prepared.remove(&txn);
        self.rolled_back.insert(txn, logged);
    }

    /// Removes a dropped tree and the parts that belong to it.
    pub fn drop_tree(&mut self, tree: TreeId) {
        self.created_by.remove(&tree);
        let gone = self.parts.values().filter(|part| part.tree == tree);
        let gone: Vec<(u64, u32)> = gone.map(|part| (part.txn, part.part)).collect();
        for (txn, part) in gone {
            self.end_part(txn, part);
        }
    }

    /// Returns the parts of a transaction, in their order.
    pub fn parts_of(&self, txn: u64) -> impl Iterator<Item = &Arc<PendingPart>> {
        self.parts.range((txn, 0)..=(txn, u32::MAX)).map(|(_, part)| part)
    }

    /// Removes and returns the trees whose creating transaction did not commit: `parts` has no part
    /// of that transaction for such a tree.
    pub fn take_unmade(&mut self) -> Vec<TreeId> {
        let parts: BTreeSet<(u64, TreeId)> =
            self.parts.values().map(|part| (part.txn, part.tree)).collect();
        let unmade = self.created_by.iter().filter(|(tree, txn)| !parts.contains(&(**txn, **tree)));
        let unmade: Vec<TreeId> = unmade.map(|(tree, _)| *tree).collect();
        self.created_by.retain(|tree, _| !unmade.contains(tree));
        unmade
    }

    /// Forgets the rolled-back transactions whose prepare records begin at positions below `start`,
    /// the new beginning of the log.
    pub fn log_begins(&mut self, start: Lsn) {
        self.rolled_back.retain(|_, logged| *logged >= start);
    }

    /// Returns the edits that produce this state.
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
        let created_by = self.created_by.iter();
        let created_by = created_by.map(|(tree, txn)| Edit::CreatedBy { tree: *tree, txn: *txn });
        rolled_back.chain(parts).chain(prepared).chain(created_by)
    }
}

/// Converts parts of a transaction to the form of the manifest. The first part gets the number
/// `from`, and takes the SeqNos after the first `offset` SeqNos of the transaction.
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
