//! Checkpoints by time: no record of the log stays the only place of its messages for much longer
//! than the period, so that a crash of a machine that writes little replays little, too.
//!
//! ```text
//!   commit --> notes the time, if it is the first since the last checkpoint began
//!   worker --> that is longer ago than the period: all that pins the log below its end of now moves,
//!              as when the log is long (checkpoint.rs); then the log below it goes
//! ```
//!
//! Invariant: after a checkpoint, and until the next commit, nothing is due, and nobody wakes.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Lsn, Result};

use crate::checkpoint::{FEW_TREES, RELOG_BYTES_MAX, move_log, pinned_below, trim_log};
use crate::engine::{Engine, Shared};
use crate::stats::Counters;

/// Between two looks at a checkpoint whose flushes are under way. The end of each flush looks, too.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest period accepted.
pub(crate) const PERIOD_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// No commit since the last checkpoint began.
const NONE: u64 = u64::MAX;

/// When, and up to where. One for an engine.
pub(crate) struct Period {
    /// Nanoseconds; 0 for never.
    length: AtomicU64,
    /// Time of the first commit since the last checkpoint began, or [`NONE`].
    first: AtomicU64,
    under_way: Mutex<Option<Checkpoint>>,
}

/// A checkpoint that has begun.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// The log below this shall go.
    end: Lsn,
    next_look: Nanos,
}

impl Period {
    pub(crate) fn new(length: Duration) -> Self {
        let length = AtomicU64::new(length.as_nanos() as u64);
        Self { length, first: AtomicU64::new(NONE), under_way: Mutex::default() }
    }

    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.length.load(Ordering::Relaxed))
    }

    /// A commit is in the log and in memtables.
    #[inline]
    pub(crate) fn committed(&self, now: Nanos) {
        // Most find that another was first.
        if self.first.load(Ordering::Acquire) == NONE {
            self.first.fetch_min(now.0, Ordering::AcqRel);
        }
    }

    /// How long until there is something to do; `None` if time alone makes nothing due.
    pub(crate) fn due_in(&self, now: Nanos) -> Option<Duration> {
        let length = self.length();
        if length.is_zero() {
            return None;
        }
        if let Some(checkpoint) = *self.under_way.lock() {
            return Some(checkpoint.next_look.since(now));
        }
        let first = self.first.load(Ordering::Acquire);
        (first != NONE).then(|| (Nanos(first) + length).since(now))
    }

    /// Up to where the log shall go, if a checkpoint is under way or due. `log_end` is asked when one
    /// begins.
    fn begin(&self, now: Nanos, log_end: impl FnOnce() -> Lsn) -> Option<Lsn> {
        let mut under_way = self.under_way.lock();
        let next_look = now + LOOK_EVERY;
        if let Some(checkpoint) = &mut *under_way {
            checkpoint.next_look = next_look;
            return Some(checkpoint.end);
        }
        let (length, first) = (self.length(), self.first.load(Ordering::Acquire));
        if length.is_zero() || first == NONE || now.since(Nanos(first)) < length {
            return None;
        }
        // Before the look at the log: a commit that is not below its end notes its time again.
        self.first.store(NONE, Ordering::Release);
        let end = log_end();
        *under_way = Some(Checkpoint { end, next_look });
        Some(end)
    }

    fn end(&self) {
        *self.under_way.lock() = None;
    }
}

impl Shared {
    /// What recovery found in the log counts from the open on.
    pub(crate) fn mark_recovered(&self) {
        if self.env.log.replay_bytes() > 0 {
            self.period.committed(self.env.now());
        }
    }

    /// Asks for the chores if a checkpoint is due.
    pub(crate) fn look_at_period(&self) {
        let due = self.period.due_in(self.env.now());
        if due.is_some_and(|left| left.is_zero()) && self.env.full().is_none() {
            self.work.add_chores();
        }
    }

    /// The part of the chores that is due by time: moves what pins old records, or lets them go if
    /// nothing does any more. Flushes that it begins end with chores again.
    pub(crate) fn checkpoint_if_due(&self) -> Result<()> {
        let log_end = || self.env.log.wal.end_lsn();
        let Some(end) = self.period.begin(self.env.now(), log_end) else { return Ok(()) };
        if pinned_below(&self.env, end) {
            let few = self.env.trees.len() <= FEW_TREES;
            let limits = (end, if few { 0 } else { RELOG_BYTES_MAX });
            move_log(&self.env, &self.committer, limits, &mut |tree| self.work.add_flush(tree))?;
        }
        if !pinned_below(&self.env, end) {
            trim_log(&self.env)?;
            self.period.end();
            Counters::add(&self.env.counters.checkpoints, 1);
        }
        Ok(())
    }
}

impl Engine {
    /// Changes how long a record of the log may be the only place of its messages, about; zero for as
    /// long as the log is short enough.
    ///
    /// # Errors
    /// `Invalid` for more than a year; `Closed`.
    pub fn set_checkpoint_period(&self, length: Duration) -> Result<()> {
        check(length)?;
        let _call = self.begin_call()?;
        let shared = self.shared();
        shared.period.length.store(length.as_nanos() as u64, Ordering::Relaxed);
        // What was committed while there was none counts from now on.
        shared.mark_recovered();
        shared.work.wake();
        Ok(())
    }

    /// How long a record of the log may be the only place of its messages; zero for no limit.
    #[must_use]
    pub fn checkpoint_period(&self) -> Duration {
        self.shared().period.length()
    }
}

pub(crate) fn check(length: Duration) -> Result<()> {
    if length > PERIOD_MAX {
        let message = "the checkpoint period must be at most a year";
        return Err(frondb_core::Error::invalid(message));
    }
    Ok(())
}

#[cfg(all(test, not(shuttle)))]
#[path = "period_tests.rs"]
mod tests;
