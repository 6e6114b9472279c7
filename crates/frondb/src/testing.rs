//! Entry points for the project's own tests: [`TestDb`] opens a database in any device, with any
//! clock and threads. Its parameters have types of inner crates, so this module exists only in unit
//! tests and with the feature `testing`.

use frondb_core::Result;
use frondb_core::clock::{ManualClock, SharedClock};
use frondb_core::executor::{SharedExecutor, ThreadExecutor};
use frondb_core::sync::Arc;
use frondb_device::SharedDevice;

use crate::backup::{make::BackupReport, options::BackupOptions, restore, restore::RestoreReport};
use crate::backup::{verify, verify::BackupContents};
use crate::db::Db;
use crate::open::Open;
use crate::options::Options;
use crate::salvage::{self, SalvageReport};

impl Options {
    /// Returns the options of a test in which nothing happens by itself: the smallest memory (4
    /// MiB), no background threads and no disk space reserved.
    #[must_use]
    pub fn small() -> Self {
        Self {
            memory_bytes: Self::MEMORY_BYTES_MIN_WITHOUT_THREADS,
            background_threads: 0,
            reserve_bytes: 0,
            ..Self::default()
        }
    }
}

/// Opens a database for a test. By default, the options are [`Options::small`], and the clock
/// begins at zero and advances only by sleeps.
#[derive(Debug)]
#[must_use = "open() opens the database"]
pub struct TestDb {
    device: SharedDevice,
    log_device: Option<SharedDevice>,
    options: Options,
    clock: SharedClock,
    executor: SharedExecutor,
}

impl TestDb {
    /// Creates a builder for the database in `device`, with the defaults.
    pub fn on(device: SharedDevice) -> Self {
        Self {
            device,
            log_device: None,
            options: Options::small(),
            clock: Arc::new(ManualClock::stepping()),
            executor: ThreadExecutor::shared(),
        }
    }

    /// Puts the log into `device`, not into a directory of the database's device.
    pub fn log_device(self, device: SharedDevice) -> Self {
        Self { log_device: Some(device), ..self }
    }

    /// Sets all options.
    pub fn options(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Sets the clock.
    pub fn clock(self, clock: SharedClock) -> Self {
        Self { clock, ..self }
    }

    /// Sets a clock that never advances, so that no work becomes due by time.
    pub fn still(self) -> Self {
        self.clock(Arc::new(ManualClock::new()))
    }

    /// Sets the executor, which starts the background threads.
    pub fn executor(self, executor: SharedExecutor) -> Self {
        Self { executor, ..self }
    }

    /// Opens the database.
    ///
    /// # Errors
    /// As [`Db::open`].
    pub fn open(self) -> Result<Db> {
        let Self { device, log_device, options, clock, executor } = self;
        Open::on(device, log_device, options, clock, &executor).map(Db::of)
    }
}

impl Db {
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
        self.shared().begin_backup(|| Ok(target), since, options.bytes_per_second)?.copy(progress)
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

    /// Stows all trees that nothing uses at this moment, as background work does from time to time.
    /// Returns how many trees are stowed.
    #[must_use]
    pub fn stow_trees(&self) -> usize {
        let open = self.shared();
        open.begin_call().map_or(0, |_call| open.background.stow_all())
    }
}

/// A damaged database, opened read-only.
#[derive(Debug)]
pub struct Damaged(salvage::Damaged);

impl Damaged {
    /// Performs the second half of [`Db::salvage`].
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
