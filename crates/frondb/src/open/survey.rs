//! The first reading of the log. It collects the information that the second reading, the replay,
//! needs before the first message.
//!
//! The survey finds the extents of the log's large values, because flushes of the replay may use
//! all other free space; the pending parts that the log commits; the transactions that stay
//! prepared (rule 19); and the largest transaction id and SeqNo. It checks the records, so that the
//! second reading ([`crate::open::replay`]) finds no new contradiction.
//!
//! The survey skips flushed runs and messages. The edit that added the runs of a part to the trunk
//! has ended the `pending` state of the part and has raised the tree's flushed SeqNo. So the runs
//! of a pending part are not in the trunk, and a part that is neither pending nor flushed is
//! damage.

use std::collections::{BTreeMap, BTreeSet};

use frondb_commit::Attachment;
use frondb_core::sync::Arc;
use frondb_core::{Error, Lsn, MessageKind, Result, SeqNo, TreeId};
use frondb_records::{
    Op, PendingPart, PrepareRecord, RecordError, RecordVisitor, decode_op, decode_record,
};
use frondb_run::Run;
use frondb_run::format::ValueRef;
use frondb_space::Extent;
use frondb_tree::TreeCore;
use frondb_txn::prepared::{OwnedMessages, PreparedTxn, PreparedWrites, values_of};

use crate::open::damage::{Damage, tolerate};
use crate::open::manifest_state::{ManifestState, damaged};
use crate::open::parts::Parts;

/// The contents of the log for one tree.
#[derive(Default)]
struct TreeInLog {
    /// Extents of the large values that the messages refer to; the extents of a message that is
    /// logged again occur twice.
    values: Vec<Extent>,
    /// Parts that records commit. `parts_end` is their last SeqNo; later messages have larger ones.
    parts: Vec<Arc<PendingPart>>,
    parts_end: SeqNo,
}

/// A prepared transaction that no record has committed or rolled back yet.
struct Undecided {
    xid: Box<[u8]>,
    logged: Lsn,
    in_manifest: bool,
    /// Parts on disk, from the log record; empty if the manifest has the transaction.
    parts: Vec<(TreeId, u64)>,
    sections: Vec<(TreeId, u64, Vec<u8>)>,
}

/// The survey in progress.
pub(crate) struct Survey<'a> {
    state: &'a mut ManifestState,
    trees: BTreeMap<TreeId, TreeInLog>,
    prepared: BTreeMap<u64, Undecided>,
    /// Parts that records have committed, by transaction and position.
    taken: BTreeSet<(u64, u32)>,
    relogs: BTreeMap<TreeId, Lsn>,
    /// Trees in the log that the manifest never had.
    unknown_trees: BTreeSet<TreeId>,
    at: (Lsn, Lsn),
    last_seq: SeqNo,
    last_txn: u64,
}

pub(crate) struct Surveyed {
    trees: BTreeMap<TreeId, TreeInLog>,
    prepared: BTreeMap<u64, Undecided>,
    /// Parts of prepared transactions, by transaction id.
    parts: BTreeMap<u64, Vec<Arc<PendingPart>>>,
    /// For each tree, the start of its last relog record. The log may no longer have older records
    /// of the memtable, so replay must not flush the tree before it has applied this record (rule
    /// 10).
    pub(crate) relogs: BTreeMap<TreeId, Lsn>,
    /// The largest SeqNo in the log.
    pub(crate) last_seq: SeqNo,
    /// The largest transaction id in the log.
    pub(crate) last_txn: u64,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(state: &'a mut ManifestState) -> Self {
        let prepared = state.pending.prepared.iter().map(|(txn, prepared)| {
            let (xid, logged) = (prepared.xid.clone(), prepared.logged);
            let (parts, sections) = (Vec::new(), Vec::new());
            (*txn, Undecided { xid, logged, in_manifest: true, parts, sections })
        });
        Self {
            prepared: prepared.collect(),
            state,
            trees: BTreeMap::new(),
            taken: BTreeSet::new(),
            relogs: BTreeMap::new(),
            unknown_trees: BTreeSet::new(),
            at: (Lsn(0), Lsn(0)),
            last_seq: SeqNo::MIN,
            last_txn: 0,
        }
    }

