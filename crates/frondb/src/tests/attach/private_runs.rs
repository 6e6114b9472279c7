//! Commits and prepares private runs without a transaction.
//!
//! The messages of a part are numbered in their order. The runs are cut by age: each run has
//! consecutive numbers and may hold several messages of a key. With `base`, the messages must be
//! puts of different keys in key order, so the runs are also cut by key.

use crate::tree::Tree;
use frondb_commit::Batch;
use frondb_commit::{
    Attachment, Commit, Durability, Messages, discard, sections_of, write_value, write_values,
};
use frondb_core::limits::VALUE_INLINE_BYTES_MAX;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_core::{MessageKind, RangeDelete, Result, SeqNo};
use frondb_run::{Output, Run, RunWriter};
use frondb_space::Class;
use frondb_txn::{Transactions, prepared};

use crate::db::Db;

/// A message of a part.
#[derive(Clone, Debug)]
pub(crate) enum PrivateMessage {
    /// A put, delete or update: its kind, its key, and its value or operand. A large value of a put
    /// gets extents of its own.
    Point(MessageKind, Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Option<Vec<u8>>),
}

/// The private runs that a commit adds to one tree.
#[derive(Clone, Debug)]
pub(crate) struct PrivatePart {
    pub(crate) tree: Tree,
    /// The messages, oldest first.
    pub(crate) messages: Vec<PrivateMessage>,
    /// The largest number of runs to which the messages are written.
    pub(crate) runs: usize,
    /// Whether the runs are base runs.
    pub(crate) base: bool,
}

/// A message: key, number, kind, and value or reference to a large value.
type Numbered = (Vec<u8>, SeqNo, MessageKind, Vec<u8>);

impl Db {
    /// Releases the locks of prepared transactions that recovery found. Otherwise the plain batches
    /// of a test would wait for these locks.
    pub(crate) fn forget_prepared_locks(&self) {
        self.shared().prepared.holds().clear();
    }
}

impl PrivatePart {
    /// Writes the part's runs. If that fails, removes the runs again.
    pub(crate) fn write(&self, txns: &Transactions) -> Result<Attachment> {
        let mut attachment = Attachment {
            tree: Arc::clone(&self.tree.core),
            runs: Vec::new(),
            range_deletes: Vec::new(),
            values: Vec::new(),
            numbers: self.messages.len() as u64,
            are_base: self.base,
        };
        let written = self.write_into(txns, &mut attachment);
        match written {
            Ok(()) => Ok(attachment),
            Err(error) => {
                txns.parts.release(&[attachment]);
                Err(error)
            }
        }
    }

    fn write_into(&self, txns: &Transactions, attachment: &mut Attachment) -> Result<()> {
        let mut numbered: Vec<Numbered> = Vec::new();
        for (message, number) in self.messages.iter().zip(1..) {
            match message {
                PrivateMessage::Point(kind, key, value)
                    if value.len() > VALUE_INLINE_BYTES_MAX && *kind == MessageKind::Put =>
                {
                    attachment.values.push(Vec::new());
                    let Some(extents) = attachment.values.last_mut() else { continue };
                    let mut reference = Vec::new();
                    write_value(&txns.reads.runs.space, value, extents)?.encode(&mut reference);
                    numbered.push((key.clone(), SeqNo(number), MessageKind::PutRef, reference));
                }
                PrivateMessage::Point(kind, key, value) => {
                    numbered.push((key.clone(), SeqNo(number), *kind, value.clone()));
                }
                PrivateMessage::DeleteRange(lo, hi) => {
                    let (lo, hi) = (lo.clone().into(), hi.clone().map(Into::into));
                    attachment.range_deletes.push(RangeDelete { lo, hi, seq: SeqNo(number) });
                }
            }
        }
        for part in numbered.chunks(numbered.len().div_ceil(self.runs.max(1)).max(1)) {
            let run = self.write_run(txns, part.to_vec())?;
            attachment.runs.insert(0, run);
        }
        Ok(())
    }

    fn write_run(&self, txns: &Transactions, mut messages: Vec<Numbered>) -> Result<Arc<Run>> {
        messages.sort_by(|a, b| (&a.0, b.1).cmp(&(&b.0, a.1)));
        let options = &self.tree.options().trunk;
        let id = txns.ids.next_run();
        let encoding = if self.base { options.base() } else { options.run(1) };
        let mut output = Output::new(
            Arc::clone(&txns.reads.runs.space),
            WriteCause::Merge,
            Class::Merge,
            0,
            false,
        );
        let mut writer = RunWriter::new(id, self.tree.id(), encoding, !self.base);
        for (key, number, kind, value) in &messages {
            writer.add(&mut output, key, *number, *kind, value)?;
        }
        let meta = writer.finish(&mut output)?;
        let meta = meta.ok_or_else(|| frondb_core::Error::internal("a run of no message"))?;
        output.finish()?;
        Ok(Run::new(meta, options.filter_prefix(), Arc::clone(&txns.reads.runs)))
    }
}

