//! Entry points for the project's own tests: databases in any device, with any clock and threads.
//! The types of their parameters belong to inner crates, so these functions exist only with the
//! feature `testing`.

use frondb_core::Result;
use frondb_core::clock::SharedClock;
use frondb_core::executor::SharedExecutor;
use frondb_device::SharedDevice;

use crate::db::Db;
use crate::open::Open;
use crate::options::Options;
use crate::salvage::{self, SalvageReport};

impl Db {
    /// Opens the database in `device`; `log_device` has the log if it is not in a directory of
    /// `device`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_on(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Self> {
        Open::on(device, log_device, options, clock, executor).map(Self::of)
    }

    /// Opens the readable part of the damaged database in `device`: the first half of
    /// [`salvage`](Self::salvage).
    ///
    /// # Errors
    /// As `salvage`.
    pub fn open_damaged(
        device: SharedDevice,
        log_device: Option<SharedDevice>,
        options: Options,
        clock: SharedClock,
        executor: &SharedExecutor,
    ) -> Result<Damaged> {
        salvage::Damaged::open(device, log_device, options, clock, executor).map(Damaged)
    }
}

/// A damaged database, opened read-only.
#[derive(Debug)]
pub struct Damaged(salvage::Damaged);

impl Damaged {
    /// The second half of [`Db::salvage`].
    ///
    /// # Errors
    /// As `salvage`.
    pub fn save(
        self,
        target: &Db,
        uncertain: bool,
        progress: &mut dyn FnMut(&str, u64, u64) -> bool,
    ) -> Result<SalvageReport> {
        self.0.save(target, uncertain, progress)
    }
}