    /// Surveys the record at `[start, end)`.
    ///
    /// # Errors
    /// `Corruption` if the record contradicts itself or the manifest.
    pub(crate) fn take(&mut self, start: Lsn, end: Lsn, payload: &[u8]) -> Result<()> {
        self.at = (start, end);
        let last = decode_record(payload, self).map_err(|error| of_record(error, start))?;
        self.last_seq = self.last_seq.max(last);
        Ok(())
    }

    /// Notes a tree that the manifest does not have, unless the tree was created and dropped. A
    /// tree is in the manifest before a record names it, so a manifest that never had the tree has
    /// lost its end.
    fn note_if_unknown(&mut self, tree: TreeId) {
        if tree.get() > self.state.last_tree() {
            self.unknown_trees.insert(tree);
        }
    }

    /// Ends the survey. Drops pending parts whose transaction is neither committed nor prepared,
    /// and trees that such a transaction creates.
    ///
    /// # Errors
    /// `Corruption` if the log and the manifest contradict each other.
    pub(crate) fn finish(mut self, damage: &mut Option<&mut Damage>) -> Result<Surveyed> {
        for tree in &self.unknown_trees {
            let (id, last) = (tree.get(), self.state.last_tree());
            let what = format!(
                "the log has messages of tree {id}, but the manifest's largest tree id is {last}"
            );
            tolerate(damage, Err::<(), _>(damaged(what)))?;
        }
        let mut parts = BTreeMap::new();
        for (txn, undecided) in &self.prepared {
            let found = self.state.pending.parts_of(*txn);
            let found: Vec<Arc<PendingPart>> = if undecided.in_manifest {
                found.cloned().collect()
            } else {
                // A failed earlier prepare may have had more parts, and the edit that dropped
                // them may be lost.
                found
                    .take_while(|part| (part.part as usize) < undecided.parts.len())
                    .cloned()
                    .collect()
            };
            if !undecided.in_manifest {
                tolerate(damage, check_parts(*txn, &undecided.parts, &found))?;
            }
            self.taken.extend(found.iter().map(|part| (part.txn, part.part)));
            parts.insert(*txn, found);
        }
        let taken = &self.taken;
        self.state.pending.parts.retain(|key, _| taken.contains(key));
        for tree in self.state.pending.take_unmade() {
            self.state.trees.remove(&tree);
        }
        Ok(Surveyed {
            trees: self.trees,
            prepared: self.prepared,
            parts,
            relogs: self.relogs,
            last_seq: self.last_seq,
            last_txn: self.last_txn,
        })
    }

    /// Notes a committed part unless it is flushed. Its messages get the SeqNos after `base`.
    fn note_part(&mut self, part: Arc<PendingPart>, base: SeqNo) {
        let Some(state) = self.state.trees.get(&part.tree) else { return };
        if base.get() + part.numbers <= state.flushed.get() {
            return;
        }
        self.taken.insert((part.txn, part.part));
        let found = self.trees.entry(part.tree).or_default();
        found.parts_end = found.parts_end.max(SeqNo(base.get() + part.numbers));
        found.parts.push(part);
    }

    /// Notes the parts of a record that are not flushed.
    fn note_parts(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) -> Result<()> {
        let mut behind = first.get();
        for ((tree, numbers), place) in parts.iter().zip(0..) {
            self.note_if_unknown(*tree);
            let base = SeqNo(behind.saturating_sub(1));
            behind = behind.saturating_add(*numbers);
            let part = self.state.pending.parts.get(&(txn, place)).cloned();
            let flushed = self.state.trees.get(tree).map(|state| state.flushed.get());
            match part {
                Some(part) if part.tree == *tree && part.numbers == *numbers => {
                    self.note_part(part, base);
                }
                // The tree was dropped, or the part is flushed.
                None if flushed.is_none_or(|flushed| flushed >= behind - 1) => {}
                _ => {
                    let what =
                        format!("transaction {txn}: the manifest has no pending part {place}");
                    return Err(contradiction(self.at.0, &what));
                }
            }
        }
        Ok(())
    }
}

