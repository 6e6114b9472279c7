//! Trims the log: finds the oldest record that recovery needs, and makes old records unnecessary.
//!
//! Recovery needs the log from the first record whose messages are only in a memtable, or that
//! belongs to a prepared transaction. A small memtable with an old record is logged again
//! (rule 10). So the log stays within twice the write buffer, and thousands of idle trees need no
//! flush.

use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result};
use frondb_records::Edit;
use frondb_tree::TreeCore;

use super::Background;
use crate::counters::add;

/// With at most this many trees, a checkpoint flushes all memtables and logs none again, so that
/// the log becomes short.
pub const FEW_TREES: usize = 64;

/// Bytes. An idle database does not trim the log, which needs an edit, to free less than this.
const IDLE_LOG_BYTES: u64 = 4 << 20;

/// Bytes; smaller memtables are logged again, larger ones are flushed.
pub const RELOG_BYTES_MAX: u64 = 64 * 1024;

impl Background {
    /// Returns the first position of the log that a memtable or a prepared transaction still needs.
    #[must_use]
    pub fn log_start(&self) -> Lsn {
        let log = &self.log;
        // Read this before the trees: a record at or above this position may not be noted in its
        // memtable yet.
        let mut start = log.applied();
        // Read this before the trees, too: a prepared transaction that commits is noted in its
        // trees before it is removed from the pins.
        start = start.min(self.pins.needed_from());
        let durable = log.wal.durable_lsn();
        self.trees.for_each(|tree| {
            // A stowed tree has no memtable that could need the log.
            let Some(version) = tree.open_version() else { return };
            for source in version.sources() {
                if let Some(lsn) = source.needed_from(durable) {
                    start = start.min(lsn);
                }
            }
        });
        start
    }

    /// Trims the log if that frees at least a sixteenth of the write buffer; less is not worth an
    /// edit.
    pub(crate) fn trim_log_if_long(&self) -> Result<()> {
        self.trim_log_by(self.shares.now().write_buffer_bytes() / 16)
    }

    /// Trims the log if at least `bytes` bytes of it are no longer needed.
    fn trim_log_by(&self, bytes: u64) -> Result<()> {
        let gain = self.log_start().get().saturating_sub(self.log.from().get());
        if gain < bytes { Ok(()) } else { self.trim_log() }
    }

    /// Returns disk space of the log that an idle database does not need: the spare segments, and
    /// the newest segment if it is long and recovery needs no record of it.
    pub(crate) fn return_log(&self) -> Result<()> {
        let log = &self.log;
        self.trim_log_by(IDLE_LOG_BYTES)?;
        log.wal.keep_spares(false)?;
        if self.health.full().is_none() && log.from() == log.wal.end_lsn() {
            log.wal.end_segment(IDLE_LOG_BYTES)?;
        }
        log.wal.recycle(log.from())
    }

    /// Makes durable in the manifest where the needed log begins, and recycles the older segments.
    ///
    /// # Errors
    /// Errors of the manifest and of the log.
    pub fn trim_log(&self) -> Result<()> {
        let log = &self.log;
        let start = self.log_start();
        let durable = log.wal.durable_lsn();
        let start = start.min(durable);
        if (log.from(), log.known()) == (start, durable) {
            return Ok(());
        }
        let ticket = self.edits.begin().append(&[Edit::Log { start, durable }])?;
        // If the manifest lost this edit, recovery would look for segments that were recycled.
        self.edits.manifest.secure(ticket)?;
        log.note_trimmed(start, durable);
        // A sync is faster in a file that has its space already, so a busy database keeps spares.
        // An idle one keeps none: the memory option determines the length of segments, so spares
        // can be large compared with the data of a database.
        log.wal.keep_spares(!self.is_idle())?;
        log.wal.recycle(start)
    }

    /// Whether the log is longer than one and a half times the write buffer and must be shortened.
    /// The work can then end before the log reaches twice the write buffer (rule 10), at which
    /// commits wait.
    #[must_use]
    pub fn log_is_long(&self) -> bool {
        self.log.replay_bytes() > self.shares.now().write_buffer_bytes() * 3 / 2
    }

    /// Makes all log records unnecessary except the newest ones, whose total size is one write
    /// buffer.
    ///
    /// # Errors
    /// As [`LogPins::unpin`](crate::LogPins::unpin), and errors of the log.
    pub fn shorten_log(&self) -> Result<()> {
        let buffer = self.shares.now().write_buffer_bytes();
        let limit = self.log.wal.end_lsn().get().saturating_sub(buffer);
        self.move_log(Lsn(limit), RELOG_BYTES_MAX)
    }

    /// Makes the log below `limit` unnecessary: writes prepared transactions to disk, logs
    /// memtables of less than `relog_below` bytes again, freezes the other memtables and requests
    /// their flushes.
    pub(crate) fn move_log(&self, limit: Lsn, relog_below: u64) -> Result<()> {
        let relogs = self.committer.relogs();
        self.pins.unpin(limit)?;
        while let Some(tree) = self.unpin_log(limit, relog_below)? {
            self.queue.add_flush(&tree);
        }
        if self.committer.relogs() != relogs {
            // A memtable that was logged again needs its old records until the new ones are
            // durable.
            self.log.wal.sync_to(self.log.wal.end_lsn())?;
            self.trim_log_if_long()?;
        }
        Ok(())
    }

    /// Whether a memtable or a prepared transaction needs the log below `limit`.
    pub(crate) fn is_pinned_below(&self, limit: Lsn) -> bool {
        self.log_start() < limit
    }

    /// Logs again the small active memtables that need the log below `limit`, except in trees with
    /// a frozen memtable. Freezes the first large one and returns its tree, for flushing. `None` if
    /// no large active memtable needs that part of the log any more.
    fn unpin_log(&self, limit: Lsn, relog_below: u64) -> Result<Option<Arc<TreeCore>>> {
        for tree in self.trees.all() {
            let Some(version) = tree.open_version() else { continue };
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
    /// Begins the checkpoint period now for the commits that recovery found in the log.
    pub fn mark_recovered(&self) {
        if self.log.replay_bytes() > 0 {
            self.period.committed(self.reads.now());
        }
    }

    /// Requests maintenance if a checkpoint is due by time.
    pub(crate) fn request_checkpoint_if_due(&self) {
        let due = self.period.due_in(self.reads.now());
        if due.is_some_and(|left| left.is_zero()) && self.health.full().is_none() {
            self.queue.add_maintenance();
        }
    }

    /// Begins or continues a checkpoint by time. Makes the log below the checkpoint's position
    /// unnecessary, and trims the log once nothing needs that part. Flushes that this call requests
    /// cause maintenance again when they end, which continues the checkpoint.
    pub(crate) fn checkpoint_if_due(&self) -> Result<()> {
        let log_end = || self.log.wal.end_lsn();
        let Some(end) = self.period.begin(self.reads.now(), log_end) else { return Ok(()) };
        if self.is_pinned_below(end) {
            let few = self.trees.len() <= FEW_TREES;
            self.move_log(end, if few { 0 } else { RELOG_BYTES_MAX })?;
        }
        if !self.is_pinned_below(end) {
            self.trim_log()?;
            self.period.end();
            add(&self.counters.checkpoints, 1);
        }
        Ok(())
    }
}
