//! [`DevicePace`]: whether reading the device takes so much longer than decoding a block that the
//! cache should hold blocks as they are on disk.

use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// One read of a single block in this many is timed.
const SAMPLED: u64 = 32;
/// Samples between two decisions. Each decision halves the sums, so about twice as many samples
/// count.
const SAMPLES: u64 = 256;
/// A device is slow once a read takes as long as decoding this many blocks. With frames, the cache
/// spends about four decodings for each read that it saves; only a clearly slow device justifies
/// this processor time.
const SLOW: u64 = 12;
/// A device is fast again once a read has taken less time than decoding this many blocks, for
/// [`FAST_FOR`].
const FAST: u64 = 8;
/// Time for which reads must be fast before the device counts as fast again. A volume with a rate
/// limit is fast as long as the cache keeps the requests below the limit. If the cache held decoded
/// blocks again at once, the requests would soon reach the limit again, and the cache would
/// alternate between the two forms.
const FAST_FOR: Duration = Duration::from_secs(60);
/// A decoding counts with at least this time: test clocks stand still during a decoding.
const DECODING_MIN: Duration = Duration::from_micros(1);

/// Compares the times of the latest block reads with the times of decoding. One object for all
/// threads; a count lost to a race between two threads does no harm.
pub(crate) struct DevicePace {
    clock: SharedClock,
    reads: AtomicU64,
    samples: AtomicU64,
    read_nanos: AtomicU64,
    decoding_nanos: AtomicU64,
    is_slow: AtomicBool,
    /// Time of the last decision at which the device was slow, nanoseconds.
    last_slow: AtomicU64,
}

pub(crate) struct TimedRead<'a> {
    pace: &'a DevicePace,
    begin: Nanos,
    /// Time that the thread had waited for a processor before the read began.
    waited: Duration,
    took: Duration,
    end: Nanos,
}

impl DevicePace {
    /// Returns the time of the database's clock.
    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Creates an object for which the device counts as fast until enough reads were timed.
    pub(crate) fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            reads: AtomicU64::new(0),
            samples: AtomicU64::new(0),
            read_nanos: AtomicU64::new(0),
            decoding_nanos: AtomicU64::new(0),
            is_slow: AtomicBool::new(false),
            last_slow: AtomicU64::new(0),
        }
    }

    /// Returns whether the cache should hold blocks as they are on disk.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// Begins the read of a single block; `None` unless this read is timed.
    pub(crate) fn begin(&self) -> Option<TimedRead<'_>> {
        let is_sampled = self.reads.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED);
        is_sampled.then(|| {
            let waited = self.clock.processor_wait();
            let begin = self.clock.now();
            TimedRead { pace: self, begin, waited, took: Duration::ZERO, end: begin }
        })
    }

    fn note(&self, read: Duration, decoding: Duration) {
        self.read_nanos.fetch_add(nanos(read), Ordering::Relaxed);
        self.decoding_nanos.fetch_add(nanos(decoding.max(DECODING_MIN)), Ordering::Relaxed);
        if self.samples.fetch_add(1, Ordering::Relaxed) + 1 == SAMPLES {
            self.samples.store(0, Ordering::Relaxed);
            self.decide();
        }
    }

    fn decide(&self) {
        let halved = |sum: &AtomicU64| {
            let now = sum.load(Ordering::Relaxed);
            sum.store(now / 2, Ordering::Relaxed);
            now
        };
        let (reads, decodings) = (halved(&self.read_nanos), halved(&self.decoding_nanos));
        let now = self.clock.now();
        if reads / if self.is_slow() { FAST } else { SLOW } >= decodings {
            self.is_slow.store(true, Ordering::Relaxed);
            self.last_slow.store(now.0, Ordering::Relaxed);
        } else if now.since(Nanos(self.last_slow.load(Ordering::Relaxed))) >= FAST_FOR {
            self.is_slow.store(false, Ordering::Relaxed);
        }
    }
}

