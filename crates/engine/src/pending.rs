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
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};

use crate::attach::Attachment;
use crate::catalog::{NewTree, record, unmake};
use crate::env::Env;
use frondb_records::{Edit, PendingPart, encode_edit};

/// What edits have said and not taken back.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingState {
    /// By transaction and place.
    pub(crate) parts: BTreeMap<(u64, u32), Arc<PendingPart>>,
    /// Transactions that are prepared and whose writes are all in their parts.
    pub(crate) prepared: BTreeMap<u64, PreparedInManifest>,
    /// Such transactions that were rolled back, while the log may still have their record.
    pub(crate) rolled_back: BTreeMap<u64, Lsn>,
    /// Trees that exist if their transaction commits.
    pub(crate) made_by: BTreeMap<TreeId, u64>,
}

/// A transaction that the manifest has as prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PreparedInManifest {
    pub(crate) xid: Box<[u8]>,
    /// Where the record of the prepare began.
    pub(crate) logged: Lsn,
    /// How many parts it has had.
    pub(crate) parts: u32,
}

impl PendingState {
    pub(crate) fn add_part(&mut self, part: PendingPart) {
        self.parts.insert((part.txn, part.part), Arc::new(part));
    }

    /// A part is in its tree's trunk, or given up; the last one takes its transaction with it.
    pub(crate) fn end_part(&mut self, txn: u64, part: u32) {
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
    pub(crate) fn add_prepared(&mut self, txn: u64, prepared: PreparedInManifest) {
        self.parts.retain(|key, _| key.0 != txn || key.1 < prepared.parts);
        self.prepared.insert(txn, prepared);
    }

    pub(crate) fn end_prepared(&mut self, txn: u64, logged: Lsn) {
        self.parts.retain(|key, _| key.0 != txn);
        self.prepared.remove(&txn);
        self.rolled_back.insert(txn, logged);
    }

    /// A tree is gone, and what was written to it.
    pub(crate) fn drop_tree(&mut self, tree: TreeId) {
        self.made_by.remove(&tree);
        let gone = self.parts.values().filter(|part| part.tree == tree);
        let gone: Vec<(u64, u32)> = gone.map(|part| (part.txn, part.part)).collect();
        for (txn, part) in gone {
            self.end_part(txn, part);
        }
    }

    /// The parts of a transaction, in their order.
    pub(crate) fn parts_of(&self, txn: u64) -> impl Iterator<Item = &Arc<PendingPart>> {
        self.parts.range((txn, 0)..=(txn, u32::MAX)).map(|(_, part)| part)
    }

    /// Takes out the trees whose transaction has no part of them that is left: it did not commit.
    pub(crate) fn take_unmade(&mut self) -> Vec<TreeId> {
        let parts: BTreeSet<(u64, TreeId)> =
            self.parts.values().map(|part| (part.txn, part.tree)).collect();
        let unmade = self.made_by.iter().filter(|(tree, txn)| !parts.contains(&(**txn, **tree)));
        let unmade: Vec<TreeId> = unmade.map(|(tree, _)| *tree).collect();
        self.made_by.retain(|tree, _| !unmade.contains(tree));
        unmade
    }

    /// The log begins at `start`: records below are gone.
    pub(crate) fn log_begins(&mut self, start: Lsn) {
        self.rolled_back.retain(|_, logged| *logged >= start);
    }

    /// The edits that make this state from nothing.
    pub(crate) fn edits(&self) -> impl Iterator<Item = Edit> {
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
pub(crate) fn parts(
    txn: u64,
    from: u32,
    mut offset: u64,
    attachments: &[Attachment],
) -> Vec<PendingPart> {
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

/// Makes the parts of a transaction durable as pending, all of them in one call; to be done before the
/// commit or the prepare, which gets the same parts in the same order. Not under the commit lock.
///
/// # Errors
/// `NotFound` if a tree was dropped; `NoSpace`: nothing has changed. `Poisoned`.
pub(crate) fn add(env: &Env, txn: u64, attachments: &[Attachment]) -> Result<()> {
    add_with(env, txn, attachments, &[])
}

/// The same with trees that become known with their parts, and exist if the transaction commits.
pub(crate) fn add_with(
    env: &Env,
    txn: u64,
    attachments: &[Attachment],
    new: &[NewTree],
) -> Result<()> {
    env.check()?;
    if attachments.is_empty() {
        return Ok(());
    }
    check_trees(attachments)?;
    env.runs.space.sync().inspect_err(|error| env.poison_if_unknown(error))?;
    let parts = parts(txn, 0, 0, attachments);
    let made = new.iter().map(|new| Edit::MadeBy { tree: new.tree.id, txn });
    let mut edits: Vec<Edit> = new.iter().map(|new| new.edit.clone()).chain(made).collect();
    edits.extend(parts.iter().cloned().map(Edit::Pending));
    let _gate = env.gate.read();
    record(env, &edits)?;
    for NewTree { tree, .. } in new {
        env.trees.insert(Arc::clone(tree));
        tree.begin_count();
    }
    let mut pending = env.pending.lock();
    parts.into_iter().for_each(|part| pending.add_part(part));
    pending.made_by.extend(new.iter().map(|new| (new.tree.id, txn)));
    Ok(())
}

/// Fails if one of the trees was dropped.
pub(crate) fn check_trees(attachments: &[Attachment]) -> Result<()> {
    match attachments.iter().find(|part| part.tree.was_dropped()) {
        None => Ok(()),
        Some(part) => {
            let name = part.tree.name.read();
            Err(Error::new(ErrorKind::NotFound, format!("tree {:?} was dropped", &**name)))
        }
    }
}

/// Gives up the parts of a transaction that was neither committed nor prepared, or whose rollback is
/// durable: their space is free. They may never have become pending.
pub(crate) fn abandon(env: &Env, txn: u64, attachments: &[Attachment]) {
    forget(env, txn, attachments);
    // Where nobody knows what the log has, its record may come back.
    if env.check_health().is_ok() {
        release(env, attachments);
    }
}

/// They are no longer pending, and still the caller's. Nothing is said where nobody knows what the log
/// has: the record may be there, and needs them.
pub(crate) fn forget(env: &Env, txn: u64, attachments: &[Attachment]) {
    if env.check_health().is_err() {
        return;
    }
    let _gate = env.gate.read();
    let mut bytes = Vec::new();
    for (attachment, part) in attachments.iter().zip(0..) {
        let tree = attachment.tree.id;
        let is_new = env.pending.lock().made_by.get(&tree) == Some(&txn);
        if is_new {
            encode_edit(&mut bytes, &Edit::DropTree { tree });
            env.pending.lock().drop_tree(tree);
            unmake(env, &attachment.tree);
        } else if env.pending.lock().parts.contains_key(&(txn, part)) {
            encode_edit(&mut bytes, &Edit::EndPending { tree, txn, part });
            env.pending.lock().end_part(txn, part);
        }
    }
    if !bytes.is_empty()
        && let Err(error) = env.manifest.append(&bytes)
    {
        tracing::debug!(%error, "a given up transaction stays in the manifest until its next snapshot");
    }
}

/// Gives runs and large values back that nobody refers to.
pub(crate) fn release(env: &Env, attachments: &[Attachment]) {
    for attachment in attachments {
        attachment.runs.iter().for_each(|run| run.kill());
        for extent in attachment.values.iter().flatten() {
            env.runs.space.release(*extent);
        }
    }
}
