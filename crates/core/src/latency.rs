//! [`Latency`]: a histogram, always on, of the durations of one kind of call.
//!
//! The first bucket ends at 1,024 ns, each following one at twice the end of the previous one, and
//! the last has no end. To add a time costs two additions to shared counters. For calls much
//! shorter than a microsecond, these additions and the reading of the clock would cost too much.
//! Therefore [`is_sampled`] selects one such call in sixteen, whose time is added with the weight
//! sixteen.
//!
//! Any thread may add and read. A read while another thread adds a time may see only some of the
//! changed counters.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Number of buckets of a histogram.
pub const BUCKETS: usize = 28;

/// Binary logarithm of the end of the first bucket in nanoseconds.
const FIRST_BITS: u32 = 10;

/// One in this many very short calls is timed, because the reading of the clock would slow them
/// down.
pub const SAMPLED: u64 = 16;

/// Whether to time the next call after `calls` earlier ones. A hash of `calls` decides, so that all
/// calls of a workload with a periodic pattern are sampled equally often.
#[inline]
#[must_use]
pub fn is_sampled(calls: u64) -> bool {
    calls.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SAMPLED.ilog2()) == 0
}

/// Returns the longest time that bucket `index` counts, in nanoseconds; `None` for the last bucket.
#[must_use]
pub fn bound_nanos(index: usize) -> Option<u64> {
    (index + 1 < BUCKETS).then(|| 1 << (FIRST_BITS as usize + index))
}

/// A histogram of times.
#[derive(Debug, Default)]
pub struct Latency {
    counts: [AtomicU64; BUCKETS],
    nanos: AtomicU64,
    max_nanos: AtomicU64,
}

impl Latency {
    /// Adds a time in nanoseconds.
    #[inline]
    pub fn add(&self, nanos: u64) {
        self.add_weighted(nanos, 1);
    }

    /// Adds the time of a call that [`is_sampled`] selected, in nanoseconds.
    #[inline]
    pub fn add_sampled(&self, nanos: u64) {
        self.add_weighted(nanos, SAMPLED);
    }

    #[inline]
    fn add_weighted(&self, nanos: u64, weight: u64) {
        self.counts[bucket_of(nanos)].fetch_add(weight, Ordering::Relaxed);
        self.nanos.fetch_add(nanos.saturating_mul(weight), Ordering::Relaxed);
        if nanos > self.max_nanos.load(Ordering::Relaxed) {
            self.max_nanos.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// Returns the times so far.
    #[must_use]
    pub fn read(&self) -> LatencyStats {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        LatencyStats {
            counts: std::array::from_fn(|index| load(&self.counts[index])),
            nanos: load(&self.nanos),
            max_nanos: load(&self.max_nanos),
        }
    }
}

fn bucket_of(nanos: u64) -> usize {
    let bits = u64::BITS - nanos.saturating_sub(1).leading_zeros();
    (bits.saturating_sub(FIRST_BITS) as usize).min(BUCKETS - 1)
}

/// Times of calls of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LatencyStats {
    /// Number of calls in each bucket; `bound_nanos` returns the end of a bucket.
    pub counts: [u64; BUCKETS],
    /// The sum of all times, nanoseconds.
    pub nanos: u64,
    /// The longest time, nanoseconds; if the calls are sampled, the longest sampled time.
    pub max_nanos: u64,
}

impl LatencyStats {
    /// Returns the number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the time in nanoseconds that `of_million` of a million calls do not exceed,
    /// interpolated linearly within its bucket; 0 if there were no calls.
    #[must_use]
    pub fn quantile_nanos(&self, of_million: u64) -> u64 {
        let calls = u128::from(self.count()) * u128::from(of_million.min(1_000_000));
        // Round the rank up, to at least 1: with a single call, every quantile is the time of that
        // call.
        let wanted = calls.div_ceil(1_000_000).max(1);
        let mut below = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            let (from, within) = (below, u128::from(count));
            below += within;
            if count > 0 && below >= wanted {
                let lower = index.checked_sub(1).and_then(bound_nanos).unwrap_or(0);
                let upper = bound_nanos(index).unwrap_or(self.max_nanos).min(self.max_nanos);
                let width = u128::from(upper.saturating_sub(lower));
                let into = width * (wanted - from.min(wanted)) / within;
                return lower.min(upper) + u64::try_from(into).unwrap_or(u64::MAX);
            }
        }
        0
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_that_ends_at_or_after_it() {
        for (nanos, bucket) in [(0, 0), (1, 0), (1024, 0), (1025, 1), (2048, 1), (2049, 2)] {
            assert_eq!(bucket_of(nanos), bucket, "{nanos}");
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
        for index in 0..BUCKETS - 1 {
            let bound = bound_nanos(index).unwrap();
            assert_eq!((bucket_of(bound), bucket_of(bound + 1)), (index, index + 1));
        }
        assert_eq!(bound_nanos(BUCKETS - 1), None);
    }

    #[test]
    fn quantiles_are_close_to_those_of_the_times() {
        let latency = Latency::default();
        assert_eq!(latency.read().quantile_nanos(500_000), 0);
        for millis in 1..=1000 {
            latency.add(millis * 1_000_000);
        }
        let stats = latency.read();
        assert_eq!((stats.count(), stats.max_nanos), (1000, 1_000_000_000));
        assert_eq!(stats.nanos, 500_500_000_000);
        for (of_million, millis) in [(500_000, 500), (990_000, 990), (999_000, 999)] {
            let found = stats.quantile_nanos(of_million) / 1_000_000;
            assert!((millis * 19 / 20..=millis * 21 / 20).contains(&found), "{millis}: {found}");
        }
        assert_eq!(stats.quantile_nanos(1_000_000), 1_000_000_000);
    }

    #[test]
    fn a_few_calls_have_quantiles_too() {
        let latency = Latency::default();
        latency.add(900_000_000);
        for of_million in [1, 500_000, 999_000, 1_000_000] {
            assert_eq!(latency.read().quantile_nanos(of_million), 900_000_000);
        }
        (0..9).for_each(|_| latency.add(1_000_000));
        let stats = latency.read();
        assert!((500_000..=1_048_576).contains(&stats.quantile_nanos(500_000)));
        assert_eq!(stats.quantile_nanos(999_000), 900_000_000);
    }

    #[test]
    fn one_call_of_sixteen_is_sampled_whatever_the_period() {
        for period in 1..40 {
            let sampled = (0..160_000).filter(|call| is_sampled(call * period)).count();
            assert!((9_000..11_000).contains(&sampled), "{period}: {sampled}");
        }
        let latency = Latency::default();
        latency.add_sampled(5_000);
        assert_eq!((latency.read().count(), latency.read().nanos), (16, 80_000));
    }
}
