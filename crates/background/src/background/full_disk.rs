//! Background work on a full disk: new attempts at work that was held back, and space for edits of
//! the manifest.

use frondb_commit::Committed;
use frondb_core::{ErrorKind, Result};

use super::Background;
use crate::jobs::install::EDIT_BYTES;
use crate::planning::replan;

/// Bytes of the reserve that the log and the manifest get on a full disk at a time.
pub(crate) const LEND_BYTES: u64 = 2 << 20;

/// A call fails after more than this many checks that found the disk full while no job ended.
const CHECKS_MAX: u32 = 20;

/// A call fails after more than this many checks that found the disk full: a minute. Jobs that end
/// do not reset this count, because they may free no space for the call that waits.
const CHECKS_IN_ALL_MAX: u32 = 600;

/// Limits how long a call waits on a full disk for work that frees space. On a slow device, or
/// beside other programs, that work may take long: the call waits while jobs end, but not for ever.
#[derive(Debug, Default)]
pub(crate) struct DiskWait {
    /// All checks; `idle_checks` counts the checks since a job last ended.
    checks: u32,
    idle_checks: u32,
    /// Jobs that had ended at the last check.
    jobs: u64,
}

impl DiskWait {
    /// Counts a check that has found the disk full; `jobs` is the number of jobs that have ended so
    /// far. Returns whether the call gives up.
    fn is_over(&mut self, jobs: u64) -> bool {
        if jobs != self.jobs {
            (self.idle_checks, self.jobs) = (0, jobs);
        }
        (self.checks, self.idle_checks) = (self.checks + 1, self.idle_checks + 1);
        self.idle_checks > CHECKS_MAX || self.checks > CHECKS_IN_ALL_MAX
    }
}

impl Background {
    /// Counts a check that has found the disk full. Returns whether the call gives up. In a
    /// database without background threads, the call gives up at the second check, because it has
    /// done all work that is due before each check.
    pub(crate) fn gives_up(&self, wait: &mut DiskWait) -> bool {
        if self.is_manual() {
            wait.checks += 1;
            return wait.checks > 1;
        }
        wait.is_over(self.counters.jobs())
    }

    /// Runs `commit`. If `commit` finds no space, gives up the backup under way with the space that
    /// it keeps, and lends the log some space: of the reserve if the commit frees space (rule 25),
    /// otherwise of the space that backups have given up. If that made space, runs `commit` again.
    ///
    /// # Errors
    /// Errors of `commit`, and of the device.
    pub fn lending_space(
        &self,
        frees_space: bool,
        mut commit: impl FnMut() -> Result<Committed>,
    ) -> Result<Committed> {
        let mut committed = commit();
        if committed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            let space = &self.space;
            let gave_up = self.give_up_backup();
            let lent = match frees_space {
                true => space.lend_reserve(LEND_BYTES).map(|()| true)?,
                false => space.lend_given_up(LEND_BYTES)?,
            };
            if gave_up || lent {
                committed = commit();
            }
        }
        // If a sync of a large value or of the log failed, it is unknown what is durable.
        committed.inspect_err(|error| self.health.poison_if_unknown(error))
    }

    /// Gives up a backup under way, because work finds no space. Returns whether the backup kept
    /// any space.
    pub(crate) fn give_up_backup(&self) -> bool {
        let log = &self.log;
        let kept_log = log.wal.give_up_kept();
        if kept_log && let Err(error) = log.wal.recycle(log.from()) {
            tracing::warn!(%error, "segments of the log that a backup kept stay until the next trim");
        }
        self.space.give_up_retention() || kept_log
    }

    /// Returns to the file system the space that was freed without a commit: at once if the disk is
    /// short of space, otherwise when the database is idle.
    pub fn gave_back(&self) {
        if let Err(error) = self.space.relieve_disk() {
            tracing::warn!(%error, "free space of the data files stays allocated until the database is idle");
        }
        self.touched();
    }

    /// Makes another attempt at the work that was held back on a full disk. Does nothing if the
    /// disk is not full.
    pub fn try_space(&self) {
        if self.health.full().is_none() {
            return;
        }
        if !self.edits.manifest.has_reserve() || !self.log.wal.has_reserve() {
            // Deletes need a log and a manifest that can grow.
            self.lend_reserve();
        }
        self.plan_failed();
        let due = self.queue.due();
        self.queue.attempt(|| {
            if due.debt_jobs == 0 && due.running == 0 {
                // No work is due (the tree of the failed work was dropped, or no commit waits for
                // that work), so no job would ever report that there is space again.
                self.health.set_full(None);
            }
        });
        self.health.tell_full();
        // A job may have failed since the first `plan_failed`, while the disk was still marked as
        // full: see `plan_again`.
        self.plan_failed();
    }

    /// Lets the log and the manifest use a part of the reserve.
    fn lend_reserve(&self) {
        if let Err(error) = self.space.lend_reserve(LEND_BYTES) {
            tracing::warn!(%error, "the reserve for a full disk cannot be used");
        }
    }

    /// Plans the nodes whose jobs failed because the disk was full.
    pub(crate) fn plan_failed(&self) {
        for (tree, node) in self.queue.take_failed() {
            replan(&self.jobs, &self.queue, &tree, &[node]);
        }
    }

    /// Reserves space in the manifest for the edit of an install, if necessary from the reserve.
    pub(crate) fn make_room_for_edit(&self) -> Result<()> {
        if !self.edits.manifest.has_reserve() {
            self.lend_reserve();
        }
        self.jobs.reserve_edit(EDIT_BYTES)
    }

    /// Records that a job found space. If the job did not use the reserve, the disk is no longer
    /// full.
    pub(crate) fn note_space(&self, reserved: bool) {
        if !reserved && self.health.full().is_some() {
            self.queue.release(|| self.health.set_full(None));
            self.health.tell_full();
            self.plan_failed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_as_long_as_jobs_end_and_at_most_a_minute() {
        let mut wait = DiskWait::default();
        let idle = (0..1000).take_while(|_| !wait.is_over(0)).count();
        assert_eq!(idle as u32, CHECKS_MAX);

        let mut wait = DiskWait::default();
        let mut of_jobs =
            |checks: std::ops::Range<u64>| checks.take_while(|at| !wait.is_over(at / 10)).count();
        assert_eq!(of_jobs(0..100), 100);
        assert_eq!(of_jobs(100..10_000) as u32, CHECKS_IN_ALL_MAX - 100);
    }
}
