//! Entry points for the project's own tests: databases in any device, with any clock and threads.
//! The types of their parameters belong to inner crates, so these functions exist only with the
//! feature `testing`.

use frondb_core::Result;
use frondb_core::clock::SharedClock;
use frondb_core::executor::SharedExecutor;
use frondb_device::SharedDevice;

use crate::backup::{make::BackupReport, options::BackupOptions, restore, restore::RestoreReport};
use crate::backup::{verify, verify::BackupContents};
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

    /// As [`backup`](Self::backup), from device to device.
    ///
    /// # Errors
    /// As `backup`.
    pub fn backup_to(
        &self,
        target: &SharedDevice,
        since: Option<&SharedDevice>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupReport> {
        let target = SharedDevice::clone(target);
        self.shared().begin_backup(target, since, options.bytes_per_second)?.copy(progress)
    }

    /// As [`restore`](Self::restore), from device to device.
    ///
    /// # Errors
    /// As `restore`. Files that were written before an error stay; they are no database.
    pub fn restore_from(
        chain: &[SharedDevice],
        target: &SharedDevice,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<RestoreReport> {
        restore::restore(chain, target, None, progress)
    }

    /// As [`verify_backup`](Self::verify_backup), for a backup in a device.
    ///
    /// # Errors
    /// As `verify_backup`.
    pub fn verify_backup_in(
        backup: &SharedDevice,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupContents> {
        verify::verify_backup(backup, progress)
    }

    /// Stows all trees that nothing uses at this moment, which background work does by itself, and
    /// returns how many trees are stowed.
    #[must_use]
    pub fn stow_trees(&self) -> usize {
        let open = self.shared();
        open.begin_call().map_or(0, |_call| open.parts.background.stow_all())
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
