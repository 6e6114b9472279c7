//! [`BackupOptions`].

use std::path::{Path, PathBuf};

use frondb_core::Result;
use frondb_device::Modes;

/// Options of a backup. The default is a full backup without a limit.
///
/// ```
/// let of_tonight = frondb::BackupOptions::new().since("/backups/sunday").bytes_per_second(50 << 20);
/// # let _ = of_tonight;
/// ```
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    pub(crate) bytes_per_second: u64,
    pub(super) since: Option<PathBuf>,
    file_mode: Option<u32>,
}

impl BackupOptions {
    /// Returns the defaults: a full backup, without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the directory of the complete backup, of the same database, that the new backup
    /// continues. The new backup is then incremental: it has only the data that the earlier backups
    /// do not have.
    #[must_use]
    pub fn since(mut self, backup: impl Into<PathBuf>) -> Self {
        self.since = Some(backup.into());
        self
    }

    /// Limits the bytes that are read from the database per second; 0, the default, means no limit.
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }

    /// Sets the permission bits of the files of the backup, from `0o600`, the default, to `0o666`;
    /// directories get an `x` for each `r`.
    #[must_use]
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.file_mode = Some(mode);
        self
    }

    /// Returns the backup to continue, the limit in bytes per second, and the permission bits.
    pub(crate) fn parts(&self) -> (Option<&Path>, u64, u32) {
        let mode = self.file_mode.unwrap_or(Modes::PRIVATE.file());
        (self.since.as_deref(), self.bytes_per_second, mode)
    }

    pub(super) fn modes(&self) -> Result<Modes> {
        self.file_mode.map_or(Ok(Modes::PRIVATE), |mode| Modes::new(mode, None))
    }
}
