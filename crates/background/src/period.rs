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

/// Between two looks at a checkpoint whose flushes are under way. The end of each flush looks, too.
const CHECK_EVERY: Duration = Duration::from_secs(1);

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
    next_check: Nanos,
}

impl Period {
    pub(crate) fn new(length: Duration) -> Self {
        let length = AtomicU64::new(length.as_nanos() as u64);
        Self { length, first: AtomicU64::new(NONE), under_way: Mutex::default() }
    }

    pub(crate) fn set_length(&self, length: Duration) {
        self.length.store(length.as_nanos() as u64, Ordering::Relaxed);
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
            return Some(checkpoint.next_check.since(now));
        }
        let first = self.first.load(Ordering::Acquire);
        (first != NONE).then(|| (Nanos(first) + length).since(now))
    }

    /// Up to where the log shall go, if a checkpoint is under way or due. `log_end` is asked when one
    /// begins.
    pub(crate) fn begin(&self, now: Nanos, log_end: impl FnOnce() -> Lsn) -> Option<Lsn> {
        let mut under_way = self.under_way.lock();
        let next_check = now + CHECK_EVERY;
        if let Some(checkpoint) = &mut *under_way {
            checkpoint.next_check = next_check;
            return Some(checkpoint.end);
        }
        let (length, first) = (self.length(), self.first.load(Ordering::Acquire));
        if length.is_zero() || first == NONE || now.since(Nanos(first)) < length {
            return None;
        }
        // Before the look at the log: a commit that is not below its end notes its time again.
        self.first.store(NONE, Ordering::Release);
        let end = log_end();
        *under_way = Some(Checkpoint { end, next_check });
        Some(end)
    }

    pub(crate) fn end(&self) {
        *self.under_way.lock() = None;
    }
}

/// Fails for a period of more than a year.
///
/// # Errors
/// `Invalid`.
pub fn check_period(length: Duration) -> Result<()> {
    if length > PERIOD_MAX {
        let message = "the checkpoint period must be at most a year";
        return Err(frondb_core::Error::invalid(message));
    }
    Ok(())
}
