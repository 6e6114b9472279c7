//! Directories by their paths, for callers that create and remove whole directories.

use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, Mode};
use rustix::io::retry_on_intr;

use frondb_core::{Error, Result};

use super::PosixDevice;
use super::create::set_mode;
use super::error::os_error;
use crate::device::Device;
use crate::modes::Modes;

impl PosixDevice {
    /// Creates a directory at `path`, whose parent exists. The directory survives power loss once
    /// this returns.
    ///
    /// # Errors
    /// `Exists` if the path exists; `NotFound` without the parent; `NoSpace`; `Io`.
    pub fn create_new(path: impl AsRef<Path>, modes: Modes) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let mode = Mode::from_raw_mode(modes.dir());
        retry_on_intr(|| fs::mkdir(path, mode))
            .map_err(|errno| os_error("create directory", &name, errno))?;
        let device = Self::open(path)?.with_modes(modes);
        set_mode(&device.dir, mode, &name);
        match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Self::open(".")?.sync_dir("")?,
            Some(parent) => Self::open(parent)?.sync_dir("")?,
            None => {}
        }
        Ok(device)
    }

    /// Removes the directory at `path` with everything in it; a missing directory is no error.
    ///
    /// # Errors
    /// `Io`.
    pub fn remove_all(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove directory", &path.display().to_string(), &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the directory at `path` if it is empty.
    ///
    /// # Errors
    /// `Io`, including if the directory is not empty.
    pub fn remove_empty(path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let failed = |errno| os_error("remove directory", &path.display().to_string(), errno);
        retry_on_intr(|| fs::rmdir(path)).map_err(failed)
    }

    /// Returns the absolute form of `path`, which need not exist, without links and `..`.
    ///
    /// # Errors
    /// `Io`.
    pub fn resolve(path: impl AsRef<Path>) -> Result<PathBuf> {
        let path = path.as_ref();
        let failed = |error| Error::io("resolve", &path.display().to_string(), &error);
        let mut resolved = std::fs::canonicalize(".").map_err(failed)?;
        for part in path.components() {
            match part {
                Component::ParentDir => drop(resolved.pop()),
                part => resolved.push(part),
            }
            // A path that cannot be resolved cannot be opened, either.
            if let Ok(there) = std::fs::canonicalize(&resolved) {
                resolved = there;
            }
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use frondb_core::ErrorKind;

    use super::*;

    #[test]
    fn links_and_dots_are_resolved_even_in_missing_paths() {
        let top = std::env::temp_dir().join(format!("frondb-resolve-{}", std::process::id()));
        PosixDevice::create(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink(top.join("a"), top.join("link")).unwrap();
        let real = std::fs::canonicalize(&top).unwrap();
        for (path, expected) in [
            ("link/b", "a/b"),
            ("link/../c", "c"),
            ("a/none/../b/x", "a/b/x"),
            ("link/x/./y", "a/x/y"),
        ] {
            assert_eq!(
                PosixDevice::resolve(top.join(path)).unwrap(),
                real.join(expected),
                "{path}"
            );
        }
        let exists = PosixDevice::create_new(top.join("a"), Modes::PRIVATE).unwrap_err();
        assert_eq!(exists.kind(), ErrorKind::Exists);
        PosixDevice::create_new(top.join("new"), Modes::PRIVATE).unwrap();
        PosixDevice::remove_empty(top.join("new")).unwrap();
        PosixDevice::remove_empty(top.join("a")).unwrap_err();
        PosixDevice::remove_all(&top).unwrap();
        PosixDevice::remove_all(&top).unwrap();
        assert!(!top.exists());
    }
}
