//! Closing a database.

use frondb_background::{FEW_TREES, LogPins};
use frondb_core::{ErrorKind, Lsn, Result};

use super::Open;
use crate::open::parts::Parts;

impl Open {
    /// Flushes memtables whose replay would take long, stops the workers and closes the database.
    /// Even if this call fails, later calls that read or write data fail with `Closed`, and the
    /// directory may be opened again. A second call returns the result of the first.
    pub(crate) fn close(&self) -> Result<()> {
        {
            // Hold the lock until the end, so that a concurrent close returns only when the
            // database is closed.
            let mut locks = self.locks.lock();
            if self.health.set_closed() {
                self.txns.calls.wait();
                *self.closed.lock() = self.finish();
                locks.clear();
            }
        }
        // Without the lock, because a waker that a reader thread calls may close the database, too.
        self.readers.stop();
        self.closed.lock().clone()
    }

    /// Flushes and stops the workers. Trims the log and replaces a long manifest by a snapshot, so
    /// that the next open reads and replays little, and returns free space to the file system. If
    /// the database is read-only, only stops the workers. REQUIRES: no call is in progress and none
    /// can begin.
    fn finish(&self) -> Result<()> {
        let Parts { background, edits, log, trees, .. } = &self.parts;
        if self.options.read_only {
            self.stop();
            return Ok(());
        }
        let healthy = self.health.check_unpoisoned();
        let flushed = healthy.and_then(|()| {
            // Do not flush thousands of small trees: replaying them from the log is as fast.
            let few = trees.len() <= FEW_TREES;
            background.freeze_all(if few { 0 } else { frondb_background::RELOG_BYTES_MAX });
            background.wait_flushed()
        });
        self.stop();
        // Sync the log even if the flush failed, so that no commit is lost.
        let synced = log.wal.sync();
        // Without space, the log keeps the messages that could not be flushed.
        unless_full(flushed)?;
        synced?;
        // Without space, the next open reads and replays more.
        unless_full(self.unpin_prepared())?;
        unless_full(background.trim_log())?;
        unless_full(background.rotate_manifest(false).map(drop))?;
        background.idle_maintenance();
        // Secure the log after idle maintenance, which may begin a segment.
        log.wal.secure()?;
        // From here on, recovery reports a truncated or damaged manifest and cannot mistake it for
        // one with a torn tail.
        edits.manifest.secure_all()?;
        self.health.check_unpoisoned()
    }

    /// Moves prepared transactions that pin much log to the manifest, so that the next open does
    /// not replay a long log.
    fn unpin_prepared(&self) -> Result<()> {
        let Parts { jobs, log, prepared, .. } = &self.parts;
        let long = jobs.shares.now().write_buffer_bytes() / 16;
        let limit = Lsn(log.wal.end_lsn().get().saturating_sub(long));
        prepared.unpin(limit)
    }

    fn stop(&self) {
        self.queue.stop();
        for worker in self.workers.lock().drain(..) {
            if let Err(error) = worker.join() {
                tracing::error!(%error, "a background worker failed");
            }
        }
        drop(self.queue.take_parked());
    }
}

/// Treats a full disk as success, because the close can continue with a full disk.
fn unless_full(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::NoSpace => Ok(()),
        other => other,
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // No flush here: committed data is in the log, so a database that is not closed loses
        // nothing.
        self.health.set_closed();
        self.stop();
        self.readers.stop();
    }
}
