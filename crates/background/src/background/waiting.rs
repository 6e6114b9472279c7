//! Waits for background work. In a database without workers, the calling thread does the work.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;

use super::Background;
use crate::background::admission::CHECK_EVERY;
use crate::background::full_disk::DiskWait;

impl Background {
    /// Waits until all frozen memtables are flushed.
    ///
    /// # Errors
    /// `NoSpace` if the disk stays full; `Poisoned`.
    pub fn wait_flushed(&self) -> Result<()> {
        let mut wait = DiskWait::default();
        let mut left = self.trees.all();
        loop {
            self.health.check_unpoisoned()?;
            if self.is_manual() {
                self.try_space();
                self.run_pending();
                self.health.check_unpoisoned()?;
            }
            // `all_flushed` does not check a tree again that had no frozen memtable. With ten
            // thousand trees, most of the work would otherwise be to check all of them after each
            // change.
            if all_flushed(&mut left) {
                return Ok(());
            }
            if let Some(full) = self.health.full() {
                // Merges that are under way may still free space.
                if self.gives_up(&mut wait) {
                    return Err(full);
                }
            }
            if self.is_manual() {
                continue;
            }
            self.queue.wait_until(CHECK_EVERY, &mut |_| all_flushed(&mut left));
        }
    }

    /// Whether no task is running, and no work is due that slows commits down or that may lead to
    /// such work. A database without workers serves all requests first.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if self.is_manual() {
            self.serve_requests();
        }
        self.queue.due().is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled) returns `true` and the space of deleted large
    /// values is freed, except where a rewrite of the leaf that refers to them is not worthwhile.
    /// `begin_call` is called before each step of the wait and fails once the database is closed;
    /// its result is dropped after the step.
    ///
    /// # Errors
    /// `NoSpace` while the disk stays full; errors of `begin_call`.
    pub fn wait_settled<C>(&self, begin_call: impl Fn() -> Result<C>) -> Result<()> {
        let call = begin_call()?;
        self.plan_values();
        drop(call);
        let _value_jobs = self.queue.let_value_jobs_run();
        let mut wait = DiskWait::default();
        loop {
            let _call = begin_call()?;
            if self.is_manual() {
                self.try_space();
                self.run_pending();
            }
            let settled = self
                .queue
                .wait_until(CHECK_EVERY, &mut |due| due.is_settled() && due.values_jobs == 0);
            let Some(full) = self.health.full() else {
                if settled {
                    return Ok(());
                }
                continue;
            };
            // Merges may free the missing space, or have freed it already, so check again before
            // the call fails.
            if self.gives_up(&mut wait) {
                return Err(full);
            }
            if settled && !self.is_manual() {
                self.queue.wait_until(CHECK_EVERY, &mut |_| false);
            }
        }
    }

    /// Runs background work on the calling thread until nothing is due or the database is poisoned.
    pub fn run_pending(&self) {
        loop {
            let Some(task) = self.queue.try_next() else { return };
            self.perform(task);
            if self.health.check_unpoisoned().is_err() {
                return;
            }
        }
    }

    /// Serves all requests, then runs one task if one is due; for databases without workers. With
    /// `idle`, the task may be of the idle priority. Returns whether it ran a task.
    pub fn run_one(&self, idle: bool) -> bool {
        self.tick();
        if idle {
            self.begin_idle();
        } else {
            self.queue.set_idle(false);
        }
        self.serve_requests();
        let task = self.queue.try_next();
        let is_due = task.is_some();
        if let Some(task) = task {
            self.perform(task);
        }
        is_due
    }

    /// Carries out the replans, searches and probes that readers and commits have requested.
    pub(crate) fn serve_requests(&self) {
        while let Some(request) = self.queue.next_request() {
            self.perform(request);
        }
    }
}

/// Removes trees without frozen memtables from the end of `left`, up to the first tree that has
/// one. Returns whether `left` is empty. The queue flushes the first trees first, so once the last
/// tree is flushed, most others are too.
fn all_flushed(left: &mut Vec<Arc<TreeCore>>) -> bool {
    while left.pop_if(|tree| !tree.has_frozen()).is_some() {}
    left.is_empty()
}
