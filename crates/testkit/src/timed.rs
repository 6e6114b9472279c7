//! A device with known times: a read or write of B bytes takes S + B/W (see [`DeviceTimes`]). It
//! serves a limited number of requests at once, and a limited number of requests and of bytes per
//! second. On a virtual clock the times are exact.

use std::fmt;
use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::Mutex;
use frondb_device::SharedDevice;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};

/// A device with known times.
pub type TimedDevice = Intercepted<Timing>;

/// The times of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceTimes {
    /// S: start-up time of a read or write, and duration of a sync; seconds.
    pub startup_seconds: f64,
    /// W: bandwidth of one request, bytes per second.
    pub bytes_per_second: f64,
    /// P: maximum number of requests served at once; others wait.
    pub at_once: usize,
    /// Maximum requests per second; infinite for no limit.
    pub requests_limit: f64,
    /// Maximum bytes per second; infinite for no limit.
    pub bytes_limit: f64,
    /// Length of a period, seconds. All requests that the limits allow in a period may begin at its
    /// beginning. 0: the limits delay each request by itself.
    pub limit_period_seconds: f64,
}

impl DeviceTimes {
    /// Creates a device without limits.
    #[must_use]
    pub const fn new(startup_seconds: f64, bytes_per_second: f64, at_once: usize) -> Self {
        let (requests_limit, bytes_limit) = (f64::INFINITY, f64::INFINITY);
        let limit_period_seconds = 0.0;
        Self {
            startup_seconds,
            bytes_per_second,
            at_once,
            requests_limit,
            bytes_limit,
            limit_period_seconds,
        }
    }
}

/// Delays every read, write and sync by its time.
pub struct Timing {
    times: DeviceTimes,
    clock: SharedClock,
    queue: Mutex<Queue>,
}

struct Queue {
    /// For each of the P places, the time at which the place is free.
    free_at: Vec<Nanos>,
    /// The time up to which the limits are used up.
    limited_until: Nanos,
}

impl Timing {
    /// Wraps `inner` with the times of `times`, measured by `clock`.
    #[must_use]
    pub fn device(inner: SharedDevice, times: DeviceTimes, clock: SharedClock) -> TimedDevice {
        let now = clock.now();
        let queue = Queue { free_at: vec![now; times.at_once.max(1)], limited_until: now };
        TimedDevice::wrap(inner, Self { times, clock, queue: Mutex::new(queue) })
    }

    /// Returns the time at which a request of `bytes` bytes that is made at `now` ends.
    fn end(&self, now: Nanos, bytes: f64) -> Nanos {
        let times = &self.times;
        let service = times.startup_seconds + bytes / times.bytes_per_second;
        let share = times.requests_limit.recip().max(bytes / times.bytes_limit);
        let mut queue = self.queue.lock();
        let begins = queue.limited_until.max(self.period_of(now));
        queue.limited_until = begins + Duration::from_secs_f64(share);
        // Without periods the limit delays the end of a request; with periods, its beginning.
        let (begin, mut end) = match times.limit_period_seconds > 0.0 {
            true => (self.period_of(begins).max(now), now),
            false => (now, queue.limited_until),
        };
        if let Some(place) = queue.free_at.iter_mut().min() {
            *place = (*place).max(begin) + Duration::from_secs_f64(service);
            end = end.max(*place);
        }
        end
    }

    /// Returns the beginning of the period that contains a time.
    fn period_of(&self, time: Nanos) -> Nanos {
        match (self.times.limit_period_seconds * 1e9) as u64 {
            0 => time,
            period => Nanos(time.0 - time.0 % period),
        }
    }
}

impl fmt::Debug for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Timing({:?})", self.times)
    }
}

impl Interceptor for Timing {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let bytes = match call.operation {
            Operation::Read | Operation::Write => call.len as f64,
            Operation::Sync => 0.0,
            _ => return Verdict::Pass,
        };
        let now = self.clock.now();
        self.clock.sleep(self.end(now, bytes) - now);
        Verdict::Pass
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use crate::MemoryDevice;
    use frondb_core::Result;
    use frondb_core::clock::{Clock, ManualClock};
    use frondb_core::sync::Arc;
    use frondb_device::{Device, OpenOptions};

    use super::*;

    #[test]
    fn requests_take_their_time() -> Result<()> {
        let clock = Arc::new(ManualClock::stepping());
        let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
        let times = DeviceTimes { bytes_limit: 1e6, ..DeviceTimes::new(0.001, 1e7, 2) };
        let device = Timing::device(Arc::new(MemoryDevice::new()), times, shared);
        let file = device.open("f", OpenOptions::CREATE_NEW)?;
        file.write_at(0, &[0; 100])?;
        assert_eq!(clock.now(), Nanos(1_010_000));
        file.write_at(0, &[0; 2000])?;
        assert_eq!(clock.now(), Nanos(3_010_000), "limited to 1 MB/s");
        file.sync()?;
        assert_eq!(clock.now(), Nanos(4_010_000));
        Ok(())
    }

    #[test]
    fn limits_with_periods_let_bursts_through() -> Result<()> {
        let clock = Arc::new(ManualClock::stepping());
        let shared: SharedClock = Arc::<ManualClock>::clone(&clock);
        let times = DeviceTimes {
            requests_limit: 20.0,
            limit_period_seconds: 0.1,
            ..DeviceTimes::new(0.001, 1e9, 1)
        };
        let device = Timing::device(Arc::new(MemoryDevice::new()), times, shared);
        let file = device.open("f", OpenOptions::CREATE_NEW)?;
        let mut ends = Vec::new();
        for _ in 0..5 {
            file.write_at(0, &[])?;
            ends.push(clock.now().0 / 1_000_000);
        }
        assert_eq!(ends, [1, 2, 101, 102, 201]);
        Ok(())
    }
}
