//! A device wrapper that limits bytes and calls per second.
//!
//! The device is modelled as one queue. A call takes the longer of its bytes divided by the
//! bandwidth and one divided by the calls per second, and begins when the previous call has ended.
//! The caller sleeps until its call would have ended. So threads share the limits fairly, an idle
//! period earns no credit for a later burst, and the times are exact on a manual clock. A sleep
//! that overshoots loses no bandwidth: the end of each call is computed from the end of the
//! previous call, so the next call waits less.

use std::fmt;
use std::time::Duration;

use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::Mutex;
use frondb_device::SharedDevice;
use frondb_device::intercept::{Call, Intercepted, Interceptor, Operation, Verdict};

/// A device with limits.
pub type ThrottleDevice = Intercepted<Throttle>;

/// The limits of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Bytes read and written per second; zero for no limit.
    pub bytes_per_second: u64,
    /// Reads, writes and syncs per second; zero for no limit.
    pub calls_per_second: u64,
}

/// The queue of a [`ThrottleDevice`].
pub struct Throttle {
    limits: Limits,
    clock: SharedClock,
    /// End of the last call in the queue.
    busy_until: Mutex<Nanos>,
}

impl Throttle {
    /// Wraps `inner`, limited by `limits` on the time of `clock`.
    #[must_use]
    pub fn over(inner: SharedDevice, limits: Limits, clock: SharedClock) -> ThrottleDevice {
        let busy_until = Mutex::new(clock.now());
        ThrottleDevice::wrap(inner, Self { limits, clock, busy_until })
    }

    fn cost(&self, bytes: u64) -> Duration {
        let per = |amount: u64, limit: u64| match limit {
            0 => Duration::ZERO,
            limit => {
                let nanos = u128::from(amount) * 1_000_000_000 / u128::from(limit);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        };
        per(bytes, self.limits.bytes_per_second).max(per(1, self.limits.calls_per_second))
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Throttle({:?})", self.limits)
    }
}

impl Interceptor for Throttle {
    fn before(&self, call: &Call<'_>) -> Verdict {
        let bytes = match call.operation {
            Operation::Read | Operation::Write => call.len,
            Operation::Sync | Operation::SyncDir => 0,
            _ => return Verdict::Pass,
        };
        let now = self.clock.now();
        let end = {
            let mut busy_until = self.busy_until.lock();
            *busy_until = (*busy_until).max(now) + self.cost(bytes);
            *busy_until
        };
        if end > now {
            self.clock.sleep(end - now);
        }
        Verdict::Pass
    }
}
