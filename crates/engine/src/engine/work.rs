//! Background work that a caller requests: flush, checkpoint, optimize, waiting for merges, single
//! tasks, and the rate limit.

use frondb_background::{LogPins, OptimizeOptions, OptimizeReport};
use frondb_core::{Lsn, Result};
use frondb_tree::Tree;

use super::Engine;

impl Engine {
    /// Flushes all memtables to runs and waits for the flushes.
    ///
    /// # Errors
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn flush(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()
    }

    /// Flushes, writes a snapshot of the manifest and frees the log: the next open replays nothing
    /// that was committed before this call.
    ///
    /// # Errors
    /// `NoSpace`, `Poisoned`, `Closed`.
    pub fn checkpoint(&self) -> Result<()> {
        let _call = self.begin_call()?;
        self.background().flush()?;
        // Prepared transactions move to the manifest and no longer need the log (rule 19).
        let moved = self.txns.prepared.unpin(Lsn::MAX);
        let result = moved
            .and_then(|()| self.background().trim_log())
            .and_then(|()| self.background().rotate_manifest(true))
            .map(|_| ());
        result.inspect_err(|error| self.health().poison_if_unknown(error))
    }

    /// Consolidates a tree while others read and write it. `progress` gets the leaves that are done
    /// and all leaves of the part; it returns `false` to cancel.
    ///
    /// # Errors
    /// `Invalid` for a fraction that is not above 0 and at most 1, a tree of another database, and a
    /// database that was opened read-only; `Cancelled`; `NotFound` if the tree was dropped; `NoSpace`
    /// while the disk stays full; `Poisoned`, `Closed`. What has been done stays.
    pub fn optimize(
        &self,
        tree: &Tree,
        options: OptimizeOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<OptimizeReport> {
        self.check_read(tree, None)?;
        self.background().optimize(tree, options, progress, || self.begin_call())
    }

    /// Changes the rate limit of flushes and merges, bytes written per second; 0 means no limit.
    ///
    /// # Errors
    /// `Closed`.
    pub fn set_background_bytes_per_second(&self, bytes: u64) -> Result<()> {
        self.health().check_open()?;
        self.background().jobs.throttle.set_limit(bytes, self.txns.reads.now());
        Ok(())
    }

    /// The rate limit of flushes and merges, bytes written per second; 0 means no limit.
    #[must_use]
    pub fn background_bytes_per_second(&self) -> u64 {
        self.background().jobs.throttle.limit()
    }

    /// Whether no flush or merge that counts as debt is due or running.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.background().is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled), and until the space of deleted large values
    /// is freed where it is worth rewriting the leaves that refer to them.
    ///
    /// # Errors
    /// `NoSpace` while the disk stays full; `Poisoned`, `Closed`.
    pub fn wait_settled(&self) -> Result<()> {
        self.background().wait_settled(|| self.begin_call())
    }

    /// Runs one background task, if one is due; for engines without background threads. `idle`
    /// also allows the tasks that otherwise run only while there are no writes. Returns whether a
    /// task ran.
    pub fn run_one(&self, idle: bool) -> bool {
        self.begin_call().is_ok_and(|_call| self.background().run_one(idle))
    }

    /// Stows all trees that nothing uses at this moment, and returns how many trees are stowed. For
    /// tests: background work stows trees.
    pub fn stow_trees(&self) -> usize {
        self.begin_call().map_or(0, |_call| self.background().stow_all())
    }
}
