//! Pacing: delays commits in proportion to the debt, so that throughput declines gradually and does
//! not stop.
//!
//! There are two debts, each a fraction:
//!
//! - The debt of the write buffer is 0 while memtables take no more than the write buffer (a
//!   quarter of memory), and 1 at twice that. A long log counts in the same way: 0 up to one and a
//!   half times the write buffer, 1 at twice.
//! - The debt of merges is 0 while the overdue merges will read less than half of the allowance,
//!   and grows to 0.9 near the allowance. It stays below 1, so that it never stops a commit.
//!
//! A commit of b bytes waits `2 * debt * b / rate` for each debt, and takes the larger of the two
//! waits. For the write buffer, `rate` is the speed at which a flush drains a memtable. For merges,
//! `rate` is the speed at which memtables were drained lately, pauses included, which is about the
//! speed of the commits. At a debt of one half the wait takes as long as the work, so the debt
//! settles below one half. At a write-buffer debt of 1 a commit waits until a flush has ended.
//!
//! A flush with a slow codec takes seconds. Commits must slow down when such a flush begins;
//! otherwise they fill the write buffer before the flush ends. So pacing uses the rate of the
//! running flush if no earlier flush was measured, or if the running flush is far slower than the
//! earlier ones.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::events::StallReason;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Longest wait of one commit while the debt is below 1: the time in which a codec of 4 MiB/s
/// compresses a large batch, 1 MiB. If this wait is too short, the debt grows to 1, and commits
/// stall.
const WAIT_MAX: Duration = Duration::from_millis(250);

/// Shorter waits are added up until their sum reaches this, because the operating system cannot
/// sleep for less.
const WAIT_MIN: Duration = Duration::from_micros(200);

/// Bytes per second: the rate that pacing assumes until a flush was measured.
const RATE_FIRST: u64 = 32 << 20;

/// Bytes per second: the least rate that pacing assumes. A slower measured rate comes from an idle
/// database or a very slow codec, and would make waits endless.
const RATE_LEAST: u64 = 256 << 10;

/// Time after which the rate of a flush under way is known.
const DRAINING_NANOS: u64 = 100_000_000;

/// If the running flush is more than this many times slower than the earlier flushes, pacing uses
/// the rate of the running flush: its tree has a slower codec, or the disk has slowed down. Smaller
/// differences are normal.
const DRAINING_SLOWER: u64 = 8;

/// Shortest time over which the rate of all flushes is measured.
const WINDOW_NANOS: u64 = 500_000_000;

/// The inputs of the two debts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debt {
    /// Bytes of all memtables.
    pub(crate) memtable_bytes: u64,
    /// Bytes that memtables may take without a debt.
    pub(crate) write_buffer_bytes: u64,
    /// Bytes of the log that recovery would read.
    pub(crate) log_bytes: u64,
    /// Bytes that due merges will read.
    pub(crate) merge_bytes: u64,
    /// Bytes that due merges may read. At this allowance the merge debt would be 1 if it were not
    /// limited to 0.9.
    pub(crate) merge_allowance: u64,
}

impl Debt {
    /// Returns the larger of the two debts, in thousandths.
    pub(crate) fn permille(self) -> u64 {
        self.buffer_permille().max(self.merge_permille())
    }

    /// Returns the debt of the write buffer in thousandths; above 1000 beyond twice the write
    /// buffer. A long log counts as the same debt, because a flush reduces both.
    fn buffer_permille(self) -> u64 {
        self.memtable_permille().max(self.log_permille())
    }

    fn memtable_permille(self) -> u64 {
        let buffer = self.write_buffer_bytes.max(2);
        self.memtable_bytes.saturating_sub(buffer) * 1000 / buffer
    }

    fn log_permille(self) -> u64 {
        let buffer = self.write_buffer_bytes.max(2);
        self.log_bytes.saturating_sub(buffer * 3 / 2) * 1000 / (buffer / 2)
    }

    /// Returns the larger part of the write-buffer debt: the log or the memtables.
    pub(crate) fn buffer_reason(self) -> StallReason {
        match self.log_permille() > self.memtable_permille() {
            true => StallReason::Log,
            false => StallReason::Memtables,
        }
    }

    /// Returns the debt of merges in thousandths, at most 900, so that it never stops a commit.
    fn merge_permille(self) -> u64 {
        let half = (self.merge_allowance / 2).max(1);
        (self.merge_bytes.saturating_sub(half) * 1000 / half).min(900)
    }
}

