//! [`Period`]: when checkpoints by time are due. Recovery does not need any log record for much
//! longer than the period. So there is little to replay after a crash, even if the database writes
//! little.
//!
//! ```text
//!   commit --> notes the time, if it is the first since the last checkpoint began
//!   worker --> the period has passed since that time: everything that needs the log below its
//!              current end moves, as for a long log (checkpoint.rs); then the log is trimmed
//! ```
//!
//! Invariant: between the end of a checkpoint and the next commit nothing is due, and no thread
//! wakes.

use std::time::Duration;

use frondb_core::Lsn;
use frondb_core::clock::Nanos;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Time between two checks of a checkpoint whose flushes are under way. The end of each flush
/// causes a check, too.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Value of [`Period::first`]: no commit since the last checkpoint began.
const NONE: u64 = u64::MAX;

/// When a checkpoint is due, and up to which position of the log. One for each database; any thread
/// may use it.
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
    /// A period of this length; zero means no checkpoints by time.
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

    /// Time until a checkpoint, or the next check of one under way, is due; `None` if none becomes
    /// due by time alone.
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

    /// If a checkpoint is under way or due, the position up to which it trims the log.
    /// `log_end` is called if one begins, and returns the end of the log.
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
        // Reset before reading the end of the log: a commit above that end then notes its time
        // again.
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
