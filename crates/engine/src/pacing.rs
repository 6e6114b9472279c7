//! Slowing writers so that throughput bends and never stops.
//!
//! Writers pay in time for what they leave to be done. The debt is a fraction: 0 while the write
//! buffer is within its quarter of memory and merges keep up, 1 when the buffer has reached half
//! of memory or merges owe as much as the allowance. A commit of b bytes waits
//! `2 * debt * b / rate`, where rate is how fast flushes have drained lately: at a debt of a half
//! the wait alone takes as long as draining does, so the debt settles below it. At 1 the commit
//! waits until a flush is done.

use std::time::Duration;

use frondb_core::clock::Nanos;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// Longest wait of one commit while the debt is below 1.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Waits shorter than this are saved up: the system cannot sleep so short.
const WAIT_MIN: Duration = Duration::from_micros(200);

/// Where the debt stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debt {
    /// Bytes of all memtables.
    pub(crate) memtable_bytes: u64,
    /// Bytes they may have without debt.
    pub(crate) write_buffer_bytes: u64,
    /// Bytes that due merges will read.
    pub(crate) merge_bytes: u64,
    /// Bytes of merges that are owed at a debt of 1.
    pub(crate) merge_allowance: u64,
}

impl Debt {
    /// The debt in thousandths, at most 1000 for merges; more if the buffer overflows.
    pub(crate) fn permille(self) -> u64 {
        let buffer = self.write_buffer_bytes.max(1);
        let over = self.memtable_bytes.saturating_sub(buffer) * 1000 / buffer;
        // Merges may owe half of the allowance before anyone is slowed.
        let half = (self.merge_allowance / 2).max(1);
        let merges = self.merge_bytes.saturating_sub(half) * 1000 / half;
        over.max(merges.min(900))
    }
}

/// The state of pacing: the rate of draining, and waits too short to sleep.
#[derive(Debug, Default)]
pub(crate) struct Pacing {
    /// Bytes of memtables drained a second, smoothed.
    rate: AtomicU64,
    window: Mutex<Window>,
    /// Nanoseconds of waits saved up.
    saved: AtomicU64,
    /// Nanoseconds waited since the engine was opened.
    waited: AtomicU64,
}

#[derive(Debug, Default)]
struct Window {
    start: Option<Nanos>,
    bytes: u64,
}

impl Pacing {
    /// A memtable of `bytes` was drained at `now`.
    pub(crate) fn drained(&self, bytes: u64, now: Nanos) {
        let mut window = self.window.lock();
        let Some(start) = window.start else {
            window.start = Some(now);
            return;
        };
        window.bytes += bytes;
        let nanos = now.0.saturating_sub(start.0);
        if nanos < 200_000_000 {
            return;
        }
        let rate = (u128::from(window.bytes) * 1_000_000_000 / u128::from(nanos)) as u64;
        let old = self.rate.load(Ordering::Relaxed);
        let smooth = if old == 0 { rate } else { (old * 3 + rate) / 4 };
        // Below this the estimate is about an idle engine, not about what it can do.
        self.rate.store(smooth.max(1 << 20), Ordering::Relaxed);
        *window = Window { start: Some(now), bytes: 0 };
    }

    /// How long a commit of `bytes` (of memtable) waits at this debt.
    pub(crate) fn wait(&self, bytes: u64, debt: Debt) -> Option<Duration> {
        let permille = debt.permille();
        if permille == 0 {
            return None;
        }
        let rate = match self.rate.load(Ordering::Relaxed) {
            0 => 64 << 20,
            rate => rate,
        };
        let nanos = u128::from(bytes) * u128::from(permille) * 2_000_000 / u128::from(rate);
        let wait = Duration::from_nanos(nanos.min(u128::from(u64::MAX)) as u64).min(WAIT_MAX);
        let saved = self.saved.fetch_add(wait.as_nanos() as u64, Ordering::Relaxed);
        let total = Duration::from_nanos(saved) + wait;
        if total < WAIT_MIN {
            return None;
        }
        self.saved.store(0, Ordering::Relaxed);
        Some(total.min(WAIT_MAX))
    }

    /// A writer waited.
    pub(crate) fn waited(&self, nanos: u64) {
        self.waited.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Nanoseconds waited since the engine was opened.
    pub(crate) fn waited_nanos(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debt(memtable: u64, merge: u64) -> u64 {
        Debt {
            memtable_bytes: memtable,
            write_buffer_bytes: 100,
            merge_bytes: merge,
            merge_allowance: 1000,
        }
        .permille()
    }

    #[test]
    fn debt_grows_from_nothing_to_one() {
        assert_eq!(debt(100, 500), 0);
        assert_eq!(debt(150, 0), 500);
        assert_eq!(debt(200, 0), 1000);
        assert_eq!(debt(0, 750), 500);
        assert_eq!(debt(0, 5000), 900);
    }

    #[test]
    fn short_waits_are_saved_up() {
        let pacing = Pacing::default();
        pacing.drained(0, Nanos(0));
        pacing.drained(100 << 20, Nanos(1_000_000_000));
        let debt = Debt {
            memtable_bytes: 150,
            write_buffer_bytes: 100,
            merge_bytes: 0,
            merge_allowance: 1,
        };
        // 1 KiB at 100 MiB/s and half the debt: about 10 us each.
        let waits: Vec<_> = (0..25).filter_map(|_| pacing.wait(1024, debt)).collect();
        assert_eq!(waits.len(), 1, "{waits:?}");
        assert!(waits[0] >= WAIT_MIN);
    }
}
