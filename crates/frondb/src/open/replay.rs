//! The second reading of the log: replay inserts the log's records into the trees' memtables and
//! attaches committed runs, as the commits did.
//!
//! ```text
//!  records   1-9 batches   10-40 commit with runs   41-60 batches
//!  sources   memtable 1-9 | runs 10-40             | memtable 41-60      oldest first, by SeqNo
//! ```
//!
//! The manifest lists the runs of a commit as pending. Replay skips flushed runs and messages. When
//! the memtables fill the write buffer, replay flushes the largest ([`RecoveryFlusher`]; rules 6
//! and 8: the first reading has made the log durable to its end, and replay freezes a memtable only
//! between two records). So an interrupted recovery has less to do the next time. The log is freed
//! only after recovery. Once a flush finds the disk full, replay flushes no more, and the memory
//! grows with the log.

use std::collections::{BTreeMap, BTreeSet};

use frondb_background::RecoveryFlusher;
use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Error, Lsn, MessageKind, Result, SeqNo, Source as _, TreeId};
use frondb_memtable::Entry;
use frondb_records::{
    Op, PendingPart, PrepareRecord, RecordVisitor, decode_op, decode_record, range_delete,
};
use frondb_run::format::ValueRef;
use frondb_tree::{MemSource, TreeCore};

use crate::open::parts::Parts;
use crate::open::survey::{Surveyed, attachment, of_record};

/// A prepared transaction that a later record commits or rolls back.
struct Prepared {
    logged: Lsn,
    parts: Vec<(TreeId, u64)>,
    sections: Vec<(TreeId, u64, Vec<u8>)>,
}

/// The tree of the current messages and its flushed SeqNo. Valid for one record.
struct Current {
    tree: Arc<TreeCore>,
    flushed: SeqNo,
}

pub(crate) struct Replay<'a> {
    parts: &'a Parts,
    /// Prepared transactions that no record commits or rolls back.
    undecided: BTreeSet<u64>,
    prepared: BTreeMap<u64, Prepared>,
    current: Option<Current>,
    at: (Lsn, Lsn),
    /// The tree of a relog record (it repeats all messages that the tree had in memory), until the
    /// record's first message. That message removes the copies that earlier records have brought.
    relogged: Option<TreeId>,
    messages: u64,
    flusher: RecoveryFlusher<'a>,
}

impl<'a> Replay<'a> {
    /// Begins a replay at `start`. REQUIRES: recovery has added the trees to `parts`, and no other
    /// thread uses them.
    pub(crate) fn new(parts: &'a Parts, start: Lsn, surveyed: &mut Surveyed) -> Self {
        parts.log.set_applied(start);
        Self {
            parts,
            undecided: surveyed.undecided(),
            prepared: BTreeMap::new(),
            current: None,
            at: (start, start),
            relogged: None,
            messages: 0,
            flusher: RecoveryFlusher::new(
                &parts.jobs,
                &parts.account,
                std::mem::take(&mut surveyed.relogs),
            ),
        }
    }

    /// Replays the record at `[start, end)`, and flushes if the write buffer is full.
    ///
    /// # Errors
    /// `Corruption` if the record contradicts itself or the manifest; errors of a flush.
    pub(crate) fn take(&mut self, start: Lsn, end: Lsn, payload: &[u8]) -> Result<()> {
        (self.at, self.current) = ((start, end), None);
        decode_record(payload, self).map_err(|error| of_record(error, start))?;
        self.flusher.flush_while_full(start)
    }

    /// Ends the replay. Returns the number of messages that it has put into memtables.
    pub(crate) fn finish(self) -> u64 {
        self.parts.log.set_applied(self.parts.wal.end_lsn());
        self.messages
    }

    /// Returns the tree with this id, and its flushed SeqNo; `None` if the tree was dropped.
    fn current(&mut self, id: TreeId) -> Option<&Current> {
        if self.current.as_ref().is_none_or(|current| current.tree.id != id) {
            let tree = self.parts.trees.get(id)?;
            let flushed = tree.install.lock().flushed;
            self.current = Some(Current { tree, flushed });
        }
        self.current.as_ref()
    }

    /// Attaches a part unless it is flushed. Its messages get the SeqNos after `base`.
    fn attach_part(&mut self, part: &PendingPart, base: SeqNo) {
        let (parts, lsns) = (self.parts, self.at);
        let Some(current) = self.current(part.tree) else { return };
        if base.get() + part.numbers > current.flushed.get() {
            let attachment = attachment(parts, &current.tree, part);
            let source = attachment.source(&parts.budget, part.txn, part.part, base, lsns);
            current.tree.attach(source);
        }
    }

    fn attach_parts(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) {
        let mut behind = first.get();
        for ((_, numbers), place) in parts.iter().zip(0..) {
            let base = SeqNo(behind.saturating_sub(1));
            behind = behind.saturating_add(*numbers);
            // If a part is not pending, it is flushed, or its tree was dropped.
            let part = self.parts.edits.pending().parts.get(&(txn, place)).cloned();
            if let Some(part) = part {
                self.attach_part(&part, base);
            }
        }
    }
}

