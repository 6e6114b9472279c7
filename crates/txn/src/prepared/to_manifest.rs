//! Moves prepared transactions from the log to the manifest, so that old log segments can be
//! recycled.

use frondb_background::LogPins;
use frondb_background::jobs::install::discard;
use frondb_commit::{Attachment, PreparedInManifest, insert};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::WriteCause;
use frondb_core::{Error, Lsn, Result, SeqNo};
use frondb_memtable::Memtable;
use frondb_records::Edit;
use frondb_space::Extent;
use frondb_tree::extents_of;
use frondb_trunk::cut::Target;
use frondb_trunk::install::Place;
use frondb_trunk::job::{Job, JobInput};

use super::phases::log_prepare;
use super::set::{NOT_NEEDED, OwnedMessages, Prepared, PreparedTxn, PreparedWrites};
use super::writes::values_of;

impl LogPins for Prepared {
    fn needed_from(&self) -> Lsn {
        self.set.needed_from()
    }

    fn unpin(&self, limit: Lsn) -> Result<()> {
        move_to_manifest(self, limit)
    }
}

/// Moves the prepared transactions that need the log below `limit` to the manifest: writes their
/// messages as private runs, so that they do not need the log any more. A transaction without
/// writes is logged again instead, and needs the log from there on.
///
/// # Errors
/// `NoSpace`, after which the remaining transactions are unchanged. Errors of reading and writing
/// runs.
fn move_to_manifest(context: &Prepared, limit: Lsn) -> Result<()> {
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

/// Logs the prepare of a transaction without writes again: the manifest can keep only prepared
/// transactions with parts, and such a transaction has none.
fn log_again(
    context: &Prepared,
    xid: &[u8],
    txn: &PreparedTxn,
    writes: &PreparedWrites,
) -> Result<()> {
    let (start, end) = context.committer.exclusive(|latch| {
        context.health.check_unpoisoned()?;
        let lsns = log_prepare(context, latch, txn.txn, xid, &writes.attachments, &[])?;
        context.log.set_applied(lsns.1);
        Ok::<_, Error>(lsns)
    })?;
    // Sync the new record: the old one may have been acknowledged as durable, and its segment will
    // be recycled.
    context.log.wal.sync_to(end)?;
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
        .and_then(|()| context.space.sync())
        // Sync the log, because the manifest must not list the transaction before its prepare is
        // durable.
        .and_then(|()| context.log.wal.sync())
        .and_then(|()| moved.record(context, xid, txn, &writes.attachments));
    if let Err(error) = result {
        context.health.poison_if_unknown(&error);
        for part in &moved.parts {
            part.runs.iter().for_each(|run| run.kill());
        }
        return Err(error);
    }
    writes.attachments.append(&mut moved.parts);
    writes.sections.clear();
    writes.charge = None;
    writes.values.clear();
    // Large values that the transaction itself overwrote: no run refers to them.
    moved.orphans.iter().for_each(|extent| context.space.release(*extent));
    txn.in_manifest.store(true, Ordering::Release);
    txn.needed_from.store(NOT_NEEDED, Ordering::Release);
    Ok(())
}

/// The messages of a prepare record, written as private runs.
#[derive(Default)]
struct Moved {
    parts: Vec<Attachment>,
    orphans: Vec<Extent>,
}

impl Moved {
    fn write(&mut self, context: &Prepared, section: &OwnedMessages) -> Result<()> {
        let tree = &section.tree;
        let memtable = Memtable::new(Arc::clone(&context.budget));
        insert(&memtable, (&section.bytes, section.count), &mut SeqNo(1), None)?;
        memtable.seal();
        let range_deletes = memtable.range_deletes();
        let raw_bytes = memtable.data_bytes();
        let input = JobInput {
            sources: vec![Box::new(memtable.scan_all())],
            range_deletes: range_deletes.clone(),
            snapshots: Arc::from([]),
            seqs: (SeqNo(1), SeqNo(section.count)),
            has_updates: tree.update().is_some(),
            at_base: false,
            raw_bytes,
            disk_bytes: raw_bytes * 3 / 4,
            handover: Arc::default(),
        };
        let whole =
            Target { lo: Arc::from([]), hi: None, place: Place::Slice, piece_bytes: u64::MAX };
        let mut job = Job::new(
            context.jobs.job_env(WriteCause::PrivateRuns, tree, false),
            input,
            vec![whole],
            1,
        )?;
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

    /// Records, with one append of edits, that the new parts are pending and that the transaction
    /// is prepared.
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
        let latch = context.edits.begin();
        latch.record(&edits)?;
        let mut pending = context.edits.pending();
        parts.into_iter().for_each(|part| pending.add_part(part));
        pending.add_prepared(txn.txn, prepared);
        Ok(())
    }
}
