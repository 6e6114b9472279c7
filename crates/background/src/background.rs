//! [`Background`]: what flushes and merges, and what commits wait for.

use frondb_commit::{Committed, Committer};
use frondb_core::clock::Nanos;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_tree::{Health, MemtableAccount};

use crate::context::JobContext;
use crate::counters::add;
use crate::log_pins::LogPins;
use crate::pacing::Pacing;
use crate::period::Period;
use crate::queue::Queue;

/// The background work of an open database, with or without threads. Any thread may use it.
pub struct Background {
    /// What jobs take.
    pub jobs: Arc<JobContext>,
    /// What is due.
    pub queue: Arc<Queue>,
    /// The commit lock, under which memtables are frozen and logged again.
    pub(crate) committer: Arc<Committer>,
    /// Memory of memtables.
    pub(crate) account: Arc<MemtableAccount>,
    /// What else keeps old records of the log.
    pub(crate) pins: Arc<dyn LogPins>,
    pub(crate) pacing: Pacing,
    pub(crate) period: Period,
    /// No thread works in the background: calls do the work themselves.
    is_manual: bool,
    /// When the last commit was, by the clock.
    pub(crate) last_commit: AtomicU64,
    /// Nothing is left to tidy since the last write.
    pub(crate) idle_work_done: AtomicBool,
    /// A worker knows that the log has something to sync when its time has come.
    pub(crate) ticking: AtomicBool,
}

impl Background {
    /// The background work of a database that was just opened.
    #[must_use]
    pub fn new(
        jobs: Arc<JobContext>,
        queue: Arc<Queue>,
        committer: Arc<Committer>,
        account: Arc<MemtableAccount>,
        pins: Arc<dyn LogPins>,
        period: std::time::Duration,
        is_manual: bool,
    ) -> Arc<Self> {
        queue.set_merges_max(jobs.shares.now().merges_max());
        Arc::new(Self {
            jobs,
            queue,
            committer,
            account,
            pins,
            pacing: Pacing::default(),
            period: Period::new(period),
            is_manual,
            last_commit: AtomicU64::new(0),
            idle_work_done: AtomicBool::new(true),
            ticking: AtomicBool::new(false),
        })
    }

    /// Whether no thread works in the background.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.is_manual
    }

    pub(crate) fn health(&self) -> &Health {
        &self.jobs.reads.health
    }

    pub(crate) fn now(&self) -> Nanos {
        self.jobs.now()
    }

    /// What follows a commit, but the wait for the disk.
    pub fn committed(&self, committed: &Committed, messages: u64, bytes: u64) {
        let counters = &self.jobs.counters;
        add(&counters.commits, 1);
        add(&counters.messages, messages);
        add(&counters.user_bytes, bytes);
        let now = self.now();
        self.last_commit.store(now.0, Ordering::Relaxed);
        self.period.committed(now);
        self.touched();
        self.flush_attached(&committed.attached);
        committed.trees.iter().for_each(|tree| self.probe_empty_ranges(tree));
        self.freeze_if_full(&committed.trees);
    }

    /// Something was written: there will be something to tidy.
    pub fn touched(&self) {
        if self.idle_work_done.swap(false, Ordering::AcqRel) {
            self.queue.set_idle(false);
            // A worker that sleeps without end should look around once things are quiet again.
            self.queue.wake();
        } else {
            self.queue.set_idle(false);
        }
        self.keep_ticking();
    }

    /// The sync mode of the log has changed: a worker may be waiting for as long as the old one allowed.
    pub fn sync_mode_changed(&self) {
        self.ticking.store(true, Ordering::Release);
        self.queue.wake();
    }

    /// Changes how long a record of the log may be the only place of its messages, about; zero for as long
    /// as the log is short enough.
    pub fn set_period(&self, length: std::time::Duration) {
        self.period.set_length(length);
        // What was committed while there was none counts from now on.
        self.mark_recovered();
        self.queue.wake();
    }

    /// How long until a checkpoint is due by time; `None` if time alone makes none due.
    #[must_use]
    pub fn checkpoint_due_in(&self) -> Option<std::time::Duration> {
        self.period.due_in(self.now())
    }

    /// How long a record of the log may be the only place of its messages; zero for no limit.
    #[must_use]
    pub fn period(&self) -> std::time::Duration {
        self.period.length()
    }

    /// Nanoseconds that writers have been slowed by.
    #[must_use]
    pub fn write_stall_nanos(&self) -> u64 {
        self.pacing.waited_nanos()
    }
}
