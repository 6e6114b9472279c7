//! What unit tests of the crate open: a database in a device, with the options of an open.

use frondb_core::Result;
use frondb_core::clock::SharedClock;
use frondb_core::executor::SharedExecutor;
use frondb_device::SharedDevice;

use crate::db::Db;
use crate::open::Open;
use crate::open::options::EngineOptions;

/// Opens the database in `device`; `log_device` has the log if it is not in a directory of `device`.
pub(crate) fn open_on(
    device: SharedDevice,
    log_device: Option<SharedDevice>,
    options: EngineOptions,
    clock: SharedClock,
    executor: &SharedExecutor,
) -> Result<Db> {
    Open::on(device, log_device, options, clock, executor).map(Db::of)
}
