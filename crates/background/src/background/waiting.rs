//! Waiting for background work. A database without workers does the work on the thread that waits.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;

use super::Background;
use crate::background::admission::CHECK_EVERY;
use crate::background::full_disk::Patience;

impl Background {
    /// Waits until all frozen memtables are flushed.
    ///
    /// # Errors
    /// `NoSpace` if the disk stays full; `Poisoned`.
    pub fn wait_flushed(&self) -> Result<()> {
        let mut patience = Patience::default();
        let mut left = self.trees.all();
        loop {
            self.health.check_unpoisoned()?;
            if self.is_manual() {
                self.try_space();
                self.run_pending();
                self.health.check_unpoisoned()?;
            }
            // Do not check a tree again once it has no frozen memtables. With ten thousand trees,
            // checking all of them after each change would be most of the work.
            if all_flushed(&mut left) {
                return Ok(());
            }
            if let Some(full) = self.health.full() {
                // Merges that are under way may still free space.
                if self.gives_up(&mut patience) {
                    return Err(full);
                }
            }
            if self.is_manual() {
                continue;
            }
            self.queue.wait_until(CHECK_EVERY, &mut |_| all_flushed(&mut left));
        }
    }

    /// Whether no work that commits are slowed down for is due or running.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if self.is_manual() {
            self.serve_requests();
        }
        self.queue.due().is_settled()
    }

    /// Waits until [`is_settled`](Self::is_settled) returns `true` and until the space of deleted
    /// large values is freed, as far as rewriting the leaves that refer to them is worthwhile.
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
        let mut patience = Patience::default();
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
            // Merges may free the missing space, or have freed it already: retry before failing.
            if self.gives_up(&mut patience) {
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

    /// Runs one task, if one is due; for databases without workers. `idle` also allows the tasks
    /// that otherwise run only while there are no writes. Returns whether a task ran.
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

    /// Carries out what readers and commits have requested, before other tasks.
    pub(crate) fn serve_requests(&self) {
        while let Some(request) = self.queue.next_request() {
            self.perform(request);
        }
    }
}

/// Removes the trees without frozen memtables from the end of `left`; `true` if none is left.
/// Flushes take the first trees first, so when the last tree is flushed most others are, too.
fn all_flushed(left: &mut Vec<Arc<TreeCore>>) -> bool {
    while left.pop_if(|tree| !tree.has_frozen()).is_some() {}
    left.is_empty()
}
