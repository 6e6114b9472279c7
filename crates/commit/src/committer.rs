//! [`Committer`]: appends a commit to the log, inserts it into memtables and publishes it.
//!
//! ```text
//!   large values -> [commit lock: append to the log, hand it to the kernel, insert into memtables,
//!                    publish] -> wait for the disk, if asked
//! ```
//!
//! One commit at a time holds the lock, so SeqNos, log positions and memtables agree (rule 8). The
//! record is in the kernel before any of its messages is in a memtable: a commit that fails has
//! changed nothing, and what a reader sees survives kill -9. The wait for the disk happens without
//! the lock, so that one sync serves many commits (group commit). A commit reads no block.

use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, MutexGuard};
use frondb_core::{Error, ErrorKind, Lsn, Result, SeqNo, TreeId};
use frondb_locks::SeqOracle;
use frondb_records::{encode_batch_head, encode_commit_head, encode_section_head};
use frondb_run::RunEnv;
use frondb_space::Extent;
use frondb_tree::{Health, MemtableAccount, TreeCore};

use crate::attachment::{Attachment, parts_of};
use crate::batch::{Batch, Durability};
use crate::hook::{CommitHook, CommitInfo, Hook};
use crate::large_values::{discard, write_values};
use crate::log::Log;
use crate::messages::{Messages, insert, sections_of};
use crate::pending_parts::{check_trees, was_dropped};

/// Makes commits, one at a time. Any thread may use it.
pub struct Committer {
    /// The number of the open database; a batch belongs to one of them.
    engine: u64,
    log: Arc<Log>,
    oracle: Arc<SeqOracle>,
    runs: Arc<RunEnv>,
    account: Arc<MemtableAccount>,
    health: Arc<Health>,
    hook: Hook,
    relogs: AtomicU64,
    /// The commit lock.
    lock: Mutex<Scratch>,
}

/// Buffers that each commit uses again.
#[derive(Default)]
struct Scratch {
    heads: Vec<u8>,
    head_ends: Vec<usize>,
}

/// The commit lock, while it is held.
pub struct CommitLatch<'a> {
    committer: &'a Committer,
    scratch: MutexGuard<'a, Scratch>,
}

/// A commit that is in the memtables and visible, and may not be durable yet.
pub struct Committed {
    /// The end of its log record: it is durable when the log is durable up to there.
    pub end: Lsn,
    /// The trees that it has messages for.
    pub trees: Vec<Arc<TreeCore>>,
    /// The trees that it attached runs to; they are to be flushed.
    pub attached: Vec<Arc<TreeCore>>,
}

/// The writes of a commit. One log record describes them.
#[derive(Clone, Copy)]
pub struct Commit<'a> {
    /// The number of the transaction; 0 for a batch.
    pub txn: u64,
    /// Parts that are on disk and pending already.
    pub attachments: &'a [Attachment],
    /// Messages that go into memtables.
    pub sections: &'a [Messages<'a>],
}

/// Extents of the large values that a commit's messages refer to, by tree.
pub type CommitValues = Vec<(TreeId, Vec<Extent>)>;

impl Commit<'_> {
    /// The number of SeqNos that it takes.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        self.attachments.iter().map(|part| part.numbers).sum::<u64>()
            + self.sections.iter().map(|section| section.count).sum::<u64>()
    }

    fn check_trees(&self) -> Result<()> {
        if let Some(section) = self.sections.iter().find(|section| section.tree.is_dropped()) {
            return Err(was_dropped(section.tree));
        }
        check_trees(self.attachments)
    }
}

impl Committer {
    /// The committer of one open database, whose number is `engine`.
    #[must_use]
    pub fn new(
        engine: u64,
        log: Arc<Log>,
        oracle: Arc<SeqOracle>,
        runs: Arc<RunEnv>,
        account: Arc<MemtableAccount>,
        health: Arc<Health>,
    ) -> Self {
        let (hook, relogs, lock) = (Hook::default(), AtomicU64::new(0), Mutex::default());
        Self { engine, log, oracle, runs, account, health, hook, relogs, lock }
    }

    /// Sets the function that is called for every commit from now on, in commit order; `None` for
    /// none. It is called under the commit lock, before the commit is durable, so it must be quick
    /// and must not call the database.
    pub fn set_hook(&self, hook: Option<CommitHook>) {
        self.hook.set(hook);
    }