/// Returns the error for a record that cannot be decoded or that the visitor has refused.
pub(crate) fn of_record(error: RecordError, at: Lsn) -> Error {
    match error {
        RecordError::Visitor(error) => error,
        RecordError::Malformed => {
            contradiction(at, "the record passes its checksum but cannot be decoded")
        }
    }
}

fn contradiction(at: Lsn, what: &str) -> Error {
    Error::corruption("wal", at.get(), "wal record", what)
}

/// Checks that the manifest has the parts that the record of a prepare names.
fn check_parts(txn: u64, named: &[(TreeId, u64)], found: &[Arc<PendingPart>]) -> Result<()> {
    let found = found.iter().map(|part| (part.tree, part.numbers));
    if found.eq(named.iter().copied()) {
        return Ok(());
    }
    Err(damaged(format!("the pending parts do not match prepared transaction {txn}")))
}

impl RecordVisitor for Survey<'_> {
    fn relog(&mut self, tree: TreeId) -> Result<()> {
        self.relogs.insert(tree, self.at.0);
        Ok(())
    }

    fn op(&mut self, tree: TreeId, seq: SeqNo, op: Op<'_>) -> Result<()> {
        // Skip messages of dropped trees and messages that are in runs already.
        let Some(state) = self.state.trees.get(&tree) else {
            self.note_if_unknown(tree);
            return Ok(());
        };
        if seq <= state.flushed {
            return Ok(());
        }
        let found = self.trees.entry(tree).or_default();
        if seq <= found.parts_end {
            return Err(contradiction(self.at.0, "a message is older than runs before it"));
        }
        if let Op::Point { kind: MessageKind::PutRef, value, .. } = op {
            let reference = ValueRef::decode(value)
                .map_err(|_| contradiction(self.at.0, "a bad reference to a large value"))?;
            found.values.extend(reference.extents);
        }
        Ok(())
    }

    fn attach(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) -> Result<()> {
        self.last_txn = self.last_txn.max(txn);
        self.note_parts(txn, first, parts)
    }

    fn prepare(&mut self, prepare: &PrepareRecord<'_>) -> Result<()> {
        let txn = prepare.txn;
        self.last_txn = self.last_txn.max(txn);
        let pending = &self.state.pending;
        if pending.prepared.contains_key(&txn) || pending.rolled_back.contains_key(&txn) {
            // The manifest has newer information.
            return Ok(());
        }
        let sections = prepare.sections.iter();
        let sections = sections.map(|(tree, count, bytes)| (*tree, *count, bytes.to_vec()));
        let undecided = Undecided {
            xid: prepare.xid.into(),
            logged: self.at.0,
            in_manifest: false,
            parts: prepare.parts.clone(),
            sections: sections.collect(),
        };
        self.prepared.insert(txn, undecided);
        Ok(())
    }

    fn commit_prepared(&mut self, txn: u64, first: SeqNo) -> Result<()> {
        self.last_txn = self.last_txn.max(txn);
        // If neither the manifest nor `prepared` has the transaction, all its messages are flushed
        // or logged again.
        let Some(undecided) = self.prepared.remove(&txn) else { return Ok(()) };
        let end = self.at.1;
        if undecided.in_manifest {
            let parts: Vec<Arc<PendingPart>> = self.state.pending.parts_of(txn).cloned().collect();
            for part in parts {
                let base = SeqNo((first.get() + part.offset).saturating_sub(1));
                self.note_part(part, base);
            }
            return Ok(());
        }
        // The messages are in the record of the prepare.
        self.at = (undecided.logged, end);
        self.note_parts(txn, first, &undecided.parts)?;
        let in_parts: u64 = undecided.parts.iter().map(|part| part.1).sum();
        let mut seq = SeqNo(first.get() + in_parts);
        for (tree, _, bytes) in &undecided.sections {
            let mut input = frondb_core::codec::Reader::new(bytes);
            while !input.is_empty() {
                let op = decode_op(&mut input);
                let op = op.map_err(|_| contradiction(self.at.0, "prepared messages"))?;
                self.op(*tree, seq, op)?;
                seq = seq.next();
            }
        }
        Ok(())
    }

    fn roll_back_prepared(&mut self, txn: u64) -> Result<()> {
        self.last_txn = self.last_txn.max(txn);
        self.prepared.remove(&txn);
        Ok(())
    }
}

