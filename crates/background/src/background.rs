//! [`Background`]: the background work of an open database, and the waits of commits for it.
//!
//! ```text
//!  this file            its handles, and what happens after each commit
//!  admission.rs         write stalls: the limits at which a commit waits
//!  waiting.rs           waits for background work, or does it on the calling thread
//!  worker.rs, tasks.rs  the loop of a worker thread, and how it carries out a task
//!  failures.rs          handles failed jobs; full_disk.rs: work on a full disk
//!  freezing.rs          freezes memtables; group.rs: flushes small ones of many trees together
//!  checkpoint.rs        trims the log; manifest_snapshot.rs: replaces the manifest's edits
//!  idle.rs              maintains an idle database; stowing.rs: stows trees that nothing uses
//!  probe.rs             probes for known-empty ranges
//!  optimize.rs          consolidates a tree at the request of a user; optimize/
//! ```

mod admission;
mod checkpoint;
mod failures;
mod freezing;
mod full_disk;
mod group;
mod idle;
mod manifest_snapshot;
mod optimize;
mod probe;
mod stowing;
mod tasks;
mod waiting;
mod worker;

use frondb_commit::{Committed, Committer, Edits, Log};
use frondb_core::clock::Nanos;
use frondb_core::events::Events;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_space::Space;
use frondb_tree::{Health, MemoryShares, MemtableAccount, ReadContext, Trees};

use crate::context::JobContext;
use crate::counters::{JobCounters, Latencies, add};
use crate::log_pins::LogPins;
use crate::pacing::Pacing;
use crate::period::Period;
use crate::queue::Queue;

pub use admission::Load;
pub use checkpoint::{FEW_TREES, RELOG_BYTES_MAX};
pub use manifest_snapshot::Cut;
pub use optimize::{FailedLeaf, OptimizeOptions, OptimizeReport};
pub use stowing::stow;
pub use worker::worker;

/// The background work of an open database, with or without background threads. Any thread may use
/// it.
pub struct Background {
    /// The handles that jobs get.
    pub jobs: Arc<JobContext>,
    /// The work that is due.
    pub queue: Arc<Queue>,
    reads: Arc<ReadContext>,
    trees: Arc<Trees>,
    log: Arc<Log>,
    edits: Arc<Edits>,
    health: Arc<Health>,
    space: Arc<Space>,
    events: Arc<Events>,
    shares: MemoryShares,
    counters: Arc<JobCounters>,
    latencies: Arc<Latencies>,
    /// Has the commit lock, under which memtables are frozen and logged again.
    committer: Arc<Committer>,
    account: Arc<MemtableAccount>,
    /// The prepared transactions, which need old records of the log as memtables do.
    pins: Arc<dyn LogPins>,
    pacing: Pacing,
    period: Period,
    /// Whether the database has no background threads, so that calls do the work themselves.
    is_manual: bool,
    /// Time of the last commit, in nanoseconds of the clock.
    last_commit: AtomicU64,
    /// Whether idle maintenance has run since the last write or install.
    idle_work_done: AtomicBool,
    /// Whether a worker will sync the log when the sync mode requires it. If `false`, a commit
    /// wakes a worker.
    ticking: AtomicBool,
}

impl Background {
    /// Creates the background work of a database that was just opened. Shares the handles of
    /// `jobs`.
    ///
    /// `period` is the checkpoint period; zero means no checkpoints by time. With `is_manual` no
    /// thread works in the background, and calls do the work themselves.
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
            reads: Arc::clone(&jobs.reads),
            trees: Arc::clone(&jobs.trees),
            log: Arc::clone(&jobs.log),
            edits: Arc::clone(&jobs.edits),
            health: Arc::clone(&jobs.health),
            space: Arc::clone(&jobs.space),
            events: Arc::clone(&jobs.events),
            shares: jobs.shares.clone(),
            counters: Arc::clone(&jobs.counters),
            latencies: Arc::clone(&jobs.latencies),
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

    /// Whether the database has no background threads.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.is_manual
    }

    /// Finishes a commit, except for the wait until it is durable: counts it, requests flushes of
    /// attached runs and probes of tombstone runs, and freezes memtables that are large or fill the
    /// write buffer. Without background threads, does the work that is due. `messages` and `bytes`
    /// are the size of the commit; `begun` is when its call began.
    pub fn committed(&self, committed: &Committed, messages: u64, bytes: u64, begun: Nanos) {
        add(&self.counters.commits, 1);
        add(&self.counters.messages, messages);
        self.edits.wear.add_user(bytes);
        let now = self.reads.now();
        self.latencies.commit.add(now.since(begun).as_nanos() as u64);
        self.last_commit.store(now.0, Ordering::Relaxed);
        self.period.committed(now);
        self.edits.wear.tick(now);
        self.touched();
        self.flush_attached(&committed.attached);
        for tree in &committed.trees {
            let mut active = Arc::clone(&tree.version().active);
            if self.request_probe(tree, &active) {
                // The memtable may have been frozen meanwhile.
                active = Arc::clone(&tree.version().active);
            }
            self.freeze_if_large(tree, &active);
        }
        self.freeze_if_full();
        if self.is_manual() && !committed.trees.is_empty() {
            self.run_pending();
        }
    }

    /// Counts a transaction that was prepared, with its messages, because its later commit adds
    /// none. `begun` is when the call began.
    pub fn prepared(&self, messages: u64, bytes: u64, begun: Nanos) {
        add(&self.counters.messages, messages);
        self.edits.wear.add_user(bytes);
        self.latencies.prepare.add(self.reads.nanos_since(begun));
    }

    /// Notes that something was written, so that idle maintenance will be due.
    pub fn touched(&self) {
        if self.idle_work_done.swap(false, Ordering::AcqRel) {
            self.queue.set_idle(false);
            // A worker that waits without limit must wake to see that idle maintenance will be due.
            self.queue.wake();
        } else {
            self.queue.set_idle(false);
        }
        self.keep_ticking();
    }

    /// Wakes a worker after the sync mode of the log has changed. A sleeping worker may have chosen
    /// its wait by the old mode.
    pub fn sync_mode_changed(&self) {
        self.ticking.store(true, Ordering::Release);
        self.queue.wake();
    }

    /// Sets the checkpoint period: about the longest time between a commit and the checkpoint after
    /// which recovery does not need the commit's log record. Zero means no checkpoints by time.
    pub fn set_period(&self, length: std::time::Duration) {
        self.period.set_length(length);
        self.queue.wake();
    }

    /// Returns the time until a checkpoint is due; `None` if time alone makes no checkpoint due.
    #[must_use]
    pub fn checkpoint_due_in(&self) -> Option<std::time::Duration> {
        self.period.due_in(self.reads.now())
    }

    /// Returns the checkpoint period; zero means no checkpoints by time.
    #[must_use]
    pub fn period(&self) -> std::time::Duration {
        self.period.length()
    }

    /// Returns the nanoseconds that commits of all threads together have waited for background
    /// work.
    #[must_use]
    pub fn write_stall_nanos(&self) -> u64 {
        self.pacing.waited_nanos()
    }
}
