//! The directory that a salvage writes to.
//!
//! The new database is made in `TO/unfinished-salvage`. Once it is complete and durable its files
//! are moved up to `TO`, the superblock last. A directory without a superblock is not a database,
//! so `TO` is not one until it is complete, even after a crash. The new database is not made next
//! to `TO`, because `TO` may be a mount point, or the only directory that the user may write to.
//! Only one thread uses the target.

use std::path::{Path, PathBuf};

use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, Modes, PosixDevice};
use frondb_engine::{LOG_DIR, SUPER_FILE};

use crate::db::existing;

/// The subdirectory of the new database until it is complete.
const UNFINISHED: &str = "unfinished-salvage";

/// The target of a salvage in progress. If dropped before [`finish`](Self::finish) it removes what
/// it made.
#[derive(Debug)]
pub(super) struct Target {
    to: PathBuf,
    /// Whether this salvage created `to`.
    is_new: bool,
    is_finished: bool,
}

impl Target {
    /// Checks that `to` may become the new database; changes nothing.
    ///
    /// # Errors
    /// `Exists`, `Invalid` if it shares a directory with the damaged database or its log, `Io`.
    pub(super) fn check(to: &Path, modes: Modes, from: &Path, log: Option<&Path>) -> Result<()> {
        let log = log.map_or_else(|| from.join(LOG_DIR), Path::to_owned);
        let resolved = PosixDevice::resolve(to)?;
        let database = PosixDevice::resolve(from)?;
        for dir in [database.clone(), PosixDevice::resolve(log)?] {
            let shares = resolved.starts_with(&dir) || dir.starts_with(&resolved);
            // For `to` == `from` the check below has the better message: a database is there.
            if shares && resolved != database {
                let (to, dir) = (to.display(), dir.display());
                return Err(Error::invalid(format!(
                    "{to} and {dir} overlap: give a directory outside of the database and its log"
                )));
            }
        }
        let there = existing(to, modes)?.map_or(Ok(Vec::new()), |device| device.list(""))?;
        let message = match there.iter().any(|name| name == UNFINISHED) {
            _ if there.is_empty() => return Ok(()),
            true => "holds an unfinished salvage: if none is running, remove the directory",
            false => "exists and is not empty",
        };
        Err(Error::new(ErrorKind::Exists, format!("{} {message}", to.display())))
    }

    /// Creates the target directory, and in it that of the new database.
    ///
    /// # Errors
    /// `Exists` if another salvage was faster; `NoSpace`; `Io`.
    pub(super) fn make(to: &Path, modes: Modes) -> Result<Self> {
        let is_new = existing(to, modes)?.is_none();
        PosixDevice::create_with(to, modes)?;
        match PosixDevice::create_new(to.join(UNFINISHED), modes) {
            Ok(_) => Ok(Self { to: to.to_owned(), is_new, is_finished: false }),
            Err(error) => {
                if is_new {
                    // Fails if another salvage has put something there.
                    let _ = PosixDevice::remove_empty(to);
                }
                Err(error)
            }
        }
    }

    /// Where the new database is made.
    pub(super) fn path(&self) -> PathBuf {
        self.to.join(UNFINISHED)
    }

    /// Makes `to` the new database. The database in [`path`](Self::path) must be closed and
    /// durable.
    ///
    /// # Errors
    /// `Io`. `to` is then no database, or the complete one.
    pub(super) fn finish(mut self) -> Result<()> {
        self.is_finished = true;
        let device = PosixDevice::open(&self.to)?;
        let mut names = device.list(UNFINISHED)?;
        names.sort_by_key(|name| name == SUPER_FILE);
        for name in names {
            if name == SUPER_FILE {
                device.sync_dir("")?;
            }
            device.rename(&format!("{UNFINISHED}/{name}"), &name)?;
        }
        device.sync_dir("")?;
        PosixDevice::remove_empty(self.path())?;
        device.sync_dir("")
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // If removing fails, what remains is no database, and the next salvage reports it.
        let _ = PosixDevice::remove_all(self.path());
        if self.is_new {
            let _ = PosixDevice::remove_empty(&self.to);
        }
    }
}
