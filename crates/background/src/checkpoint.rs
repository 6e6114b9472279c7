//! How far the log is needed, and the manifest's snapshot.
//!
//! The log is needed from the first record whose messages are in a memtable only. A small
//! memtable that pins an old record is logged again (rule 10): so the log stays within twice the
//! write buffer, and thousands of idle trees cost no flush.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result};
use frondb_records::Edit;
use frondb_tree::TreeCore;

use crate::background::Background;
use crate::counters::add;

/// So few trees are flushed whole rather than logged again: the log is short then.
pub const FEW_TREES: usize = 64;

/// Memtables of less memory than this are logged again rather than flushed.
pub const RELOG_BYTES_MAX: u64 = 64 * 1024;

impl Background {
    /// Where the log begins that some memtable or prepared transaction still needs.
    #[must_use]
    pub fn log_start(&self) -> Lsn {
        let log = &self.jobs.log;
        // Read before the trees: a record behind this is not noted in its memtable yet.
        let mut start = log.applied();
        // Likewise: a transaction that commits is noted in its trees before it is prepared no more.
        start = start.min(self.pins.needed_from());
        let durable = log.wal.durable_lsn();
        self.jobs.trees.for_each(|tree| {
            for source in tree.version().sources() {
                if let Some(lsn) = source.needed_from(durable) {
                    start = start.min(lsn);
                }
            }
        });
        start
    }

    /// Lets go of the log that is no longer needed, if that is worth an edit.
    pub(crate) fn trim_log_if_long(&self) -> Result<()> {
        let gain = self.log_start().get().saturating_sub(self.jobs.log.from().get());
        if gain < self.jobs.shares.now().write_buffer_bytes() / 16 {
            return Ok(());
        }
        self.trim_log()
    }

    /// Makes durable how far the log is needed, and lets go of what is not.
    ///
    /// # Errors
    /// Those of the manifest and the log.
    pub fn trim_log(&self) -> Result<()> {
        let log = &self.jobs.log;
        let start = self.log_start();
        let durable = log.wal.durable_lsn();
        let start = start.min(durable);
        if (log.from(), log.known()) == (start, durable) {
            return Ok(());
        }
        let ticket = self.jobs.edits.begin().append(&[Edit::Log { start, durable }])?;
        // A manifest that lost this edit would need log that is no more.
        self.jobs.edits.manifest.secure(ticket)?;
        log.note_trimmed(start, durable);
        log.wal.recycle(start)
    }

    /// Whether the log has grown so long that what pins it must move: early enough that it has moved
    /// before the log has twice the length of the write buffer (rule 10), at which writers wait.
    #[must_use]
    pub fn log_is_long(&self) -> bool {
        self.jobs.log.replay_bytes() > self.jobs.shares.now().write_buffer_bytes() * 3 / 2
    }

    /// Moves what pins the first half of a long log.
    ///
    /// # Errors
    /// As [`LogPins::unpin`](crate::LogPins::unpin), and those of the log.
    pub fn shorten_log(&self) -> Result<()> {
        let buffer = self.jobs.shares.now().write_buffer_bytes();
        let limit = self.jobs.log.wal.end_lsn().get().saturating_sub(buffer);
        self.move_log(Lsn(limit), RELOG_BYTES_MAX)
    }

    /// Moves what pins the log below `limit`: logs memtables of less than `relog_below` bytes again,
    /// freezes others and has them flushed.
    pub(crate) fn move_log(&self, limit: Lsn, relog_below: u64) -> Result<()> {
        let relogs = self.committer.relogs();
        self.pins.unpin(limit)?;
        while let Some(tree) = self.unpin_log(limit, relog_below)? {
            self.queue.add_flush(&tree);
        }
        if self.committer.relogs() != relogs {
            // What was logged again is needed at its old place until it is durable at the new one.
            self.jobs.log.wal.sync_to(self.jobs.log.wal.end_lsn())?;
            self.trim_log_if_long()?;
        }
        Ok(())
    }

    /// Whether something still needs the log below `limit`.
    pub(crate) fn is_pinned_below(&self, limit: Lsn) -> bool {
        self.log_start() < limit
    }

    /// Logs small memtables that pin the log below `limit` again; freezes a large one and returns its
    /// tree, for flushing. `None` when none is left, or flushes that are under way will do.
    fn unpin_log(&self, limit: Lsn, relog_below: u64) -> Result<Option<Arc<TreeCore>>> {
        for tree in self.jobs.trees.all() {
            let version = tree.version();
            let pins = version.active.first_lsn().is_some_and(|lsn| lsn < limit);
            if !pins {
                continue;
            }
            if version.active.memtable.bytes() >= relog_below {
                let froze = self.committer.exclusive(|_| tree.freeze());
                if froze {
                    return Ok(Some(tree));
                }
            } else {
                self.committer.exclusive(|latch| latch.relog(&tree))?;
            }
        }
        Ok(None)
    }
}

impl Background {
    /// What recovery found in the log counts from the open on.
    pub fn mark_recovered(&self) {
        if self.jobs.log.replay_bytes() > 0 {
            self.period.committed(self.jobs.now());
        }
    }

    /// Asks for the chores if a checkpoint is due.
    pub(crate) fn request_checkpoint_if_due(&self) {
        let due = self.period.due_in(self.jobs.now());
        if due.is_some_and(|left| left.is_zero()) && self.health().full().is_none() {
            self.queue.add_maintenance();
        }
    }

    /// The part of the chores that is due by time: moves what pins old records, or lets them go if
    /// nothing does any more. Flushes that it begins end with chores again.
    pub(crate) fn checkpoint_if_due(&self) -> Result<()> {
        let log_end = || self.jobs.log.wal.end_lsn();
        let Some(end) = self.period.begin(self.jobs.now(), log_end) else { return Ok(()) };
        if self.is_pinned_below(end) {
            let few = self.jobs.trees.len() <= FEW_TREES;
            self.move_log(end, if few { 0 } else { RELOG_BYTES_MAX })?;
        }
        if !self.is_pinned_below(end) {
            self.trim_log()?;
            self.period.end();
            add(&self.jobs.counters.checkpoints, 1);
        }
        Ok(())
    }
}
