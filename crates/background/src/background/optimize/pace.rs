//! [`Pace`]: the rate limit of an optimize, in leaves per second.

use std::time::Duration;

use frondb_core::clock::Nanos;

/// Decides when the next leaf may be rewritten.
#[derive(Debug)]
pub(super) struct Pace {
    /// Time between two leaves; zero means no limit.
    interval: Duration,
    /// The time at which the next leaf is due.
    next: Nanos,
}

impl Pace {
    /// Creates a pace of `leaves_per_second`, beginning at `now`; 0 means no limit.
    pub(super) fn new(leaves_per_second: u64, now: Nanos) -> Self {
        let interval = match leaves_per_second {
            0 => Duration::ZERO,
            n => Duration::from_nanos(1_000_000_000 / n),
        };
        Self { interval, next: now }
    }

    /// Takes a leaf if one is due, and returns whether it did. Leaves that became due in the last
    /// second and were not taken can still be taken.
    pub(super) fn take(&mut self, now: Nanos) -> bool {
        if self.interval.is_zero() {
            return true;
        }
        if now < self.next {
            return false;
        }
        let missed = now.since(self.next).saturating_sub(Duration::from_secs(1));
        self.next += missed + self.interval;
        true
    }

    /// Returns the time until the next leaf is due; zero if one is due now.
    pub(super) fn left(&self, now: Nanos) -> Duration {
        self.next.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    #[test]
    fn leaves_come_at_their_times() {
        let mut pace = Pace::new(10, at(0));
        let taken: Vec<u64> = (0..500).filter(|&millis| pace.take(at(millis))).collect();
        assert_eq!(taken, [0, 100, 200, 300, 400]);
        assert_eq!(pace.left(at(450)), Duration::from_millis(50));
    }

    #[test]
    fn a_second_is_made_up_for() {
        let mut pace = Pace::new(10, at(0));
        let taken = (0..100).filter(|_| pace.take(at(60_000))).count();
        assert_eq!(taken, 11);
    }

    #[test]
    fn no_limit_waits_for_nothing() {
        let mut pace = Pace::new(0, at(0));
        assert!((0..1000).all(|_| pace.take(at(5))));
        assert_eq!(pace.left(at(5)), Duration::ZERO);
    }
}
