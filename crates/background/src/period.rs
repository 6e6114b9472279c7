//! [`Period`]: when checkpoints by time are due. No log record is needed for much longer than the
//! period, so recovery has little to replay even if the log grows slowly and stays short.
//!
//! ```text
//!   commit --> notes its time, if it is the first commit since the last checkpoint began
//!   worker --> once the period has passed since that time: makes the log below its current end
//!              unnecessary, as for a long log (checkpoint.rs); then trims the log
//! ```
//!
//! Invariant: if no commit has come since a checkpoint began, then from its end to the next commit
//! nothing is due, and no thread wakes.

use std::time::Duration;

use frondb_core::Lsn;
use frondb_core::clock::Nanos;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Time between two checks whether a checkpoint whose flushes are under way can end. The end of
/// each flush causes a check too.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Value of [`Period::first`] if there was no commit since the last checkpoint began.
const NONE: u64 = u64::MAX;

/// Decides when a checkpoint is due, and up to which position of the log. One for each database;
/// any thread may use it.
pub(crate) struct Period {
    /// Nanoseconds; 0 means no checkpoints by time.
    length: AtomicU64,
    /// Time of the first commit since the last checkpoint began, in nanoseconds, or [`NONE`].
    first: AtomicU64,
    under_way: Mutex<Option<Checkpoint>>,
}

/// A checkpoint that has begun and not ended.
#[derive(Clone, Copy, Debug)]
struct Checkpoint {
    /// The checkpoint trims the log below this position.
    end: Lsn,
    next_check: Nanos,
}

impl Period {
    /// Creates a period of this length; zero means no checkpoints by time.
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

    /// Notes a commit, which is in the log and in its memtables.
    #[inline]
    pub(crate) fn committed(&self, now: Nanos) {
        // Usually an earlier commit has set the time, and a load is cheaper than `fetch_min`.
        if self.first.load(Ordering::Acquire) == NONE {
            self.first.fetch_min(now.0, Ordering::AcqRel);
        }
    }

    /// Returns the time until a checkpoint is due, or the next check of a checkpoint under way;
    /// `None` if time alone makes neither due.
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

    /// Begins a checkpoint if one is due and none is under way. Returns the position up to which
    /// the checkpoint under way trims the log; `None` if there is none. `log_end` returns the end
    /// of the log, up to which a new checkpoint trims it.
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
        // Reset `first` before reading the end of the log, so that a commit above that end notes
        // its time again.
        self.first.store(NONE, Ordering::Release);
        let end = log_end();
        *under_way = Some(Checkpoint { end, next_check });
        Some(end)
    }

    /// Ends the checkpoint that is under way.
    pub(crate) fn end(&self) {
        *self.under_way.lock() = None;
    }
}
