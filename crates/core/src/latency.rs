//! [`Latency`]: how long calls of one kind take, as a histogram that is always on.
//!
//! Each bucket ends at twice the time of the bucket before it: the first ends at 1,024 ns, the last
//! has no end. Adding a time costs two additions to shared counters. For calls much shorter than a
//! microsecond, that and reading the clock would cost too much: [`is_sampled`] picks one call in
//! sixteen, and its time is added with the weight of sixteen.
//!
//! Any thread may add and read. A read while another thread adds may see only some of its
//! additions.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Buckets of a histogram.
pub const BUCKETS: usize = 28;

/// End of the first bucket, as a power of two of nanoseconds.
const FIRST_BITS: u32 = 10;

/// One call in this many is timed, for calls so short that reading the clock would slow them down.
pub const SAMPLED: u64 = 16;

/// Whether to time the call that follows `calls` others. A hash decides, so that a workload that
/// repeats the same calls periodically is sampled evenly.
#[inline]
#[must_use]
pub fn is_sampled(calls: u64) -> bool {
    calls.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SAMPLED.ilog2()) == 0
}

/// The longest time that bucket `index` counts, nanoseconds; `None` for the last one.
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
    /// Adds a time, nanoseconds.
    #[inline]
    pub fn add(&self, nanos: u64) {
        self.add_weighted(nanos, 1);
    }

    /// Adds the time of a call that [`is_sampled`] picked.
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

    /// The times so far.
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
    /// Calls in each bucket; `bound_nanos` has the ends of the buckets.
    pub counts: [u64; BUCKETS],
    /// The sum of all times, nanoseconds.
    pub nanos: u64,
    /// The longest time, nanoseconds; if the calls are sampled, the longest sampled time.
    pub max_nanos: u64,
}

impl LatencyStats {
    /// The number of calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time in nanoseconds that `of_million` of a million calls do not exceed, interpolated
    /// linearly within its bucket; 0 without calls.
    #[must_use]
    pub fn quantile_nanos(&self, of_million: u64) -> u64 {
        let calls = u128::from(self.count()) * u128::from(of_million.min(1_000_000));
        // The rank, rounded up and at least 1: with a single call, every quantile is its time.
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