impl Surveyed {
    /// Returns the ids of the prepared transactions that no record commits or rolls back.
    pub(crate) fn undecided(&self) -> BTreeSet<u64> {
        self.prepared.keys().copied().collect()
    }

    /// Returns the extents in use by pending parts and by messages in the log.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        let mut extents = Vec::new();
        let mut take = |part: &PendingPart| {
            extents.extend(part.runs.iter().flat_map(|run| run.extents.iter().copied()));
            extents.extend(part.values.iter().flatten().copied());
        };
        for part in self.parts.values().flatten() {
            take(part);
        }
        for part in self.trees.values().flat_map(|found| &found.parts) {
            take(part);
        }
        extents.extend(self.trees.values().flat_map(|found| found.values.iter().copied()));
        for (_, _, bytes) in self.prepared.values().flat_map(|txn| &txn.sections) {
            // `restore_prepared` reports messages that cannot be decoded.
            extents.extend(values_of(bytes).unwrap_or_default().into_iter().flatten());
        }
        extents.sort_unstable();
        extents.dedup();
        extents
    }

    /// Restores the prepared transactions. REQUIRES: recovery has added the trees to `parts`.
    pub(crate) fn restore_prepared(
        self,
        parts: &Parts,
        damage: &mut Option<&mut Damage>,
    ) -> Result<()> {
        for (txn, undecided) in self.prepared {
            let pending = self.parts.get(&txn).map_or(&[][..], Vec::as_slice);
            tolerate(damage, restore_one(parts, txn, undecided, pending))?;
        }
        Ok(())
    }
}

fn restore_one(
    parts: &Parts,
    txn: u64,
    undecided: Undecided,
    pending: &[Arc<PendingPart>],
) -> Result<()> {
    let tree = |id: TreeId| {
        let found = parts.trees.get(id);
        found.ok_or_else(|| {
            damaged(format!("a prepared transaction wrote to tree {id}, which does not exist"))
        })
    };
    let mut writes = PreparedWrites::default();
    for part in pending {
        writes.attachments.push(attachment(parts, &tree(part.tree)?, part));
    }
    for (id, count, bytes) in undecided.sections {
        let values =
            values_of(&bytes).map_err(|error| contradiction(undecided.logged, error.message()))?;
        writes.values.extend(values.into_iter().map(|extents| (id, extents)));
        writes.sections.push(OwnedMessages { tree: tree(id)?, bytes, count });
    }
    let (logged, in_manifest) = (undecided.logged, undecided.in_manifest);
    let prepared = PreparedTxn::new(&parts.budget, txn, logged, in_manifest, writes);
    parts.prepared.set().restore(undecided.xid, prepared);
    Ok(())
}

pub(crate) fn attachment(parts: &Parts, tree: &Arc<TreeCore>, part: &PendingPart) -> Attachment {
    let prefix = tree.options().trunk.filter_prefix();
    let runs = part.runs.iter();
    let runs = runs.map(|meta| Run::new(meta.clone(), prefix, Arc::clone(&parts.runs)));
    Attachment {
        tree: Arc::clone(tree),
        runs: runs.collect(),
        range_deletes: part.range_deletes.clone(),
        values: part.values.clone(),
        numbers: part.numbers,
        are_base: part.are_base,
    }
}
