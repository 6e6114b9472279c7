//! Prepared transactions (rule 19). They survive a crash, and wait until their coordinator commits
//! them or rolls them back.
//!
//! ```text
//!  prepare ----> record 3: name, parts on disk, messages      the record pins the log
//!     |              `--- the log gets long: messages become private runs, one edit says pending and
//!     |                   prepared; the record is needed no more
//!     |---------> commit: record 4, a few bytes; then as any commit
//!     '---------> rollback: record 5, or one edit where the manifest has the transaction
//! ```
//!
//! # Order of durability
//! - A record 5 is durable before the parts are freed: otherwise recovery would find the prepare without
//!   its parts.
//! - The edit that ends a prepared transaction in the manifest names the position of its record, so that
//!   recovery skips the record as long as it is in the log.
//! - The SeqNos of a commit come with record 4, so sources of the commit need the log from the prepare on.
//! - Record 4 is durable before the drop of a tree that the transaction has written to, whatever the
//!   durability of the commit: otherwise recovery would find the transaction without its tree.
//!
//! # Locks
//! LOCK order: the lock of a transaction's writes comes before the commit lock and is held
//! through I/O. It makes a commit, a rollback and a move into the manifest of one transaction
//! exclude each other. The lock of the map is a leaf.

use std::collections::{BTreeMap, BTreeSet};

use frondb_background::{JobContext, LogPins};
use frondb_core::budget::{Budget, Part, Reservation};
use frondb_core::codec::Reader;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Chunk, Direction, Error, ErrorKind, Lsn, Result, SeqNo, Source, TreeId};
use frondb_memtable::Memtable;
use frondb_run::format::ValueRef;
use frondb_run::{ReadMode, RunCursor};
use frondb_space::Extent;
use frondb_trunk::cut::Target;
use frondb_trunk::install::Place;
use frondb_trunk::job::{Job, JobInput};

use frondb_background::jobs::install::discard;
use frondb_commit::{
    Attachment, Commit, CommitLatch, Committed, Committer, Messages, PendingParts,
    PreparedInManifest, insert, parts_of,
};
use frondb_records::{
    Edit, Op, XID_BYTES_MAX, decode_op, encode_commit_prepared, encode_prepare_head,
    encode_roll_back_prepared,
};
use frondb_tree::{TreeCore, extents_of};

use crate::registry::PreparedHold;

/// The log position of a transaction that does not need the log.
const NOT_NEEDED: u64 = u64::MAX;

/// Messages of a prepared transaction for one tree, in the log's encoding.
pub struct OwnedMessages {
    /// The tree.
    pub tree: Arc<TreeCore>,
    /// The messages.
    pub bytes: Vec<u8>,
    /// The number of messages.
    pub count: u64,
}

/// The writes of a prepared transaction.
#[derive(Default)]
pub struct PreparedWrites {
    /// Parts on disk, pending in the manifest.
    pub attachments: Vec<Attachment>,
    /// Messages in the log record.
    pub sections: Vec<OwnedMessages>,
    /// Extents of large values that the record's messages refer to.
    pub values: Vec<(TreeId, Vec<Extent>)>,
    /// The charge of `sections` on the memory budget.
    charge: Option<Reservation>,
}

/// One prepared transaction.
pub struct PreparedTxn {
    /// The transaction id.
    pub txn: u64,
    /// Trees that the transaction has written to.
    trees: BTreeSet<TreeId>,
    /// Start of the log record of the prepare.
    logged: AtomicU64,
    /// Start of the log that the transaction needs.
    needed_from: AtomicU64,
    /// The manifest has the transaction as prepared.
    in_manifest: AtomicBool,
    /// `None` once the transaction is committed or rolled back.
    writes: Mutex<Option<PreparedWrites>>,
}

impl PreparedTxn {
    /// A transaction whose log record begins at `logged`. With `in_manifest` the record is not
    /// needed.
    pub fn new(
        budget: &Arc<Budget>,
        txn: u64,
        logged: Lsn,
        in_manifest: bool,
        mut writes: PreparedWrites,
    ) -> Arc<Self> {
        let bytes = writes.sections.iter().map(|section| section.bytes.len() as u64).sum();
        writes.charge = Some(budget.reserve(Part::Other, bytes));
        let parts = writes.attachments.iter().map(|part| part.tree.id);
        let trees = parts.chain(writes.sections.iter().map(|section| section.tree.id)).collect();
        Arc::new(Self {
            txn,
            trees,
            logged: logged.get().into(),
            needed_from: if in_manifest { NOT_NEEDED } else { logged.get() }.into(),
            in_manifest: in_manifest.into(),
            writes: Mutex::new(Some(writes)),
        })
    }

