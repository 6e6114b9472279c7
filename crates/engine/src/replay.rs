//! From the records of the log to the sources that the trees have above their trunks.
//!
//! ```text
//!  records     1-9 batches   10-40 commit with runs   41-60 batches
//!  sources     memtable 1-9 | runs 10-40             | memtable 41-60      oldest first, by SeqNo
//! ```
//!
//! A commit's runs are what the manifest has as pending for it. What is flushed already is left out, runs as
//! messages: the edit that made them part of the trunk ended `pending` and says how far its tree is
//! flushed. A pending part that the log commits twice or not at all cannot be; one that is
//! missing and should be there is damage.

use std::collections::{BTreeMap, BTreeSet};

use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Error, Lsn, MessageKind, Result, SeqNo, Source as _, TreeId};
use frondb_memtable::{Entry, Memtable};
use frondb_run::Run;
use frondb_run::format::ValueRef;
use frondb_space::Extent;

use crate::attach::Attachment;
use crate::env::Env;
use crate::format::{
    Op, PendingPart, PrepareRecord, RecordError, RecordVisitor, decode_op, decode_record,
    range_delete,
};
use crate::prepared::{OwnedMessages, PreparedTxn, PreparedWrites, values_of};
use crate::recovery::{Damage, ManifestState, damaged, tolerate};
use crate::tree::{MemSlot, TreeCore};

/// A source above a trunk.
enum Found {
    Memtable(Logged),
    Runs(Runs),
}

/// What the log gave for one memtable.
struct Logged {
    memtable: Memtable,
    first: Lsn,
    last: Lsn,
    values: Vec<Vec<Extent>>,
}

/// A pending part that a record commits.
struct Runs {
    part: Arc<PendingPart>,
    base: SeqNo,
    lsns: (Lsn, Lsn),
}

/// A prepared transaction that no record decides.
struct Undecided {
    xid: Box<[u8]>,
    logged: Lsn,
    in_manifest: bool,
    /// Parts on disk, as the record has them; those that the manifest has are in there.
    parts: Vec<(TreeId, u64)>,
    sections: Vec<(TreeId, u64, Vec<u8>)>,
}

/// Puts records into sources.
pub(crate) struct Sources<'a> {
    state: &'a mut ManifestState,
    budget: &'a Arc<Budget>,
    /// Oldest first.
    trees: BTreeMap<TreeId, Vec<Found>>,
    prepared: BTreeMap<u64, Undecided>,
    /// Parts that records have committed.
    taken: BTreeSet<(u64, u32)>,
    at: (Lsn, Lsn),
    /// The record under way logs all that this tree has in memory, and its first message is still
    /// to come.
    relogged: Option<TreeId>,
    messages: u64,
    last_seq: SeqNo,
    last_txn: u64,
}

/// All that the log gave.
pub(crate) struct Replayed {
    trees: BTreeMap<TreeId, Vec<Found>>,
    prepared: BTreeMap<u64, Undecided>,
    /// Parts of transactions that are prepared.
    parts: BTreeMap<u64, Vec<Arc<PendingPart>>>,
    /// Messages put into memtables.
    pub(crate) messages: u64,
    /// The largest SeqNo.
    pub(crate) last_seq: SeqNo,
    /// The largest transaction id.
    pub(crate) last_txn: u64,
}

impl<'a> Sources<'a> {
    pub(crate) fn new(state: &'a mut ManifestState, budget: &'a Arc<Budget>) -> Self {
        let prepared = state.pending.prepared.iter().map(|(txn, prepared)| {
            let (xid, logged) = (prepared.xid.clone(), prepared.logged);
            let (parts, sections) = (Vec::new(), Vec::new());
            (*txn, Undecided { xid, logged, in_manifest: true, parts, sections })
        });
        Self {
            prepared: prepared.collect(),
            state,
            budget,
            trees: BTreeMap::new(),
            taken: BTreeSet::new(),
            at: (Lsn(0), Lsn(0)),
            relogged: None,
            messages: 0,
            last_seq: SeqNo::MIN,
            last_txn: 0,
        }
    }

