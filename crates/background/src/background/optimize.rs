//! Optimize: consolidates a tree at the request of a user, while others read and write the tree.
//!
//! ```text
//!  flush of the memtable -> the leaves in key order -> free space returned
//!                           (pass.rs: requests work, workers do it)
//! ```
//!
//! The work has the priority of amortised merges. More urgent work comes first, but this work and
//! amortised merges together get at least a quarter of the steps of background jobs. Commits never
//! wait for this work. Leaves that a cancelled call has consolidated stay so. PerconaFT's hot
//! optimizer has the same method: it goes down to the leaves in key order and flushes the inner
//! nodes on the way. FronDB also rewrites the leaves. Newer writes do not make a leaf due again, so
//! the call ends beside writers of any speed.

mod pace;
mod pass;
mod report;

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_space::Reclaim;
use frondb_tree::TreeCore;

use super::Background;
use crate::background::admission::CHECK_EVERY;
use crate::background::full_disk::DiskWait;
use pass::{Look, Pass};
pub use report::{FailedLeaf, OptimizeOptions, OptimizeReport};

impl Background {
    /// Consolidates a tree: each leaf gets one sorted run with all messages that were committed
    /// before the call, without deleted and overwritten rows. Then returns free space to the file
    /// system.
    ///
    /// `progress` gets the number of leaves that are consolidated or given up, and the number of
    /// leaves in the part to optimize; it returns `false` to cancel. `begin_call` is called before
    /// each step of the wait and fails once the database is closed; its result is dropped after the
    /// step. While `progress` runs, no result of `begin_call` is held.
    ///
    /// # Errors
    /// `Invalid` if [`OptimizeOptions::fraction`] is not in (0, 1], or if the database is
    /// read-only; `Cancelled`; `NotFound` if the tree was dropped; `NoSpace` while the disk stays
    /// full; `Poisoned`; errors of `begin_call`. Leaves consolidated before the error stay so.
    pub fn optimize<C>(
        &self,
        tree: &Arc<TreeCore>,
        options: OptimizeOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
        begin_call: impl Fn() -> Result<C>,
    ) -> Result<OptimizeReport> {
        if !(options.fraction > 0.0 && options.fraction <= 1.0) {
            return Err(Error::invalid(format!(
                "the fraction to optimize is {}; it must be above 0 and at most 1",
                options.fraction
            )));
        }
        self.health.check_writable()?;
        self.flush_tree(tree, progress, &begin_call)?;
        // All messages up to this SeqNo are in runs now. A SeqNo read before the flush would
        // exclude messages that were inserted between the reading and the freeze.
        let upto = tree.install.lock().flushed;
        let mut pass = Pass::new(self, tree, options, upto);
        let mut checks = Checks::default();
        loop {
            let call = begin_call()?;
            let is_full = self.check_waiting(tree, &mut checks)?;
            let before = pass.progress().0;
            let look = pass.look(is_full);
            drop(call);
            let (done, leaves) = pass.progress();
            if done > before {
                checks = Checks::default();
            }
            check_cancelled(progress(done, leaves))?;
            match look {
                Look::More => {}
                Look::Waits(version) => {
                    let _call = begin_call()?;
                    pass.wait(&version);
                }
                Look::End => break,
            }
        }
        let report = pass.report();
        drop(pass);
        self.touched();
        // An idle database returns all free space. A busy one keeps some of it for reuse; idle
        // maintenance returns that later.
        let is_idle = self.is_idle();
        let mode = if is_idle { Reclaim::Idle } else { Reclaim::Busy };
        loop {
            check_cancelled(progress(report.leaves, report.leaves))?;
            let _call = begin_call()?;
            let space = &self.space;
            if !space.reclaim_step(mode).inspect_err(|error| self.fail(error))? {
                let trimmed = if is_idle { self.return_log() } else { self.trim_log() };
                trimmed.inspect_err(|error| self.fail(error))?;
                return Ok(report);
            }
        }
    }

    /// Flushes all messages that the tree has in memory at the time of the call.
    fn flush_tree<C>(
        &self,
        tree: &Arc<TreeCore>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
        begin_call: &impl Fn() -> Result<C>,
    ) -> Result<()> {
        let leaves = tree.version().trunk.root.totals.leaves;
        let call = begin_call()?;
        self.freeze(tree);
        drop(call);
        let frozen = tree.version().frozen.clone();
        let is_flushed = || {
            let version = tree.version();
            !frozen.iter().any(|old| version.frozen.iter().any(|source| Arc::ptr_eq(old, source)))
        };
        let mut checks = Checks::default();
        while !is_flushed() {
            check_cancelled(progress(0, leaves))?;
            let _call = begin_call()?;
            self.check_waiting(tree, &mut checks)?;
            if self.is_manual() {
                self.run_pending();
            } else {
                self.wait_at_most(CHECK_EVERY, is_flushed);
            }
        }
        Ok(())
    }

    /// Waits until `is_done` returns `true` or `most` has passed. `is_done` is called with the
    /// queue locked.
    fn wait_at_most(&self, most: Duration, is_done: impl Fn() -> bool) {
        let begun = self.reads.now();
        self.queue.wait_until(most, &mut |_| is_done() || self.reads.now().since(begun) >= most);
    }

    /// Fails if the tree is dropped, the database is poisoned, or the disk stays full. Returns
    /// whether the disk is full.
    fn check_waiting(&self, tree: &Arc<TreeCore>, checks: &mut Checks) -> Result<bool> {
        self.health.check_unpoisoned()?;
        tree.check(tree.engine())?;
        if self.is_manual() && self.health.full().is_some() {
            // `gives_up` requires that all work that is due was done before each check.
            self.try_space();
            self.run_pending();
            self.health.check_unpoisoned()?;
        }
        let Some(full) = self.health.full() else { return Ok(false) };
        // `DiskWait` counts checks at intervals of `CHECK_EVERY`, but a wait also ends at each
        // change of the tree.
        let now = self.reads.now();
        if self.is_manual() || now.since(checks.last) >= CHECK_EVERY {
            checks.last = now;
            if self.gives_up(&mut checks.disk) {
                return Err(full);
            }
        }
        Ok(true)
    }
}

/// The checks of a call that have found the disk full, and the time of the last one.
#[derive(Default)]
struct Checks {
    disk: DiskWait,
    last: Nanos,
}

fn check_cancelled(goes_on: bool) -> Result<()> {
    if goes_on {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Cancelled, "the optimize was cancelled; what it has done stays"))
}