    fn logged(&self) -> Lsn {
        Lsn(self.logged.load(Ordering::Acquire))
    }
}

/// All prepared transactions, by name. Thread-safe.
#[derive(Default)]
pub struct PreparedSet {
    by_xid: Mutex<BTreeMap<Box<[u8]>, Arc<PreparedTxn>>>,
}

impl PreparedSet {
    /// Adds a prepared transaction.
    pub fn restore(&self, xid: Box<[u8]>, txn: Arc<PreparedTxn>) {
        self.by_xid.lock().insert(xid, txn);
    }

    /// The number of prepared transactions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_xid.lock().len()
    }

    /// Whether there are no prepared transactions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_xid.lock().is_empty()
    }

    /// Start of the log that prepared transactions need.
    pub fn needed_from(&self) -> Lsn {
        let all = self.by_xid.lock();
        let needed = all.values().map(|txn| txn.needed_from.load(Ordering::Acquire));
        Lsn(needed.min().unwrap_or(NOT_NEEDED))
    }

    fn find(&self, xid: &[u8]) -> Result<Arc<PreparedTxn>> {
        self.by_xid.lock().get(xid).cloned().ok_or_else(|| not_found(xid))
    }

    /// As [`find`](Self::find); with `of`, only the transaction with that id. A name is free
    /// again once its transaction is decided, and the owner of the former transaction must not
    /// decide the next one.
    fn find_of(&self, xid: &[u8], of: Option<u64>) -> Result<Arc<PreparedTxn>> {
        let found = self.find(xid)?;
        if of.is_none_or(|txn| txn == found.txn) { Ok(found) } else { Err(not_found(xid)) }
    }

    fn remove(&self, xid: &[u8]) {
        self.by_xid.lock().remove(xid);
    }
}

/// The prepared transactions of an open database, with the handles to commit and roll back them.
/// Any thread may use it.
pub struct Prepared {
    set: PreparedSet,
    /// Locks and registry entries. Keyed by id, because names may be reused.
    holds: Mutex<BTreeMap<u64, PreparedHold>>,
    jobs: Arc<JobContext>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) parts: Arc<PendingParts>,
}

impl Prepared {
    /// An empty set; recovery adds the prepared transactions that it finds.
    #[must_use]
    pub fn new(
        jobs: Arc<JobContext>,
        committer: Arc<Committer>,
        parts: Arc<PendingParts>,
    ) -> Arc<Self> {
        let (set, holds) = (PreparedSet::default(), Mutex::default());
        Arc::new(Self { set, holds, jobs, committer, parts })
    }

    /// The set of prepared transactions.
    #[must_use]
    pub fn set(&self) -> &PreparedSet {
        &self.set
    }

    /// Locks and registry entries of undecided transactions, by transaction id.
    pub fn holds(&self) -> MutexGuard<'_, BTreeMap<u64, PreparedHold>> {
        self.holds.lock()
    }
}

impl LogPins for Prepared {
    fn needed_from(&self) -> Lsn {
        self.set.needed_from()
    }

    fn unpin(&self, limit: Lsn) -> Result<()> {
        move_to_manifest(self, limit)
    }
}

/// Fails with `Busy` if a prepared transaction has written to a tree.
pub fn check_no_writer(context: &Prepared, tree: &TreeCore) -> Result<()> {
    let has_written = |txn: &PreparedTxn| txn.trees.contains(&tree.id);
    let xid = {
        let all = context.set.by_xid.lock();
        all.iter().find(|(_, txn)| has_written(txn)).map(|(xid, _)| xid.clone())
    };
    let Some(xid) = xid else { return Ok(()) };
    let (name, xid) = (tree.name.read(), xid.escape_ascii());
    let message = format!(
        "the prepared transaction \"{xid}\" has written to tree {:?}: commit it or roll it back first",
        &**name
    );
    Err(Error::new(ErrorKind::Busy, message))
}

