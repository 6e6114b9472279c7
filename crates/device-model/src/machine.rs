//! The resources of the machine that a measurement uses, which a test can replace.

use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::executor::{SharedExecutor, ThreadExecutor};

/// Clock, threads and counters.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The clock that times the requests.
    pub clock: SharedClock,
    /// Starts the threads that make the requests.
    pub executor: SharedExecutor,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// The bytes that this process has caused to be read from devices so far; `None` if the system
    /// does not count them.
    pub device_reads: fn() -> Option<u64>,
}

impl Machine {
    /// Returns the machine on which this process runs.
    #[must_use]
    pub fn this() -> Self {
        Self {
            clock: SystemClock::shared(),
            executor: ThreadExecutor::shared(),
            memory_bytes: frondb_device::memory_bytes(),
            device_reads: frondb_device::bytes_read_from_devices,
        }
    }
}
