//! The directory of a database or of a backup, which may be missing.

use std::path::Path;

use frondb_core::sync::Arc;
use frondb_core::{ErrorKind, Result};
use frondb_device::{Modes, PosixDevice, SharedDevice};

/// The directory that a file system such as ext4 has in its root.
const LOST_AND_FOUND: &str = "lost+found";

/// Returns the error message for the directory at `place`, which must be empty and has the files
/// `names`; `None` if there are none. Also refuses a directory that has only `lost+found`, the root
/// of a file system: whenever that file system is not mounted, the directory is empty, and a new
/// database would be made in it.
pub(crate) fn not_empty(place: &str, names: &[String]) -> Option<String> {
    let other = names.iter().find(|name| *name != LOST_AND_FOUND);
    let what = match (names, other) {
        ([], _) => return None,
        (_, Some(name)) => format!("it has {name:?}); give an empty directory"),
        (_, None) => format!(
            "it has {LOST_AND_FOUND:?}, so it is the root of a file system); give a new directory \
             below it"
        ),
    };
    Some(format!("{place} is not empty ({what}"))
}

/// Opens the directory at `path`; returns `None` if it does not exist.
pub(crate) fn existing(path: &Path, modes: Modes) -> Result<Option<SharedDevice>> {
    match PosixDevice::open(path) {
        Ok(device) => Ok(Some(Arc::new(device.with_modes(modes)))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
