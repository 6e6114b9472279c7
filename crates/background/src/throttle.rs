//! A rate limit on the writes of background jobs: a token bucket. After each step, a job takes one
//! token per byte that it wrote, and the bucket may go into debt. Before its next step, the job
//! waits until the debt is paid; it holds no lock meanwhile.
//!
//! Invariant: within any period, jobs write at most the limit times the length of the period, plus
//! the bytes of one full bucket, plus the writes of the steps under way. A waiting job checks the
//! limit again at least every 20 ms, so it soon notices that the limit was lifted or that the
//! database is closing.

use std::time::Duration;

use frondb_core::clock::{Clock, Nanos};
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};

/// The bucket holds at most the tokens that are added in this time.
const BURST: Duration = Duration::from_millis(250);

/// Longest sleep between two checks of the limit.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// A limit on bytes per second. Any thread may use it.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Bytes per second; 0 means no limit.
    limit: AtomicU64,
    bucket: Mutex<Bucket>,
    waited_nanos: AtomicU64,
}

#[derive(Debug, Default)]
struct Bucket {
    /// Bytes that may be written; negative while jobs are in debt.
    tokens: i64,
    /// Time up to which tokens were added.
    filled: Nanos,
}

impl Throttle {
    /// Creates a limit of `limit` bytes per second; 0 means no limit.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), ..Self::default() }
    }

    /// Returns the limit in bytes per second; 0 means no limit.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Sets the limit in bytes per second; 0 means no limit. The debt of earlier writes is
    /// cancelled.
    pub fn set_limit(&self, limit: u64, now: Nanos) {
        let mut bucket = self.bucket.lock();
        *bucket = Bucket { tokens: 0, filled: now };
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns the nanoseconds that jobs of all threads together have waited.
    #[must_use]
    pub fn waited_nanos(&self) -> u64 {
        self.waited_nanos.load(Ordering::Relaxed)
    }

    /// Takes tokens for `bytes` that a job has written.
    pub fn pay(&self, bytes: u64, now: Nanos) {
        let limit = self.limit();
        if limit == 0 || bytes == 0 {
            return;
        }
        let mut bucket = self.bucket.lock();
        bucket.fill(limit, now);
        bucket.tokens = bucket.tokens.saturating_sub_unsigned(bytes);
    }

    /// Returns the time until the debt of the bucket is paid; zero if there is no debt.
    fn debt(&self, now: Nanos) -> Duration {
        let limit = self.limit();
        if limit == 0 {
            return Duration::ZERO;
        }
        let mut bucket = self.bucket.lock();
        bucket.fill(limit, now);
        let debt = u128::from(bucket.tokens.min(0).unsigned_abs());
        let nanos = (debt * 1_000_000_000).div_ceil(u128::from(limit));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Waits until the debt is paid, or `stopped` returns `true`.
    pub fn wait(&self, clock: &dyn Clock, stopped: &mut dyn FnMut() -> bool) {
        if self.limit() == 0 {
            return;
        }
        let begun = clock.now();
        loop {
            let wait = self.debt(clock.now());
            if wait.is_zero() || stopped() {
                break;
            }
            clock.sleep(wait.min(CHECK_EVERY));
        }
        let waited = clock.now().since(begun).as_nanos();
        self.waited_nanos.fetch_add(u64::try_from(waited).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Bucket {
    /// Adds the tokens for the time since the last call, up to `now`.
    fn fill(&mut self, limit: u64, now: Nanos) {
        let bytes = |length: Duration| {
            let bytes = u128::from(limit) * length.as_nanos() / 1_000_000_000;
            i64::try_from(bytes).unwrap_or(i64::MAX)
        };
        let came = bytes(now.since(self.filled));
        if came == 0 {
            // Less than one token: `filled` stays, so that the time counts at the next call.
            return;
        }
        // Advance by the time of whole tokens only, so that the fraction of a token is not lost.
        let nanos = (u128::from(came.unsigned_abs()) * 1_000_000_000).div_ceil(u128::from(limit));
        self.filled += Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.tokens = self.tokens.saturating_add(came).min(bytes(BURST));
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use frondb_core::clock::ManualClock;
    use frondb_core::prng::Prng;

    /// If jobs write as much as they may, the limit holds over every period, and is fully used.
    #[test]
    fn writes_follow_the_rate_limit() {
        let seed = 5;
        println!("seed {seed}");
        let mut prng = Prng::new(seed);
        for limit in [1, 1000, 1 << 20, 100 << 20, 10 << 30] {
            let clock = ManualClock::stepping();
            let throttle = Throttle::new(limit);
            let (mut written, steps) = (0_u64, 500);
            for _ in 0..steps {
                let bytes = prng.below(limit.min(256 << 10) + 1);
                throttle.pay(bytes, clock.now());
                throttle.wait(&clock, &mut || false);
                written += bytes;
                let passed = clock.now().since(Nanos::ZERO).as_nanos();
                let allowed = u128::from(limit) * (passed + BURST.as_nanos()) / 1_000_000_000;
                assert!(u128::from(written) <= allowed + 1, "{written} in {passed} ns at {limit}");
            }
            let least = u128::from(written) * 1_000_000_000 / u128::from(limit);
            let passed = clock.now().since(Nanos::ZERO).as_nanos();
            let slack = CHECK_EVERY.as_nanos() + BURST.as_nanos();
            assert!(passed <= least + slack, "{passed} ns for {written} bytes at {limit}");
            assert!(u128::from(throttle.waited_nanos()) <= passed);
        }
    }

    #[test]
    fn a_limit_that_is_lifted_lets_go_at_once() {
        let clock = ManualClock::stepping();
        let throttle = Throttle::new(1);
        let mut checks = 0;
        throttle.pay(1 << 40, clock.now());
        throttle.wait(&clock, &mut || {
            checks += 1;
            if checks == 3 {
                throttle.set_limit(0, clock.now());
            }
            false
        });
        assert_eq!(checks, 3);
        throttle.pay(1 << 40, clock.now());
        throttle.wait(&clock, &mut || panic!("there is no limit"));
        throttle.set_limit(1, clock.now());
        let mut checks = 0;
        throttle.pay(1 << 40, clock.now());
        throttle.wait(&clock, &mut || {
            checks += 1;
            checks == 2
        });
        assert_eq!(checks, 2, "and the end of the engine ends it");
    }
}
