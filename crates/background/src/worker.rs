//! Background workers: what one thread does, and how long it sleeps.
//!
//! A worker never holds a lock while it steps.

use std::time::Duration;

use frondb_core::Error;
use frondb_core::sync::atomic::Ordering;
use frondb_wal::SyncMode;

use crate::background::Background;
use crate::idle::IDLE_TIMEOUT;
use crate::planning::replan;
use crate::queue::{Next, Task};

/// Between tries of work that failed for want of space.
const RETRY_EVERY: Duration = Duration::from_millis(200);

/// The loop of one worker thread.
pub fn worker(background: &Background) {
    loop {
        match background.queue.next(&mut || background.idle_timeout()) {
            Next::Stopped => return,
            Next::Hints => background.plan_hints(),
            Next::Nothing => background.on_timeout(),
            Next::Task(task) => background.perform_or_poison(task),
        }
    }
}

impl Background {
    /// How long a worker waits for a task before it looks around; `None` when there is nothing
    /// that time alone could make due, so that an idle engine does not wake up.
    fn idle_timeout(&self) -> Option<Duration> {
        let full = self.health().full().map(|_| RETRY_EVERY);
        let idle_work = (!self.idle_work_done.load(Ordering::Acquire)).then_some(IDLE_TIMEOUT);
        let checkpoint = self.period.due_in(self.jobs.now());
        [full, self.sync_due(), idle_work, checkpoint].into_iter().flatten().min()
    }

    /// How long until the log is to be synced, if it has something to sync.
    fn sync_due(&self) -> Option<Duration> {
        self.jobs.log.wal.next_tick().or_else(|| {
            // A commit behind this look finds nobody who knows, and wakes a worker.
            self.ticking.store(false, Ordering::Release);
            self.jobs.log.wal.next_tick()
        })
    }

    /// Has a record that was just written synced when its time has come.
    pub fn keep_ticking(&self) {
        if !matches!(self.jobs.log.wal.sync_mode(), SyncMode::EveryMillis(_)) {
            return;
        }
        if self.is_manual() {
            self.tick();
        } else if !self.ticking.swap(true, Ordering::AcqRel) {
            self.queue.wake();
        }
    }

    /// Plans anew what readers found expensive.
    pub fn plan_hints(&self) {
        for (tree, node) in self.queue.take_hints() {
            replan(&self.jobs, &self.queue, &tree, &[node]);
        }
    }

    /// The same where no worker would.
    pub fn plan_hints_if_manual(&self) {
        if self.is_manual() {
            self.plan_hints();
        }
    }

    /// Nothing was due for a while.
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

    /// Syncs the log if the mode says that it is time to, and sees whether a checkpoint is due.
    pub fn tick(&self) {
        if let Err(error) = self.jobs.log.wal.tick() {
            self.fail(&error);
        }
        self.request_checkpoint_if_due();
    }

    /// As [`perform`](Self::perform). A worker must not die silently, or those who wait for its work
    /// would wait for ever.
    fn perform_or_poison(&self, task: Task) {
        // Nothing is used afterwards that the panic could have left half done: the engine stops.
        let performed =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.perform(task)));
        if let Err(panic) = performed {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = text.unwrap_or_else(|| "no reason given".to_owned());
            self.health().poison(&Error::internal(format!("background work panicked: {why}")));
            self.queue.stop();
        }
    }
}
