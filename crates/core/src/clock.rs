//! The engine's monotonic clock, which tests can control.
//!
//! The engine does not read the operating system's clock directly. Pacing, periodic syncs,
//! latencies and the ageing of cursors use a [`SharedClock`], so a test can advance the time by
//! hand and never has to sleep. Only the wear report, which shows dates, uses the wall clock
//! ([`unix_millis`]). Nothing else may depend on the wall clock, because it can jump.
//!
//! Threads may share any clock.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::sync::{Arc, Condvar, Mutex};

/// A point in time: nanoseconds since the origin of the clock. 64 bits last for 584 years.
///
/// Arithmetic saturates, because a wrong clock must not crash the engine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);
    /// A point in time later than any that a clock returns.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time since `earlier`; zero if `earlier` is later than this point.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

impl Add<Duration> for Nanos {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(length)))
    }
}

impl AddAssign<Duration> for Nanos {
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Sub<Duration> for Nanos {
    type Output = Self;
    fn sub(self, length: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(length)))
    }
}

impl Sub for Nanos {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

fn saturating_nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// A monotonic clock.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, which is never before a time that this clock returned earlier to
    /// any thread.
    fn now(&self) -> Nanos;

    /// Returns once at least `length` has passed on this clock.
    fn sleep(&self, length: Duration);

    /// Returns the total time in which the calling thread was runnable but had no processor; zero
    /// if unknown. The call takes some microseconds.
    fn processor_wait(&self) -> Duration {
        Duration::ZERO
    }
}

/// A clock that the parts of the engine share.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's monotonic clock; its origin is the moment of its creation.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// Creates a clock that is at zero now.
    #[must_use]
    pub fn new() -> Self {
        Self { origin: Instant::now() }
    }

    /// Creates a shared clock that is at zero now.
    #[must_use]
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        Nanos(saturating_nanos(self.origin.elapsed()))
    }

    fn sleep(&self, length: Duration) {
        std::thread::sleep(length);
    }

    #[cfg(target_os = "linux")]
    fn processor_wait(&self) -> Duration {
        // The file has the nanoseconds on a processor, the nanoseconds of waiting for one, and the
        // number of time slices.
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split_ascii_whitespace().nth(1).and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }
}

/// A clock that only moves when a test advances it.
///
/// A sleeping thread waits until another thread has advanced the clock to its wake-up time, so a
/// test controls each wait of the code. [`ManualClock::sleepers`] counts the sleeping threads. A
/// single-threaded test uses [`ManualClock::stepping`], a clock that a sleep itself advances.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ManualState>,
    moved: Condvar,
    stepping: bool,
}

#[derive(Debug, Default)]
struct ManualState {
    now: Nanos,
    sleepers: usize,
}

impl ManualClock {
    /// Creates a clock at zero, on which sleeping threads wait for [`ManualClock::advance`].
    #[must_use]
    pub fn new() -> Self {
        Self { state: Mutex::default(), moved: Condvar::new(), stepping: false }
    }

    /// Creates a clock at zero that each sleep advances by its length, without blocking.
    #[must_use]
    pub fn stepping() -> Self {
        Self { stepping: true, ..Self::new() }
    }

    /// Advances the clock, and wakes the threads whose wake-up time has come.
    pub fn advance(&self, length: Duration) {
        self.state.lock().now += length;
        self.moved.notify_all();
    }

    /// Returns the number of threads that sleep on this clock.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.state.lock().sleepers
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        self.state.lock().now
    }

    fn sleep(&self, length: Duration) {
        if self.stepping {
            return self.advance(length);
        }
        let mut state = self.state.lock();
        let until = state.now + length;
        state.sleepers += 1;
        while state.now < until {
            self.moved.wait(&mut state);
        }
        state.sleepers -= 1;
    }
}

/// Returns the milliseconds since 1970 by the wall clock; zero if that clock is set to a time
/// before 1970. Only for dates that are shown, never to measure time.
#[must_use]
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Nanos(5) - Nanos(9), Duration::ZERO);
        assert_eq!(Nanos(9) - Nanos(5), Duration::from_nanos(4));
        assert_eq!(Nanos::MAX + Duration::MAX, Nanos::MAX);
        assert_eq!(Nanos(5) - Duration::MAX, Nanos::ZERO);
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::new();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn a_sleeper_on_a_manual_clock_waits_for_its_time() {
        let clock = Arc::new(ManualClock::new());
        let sleeper = Arc::clone(&clock);
        let thread = std::thread::spawn(move || {
            sleeper.sleep(Duration::from_secs(10));
            sleeper.now()
        });
        while clock.sleepers() == 0 {
            std::thread::yield_now();
        }
        clock.advance(Duration::from_secs(9));
        assert_eq!(clock.sleepers(), 1, "the sleeper woke a second early");
        clock.advance(Duration::from_secs(1));
        assert_eq!(thread.join().unwrap(), Nanos::ZERO + Duration::from_secs(10));
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn a_stepping_clock_jumps() {
        let clock = ManualClock::stepping();
        clock.sleep(Duration::from_millis(3));
        clock.sleep(Duration::from_millis(4));
        assert_eq!(clock.now(), Nanos(7_000_000));
    }
}