/// Measured flush rates, and the sum of the waits that were too short to sleep. Any thread may use
/// it.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// Bytes of a memtable that a flush drains per second, smoothed; 0 if unknown.
    flush_rate: AtomicU64,
    /// Bytes of a memtable that a running flush drains per second, as last measured; 0 from the end
    /// of a flush until a running flush is measured.
    draining_rate: AtomicU64,
    /// Bytes of memtables drained per second, pauses included, smoothed; 0 if unknown.
    rate: AtomicU64,
    window: Mutex<Window>,
    /// Sum of the short waits that no thread has slept yet, nanoseconds.
    saved: AtomicU64,
    /// Nanoseconds that commits have waited since the database was opened.
    waited: AtomicU64,
}

#[derive(Debug, Default)]
struct Window {
    start: Option<Nanos>,
    bytes: u64,
}

impl Pacing {
    /// Notes that a flush has drained a memtable of `bytes` between `begun` and `now`.
    pub(crate) fn drained(&self, bytes: u64, begun: Nanos, now: Nanos) {
        smooth(&self.flush_rate, bytes, now.0.saturating_sub(begun.0));
        self.draining_rate.store(0, Ordering::Relaxed);
        let mut window = self.window.lock();
        let start = window.start.unwrap_or(begun);
        window.start = Some(start);
        window.bytes += bytes;
        let nanos = now.0.saturating_sub(start.0);
        if nanos >= WINDOW_NANOS {
            smooth(&self.rate, window.bytes, nanos);
            *window = Window { start: Some(now), bytes: 0 };
        }
    }

    /// Notes that the flush under way has drained `bytes` of its memtable since `begun`.
    pub(crate) fn draining(&self, bytes: u64, begun: Nanos, now: Nanos) {
        let nanos = now.0.saturating_sub(begun.0);
        if nanos >= DRAINING_NANOS {
            self.draining_rate.store(rate_of(bytes, nanos).max(RATE_LEAST), Ordering::Relaxed);
        }
    }

    /// Notes that the flush under way has ended without draining its memtable. Its rate says nothing
    /// about the next flush, and would slow down commits until that flush has a rate.
    pub(crate) fn abandoned(&self) {
        self.draining_rate.store(0, Ordering::Relaxed);
    }

    /// Returns the bytes of a memtable that a flush drains per second, if known.
    fn flush_rate(&self) -> Option<u64> {
        let (before, now) = (&self.flush_rate, &self.draining_rate);
        match (before.load(Ordering::Relaxed), now.load(Ordering::Relaxed)) {
            (0, 0) => None,
            (0, now) => Some(now),
            (before, now) if now > 0 && now < before / DRAINING_SLOWER => Some(now),
            (before, _) => Some(before),
        }
    }

    /// Returns the bytes of a memtable that a flush drains in half a second, if known.
    pub(crate) fn half_second_bytes(&self) -> Option<u64> {
        self.flush_rate().map(|rate| rate / 2)
    }

    /// Returns the nanoseconds that a commit of `bytes` waits for the debt of the write buffer, and
    /// for the debt of merges.
    fn waits(&self, bytes: u64, debt: Debt) -> (u64, u64) {
        let rate = Some(self.rate.load(Ordering::Relaxed)).filter(|rate| *rate > 0);
        let buffer = wait_nanos(bytes, debt.buffer_permille(), self.flush_rate());
        (buffer, wait_nanos(bytes, debt.merge_permille(), rate))
    }

    /// Returns the debt for which a commit of `bytes` waits longest.
    pub(crate) fn reason(&self, bytes: u64, debt: Debt) -> StallReason {
        let (buffer, merges) = self.waits(bytes, debt);
        if merges > buffer { StallReason::Merges } else { debt.buffer_reason() }
    }

    /// Returns how long a commit that adds `bytes` to memtables waits at this debt. `None` if there
    /// is no wait, or one too short to sleep; a later commit then waits longer by that time.
    pub(crate) fn wait(&self, bytes: u64, debt: Debt) -> Option<Duration> {
        let (buffer, merges) = self.waits(bytes, debt);
        let nanos = buffer.max(merges);
        if nanos == 0 {
            return None;
        }
        let wait = Duration::from_nanos(nanos).min(WAIT_MAX);
        let saved = self.saved.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
        let total = Duration::from_nanos(saved) + wait;
        if total < WAIT_MIN {
            return None;
        }
        self.saved.store(0, Ordering::Relaxed);
        Some(total.min(WAIT_MAX))
    }

