//! Latencies in buckets at most 1.6 % wide: exact enough to quote. Their memory does not grow with
//! the number of latencies.

use std::time::Duration;

/// Buckets for each power of two.
const STEPS: u64 = 64;
const STEP_BITS: u32 = STEPS.trailing_zeros();

/// Counts durations. The maximum is kept exactly.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; bucket(u64::MAX) + 1], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
        self.max = self.max.max(nanos);
    }

    /// Adds the counts of another thread's histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of counted durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns the quantile, milliseconds: at least `share` of the durations are no longer. None if
    /// the histogram is empty.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(millis(upper_bound(index).min(self.max)));
            }
        }
        Some(millis(self.max))
    }

    /// Returns the longest duration, milliseconds; none if the histogram is empty.
    #[must_use]
    pub fn max_ms(&self) -> Option<f64> {
        (self.total > 0).then(|| millis(self.max))
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Returns the bucket of a duration. Values below `STEPS` have a bucket each; of larger values the
/// leading `STEP_BITS + 1` bits choose the bucket.
fn bucket(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEP_BITS;
    (u64::from(shift + 1) * STEPS + (nanos >> shift) - STEPS) as usize
}

/// Returns the largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    let lower = (index % STEPS + STEPS) << shift;
    lower + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for value in (0..5_000).chain([1 << 20, (1 << 40) + 12_345, u64::MAX]) {
            let index = bucket(value);
            let upper = upper_bound(index);
            assert!(upper >= value && upper - value <= value / 60, "{value} in ..={upper}");
            assert!(index == 0 || upper_bound(index - 1) < value);
        }
    }

    #[test]
    fn quantiles_of_a_known_set() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile_ms(0.5), None);
        for ms in 1..=100 {
            histogram.record(Duration::from_millis(ms));
        }
        let p50 = histogram.quantile_ms(0.5).unwrap();
        let p99 = histogram.quantile_ms(0.99).unwrap();
        assert!((50.0..51.0).contains(&p50) && (99.0..100.1).contains(&p99), "{p50} {p99}");
        assert_eq!((histogram.max_ms(), histogram.count()), (Some(100.0), 100));
        let mut sum = Histogram::default();
        sum.merge(&histogram);
        assert_eq!(sum.count(), 100);
        assert_eq!(sum.quantile_ms(1.0), Some(100.0));
    }
}
