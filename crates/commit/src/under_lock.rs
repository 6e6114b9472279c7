//! The steps of a commit under the commit lock: append its record, insert its messages, publish
//! them.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result, SeqNo};
use frondb_records::{encode_batch_head, encode_commit_head, encode_section_head};

use crate::attachment::parts_of;
use crate::commit::{Commit, CommitValues, Committed};
use crate::committer::{CommitLatch, Committer, Scratch};
use crate::hook::CommitInfo;
use crate::messages::{Messages, insert};

impl CommitLatch<'_> {
    /// Returns the first SeqNo that the next commit will get.
    #[must_use]
    pub fn next_seq(&self) -> SeqNo {
        self.committer.oracle.last_reserved().next()
    }

    /// Checks that no tree of a commit was dropped.
    ///
    /// # Errors
    /// `NotFound`, naming the tree.
    pub fn check_trees(&self, commit: Commit<'_>) -> Result<()> {
        commit.check_trees()
    }

    /// Appends the record of a commit and hands it to the kernel. Returns the first SeqNo, and the
    /// beginning and the end of the record. A commit without writes has no record: both are the end
    /// of the log.
    pub(crate) fn log(&mut self, commit: Commit<'_>) -> Result<(SeqNo, (Lsn, Lsn))> {
        let Commit { txn, attachments, sections } = commit;
        let first = self.next_seq();
        if sections.is_empty() && attachments.is_empty() {
            let end = self.committer.wal.end_lsn();
            return Ok((first, (end, end)));
        }
        let lsns = self.append(sections, |heads| {
            if attachments.is_empty() {
                encode_batch_head(heads, first, sections.len());
            } else {
                encode_commit_head(heads, txn, first, &parts_of(attachments), sections.len());
            }
        })?;
        Ok((first, lsns))
    }

    /// Appends a record and hands it to the kernel: first the bytes that `head` writes, then the
    /// sections. Returns the beginning and the end of the record.
    ///
    /// # Errors
    /// As [`frondb_wal::Wal::append`] and [`frondb_wal::Wal::write_to`].
    pub fn append(
        &mut self,
        sections: &[Messages<'_>],
        head: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(Lsn, Lsn)> {
        let Scratch { heads, head_ends } = &mut *self.scratch;
        heads.clear();
        head_ends.clear();
        head(heads);
        for section in sections {
            encode_section_head(heads, section.tree.id, section.count, section.bytes.len());
            head_ends.push(heads.len());
        }
        let mut parts: Vec<&[u8]> = Vec::with_capacity(sections.len() * 2 + 1);
        let mut from = 0;
        for (section, &to) in sections.iter().zip(&*head_ends) {
            parts.push(&heads[from..to]);
            parts.push(section.bytes);
            from = to;
        }
        parts.push(&heads[from..]);
        let wal = &self.committer.wal;
        let appended = wal.append(&parts)?;
        wal.write_to(appended.end)?;
        Ok((appended.start, appended.end))
    }

    /// Inserts a commit into its trees and publishes it. `first` is its first SeqNo, and its record
    /// is in the log at `lsns`. Moves `values`, the extents of its large values, into the
    /// memtables.
    ///
    /// # Errors
    /// `Internal` if a message cannot be decoded: the database is then poisoned.
    pub fn enter(
        &mut self,
        commit: Commit<'_>,
        first: SeqNo,
        lsns: (Lsn, Lsn),
        values: &mut CommitValues,
    ) -> Result<Committed> {
        let Commit { txn, attachments, sections } = commit;
        let last = SeqNo(first.get() + commit.numbers().saturating_sub(1));
        let trees = sections.iter().map(|section| section.tree);
        for tree in trees.chain(attachments.iter().map(|part| &part.tree)) {
            tree.note_commit(last);
        }
        let mut seq = first;
        for (attachment, part) in attachments.iter().zip(0..) {
            let base = SeqNo(seq.get() - 1);
            // If this commit ends a bulk load that creates the tree, the tree accepts other commits
            // from now on; they follow this commit in the log.
            attachment.tree.finish_bulk_load();
            attachment.tree.empty_ranges.clear(last);
            let budget = &self.committer.account.budget;
            attachment.tree.attach(attachment.source(budget, txn, part, base, lsns));
            seq = SeqNo(seq.get() + attachment.numbers);
        }
        for section in sections {
            let active = section.tree.active_for_commit();
            active.logged(lsns.0, lsns.1);
            let empty_ranges = &section.tree.empty_ranges;
            let watch = empty_ranges.is_watched().then_some(empty_ranges);
            // The log has the record, but readers would not see all its messages: poison.
            insert(&active.memtable, (section.bytes, section.count), &mut seq, watch)
                .inspect_err(|error| self.committer.health.poison(error))?;
            empty_ranges.watch_deletes(&active.memtable, last);
        }
        for (id, extents) in values.drain(..) {
            if let Some(section) = sections.iter().find(|section| section.tree.id == id) {
                section.tree.version().active.add_value(extents);
            }
        }
        self.publish(txn, first, last, commit.numbers(), lsns.1);
        Ok(Committed {
            end: lsns.1,
            trees: sections.iter().map(|section| Arc::clone(section.tree)).collect(),
            attached: attachments.iter().map(|part| Arc::clone(&part.tree)).collect(),
        })
    }

    /// If the commit has messages, makes them visible and then calls the commit hook. Notes that
    /// all records below `end` have been inserted into memtables.
    fn publish(&self, txn: u64, first: SeqNo, last: SeqNo, numbers: u64, end: Lsn) {
        let Committer { oracle, hook, log, .. } = self.committer;
        if numbers > 0 {
            let reserved = oracle.reserve(numbers);
            debug_assert_eq!(reserved, first);
            oracle.publish(first, last);
            hook.call(&CommitInfo { transaction: txn, seq: last, end });
        }
        log.set_applied(end);
    }
}