    /// Runs `work` under the commit lock, while no commit is under way.
    pub fn exclusive<T>(&self, work: impl FnOnce(&mut CommitLatch<'_>) -> T) -> T {
        work(&mut CommitLatch { committer: self, scratch: self.lock.lock() })
    }

    /// Commits a batch: writes its large values, logs it, inserts it and publishes it.
    ///
    /// # Errors
    /// `Invalid` if the batch has an invalid message; `NotFound` if a tree was dropped; `NoSpace`.
    /// Nothing has changed then. `Poisoned`, `Closed`.
    pub fn commit_batch(&self, batch: &Batch) -> Result<Committed> {
        batch.check_for(self.engine)?;
        if batch.large.is_empty() {
            return self.commit_sections(&sections_of(&batch.sections), &mut Vec::new());
        }
        let written = write_values(&self.runs.space, batch)?;
        let mut values = written.values;
        let sections = sections_of(&written.sections);
        self.commit_sections(&sections, &mut values).inspect_err(|_| {
            discard(values, &self.runs.space);
        })
    }

    fn commit_sections(
        &self,
        sections: &[Messages<'_>],
        values: &mut CommitValues,
    ) -> Result<Committed> {
        self.commit(Commit { txn: 0, attachments: &[], sections }, values)
    }

    /// Commits messages, and parts that are on disk. The caller has the trees of the parts flushed
    /// soon. Takes `values`, the extents of the large values that the messages refer to. If it
    /// fails, it leaves `values` to the caller and has changed nothing.
    ///
    /// # Errors
    /// As [`commit_batch`](Self::commit_batch).
    pub fn commit(&self, commit: Commit<'_>, values: &mut CommitValues) -> Result<Committed> {
        self.exclusive(|latch| {
            self.health.check()?;
            commit.check_trees()?;
            // If it is unknown whether the log has the record, nothing of the commit may be freed.
            let logged = latch.log(commit);
            let (first, lsns) = logged.inspect_err(|error| self.health.poison_if_unknown(error))?;
            latch.enter(commit, first, lsns, values)
        })
    }

    /// Makes a commit durable up to `end`, its log position, as far as `durability` asks.
    ///
    /// # Errors
    /// `NoSpace`; any other error poisons the database.
    pub fn make_durable(&self, end: Lsn, durability: Durability) -> Result<()> {
        let result = match durability {
            Durability::NoSync => Ok(()),
            Durability::Sync => self.log.wal.commit_to(end),
        };
        if let Err(error) = &result
            && error.kind() != ErrorKind::NoSpace
        {
            self.health.poison(error);
        }
        result
    }

    /// The number of memtables that were logged again.
    #[must_use]
    pub fn relogs(&self) -> u64 {
        self.relogs.load(Ordering::Relaxed)
    }

    pub(crate) fn log_of(&self) -> &Log {
        &self.log
    }

    pub(crate) fn add_relog(&self) {
        self.relogs.fetch_add(1, Ordering::Relaxed);
    }
}

impl CommitLatch<'_> {
    /// The committer that the lock belongs to.
    pub(crate) fn committer(&self) -> &Committer {
        self.committer
    }

    /// The first SeqNo that the next commit will get.
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

    /// Appends the record of a commit and hands it to the kernel. Returns the first SeqNo, and
    /// where the record begins and ends.
    fn log(&mut self, commit: Commit<'_>) -> Result<(SeqNo, (Lsn, Lsn))> {
        let Commit { txn, attachments, sections } = commit;
        let first = self.next_seq();
        if sections.is_empty() && attachments.is_empty() {
            let end = self.committer.log.wal.end_lsn();
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

    /// Appends a record that begins with what `head` writes and continues with the sections, and
    /// hands it to the kernel. Returns where the record begins and ends.
    ///
    /// # Errors
    /// As [`frondb_wal::Wal::append`].
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
        let wal = &self.committer.log.wal;
        let appended = wal.append(&parts)?;
        wal.write_to(appended.end)?;
        Ok((appended.start, appended.end))
    }

    /// Inserts a commit into its trees and publishes it. `first` is its first SeqNo, and its record
    /// is in the log at `lsns`. Takes `values`, the extents of its large values.
    ///
    /// # Errors
    /// `Internal` if a message cannot be decoded.
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
            // Later commits to the tree follow this one in the log.
            attachment.tree.finish_bulk_load();
            attachment.tree.empty_ranges.clear();
            let budget = &self.committer.account.budget;
            attachment.tree.attach(attachment.source(budget, txn, part, base, lsns));
            seq = SeqNo(seq.get() + attachment.numbers);
        }
        for section in sections {
            let active = Arc::clone(&section.tree.version().active);
            active.logged(lsns.0, lsns.1);
            let empty_ranges = &section.tree.empty_ranges;
            let watch = empty_ranges.is_watched().then_some(empty_ranges);
            insert(&active.memtable, (section.bytes, section.count), &mut seq, watch)?;
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

    /// Makes the messages of a commit visible and calls the commit hook.
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

impl Batch {
    /// Checks that the batch has no invalid message and belongs to the open database `engine`.
    fn check_for(&self, engine: u64) -> Result<()> {
        if let Some(error) = &self.error {
            return Err(error.clone());
        }
        if self.engine.is_some_and(|of| of != engine) {
            return Err(Error::invalid("the batch holds messages for another open database"));
        }
        Ok(())
    }
}