    /// Takes the record at `[start, end)`.
    ///
    /// # Errors
    /// `Corruption` if it contradicts itself or the manifest.
    pub(crate) fn replay(&mut self, start: Lsn, end: Lsn, payload: &[u8]) -> Result<()> {
        self.at = (start, end);
        let last = decode_record(payload, self).map_err(|error| match error {
            RecordError::Visitor(error) => error,
            RecordError::Malformed => Error::corruption(
                "wal",
                start.get(),
                "wal record",
                "the record passes its checksum but cannot be decoded",
            ),
        })?;
        self.last_seq = self.last_seq.max(last);
        Ok(())
    }

    /// What there is at the end of the log. What is pending and was neither committed nor prepared is no
    /// longer.
    pub(crate) fn finish(mut self, damage: &mut Option<&mut Damage>) -> Result<Replayed> {
        let mut parts = BTreeMap::new();
        for (txn, undecided) in &self.prepared {
            let found = self.state.pending.parts_of(*txn);
            let found: Vec<Arc<PendingPart>> = if undecided.in_manifest {
                found.cloned().collect()
            } else {
                // An earlier try may have had more, and the edit that gave them up may be lost.
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
        Ok(Replayed {
            trees: self.trees,
            prepared: self.prepared,
            parts,
            messages: self.messages,
            last_seq: self.last_seq,
            last_txn: self.last_txn,
        })
    }

    fn newest_memtable(&mut self, tree: TreeId, seq: SeqNo) -> Result<&mut Logged> {
        let (start, end) = self.at;
        let sources = self.trees.entry(tree).or_default();
        match sources.last() {
            Some(Found::Memtable(_)) => {}
            Some(Found::Runs(runs)) if seq.get() <= runs.base.get() + runs.part.numbers => {
                return Err(contradiction(start, "a message is older than runs before it"));
            }
            _ => sources.push(Found::Memtable(Logged::new(self.budget, start, end))),
        }
        match sources.last_mut() {
            Some(Found::Memtable(logged)) => {
                logged.first = logged.first.min(start);
                logged.last = logged.last.max(end);
                Ok(logged)
            }
            _ => Err(Error::internal("a memtable was made and is not there")),
        }
    }

    /// The tree's memtable is logged again from `seq` on: what was logged of it before is dropped, what
    /// was logged of an older one, whose flush did not become durable, stays.
    fn drop_from(&mut self, tree: TreeId, seq: SeqNo) -> Result<()> {
        let Some(sources) = self.trees.remove(&tree) else { return Ok(()) };
        let mut kept = Vec::with_capacity(sources.len());
        for source in sources {
            match source {
                Found::Memtable(logged) if logged.memtable.max_seq() >= Some(seq) => {
                    let logged = logged.below(seq, self.budget)?;
                    if !logged.memtable.is_empty() {
                        kept.push(Found::Memtable(logged));
                    }
                }
                other => kept.push(other),
            }
        }
        self.trees.insert(tree, kept);
        Ok(())
    }

    /// A part takes the SeqNos behind `base`.
    fn take_part(&mut self, part: Arc<PendingPart>, base: SeqNo) {
        let Some(state) = self.state.trees.get(&part.tree) else { return };
        if base.get() + part.numbers <= state.flushed.get() {
            return;
        }
        self.taken.insert((part.txn, part.part));
        let sources = self.trees.entry(part.tree).or_default();
        sources.push(Found::Runs(Runs { part, base, lsns: self.at }));
    }

    /// The parts of a record, as far as they are not flushed.
    fn take_parts(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) -> Result<()> {
        let mut behind = first.get();
        for ((tree, numbers), place) in parts.iter().zip(0..) {
            let base = SeqNo(behind.saturating_sub(1));
            behind = behind.saturating_add(*numbers);
            let part = self.state.pending.parts.get(&(txn, place)).cloned();
            let flushed = self.state.trees.get(tree).map(|state| state.flushed.get());
            match part {
                Some(part) if part.tree == *tree && part.numbers == *numbers => {
                    self.take_part(part, base);
                }
                // Nothing is left of a tree that was dropped.
                None if flushed.is_none_or(|flushed| flushed >= behind - 1) => {}
                _ => {
                    let what = format!("transaction {txn}: part {place} is not pending");
                    return Err(contradiction(self.at.0, &what));
                }
            }
        }
        Ok(())
    }
}

fn contradiction(at: Lsn, what: &str) -> Error {
    Error::corruption("wal", at.get(), "wal record", what)
}

/// The manifest has the parts that a prepare names.
fn check_parts(txn: u64, named: &[(TreeId, u64)], found: &[Arc<PendingPart>]) -> Result<()> {
    let found = found.iter().map(|part| (part.tree, part.numbers));
    if found.eq(named.iter().copied()) {
        return Ok(());
    }
    Err(damaged(format!("transaction {txn} is prepared and its parts are not those pending")))
}

impl RecordVisitor for Sources<'_> {
    fn relog(&mut self, tree: TreeId) -> Result<()> {
        self.relogged = Some(tree);
        Ok(())
    }

    fn op(&mut self, tree: TreeId, seq: SeqNo, op: Op<'_>) -> Result<()> {
        // Dropped trees' messages, and those that are in runs already, are left out.
        let Some(state) = self.state.trees.get(&tree) else { return Ok(()) };
        let flushed = state.flushed;
        if self.relogged.take() == Some(tree) {
            self.drop_from(tree, seq)?;
        }
        if seq <= flushed {
            return Ok(());
        }
        self.messages += 1;
        self.newest_memtable(tree, seq)?.insert(seq, op)
    }

    fn attach(&mut self, txn: u64, first: SeqNo, parts: &[(TreeId, u64)]) -> Result<()> {
        self.last_txn = self.last_txn.max(txn);
        self.take_parts(txn, first, parts)
    }

    fn prepare(&mut self, prepare: &PrepareRecord<'_>) -> Result<()> {
        let txn = prepare.txn;
        self.last_txn = self.last_txn.max(txn);
        let pending = &self.state.pending;
        if pending.prepared.contains_key(&txn) || pending.rolled_back.contains_key(&txn) {
            // The manifest knows better.
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
        // Where neither has it, all of it is flushed or logged again.
        let Some(undecided) = self.prepared.remove(&txn) else { return Ok(()) };
        let end = self.at.1;
        if undecided.in_manifest {
            let parts: Vec<Arc<PendingPart>> = self.state.pending.parts_of(txn).cloned().collect();
            for part in parts {
                let base = SeqNo((first.get() + part.offset).saturating_sub(1));
                self.take_part(part, base);
            }
            return Ok(());
        }
        // Its messages are in the record of the prepare.
        self.at = (undecided.logged, end);
        self.take_parts(txn, first, &undecided.parts)?;
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

impl Replayed {
    /// Extents that must not be given to anybody else.
    pub(crate) fn extents(&self) -> Vec<Extent> {
        let mut extents = Vec::new();
        let mut take = |part: &PendingPart| {
            extents.extend(part.runs.iter().flat_map(|run| run.extents.iter().copied()));
            extents.extend(part.values.iter().flatten().copied());
        };
        for part in self.parts.values().flatten() {
            take(part);
        }
        let mut values: Vec<&Vec<Vec<Extent>>> = Vec::new();
        for source in self.trees.values().flatten() {
            match source {
                Found::Memtable(logged) => values.push(&logged.values),
                Found::Runs(runs) => take(&runs.part),
            }
        }
        extents.extend(values.into_iter().flatten().flatten().copied());
        for (_, _, bytes) in self.prepared.values().flat_map(|txn| &txn.sections) {
            // What cannot be decoded is told by who takes it up.
            extents.extend(values_of(bytes).unwrap_or_default().into_iter().flatten());
        }
        extents
    }

    /// Gives a tree its sources above the trunk.
    pub(crate) fn adopt(&mut self, env: &Env, tree: &Arc<TreeCore>) {
        let Some(sources) = self.trees.remove(&tree.id) else { return };
        let slots = sources.into_iter().rev().map(|source| match source {
            Found::Memtable(logged) => {
                let slot = MemSlot::of(logged.memtable);
                slot.logged(logged.first, logged.last);
                logged.values.into_iter().for_each(|value| slot.add_value(value));
                slot
            }
            Found::Runs(Runs { part, base, lsns }) => {
                let (txn, place) = (part.txn, part.part);
                attachment(env, tree, &part).source(env, txn, place, base, lsns)
            }
        });
        tree.adopt(env, slots.collect());
    }

    /// Takes up the prepared transactions. REQUIRES: the trees are open.
    pub(crate) fn restore_prepared(
        self,
        env: &Env,
        damage: &mut Option<&mut Damage>,
    ) -> Result<()> {
        for (txn, undecided) in self.prepared {
            let parts = self.parts.get(&txn).map_or(&[][..], Vec::as_slice);
            tolerate(damage, restore_one(env, txn, undecided, parts))?;
        }
        Ok(())
    }
}

fn restore_one(
    env: &Env,
    txn: u64,
    undecided: Undecided,
    parts: &[Arc<PendingPart>],
) -> Result<()> {
    let tree = |id: TreeId| {
        let found = env.trees.read().get(&id).cloned();
        found.ok_or_else(|| damaged(format!("a prepared transaction wrote to no tree {id}")))
    };
    let mut writes = PreparedWrites::default();
    for part in parts {
        writes.attachments.push(attachment(env, &tree(part.tree)?, part));
    }
    for (id, count, bytes) in undecided.sections {
        let values = values_of(&bytes)?;
        writes.values.extend(values.into_iter().map(|extents| (id, extents)));
        writes.sections.push(OwnedMessages { tree: tree(id)?, bytes, count });
    }
    let (logged, in_manifest) = (undecided.logged, undecided.in_manifest);
    let prepared = PreparedTxn::new(&env.budget, txn, logged, in_manifest, writes);
    env.prepared.restore(undecided.xid, prepared);
    Ok(())
}

fn attachment(env: &Env, tree: &Arc<TreeCore>, part: &PendingPart) -> Attachment {
    let prefix = tree.options.trunk.filter_prefix();
    let runs = part.runs.iter();
    let runs = runs.map(|meta| Run::new(meta.clone(), prefix, Arc::clone(&env.runs)));
    Attachment {
        tree: Arc::clone(tree),
        runs: runs.collect(),
        range_deletes: part.range_deletes.clone(),
        values: part.values.clone(),
        numbers: part.numbers,
        are_base: part.are_base,
    }
}

impl Logged {
    fn new(budget: &Arc<Budget>, first: Lsn, last: Lsn) -> Self {
        let memtable = Memtable::new(Arc::clone(budget));
        Self { memtable, first, last, values: Vec::new() }
    }

    fn insert(&mut self, seq: SeqNo, op: Op<'_>) -> Result<()> {
        match op {
            Op::Point { kind, key, value } => {
                if kind == MessageKind::PutRef {
                    let reference = ValueRef::decode(value).map_err(|_| {
                        let lsn = self.last.get();
                        Error::corruption("wal", lsn, "wal record", "a bad value reference")
                    })?;
                    self.values.push(reference.extents);
                }
                self.memtable.insert_batch(&[Entry { key, seq, kind, value }]);
            }
            Op::RangeDelete { lo, hi } => {
                self.memtable.add_range_delete(range_delete(lo, hi, seq));
            }
        }
        Ok(())
    }

    /// The same with only the messages below `limit`.
    fn below(self, limit: SeqNo, budget: &Arc<Budget>) -> Result<Self> {
        let mut kept = Self::new(budget, self.first, self.last);
        let mut messages = Vec::new();
        let (mut source, mut chunk) = (self.memtable.scan_all(), Chunk::new());
        while source.next_chunk(&mut chunk)? {
            for i in (0..chunk.len()).filter(|&i| chunk.seqs[i] < limit) {
                let (key, value) = (chunk.key(i).to_vec(), chunk.value(i).to_vec());
                messages.push((chunk.seqs[i], chunk.kinds[i], key, value));
            }
        }
        messages.sort_unstable_by_key(|message| message.0);
        let deletes = self.memtable.range_deletes();
        let mut deletes = deletes.iter().filter(|rd| rd.seq < limit).peekable();
        for (seq, kind, key, value) in messages {
            while let Some(rd) = deletes.next_if(|rd| rd.seq < seq) {
                kept.memtable.add_range_delete(rd.clone());
            }
            kept.insert(seq, Op::Point { kind, key: &key, value: &value })?;
        }
        for rd in deletes {
            kept.memtable.add_range_delete(rd.clone());
        }
        Ok(kept)
    }
}
