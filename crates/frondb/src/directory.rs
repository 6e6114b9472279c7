//! The directory of a database or of a backup, which may be missing.

use std::path::Path;

use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Result};
use frondb_device::{Modes, PosixDevice, SharedDevice};

/// Opens the directory at `path`; returns `None` if it does not exist.
pub(crate) fn existing(path: &Path, modes: Modes) -> Result<Option<SharedDevice>> {
    match PosixDevice::open(path) {
        Ok(device) => Ok(Some(Arc::new(device.with_modes(modes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