impl TimedRead<'_> {
    /// Ends the read; the caller decodes the block next. The time that the thread waited for a
    /// processor does not count for the device.
    pub(crate) fn end(&mut self) {
        let clock = &self.pace.clock;
        let took = clock.now().since(self.begin);
        let waited = clock.processor_wait().saturating_sub(self.waited);
        self.took = took.saturating_sub(waited);
        self.end = clock.now();
    }

    /// Ends the decoding of the block.
    pub(crate) fn decoded(self) {
        self.pace.note(self.took, self.pace.clock.now().since(self.end));
    }
}

/// Returns the nanoseconds of `time`, at most a minute: a machine that was suspended must not count
/// for hours.
fn nanos(time: Duration) -> u64 {
    time.min(Duration::from_secs(60)).as_nanos() as u64
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use frondb_core::clock::{Clock, ManualClock};
    use frondb_core::sync::{Arc, Mutex};

    use super::*;

    /// A clock of a thread that waits for a processor as long as the test says.
    #[derive(Debug, Default)]
    struct BusyClock {
        time: ManualClock,
        waited: Mutex<Duration>,
    }

    impl Clock for BusyClock {
        fn now(&self) -> Nanos {
            self.time.now()
        }

        fn sleep(&self, length: Duration) {
            self.time.sleep(length);
        }

        fn processor_wait(&self) -> Duration {
            *self.waited.lock()
        }
    }

    impl BusyClock {
        fn wait(&self, length: Duration) {
            self.time.advance(length);
            *self.waited.lock() += length;
        }
    }

    fn bench() -> (Arc<BusyClock>, DevicePace) {
        let clock = Arc::new(BusyClock::default());
        (Arc::clone(&clock), DevicePace::new(clock))
    }

    /// Times `samples` reads. In units of a decoding, the device takes `read` and the thread waits
    /// for a processor for `wait`. Returns whether the device then counts as slow.
    fn after(
        (clock, pace): &(Arc<BusyClock>, DevicePace),
        samples: u64,
        read: u32,
        wait: u32,
    ) -> bool {
        let decoding = 10 * DECODING_MIN;
        for _ in 0..samples * SAMPLED {
            let mut timed = pace.begin();
            clock.time.advance(decoding * read);
            clock.wait(decoding * wait);
            timed.iter_mut().for_each(TimedRead::end);
            clock.time.advance(decoding);
            timed.into_iter().for_each(TimedRead::decoded);
        }
        pace.is_slow()
    }

    #[test]
    fn a_device_is_slow_as_long_as_its_reads_are() {
        let bench = bench();
        assert!(!after(&bench, 10 * SAMPLES, SLOW as u32 - 1, 0));
        assert!(!after(&bench, SAMPLES - 1, 100, 0), "too few reads decide nothing");
        assert!(after(&bench, 1, 100, 0));
        assert!(after(&bench, 10 * SAMPLES, FAST as u32 + 1, 0), "it was slow before");
        assert!(after(&bench, 10 * SAMPLES, 1, 0), "it is fast for a second only");
        bench.0.time.advance(FAST_FOR);
        assert!(!after(&bench, 2 * SAMPLES, 1, 0));
    }

    #[test]
    fn a_few_long_reads_among_many_count_with_their_time() {
        let bench = bench();
        let is_slow = (0..10 * SAMPLES).map(|n| match n % 100 {
            0 => after(&bench, 1, 5_000, 0),
            _ => after(&bench, 1, 5, 0),
        });
        assert!(is_slow.last().unwrap(), "a volume that lets bursts through and then none");
    }

    #[test]
    fn waits_for_a_processor_are_not_the_device_s() {
        assert!(!after(&bench(), 10 * SAMPLES, 5, 1_000));
    }

    #[test]
    fn a_clock_that_stands_still_decides_nothing() {
        assert!(!after(&bench(), 10 * SAMPLES, 0, 0));
    }
}