    /// Adds to the time that commits have waited.
    pub(crate) fn waited(&self, nanos: u64) {
        self.waited.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the nanoseconds that commits have waited since the database was opened.
    pub(crate) fn waited_nanos(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
}

/// Returns the nanoseconds that a commit of `bytes` waits. At a debt of 1000 permille, that is
/// twice the time in which `bytes` are drained at `rate` (bytes per second; [`RATE_FIRST`] if
/// unknown).
fn wait_nanos(bytes: u64, permille: u64, rate: Option<u64>) -> u64 {
    let rate = rate.unwrap_or(RATE_FIRST);
    let nanos = u128::from(bytes) * u128::from(permille) * 2_000_000 / u128::from(rate);
    nanos.min(u128::from(u64::MAX)) as u64
}

/// Bytes per second.
fn rate_of(bytes: u64, nanos: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(nanos.max(1))) as u64
}

/// Moves a smoothed rate a quarter of the way to the new measurement.
fn smooth(rate: &AtomicU64, bytes: u64, nanos: u64) {
    let seen = rate_of(bytes, nanos);
    let old = rate.load(Ordering::Relaxed);
    let new = if old == 0 { seen } else { (old * 3 + seen) / 4 };
    rate.store(new.max(RATE_LEAST), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debt(memtable: u64, merge: u64) -> u64 {
        of(memtable, merge).permille()
    }

    fn of(memtable: u64, merge: u64) -> Debt {
        Debt {
            memtable_bytes: memtable,
            write_buffer_bytes: 100,
            log_bytes: 0,
            merge_bytes: merge,
            merge_allowance: 1000,
        }
    }

    #[test]
    fn debt_grows_from_nothing_to_one() {
        assert_eq!(debt(100, 500), 0);
        assert_eq!(debt(150, 0), 500);
        assert_eq!(debt(200, 0), 1000);
        assert_eq!(debt(0, 750), 500);
        assert_eq!(debt(0, 5000), 900);
        let long = |log_bytes| Debt { log_bytes, ..of(0, 0) }.permille();
        assert_eq!([long(150), long(175), long(200), long(250)], [0, 500, 1000, 2000]);
    }

    #[test]
    fn a_slow_flush_is_felt_before_it_ends() {
        let pacing = Pacing::default();
        let (start, tenth, second) = (Nanos(0), Nanos(100_000_000), Nanos(1_000_000_000));
        assert_eq!(pacing.half_second_bytes(), None);
        // The rate of the first flush is unknown until the flush has run for a while.
        pacing.draining(1 << 20, start, Nanos(99_000_000));
        assert_eq!(pacing.half_second_bytes(), None);
        pacing.draining(1 << 20, start, tenth);
        assert_eq!(pacing.half_second_bytes(), Some(5 << 20));
        pacing.drained(100 << 20, start, second);
        assert_eq!(pacing.half_second_bytes(), Some(50 << 20));
        // The rate of a slightly slower flush is ignored; the rate of a far slower flush is used.
        pacing.draining(2 << 20, start, tenth);
        assert_eq!(pacing.half_second_bytes(), Some(50 << 20));
        pacing.draining(1 << 20, start, tenth);
        assert_eq!(pacing.half_second_bytes(), Some(5 << 20));
        pacing.drained(100 << 20, start, second);
        assert_eq!(pacing.half_second_bytes(), Some(50 << 20));
        // The rate of a flush that fails does not outlive it.
        pacing.draining(1 << 20, start, tenth);
        pacing.abandoned();
        assert_eq!(pacing.half_second_bytes(), Some(50 << 20));
    }

    #[test]
    fn short_waits_are_saved_up() {
        let pacing = Pacing::default();
        pacing.drained(100 << 20, Nanos(0), Nanos(1_000_000_000));
        let debt = Debt {
            memtable_bytes: 150,
            write_buffer_bytes: 100,
            log_bytes: 0,
            merge_bytes: 0,
            merge_allowance: 1,
        };
        // 1 KiB at 100 MiB/s and a debt of one half: each wait is about 10 us.
        let waits: Vec<_> = (0..25).filter_map(|_| pacing.wait(1024, debt)).collect();
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert!(waits[0] >= WAIT_MIN);
    }
}
