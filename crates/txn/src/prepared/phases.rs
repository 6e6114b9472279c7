//! The two phases: prepare, and then commit or roll back.

use frondb_commit::{Attachment, Commit, CommitLatch, Committed, Messages, parts_of};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_records::{
    Edit, XID_BYTES_MAX, encode_commit_prepared, encode_prepare_head, encode_roll_back_prepared,
};
use frondb_space::Extent;

use super::set::{OwnedMessages, Prepared, PreparedTxn, PreparedWrites, not_found};

/// Prepares a transaction by logging its writes. Returns the end of the log record, for a caller
/// that waits for durability. Takes the contents of `values` on success; after an error nothing has
/// changed. REQUIRES: the attachments are pending in the manifest.
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
        let message = format!("the name of a transaction has 1 to {XID_BYTES_MAX} bytes");
        return Err(Error::invalid(message));
    }
    let Commit { txn, attachments, sections } = commit;
    context.committer.exclusive(|latch| {
        context.health.check()?;
        if context.set.find(xid).is_ok() {
            let xid = xid.escape_ascii();
            let message = format!("transaction \"{xid}\" is already prepared");
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
        let prepared = PreparedTxn::new(&context.budget, txn, start, false, writes);
        context.set.restore(xid.into(), prepared);
        context.log.set_applied(end);
        Ok(end)
    })
}

pub(super) fn log_prepare(
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
    lsns.inspect_err(|error| context.health.poison_if_unknown(error))
}

/// Commits the prepared transaction `xid`; with `of`, only if the transaction has the id `of`.
/// Returns the transaction's id and the commit. The commit is durable once the log is durable up to
/// the commit's `end`. The caller passes the commit to
/// [`Background::committed`](frondb_background::Background::committed).
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
        context.health.check()?;
        let first = latch.next_seq();
        let (start, end) = latch
            .append(&[], |record| {
                encode_commit_prepared(record, prepared.txn, first, commit.numbers());
            })
            .inspect_err(|error| context.health.poison_if_unknown(error))?;
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

/// Rolls back the prepared transaction `xid`; with `of`, only if the transaction has the id `of`.
/// The rollback is durable on return. Returns the transaction's id.
///
/// # Errors
/// `NotFound`; `NoSpace`: the transaction is still prepared, and the caller may retry; `Poisoned`.
pub fn roll_back(context: &Prepared, xid: &[u8], of: Option<u64>) -> Result<u64> {
    let prepared = context.set.find_of(xid, of)?;
    let mut state = prepared.writes.lock();
    let Some(writes) = &*state else { return Err(not_found(xid)) };
    if prepared.in_manifest.load(Ordering::Acquire) {
        let (txn, logged) = (prepared.txn, prepared.logged());
        let latch = context.edits.begin();
        latch.record(&[Edit::EndPrepared { txn, logged }])?;
        context.edits.pending().end_prepared(txn, logged);
        context.parts.release(&writes.attachments);
    } else {
        let end =
            context.committer.exclusive(|latch| log_roll_back(context, latch, prepared.txn))?;
        context
            .log
            .wal
            .sync_to(end)
            .inspect_err(|error| context.health.poison_unless_full(error))?;
        context.parts.abandon(prepared.txn, &writes.attachments);
        frondb_commit::discard(writes.values.clone(), &context.space);
    }
    context.set.remove(xid);
    *state = None;
    Ok(prepared.txn)
}

fn log_roll_back(context: &Prepared, latch: &mut CommitLatch<'_>, txn: u64) -> Result<Lsn> {
    context.health.check()?;
    let (_, end) = latch
        .append(&[], |record| encode_roll_back_prepared(record, txn))
        .inspect_err(|error| context.health.poison_if_unknown(error))?;
    context.log.set_applied(end);
    Ok(end)
}
