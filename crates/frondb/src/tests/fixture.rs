//! Opens databases for the unit tests of the crate: in a device, with the options of an open.

use frondb_core::Result;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::ThreadExecutor;
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;
use frondb_testkit::MemoryDevice;

use crate::db::Db;
use crate::options::Options;

/// Options of a test in which nothing happens by itself: the smallest memory, no background threads
/// and no disk space reserved.
pub(crate) fn options() -> Options {
    Options {
        memory_bytes: Options::MEMORY_BYTES_MIN_WITHOUT_THREADS,
        background_threads: 0,
        reserve_bytes: 0,
        ..Options::default()
    }
}

/// Opens the database in `device` with a clock that advances when it is read.
pub(crate) fn open(device: &MemoryDevice, options: Options) -> Result<Db> {
    let clock: SharedClock = Arc::new(ManualClock::stepping());
    let device: SharedDevice = Arc::new(device.clone());
    Db::open_on(device, None, options, clock, &ThreadExecutor::shared())
}
