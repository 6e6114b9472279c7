//! Settings that can be changed while a database is open: durability, pace and memory.

use std::time::Duration;

use frondb_core::Result;
use frondb_core::budget::Part;
use frondb_core::mem::trim;
use frondb_core::sync::atomic::Ordering;
use frondb_wal::SyncMode;

use super::Db;
use crate::open::parts::Parts;
use crate::options::Options;

impl Db {
    /// Returns what [`Durability::Sync`](crate::Durability::Sync) waits for now.
    #[must_use]
    pub fn sync_mode(&self) -> SyncMode {
        self.open.wal.sync_mode()
    }

    /// Changes what [`Durability::Sync`](crate::Durability::Sync) waits for, for all handles and
    /// threads until the database is closed. The next open starts with its option
    /// [`sync`](Options::sync) again.
    ///
    /// When the call returns, everything that was committed before it is durable. So the promise of
    /// the former mode is kept, and after a change to [`SyncMode::Always`] a power loss cannot lose
    /// an earlier acknowledged commit.
    ///
    /// # Errors
    /// `Invalid` for a bad interval: nothing is changed. Otherwise the errors of
    /// [`sync`](Self::sync); the mode is changed nevertheless.
    pub fn set_sync_mode(&self, mode: SyncMode) -> Result<()> {
        let _call = self.open.begin_call()?;
        let result = self.open.wal.set_sync_mode(mode);
        let result = result.inspect_err(|error| self.open.health.poison_if_unknown(error));
        // A worker may be waiting for as long as the old mode allowed.
        self.open.background.sync_mode_changed();
        result
    }

    /// Changes the approximate longest time between a commit and the flush of its messages from the
    /// memtable; see [`Options::checkpoint_period`]. Earlier commits count from their own time, so
    /// a checkpoint may be due immediately. Zero means no limit.
    ///
    /// # Errors
    /// `Invalid` for a period out of the option's range; `Poisoned`, `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        Options::check_value("checkpoint_period", &length)?;
        let _call = self.open.begin_call()?;
        self.open.background.set_period(length);
        Ok(())
    }

    /// Returns the current checkpoint period; zero means no limit.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.open.background.period()
    }

    /// Limits the bytes per second that flushes and merges write; 0 means no limit. Jobs that wait
    /// for the old limit continue immediately. Commits, bulk loads and the spilled writes of large
    /// transactions are not limited.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.open.health.check_open()?;
        self.open.throttle.set_limit(bytes, self.open.reads.now());
        Ok(())
    }

    /// Returns the limit of bytes per second for flushes and merges; 0 means no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.open.throttle.limit()
    }

    /// Changes the memory budget; 0 means a quarter of the machine's memory. When the call returns,
    /// the cache has shrunk to fit, and flushes of memtables beyond the new write buffer were
    /// requested. Merges and bulk loads that are running keep their memory until they end. A
    /// read-only database has only a cache to change.
    ///
    /// # Errors
    /// `Invalid` for less than [`Options::memory_bytes`] allows, or less than twice
    /// [`Options::write_buffer_bytes`]: nothing is changed. `Closed`, `Poisoned`.
    pub fn set_memory_bytes(&self, bytes: u64) -> Result<()> {
        let bytes = Options::memory_bytes_of(bytes);
        let Parts { background, queue, shares, budget, health, locks, txns, .. } = &self.open.parts;
        // A read-only database has a cache to resize, but nothing to flush.
        let is_writable = health.check_writable().is_ok();
        let _call = txns.calls.begin_unchecked();
        health.check()?;
        let memory = shares.of(bytes);
        memory.check()?;
        self.open.memory.resize(memory, || {
            locks.set_bytes_max(memory.lock_bytes());
            txns.spill.runs_max.store(memory.private_runs_max(), Ordering::Relaxed);
            budget.set_total(bytes);
            queue.set_merges_max(memory.merges_max());
        });
        if is_writable {
            background.freeze_if_full();
            queue.add_maintenance();
            if background.is_manual() {
                background.run_pending();
            }
        }
        // The allocator still holds the memory of evicted blocks: return this memory to the system.
        trim();
        self.open.health.check_unpoisoned()
    }

    /// Reports the bytes of memory that the program uses because of the database, for example a
    /// server for its connections; initially 0. Up to an eighth of the budget (a sixteenth of a
    /// budget below 64 MiB), the cache makes room for this memory and
    /// [`Stats::memory_used`](crate::Stats::memory_used) includes it. May be called often, from any
    /// thread.
    ///
    /// # Errors
    /// `Poisoned`, `Closed`.
    pub fn set_outside_memory_bytes(&self, bytes: u64) -> Result<()> {
        let _call = self.open.begin_call()?;
        self.open.memory.set_outside(bytes, &self.open.shares);
        Ok(())
    }

    /// Returns for each part of the engine its name, its bytes in use and its peak, for
    /// measurements. The names may change.
    #[doc(hidden)]
    #[must_use]
    pub fn memory_parts(&self) -> Vec<(&'static str, u64, u64)> {
        let budget = &self.open.budget;
        let of = |part: Part| (part.name(), budget.used_by(part), budget.peak_of(part));
        Part::ALL.map(of).to_vec()
    }

    /// Returns the memory budget, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.open.budget.total()
    }
}

#[cfg(all(test, not(shuttle)))]
#[path = "period_tests.rs"]
mod tests;
