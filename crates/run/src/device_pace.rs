//! [`DevicePace`]: whether a read of the device takes so much longer than decoding a block that the
//! cache should hold blocks as they are on disk.

use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Reads between two decisions. Each decision halves the sums, so about twice as many reads count.
const READS: u64 = 512;
/// A device is slow once a read takes as long as decoding this many blocks, and stays slow until a
/// read takes less than [`FAST`]. A read that the cache saves costs about four decodings ([decision
/// 0066]), so a device that is not clearly slow costs no processor time.
///
/// [decision 0066]: ../../../docs/decisions/0066-frames-in-the-cache-of-a-slow-device.md
const SLOW: u64 = 12;
/// See [`SLOW`].
const FAST: u64 = 8;
/// Shortest time of a decoding that counts: clocks of tests stand still meanwhile.
const DECODING_MIN: Duration = Duration::from_micros(1);

/// Compares the times of the latest reads of blocks with those of decoding them. One object for all
/// threads; what is lost when two of them note at the same time does no harm.
pub(crate) struct DevicePace {
    clock: SharedClock,
    reads: AtomicU64,
    read_nanos: AtomicU64,
    decoding_nanos: AtomicU64,
    is_slow: AtomicBool,
}

impl DevicePace {
    /// A device that counts as fast until its reads are known.
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            reads: AtomicU64::new(0),
            read_nanos: AtomicU64::new(0),
            decoding_nanos: AtomicU64::new(0),
            is_slow: AtomicBool::new(false),
        }
    }

    /// Whether the cache should hold blocks as they are on disk.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Notes the read of a block that began at `begin` and ended at `read`, and that is decoded by
    /// now.
    pub(crate) fn note(&self, begin: Nanos, read: Nanos) {
        let decoding = self.now().since(read).max(DECODING_MIN);
        self.read_nanos.fetch_add(nanos(read.since(begin)), Ordering::Relaxed);
        self.decoding_nanos.fetch_add(nanos(decoding), Ordering::Relaxed);
        if self.reads.fetch_add(1, Ordering::Relaxed) + 1 == READS {
            self.decide();
        }
    }

    fn decide(&self) {
        self.reads.store(0, Ordering::Relaxed);
        let halved = |sum: &AtomicU64| {
            let now = sum.load(Ordering::Relaxed);
            sum.store(now / 2, Ordering::Relaxed);
            now
        };
        let (reads, decodings) = (halved(&self.read_nanos), halved(&self.decoding_nanos));
        let limit = if self.is_slow() { FAST } else { SLOW };
        self.is_slow.store(reads / limit >= decodings, Ordering::Relaxed);
    }
}

/// Nanoseconds, at most a minute: a machine that was suspended must not count for hours.
fn nanos(time: Duration) -> u64 {
    time.min(Duration::from_secs(60)).as_nanos() as u64
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use frondb_core::clock::ManualClock;
    use frondb_core::sync::Arc;

    use super::*;

    /// Notes reads that take so many times the time of a decoding; returns whether the device is
    /// slow then.
    fn after(pace: &DevicePace, clock: &ManualClock, reads: u64, times: u32) -> bool {
        for _ in 0..reads {
            let begin = pace.now();
            clock.advance(10 * DECODING_MIN * times);
            let read = pace.now();
            clock.advance(10 * DECODING_MIN);
            pace.note(begin, read);
        }
        pace.is_slow()
    }

    #[test]
    fn a_device_is_slow_as_long_as_its_reads_are() {
        let clock = Arc::new(ManualClock::new());
        let pace = DevicePace::new(Arc::clone(&clock) as SharedClock);
        assert!(!after(&pace, &clock, 10 * READS, SLOW as u32 - 1));
        assert!(!after(&pace, &clock, READS - 1, 100), "too few reads decide nothing");
        assert!(after(&pace, &clock, 1, 100));
        assert!(after(&pace, &clock, 10 * READS, FAST as u32 + 1), "it was slow before");
        assert!(!after(&pace, &clock, 10 * READS, FAST as u32 - 1));
    }

    #[test]
    fn a_few_long_reads_among_many_count_with_their_time() {
        let clock = Arc::new(ManualClock::new());
        let pace = DevicePace::new(Arc::clone(&clock) as SharedClock);
        let is_slow = (0..10 * READS).map(|n| match n % 100 {
            0 => after(&pace, &clock, 1, 5_000),
            _ => after(&pace, &clock, 1, 5),
        });
        assert!(is_slow.last().unwrap(), "a volume that lets bursts through and then none");
    }

    #[test]
    fn a_clock_that_stands_still_decides_nothing() {
        let pace = DevicePace::new(Arc::new(ManualClock::new()));
        for _ in 0..10 * READS {
            let now = pace.clock.now();
            pace.note(now, now);
        }
        assert!(!pace.is_slow());
    }
}