/// Makes the commits of prepared transactions that have written to a tree durable, before the
/// tree is dropped.
///
/// # Errors
/// As `Wal::sync_to`.
pub fn keep_commits(context: &Prepared, tree: &TreeCore) -> Result<()> {
    let end = tree.prepared_end();
    context
        .jobs
        .log
        .wal
        .sync_to(end)
        .inspect_err(|error| context.jobs.reads.health.poison_if_unknown(error))
}

/// The id of a prepared transaction.
///
/// # Errors
/// `NotFound`.
pub fn number(context: &Prepared, xid: &[u8]) -> Result<u64> {
    context.set.find(xid).map(|txn| txn.txn)
}

fn not_found(xid: &[u8]) -> Error {
    let xid = xid.escape_ascii();
    let message = format!(
        "there is no prepared transaction \"{xid}\": it was committed or rolled back, or never prepared"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// Names of the prepared transactions, sorted.
pub fn list(context: &Prepared) -> Vec<Box<[u8]>> {
    context.set.by_xid.lock().keys().cloned().collect()
}

/// Names of the prepared transactions, by id.
pub fn names(context: &Prepared) -> BTreeMap<u64, Box<[u8]>> {
    let by_xid = context.set.by_xid.lock();
    by_xid.iter().map(|(xid, prepared)| (prepared.txn, xid.clone())).collect()
}

/// A key or range that a prepared transaction has written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Written<'a> {
    /// A key.
    Key(&'a [u8]),
    /// Keys from the first on and below the second; no bound if that is missing.
    Range(&'a [u8], Option<&'a [u8]>),
}

/// Visits each key and each deleted range that a prepared transaction has written, so that the
/// caller can lock them again after a restart. Visits nothing once the transaction is decided.
///
/// # Errors
/// `NotFound`; those of reading a private run; those of `visit`.
pub fn for_each_write(
    context: &Prepared,
    xid: &[u8],
    visit: &mut dyn FnMut(&Arc<TreeCore>, Written<'_>) -> Result<()>,
) -> Result<()> {
    let txn = context.set.find(xid)?;
    let writes = txn.writes.lock();
    let Some(writes) = &*writes else { return Ok(()) };
    for part in &writes.attachments {
        for run in &part.runs {
            let (run, all) = (Arc::clone(run), (Direction::Forward, ReadMode::Merge));
            let mut cursor = RunCursor::new(run, all.0, None, None, all.1)?;
            let mut chunk = Chunk::new();
            while cursor.next_chunk(&mut chunk)? {
                for i in 0..chunk.len() {
                    visit(&part.tree, Written::Key(chunk.key(i)))?;
                }
            }
        }
        for delete in &part.range_deletes {
            visit(&part.tree, Written::Range(&delete.lo, delete.hi.as_deref()))?;
        }
    }
    for section in &writes.sections {
        let mut visited = Ok(());
        for_each_op(&section.bytes, &mut |op| {
            if visited.is_ok() {
                visited = match op {
                    Op::Point { key, .. } => visit(&section.tree, Written::Key(key)),
                    Op::RangeDelete { lo, hi } => visit(&section.tree, Written::Range(lo, hi)),
                };
            }
        })?;
        visited?;
    }
    Ok(())
}

/// Bytes in the extents of prepared transactions, for tests.
pub fn extent_bytes(context: &Prepared) -> u64 {
    let all: Vec<Arc<PreparedTxn>> = context.set.by_xid.lock().values().cloned().collect();
    let mut bytes = 0;
    for txn in all {
        let writes = txn.writes.lock();
        let Some(writes) = &*writes else { continue };
        let parts = writes.attachments.iter();
        let of_runs = parts.clone().flat_map(|part| &part.runs);
        let of_runs = of_runs.flat_map(|run| &run.meta().extents);
        let of_parts = parts.flat_map(|part| part.values.iter().flatten());
        let of_record = writes.values.iter().flat_map(|(_, extents)| extents);
        bytes += of_runs.chain(of_parts).chain(of_record).map(|extent| extent.bytes()).sum::<u64>();
    }
    bytes
}

fn for_each_op(bytes: &[u8], visit: &mut dyn FnMut(Op<'_>)) -> Result<()> {
    let mut input = Reader::new(bytes);
    while !input.is_empty() {
        let op = decode_op(&mut input);
        visit(op.map_err(|_| Error::internal("prepared messages cannot be decoded"))?);
    }
    Ok(())
}

/// Extents of the large values that a section's messages refer to.
pub fn values_of(bytes: &[u8]) -> Result<Vec<Vec<Extent>>> {
    let mut values = Vec::new();
    let mut sound = true;
    for_each_op(bytes, &mut |op| {
        if let Op::Point { kind: frondb_core::MessageKind::PutRef, value, .. } = op {
            match ValueRef::decode(value) {
                Ok(reference) => values.push(reference.extents),
                Err(_) => sound = false,
            }
        }
    })?;
    if sound { Ok(values) } else { Err(Error::internal("a bad value reference was prepared")) }
}

/// Prepares a transaction by logging its writes. Returns the log position to wait for. REQUIRES:
/// the attachments are pending. Takes `values` on success; after an error nothing has changed.
///
/// # Errors
/// `Invalid` for a name that is empty or longer than [`XID_BYTES_MAX`]; `Exists` if a transaction
/// of this name is prepared; `NotFound` if a tree was dropped; `NoSpace`; `Poisoned`.
pub fn prepare(
    context: &Prepared,
    xid: &[u8],
    commit: Commit<'_>,
    values: &mut Vec<(TreeId, Vec<Extent>)>,
) -> Result<Lsn> {
    if xid.is_empty() || xid.len() > XID_BYTES_MAX {
        let message = format!("a transaction's name has 1 to {XID_BYTES_MAX} bytes");
        return Err(Error::invalid(message));
    }
    let Commit { txn, attachments, sections } = commit;
    context.committer.exclusive(|latch| {
        context.jobs.reads.health.check()?;
        if context.set.find(xid).is_ok() {
            let xid = xid.escape_ascii();
            let message = format!("a transaction \"{xid}\" is prepared already");
            return Err(Error::new(ErrorKind::Exists, message));
        }
        latch.check_trees(commit)?;
        let (start, end) = log_prepare(context, latch, txn, xid, attachments, sections)?;
        let owned = sections.iter().map(|section| OwnedMessages {
            tree: Arc::clone(section.tree),
            bytes: section.bytes.to_vec(),
            count: section.count,
        });
        let writes = PreparedWrites {
            attachments: attachments.to_vec(),
            sections: owned.collect(),
            values: std::mem::take(values),
            charge: None,
        };
        let prepared = PreparedTxn::new(&context.jobs.reads.budget, txn, start, false, writes);
        context.set.restore(xid.into(), prepared);
        context.jobs.log.set_applied(end);
        Ok(end)
    })
}

fn log_prepare(
    context: &Prepared,
    latch: &mut CommitLatch<'_>,
    txn: u64,
    xid: &[u8],
    attachments: &[Attachment],
    sections: &[Messages<'_>],
) -> Result<(Lsn, Lsn)> {
    let lsns = latch.append(sections, |heads| {
        encode_prepare_head(heads, txn, xid, &parts_of(attachments), sections.len());
    });
    lsns.inspect_err(|error| context.jobs.reads.health.poison_if_unknown(error))
}

/// Commits a prepared transaction; with `of`, only if it has that id. Returns the transaction's
/// id and the commit, whose `end` is the log position to wait for. The caller passes the commit
/// to [`Background::committed`](frondb_background::Background::committed).
///
/// # Errors
/// `NotFound`; `NoSpace`: the transaction is still prepared, and the caller may retry; `Poisoned`.
pub fn commit(context: &Prepared, xid: &[u8], of: Option<u64>) -> Result<(u64, Committed)> {
    let prepared = context.set.find_of(xid, of)?;
    let mut state = prepared.writes.lock();
    let Some(writes) = &mut *state else { return Err(not_found(xid)) };
    let sections = messages_of(&writes.sections);
    let attachments = &writes.attachments;
    let commit = Commit { txn: prepared.txn, attachments, sections: &sections };
    let committed = context.committer.exclusive(|latch| {
        context.jobs.reads.health.check()?;
        let first = latch.next_seq();
        let (start, end) = latch
            .append(&[], |record| {
                encode_commit_prepared(record, prepared.txn, first, commit.numbers());
            })
            .inspect_err(|error| context.jobs.reads.health.poison_if_unknown(error))?;
        let start = Lsn(start.get().min(prepared.needed_from.load(Ordering::Acquire)));
        let committed = latch.enter(commit, first, (start, end), &mut writes.values)?;
        for tree in committed.trees.iter().chain(&committed.attached) {
            tree.note_prepared_commit(end);
        }
        context.set.remove(xid);
        Ok::<_, Error>(committed)
    })?;
    *state = None;
    Ok((prepared.txn, committed))
}

fn messages_of(sections: &[OwnedMessages]) -> Vec<Messages<'_>> {
    let messages = sections.iter().map(|section| Messages {
        tree: &section.tree,
        bytes: &section.bytes,
        count: section.count,
    });
    messages.collect()
}

/// Rolls back a prepared transaction; with `of`, only if it has that id. Durable on return.
/// Returns the transaction's id.
///
/// # Errors
/// `NotFound`; `NoSpace`: the transaction is still prepared, and the caller may retry; `Poisoned`.
pub fn roll_back(context: &Prepared, xid: &[u8], of: Option<u64>) -> Result<u64> {
    let prepared = context.set.find_of(xid, of)?;
    let mut state = prepared.writes.lock();
    let Some(writes) = &*state else { return Err(not_found(xid)) };
    if prepared.in_manifest.load(Ordering::Acquire) {
        let (txn, logged) = (prepared.txn, prepared.logged());
        let latch = context.jobs.edits.begin();
        latch.record(&[Edit::EndPrepared { txn, logged }])?;
        context.jobs.edits.pending().end_prepared(txn, logged);
        context.parts.release(&writes.attachments);
    } else {
        let end =
            context.committer.exclusive(|latch| log_roll_back(context, latch, prepared.txn))?;
        context
            .jobs
            .log
            .wal
            .sync_to(end)
            .inspect_err(|error| context.jobs.reads.health.poison(error))?;
        context.parts.abandon(prepared.txn, &writes.attachments);
        frondb_commit::discard(writes.values.clone(), &context.jobs.reads.runs.space);
    }
    context.set.remove(xid);
    *state = None;
    Ok(prepared.txn)
}

fn log_roll_back(context: &Prepared, latch: &mut CommitLatch<'_>, txn: u64) -> Result<Lsn> {
    context.jobs.reads.health.check()?;
    let (_, end) = latch
        .append(&[], |record| encode_roll_back_prepared(record, txn))
        .inspect_err(|error| context.jobs.reads.health.poison_if_unknown(error))?;
    context.jobs.log.set_applied(end);
    Ok(end)
}

// --- Into the manifest ---

/// Moves the prepared transactions whose records begin below `limit` to the manifest: their
/// messages become private runs, and they no longer need the log.
///
/// # Errors
/// `NoSpace`: the remaining transactions are as before; those of reading and writing runs.
pub fn move_to_manifest(context: &Prepared, limit: Lsn) -> Result<()> {
    let pinning = |txn: &Arc<PreparedTxn>| txn.needed_from.load(Ordering::Acquire) < limit.get();
    let all: Vec<(Box<[u8]>, Arc<PreparedTxn>)> = {
        let by_xid = context.set.by_xid.lock();
        let pinning = by_xid.iter().filter(|(_, txn)| pinning(txn));
        pinning.map(|(xid, txn)| (xid.clone(), Arc::clone(txn))).collect()
    };
    for (xid, txn) in all {
        let mut writes = txn.writes.lock();
        match &mut *writes {
            None => {}
            Some(writes) if txn.trees.is_empty() => log_again(context, &xid, &txn, writes)?,
            Some(writes) => move_one(context, &xid, &txn, writes)?,
        }
    }
    Ok(())
}

/// Logs a transaction without writes again: it has no part, which the manifest would need.
fn log_again(
    context: &Prepared,
    xid: &[u8],
    txn: &PreparedTxn,
    writes: &PreparedWrites,
) -> Result<()> {
    let (start, end) = context.committer.exclusive(|latch| {
        context.jobs.reads.health.check_unpoisoned()?;
        let lsns = log_prepare(context, latch, txn.txn, xid, &writes.attachments, &[])?;
        context.jobs.log.set_applied(lsns.1);
        Ok::<_, Error>(lsns)
    })?;
    // Sync: the old record may have been acknowledged as durable, and it is about to go.
    context.jobs.log.wal.sync_to(end)?;
    txn.logged.store(start.get(), Ordering::Release);
    txn.needed_from.store(start.get(), Ordering::Release);
    Ok(())
}

fn move_one(
    context: &Prepared,
    xid: &[u8],
    txn: &PreparedTxn,
    writes: &mut PreparedWrites,
) -> Result<()> {
    let mut moved = Moved::default();
    let result = writes
        .sections
        .iter()
        .try_for_each(|section| moved.write(context, section))
        .and_then(|()| context.jobs.reads.runs.space.sync())
        // Sync the log: the manifest must not have the transaction before its prepare is durable.
        .and_then(|()| context.jobs.log.wal.sync())
        .and_then(|()| moved.record(context, xid, txn, &writes.attachments));
    if let Err(error) = result {
        context.jobs.reads.health.poison_if_unknown(&error);
        for part in &moved.parts {
            part.runs.iter().for_each(|run| run.kill());
        }
        return Err(error);
    }
    writes.attachments.append(&mut moved.parts);
    writes.sections.clear();
    writes.charge = None;
    writes.values.clear();
    // Values that the transaction itself has overwritten: no run refers to them.
    moved.orphans.iter().for_each(|extent| context.jobs.reads.runs.space.release(*extent));
    txn.in_manifest.store(true, Ordering::Release);
    txn.needed_from.store(NOT_NEEDED, Ordering::Release);
    Ok(())
}

/// Sections of a log record, rewritten as private runs.
#[derive(Default)]
struct Moved {
    parts: Vec<Attachment>,
    orphans: Vec<Extent>,
}

impl Moved {
    fn write(&mut self, context: &Prepared, section: &OwnedMessages) -> Result<()> {
        let tree = &section.tree;
        let memtable = Memtable::new(Arc::clone(&context.jobs.reads.budget));
        insert(&memtable, (&section.bytes, section.count), &mut SeqNo(1), None)?;
        memtable.seal();
        let range_deletes = memtable.range_deletes();
        let raw_bytes = memtable.data_bytes();
        let input = JobInput {
            sources: vec![Box::new(memtable.scan_all())],
            range_deletes: range_deletes.clone(),
            snapshots: Arc::from([]),
            seqs: (SeqNo(1), SeqNo(section.count)),
            has_updates: tree.update.is_some(),
            at_base: false,
            raw_bytes,
            disk_bytes: raw_bytes * 3 / 4,
        };
        let whole =
            Target { lo: Arc::from([]), hi: None, place: Place::Slice, piece_bytes: u64::MAX };
        let mut job = Job::new(context.jobs.job_env(tree, false), input, vec![whole], 1)?;
        while !job.step()? {}
        let result = job.finish()?;
        let dropped =
            extents_of(&result.dropped_refs).inspect_err(|_| discard(&result.new_runs))?;
        let values = values_of(&section.bytes).inspect_err(|_| discard(&result.new_runs))?;
        let (gone, kept): (Vec<_>, Vec<_>) = values
            .into_iter()
            .partition(|value| dropped.iter().any(|extents| extents.first() == value.first()));
        self.orphans.extend(gone.into_iter().flatten());
        self.parts.push(Attachment {
            tree: Arc::clone(tree),
            runs: result.new_runs.iter().map(|placed| Arc::clone(&placed.run)).collect(),
            range_deletes: range_deletes.iter().cloned().collect(),
            values: kept,
            numbers: section.count,
            are_base: false,
        });
        Ok(())
    }

    /// Records in one batch of edits that the new parts are pending and the transaction is
    /// prepared.
    fn record(
        &self,
        context: &Prepared,
        xid: &[u8],
        txn: &PreparedTxn,
        before: &[Attachment],
    ) -> Result<()> {
        let offset = before.iter().map(|part| part.numbers).sum();
        let parts = frondb_commit::parts(txn.txn, before.len() as u32, offset, &self.parts);
        let logged = txn.logged();
        let count = (before.len() + self.parts.len()) as u32;
        let prepared = PreparedInManifest { xid: xid.into(), logged, parts: count };
        let edit = Edit::Prepared { txn: txn.txn, xid: xid.into(), logged, parts: count };
        let edits = parts.iter().cloned().map(Edit::Pending).chain([edit]);
        let edits: Vec<Edit> = edits.collect();
        let latch = context.jobs.edits.begin();
        latch.record(&edits)?;
        let mut pending = context.jobs.edits.pending();
        parts.into_iter().for_each(|part| pending.add_part(part));
        pending.add_prepared(txn.txn, prepared);
        Ok(())
    }
}
