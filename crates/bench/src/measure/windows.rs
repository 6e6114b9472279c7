//! Progress in windows of one second, and the figure that shows stalls: the rows of the slowest
//! window divided by the rows of the median window.
//!
//! # What `min_interval_ratio` means
//!
//! Each row counts in the second in which it was acknowledged. The first window (cold caches, empty
//! buffers) and the last window (cut short) are dropped. The figure is the slowest of the other
//! windows divided by their median. A batch that takes three seconds leaves two empty windows and
//! makes the figure zero, no matter how fast the rest was.
//!
//! Settling is included. After the last row, while background work is due, a second in which the
//! engine neither writes a byte nor uses 1 % of a processor makes the figure zero. The other
//! seconds of settling do not count, because they have no rows to compare.

use std::time::Duration;

use super::sampler::Sample;

/// Rows acknowledged in each second since the start.
#[derive(Clone, Debug, Default)]
pub struct Windows {
    rows: Vec<u64>,
}

impl Windows {
    /// Counts `rows` that were acknowledged `at` this time since the start.
    pub fn record(&mut self, at: Duration, rows: u64) {
        let index = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        if index >= self.rows.len() {
            self.rows.resize(index + 1, 0);
        }
        self.rows[index] += rows;
    }

    /// Returns the rows of each second, including the last one, which is cut short.
    #[must_use]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }
}

/// Returns the slowest window divided by the median window. The first and the last window do not
/// count. `None` if fewer than two windows remain or their median is 0.
#[must_use]
pub fn slowest_to_median(rows: &[u64]) -> Option<f64> {
    let inner = rows.get(1..rows.len().saturating_sub(1)).filter(|inner| inner.len() >= 2)?;
    let mut sorted = inner.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) as f64 / 2.0
    } else {
        sorted[middle] as f64
    };
    (median > 0.0).then(|| sorted[0] as f64 / median)
}

/// Counts the seconds of settling, from `loaded` to `settled`, in which the engine did no work.
#[must_use]
pub fn settling_stalls(series: &[Sample], loaded: Duration, settled: Duration) -> usize {
    let idle = |pair: &[Sample]| {
        let worked = pair[1].cpu_s - pair[0].cpu_s >= 0.01 * (pair[1].t_s - pair[0].t_s);
        pair[1].written_bytes == pair[0].written_bytes && !worked
    };
    series
        .windows(2)
        .filter(|pair| pair[0].t_s >= loaded.as_secs_f64() && pair[1].t_s <= settled.as_secs_f64())
        .filter(|pair| idle(pair))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_are_dropped_and_a_gap_is_a_zero() {
        assert_eq!(slowest_to_median(&[]), None);
        assert_eq!(slowest_to_median(&[5, 5, 5]), None);
        assert_eq!(slowest_to_median(&[1, 100, 50, 80, 2]), Some(50.0 / 80.0));
        assert_eq!(slowest_to_median(&[1, 100, 50, 80, 90, 2]), Some(50.0 / 85.0));
        let mut windows = Windows::default();
        for at in [0, 1, 2, 5, 6] {
            windows.record(Duration::from_millis(at * 1_000 + 500), 10);
        }
        assert_eq!(windows.rows(), [10, 10, 10, 0, 0, 10, 10]);
        assert_eq!(slowest_to_median(windows.rows()), Some(0.0));
    }

    #[test]
    fn only_idle_seconds_inside_settling_are_stalls() {
        let sample = |t_s: f64, written_bytes, cpu_s| Sample {
            t_s,
            rows: 0,
            written_bytes,
            resident_bytes: 0,
            cpu_s,
        };
        let series = [
            sample(1.0, 0, 0.0),
            sample(2.0, 0, 0.0), // idle, but still loading
            sample(3.0, 9, 0.0), // writes
            sample(4.0, 9, 0.5), // computes
            sample(5.0, 9, 0.5), // idle while settling
            sample(6.0, 9, 0.5), // idle after it settled
        ];
        let stalls = settling_stalls(&series, Duration::from_secs(2), Duration::from_secs(5));
        assert_eq!(stalls, 1);
    }
}
