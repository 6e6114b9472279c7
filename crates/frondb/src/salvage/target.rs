//! The directory that a salvage writes to.
//!
//! The new database is made in `TO/unfinished-salvage`. When all of it is durable its files are moved up to `TO`, the
//! superblock last: a directory without one opens as no database. So `TO` is no database until it is whole, also
//! after a crash. It is not made beside `TO`, because `TO` may be a mount point, or the only directory that the
//! user may write to. For one thread.

use std::path::{Path, PathBuf};

use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, Modes, PosixDevice};
use frondb_engine::{LOG_DIR, SUPER_FILE};

use crate::db::existing;

/// Where the new database is until it is whole.
const UNFINISHED: &str = "unfinished-salvage";

/// A salvage under way; dropped before [`finish`](Self::finish) it takes away what it made.
#[derive(Debug)]
pub(super) struct Target {
    to: PathBuf,
    /// `to` was not there before.
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
            // A database that is there already is the better reason.
            if shares && resolved != database {
                let (to, dir) = (to.display(), dir.display());
                return Err(Error::invalid(format!(
                    "{to} and {dir} lie one in the other: give a directory apart from the database and its log"
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

    /// Makes the directory, and in it that of the new database.
    ///
    /// # Errors
    /// `Exists` if another salvage comes before; `NoSpace`; `Io`.
    pub(super) fn make(to: &Path, modes: Modes) -> Result<Self> {
        let is_new = existing(to, modes)?.is_none();
        PosixDevice::create_with(to, modes)?;
        match PosixDevice::create_new(to.join(UNFINISHED), modes) {
            Ok(_) => Ok(Self { to: to.to_owned(), is_new, is_finished: false }),
            Err(error) => {
                if is_new {
                    // It stays if another salvage has put something there.
                    let _ = PosixDevice::remove_empty(to);
                }
                Err(error)
            }
        }
    }

    /// Where to make the new database.
    pub(super) fn path(&self) -> PathBuf {
        self.to.join(UNFINISHED)
    }

    /// Makes `to` the new database. REQUIRES: what was made in [`path`](Self::path) is closed and durable.
    ///
    /// # Errors
    /// `Io`. Then `to` opens as no database, or as the whole one.
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
        // What cannot be removed is no database, and the next salvage names it.
        let _ = PosixDevice::remove_all(self.path());
        if self.is_new {
            let _ = PosixDevice::remove_empty(&self.to);
        }
    }
}