impl RecordVisitor for Replay<'_> {
    fn relog(&mut self, tree: TreeId) -> Result<()> {
        self.relogged = Some(tree);
        Ok(())
    }

    fn op(&mut self, tree: TreeId, seq: SeqNo, op: Op<'_>) -> Result<()> {
        let relogged = self.relogged.take() == Some(tree);
        let (parts, (start, end)) = (self.parts, self.at);
        let Some(Current { tree, flushed }) = self.current(tree) else { return Ok(()) };
        if relogged {
            drop_from(parts, tree, seq)?;
        }
        if seq <= *flushed {
            return Ok(());
        }
        let slot = tree.active_for_commit();
        slot.logged(start, end);
        insert(&slot, seq, op)?;
        self.messages += 1;
        Ok(())
    }

    fn attach(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) -> Result<()> {
        self.attach_parts(txn, first, parts);
        Ok(())
    }

    fn prepare(&mut self, prepare: &PrepareRecord<'_>) -> Result<()> {
        let txn = prepare.txn;
        let known = {
            let pending = self.parts.edits.pending();
            pending.prepared.contains_key(&txn) || pending.rolled_back.contains_key(&txn)
        };
        // Skip the record: the manifest has newer information, or the survey has restored the
        // transaction.
        if known || self.undecided.contains(&txn) {
            return Ok(());
        }
        let sections = prepare.sections.iter();
        let sections = sections.map(|(tree, count, bytes)| (*tree, *count, bytes.to_vec()));
        let parts = prepare.parts.clone();
        let prepared = Prepared { logged: self.at.0, parts, sections: sections.collect() };
        self.prepared.insert(txn, prepared);
        Ok(())
    }

    fn commit_prepared(&mut self, txn: u64, first: SeqNo) -> Result<()> {
        if self.parts.edits.pending().prepared.contains_key(&txn) {
            let parts: Vec<_> = self.parts.edits.pending().parts_of(txn).cloned().collect();
            for part in parts {
                let base = SeqNo((first.get() + part.offset).saturating_sub(1));
                self.attach_part(&part, base);
            }
            return Ok(());
        }
        // If neither the manifest nor `prepared` has the transaction, all its messages are flushed
        // or logged again.
        let Some(prepared) = self.prepared.remove(&txn) else { return Ok(()) };
        // The messages are in the record of the prepare, so recovery needs the log from that record
        // on.
        self.at = (prepared.logged, self.at.1);
        self.attach_parts(txn, first, &prepared.parts);
        let in_parts: u64 = prepared.parts.iter().map(|part| part.1).sum();
        let mut seq = SeqNo(first.get() + in_parts);
        for (tree, _, bytes) in &prepared.sections {
            let mut input = frondb_core::codec::Reader::new(bytes);
            while !input.is_empty() {
                let op = decode_op(&mut input);
                self.op(
                    *tree,
                    seq,
                    op.map_err(|_| Error::internal("prepared messages cannot be decoded"))?,
                )?;
                seq = seq.next();
            }
        }
        Ok(())
    }

    fn roll_back_prepared(&mut self, txn: u64) -> Result<()> {
        self.prepared.remove(&txn);
        Ok(())
    }
}

fn insert(slot: &MemSource, seq: SeqNo, op: Op<'_>) -> Result<()> {
    match op {
        Op::Point { kind, key, value } => {
            if kind == MessageKind::PutRef {
                let reference = ValueRef::decode(value).map_err(|_| {
                    Error::internal("a reference to a large value cannot be decoded")
                })?;
                slot.add_value(reference.extents);
            }
            slot.memtable.insert_batch(&[Entry { key, seq, kind, value }]);
        }
        Op::RangeDelete { lo, hi } => slot.memtable.add_range_delete(range_delete(lo, hi, seq)),
    }
    Ok(())
}

/// Prepares a tree for a relog record whose first message has the SeqNo `seq`. Removes messages
/// with SeqNos of at least `seq` from the memtable: earlier records have brought them, and this
/// record brings them again. Keeps older messages: they belong to an older memtable whose flush did
/// not become durable.
fn drop_from(parts: &Parts, tree: &TreeCore, seq: SeqNo) -> Result<()> {
    let version = tree.version();
    if version.active.memtable.max_seq() >= Some(seq) {
        tree.set_active(below(&version.active, seq, &parts.budget)?);
    }
    Ok(())
}

/// Returns a copy of `slot` with only the messages below `limit`.
fn below(slot: &MemSource, limit: SeqNo, budget: &Arc<Budget>) -> Result<Arc<MemSource>> {
    let kept = MemSource::new(budget);
    let mut messages = Vec::new();
    let (mut source, mut chunk) = (slot.memtable.scan_all(), Chunk::new());
    while source.next_chunk(&mut chunk)? {
        for i in (0..chunk.len()).filter(|&i| chunk.seqs[i] < limit) {
            let (key, value) = (chunk.key(i).to_vec(), chunk.value(i).to_vec());
            messages.push((chunk.seqs[i], chunk.kinds[i], key, value));
        }
    }
    messages.sort_unstable_by_key(|message| message.0);
    let deletes = slot.memtable.range_deletes();
    let mut deletes = deletes.iter().filter(|rd| rd.seq < limit).peekable();
    for (seq, kind, key, value) in messages {
        while let Some(rd) = deletes.next_if(|rd| rd.seq < seq) {
            kept.memtable.add_range_delete(rd.clone());
        }
        insert(&kept, seq, Op::Point { kind, key: &key, value: &value })?;
    }
    for rd in deletes {
        kept.memtable.add_range_delete(rd.clone());
    }
    if let Some(first) = slot.first_lsn().filter(|_| !kept.is_empty()) {
        kept.logged(first, slot.last_lsn());
    }
    Ok(kept)
}