fn write_all(txns: &Transactions, parts: &[PrivatePart]) -> Result<Vec<Attachment>> {
    let mut attachments = Vec::with_capacity(parts.len());
    for part in parts {
        match part.write(txns) {
            Ok(attachment) => attachments.push(attachment),
            Err(error) => {
                txns.parts.release(&attachments);
                return Err(error);
            }
        }
    }
    Ok(attachments)
}

impl Db {
    /// Commits parts as private runs, and a batch after them, atomically.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub(crate) fn commit_private(
        &self,
        parts: &[PrivatePart],
        batch: &Batch,
        durability: Durability,
    ) -> Result<()> {
        let _call = self.shared().begin_call()?;
        let txns = &self.shared().txns;
        let committed = self.with_attachments(parts, batch, |commit, values| {
            txns.committer.commit(commit, values)
        })?;
        txns.background.committed(&committed, 0, 0, txns.reads.now());
        txns.committer.make_durable(committed.end, durability)
    }

    /// Prepares a transaction whose writes are these parts and then a batch.
    ///
    /// # Errors
    /// As [`write`](Self::write); `Exists` if a transaction of this name is prepared; `Invalid` for
    /// a bad name.
    pub(crate) fn prepare_private(
        &self,
        xid: &[u8],
        parts: &[PrivatePart],
        batch: &Batch,
        durability: Durability,
    ) -> Result<()> {
        let _call = self.shared().begin_call()?;
        let txns = &self.shared().txns;
        let end = self.with_attachments(parts, batch, |commit, values| {
            prepared::prepare(&txns.prepared, xid, commit, values)
        })?;
        txns.background.touched();
        txns.committer.make_durable(end, durability)
    }

    /// Blocks or allows flushes of a tree's frozen memtables.
    pub(crate) fn block_flushes(&self, tree: &Tree, blocked: bool) {
        tree.core.install.lock().flushing = blocked;
        if !blocked {
            self.shared().queue.add_flush(&tree.core);
        }
    }

    /// Returns the number of bytes in extents to which no part of the database refers. REQUIRES: no
    /// call or background job is running, and no reader holds an older version.
    #[must_use]
    pub(crate) fn leaked_bytes(&self) -> i64 {
        let txns = &self.shared().txns;
        let mut known = prepared::extent_bytes(&txns.prepared);
        for tree in self.shared().trees.all() {
            let version = tree.version();
            known += tree.value_bytes();
            let mut runs = std::collections::BTreeMap::new();
            version.trunk.for_each(&mut |node| {
                runs.extend(node.views().map(|view| (view.run.meta().id, Arc::clone(&view.run))));
            });
            for slot in version.sources() {
                known += slot.value_bytes();
                runs.extend(slot.runs().iter().map(|run| (run.meta().id, Arc::clone(run))));
            }
            let extents = runs.values().flat_map(|run| &run.meta().extents);
            known += extents.map(|extent| extent.bytes()).sum::<u64>();
        }
        self.shared().runs.space.stats().used_bytes as i64 - known as i64
    }

    /// Writes the batch's large values and the parts, makes the parts pending, and calls `commit`.
    /// If that fails, removes the parts and the values again, unless the database is poisoned.
    fn with_attachments<T>(
        &self,
        parts: &[PrivatePart],
        batch: &Batch,
        commit: impl FnOnce(
            Commit<'_>,
            &mut Vec<(frondb_core::TreeId, Vec<frondb_space::Extent>)>,
        ) -> Result<T>,
    ) -> Result<T> {
        let txns = &self.shared().txns;
        // Write the values first: `write_values` syncs only the values, and `PendingParts::add`
        // later syncs the runs.
        let written = write_values(&txns.reads.runs.space, batch)?;
        let attachments = match write_all(txns, parts) {
            Ok(attachments) => attachments,
            Err(error) => {
                discard(written.values, &txns.reads.runs.space);
                return Err(error);
            }
        };
        let txn = txns.ids.next_txn();
        let mut values = written.values;
        let sections: Vec<Messages<'_>> = sections_of(&written.sections);
        let done = txns.parts.add(txn, &attachments).and_then(|()| {
            let commit_of = Commit { txn, attachments: &attachments, sections: &sections };
            commit(commit_of, &mut values)
        });
        done.inspect_err(|error| {
            txns.reads.health.poison_if_unknown(error);
            txns.parts.abandon(txn, &attachments);
            if txns.reads.health.check_unpoisoned().is_ok() {
                discard(values, &txns.reads.runs.space);
            }
        })
    }
}
