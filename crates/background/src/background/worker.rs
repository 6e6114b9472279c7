//! The loop of a background worker, which waits for a task and carries it out. The worker syncs the
//! log when the sync mode requires it: after a wait without a task, and between steps of a job.
//!
//! A worker holds no lock while it steps a job.

use std::time::Duration;

use frondb_core::Error;
use frondb_core::sync::atomic::Ordering;
use frondb_wal::SyncMode;

use super::Background;
use crate::background::idle::IDLE_TIMEOUT;
use crate::queue::{Next, Task};

/// Pause between two attempts at work that failed because the disk was full.
const RETRY_EVERY: Duration = Duration::from_millis(200);

/// Runs the loop of a worker thread: takes tasks from the queue and carries them out, until the
/// queue is stopped.
pub fn worker(background: &Background) {
    loop {
        match background.queue.next(&mut || background.idle_timeout()) {
            Next::Stopped => return,
            Next::Nothing => background.on_timeout(),
            Next::Task(task) => background.perform_or_poison(task),
        }
    }
}

impl Background {
    /// Returns how long a worker waits for a task before it checks for work that is due by time.
    /// `None` if time alone makes no work due, so that an idle database wakes no thread.
    fn idle_timeout(&self) -> Option<Duration> {
        let full = self.health.full().map(|_| RETRY_EVERY);
        let idle_work = (!self.idle_work_done.load(Ordering::Acquire)).then_some(IDLE_TIMEOUT);
        let checkpoint = self.checkpoint_due_in();
        [full, self.sync_due(), idle_work, checkpoint].into_iter().flatten().min()
    }

    /// Returns the time until the log must be synced; `None` if nothing is left to sync.
    fn sync_due(&self) -> Option<Duration> {
        self.log.wal.next_tick().or_else(|| {
            // A commit after this store sees `ticking == false` and wakes a worker. Check the log
            // again, because a commit before the store wakes none.
            self.ticking.store(false, Ordering::Release);
            self.log.wal.next_tick()
        })
    }

    /// Ensures that the record just written is synced when the sync mode requires it.
    pub fn keep_ticking(&self) {
        if !matches!(self.log.wal.sync_mode(), SyncMode::EveryMillis(_)) {
            return;
        }
        if self.is_manual() {
            self.tick();
        } else if !self.ticking.swap(true, Ordering::AcqRel) {
            self.queue.wake();
        }
    }

    /// Does the work that is due by time, when a worker has waited for
    /// [`idle_timeout`](Self::idle_timeout) and got no task.
    fn on_timeout(&self) {
        self.try_space();
        self.tick();
        if self.is_idle() && !self.idle_work_done.load(Ordering::Acquire) {
            self.begin_idle();
            let due = self.queue.due();
            if due.jobs == 0 && due.running == 0 {
                self.idle_maintenance();
            }
        }
    }

    /// Syncs the log if the sync mode says that a sync is due, and requests a checkpoint if one is
    /// due by time.
    pub fn tick(&self) {
        if let Err(error) = self.log.wal.tick() {
            self.fail(&error);
        }
        self.request_checkpoint_if_due();
    }

    /// Carries out a task as [`perform`](Self::perform) does, but poisons the database if the task
    /// panics. If only the worker ended, threads that wait for its work would wait for ever.
    fn perform_or_poison(&self, task: Task) {
        // Unwind safety: the database is poisoned after a panic, so nothing uses state that the
        // task has changed only in part.
        let performed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.perform(task)));
        if let Err(panic) = performed {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = text.unwrap_or_else(|| "no reason given".to_owned());
            self.health.poison(&Error::internal(format!("background work panicked: {why}")));
            self.queue.stop();
        }
    }
}
