//! Flushes, checkpoints, background work, files and statistics of a database.

use frondb_core::Result;
use frondb_engine::{EngineStats, FileInfo};

use super::Db;

impl Db {
    /// Flushes all memtables to the trees and waits for it.
    ///
    /// # Errors
    /// `NoSpace`: nothing is lost, the log still has the data; `Poisoned`; `Closed`.
    pub fn flush(&self) -> Result<()> {
        self.engine.flush()
    }

    /// Flushes all memtables and frees the log, so that the next open replays nothing from before.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.checkpoint()
    }

    /// Whether no background work is overdue that would slow writers.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.engine.is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and frees the space of deleted and
    /// overwritten large values (over 64 KiB, stored outside of the rows), which otherwise happens
    /// after a second without writes. A leaf is rewritten only where the freed values are worth
    /// it: a few values in a much larger leaf stay until the leaf is rewritten for another reason.
    /// Values that an open snapshot or cursor may still see stay too.
    ///
    /// # Errors
    /// `NoSpace` while the disk is full; `Poisoned`; `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.engine.wait_settled()
    }

    /// Runs one background job if one is due, and returns whether it did. With
    /// [`background_threads(0)`](crate::Options::background_threads), background work otherwise
    /// happens only inside of writes. `idle` also allows the jobs that normally wait until nothing
    /// is written.
    pub fn run_one(&self, idle: bool) -> bool {
        self.engine.run_one(idle)
    }

    /// The files of the database, ordered by kind and path.
    ///
    /// # Errors
    /// `Io`; `Closed`.
    pub fn files(&self) -> Result<Vec<FileInfo>> {
        self.engine.files()
    }

    /// Statistics of the whole database. `Display` shows them as a readable page.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        self.engine.stats()
    }
}
