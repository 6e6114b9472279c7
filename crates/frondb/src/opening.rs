//! Opening and creating a database: its directories, the results of recovery, and the socket on
//! which its owner answers. The other modules of [`Db`] do not depend on this one.

use std::path::Path;

use frondb_core::clock::SystemClock;
use frondb_core::executor::ThreadExecutor;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Modes, PosixDevice, SharedDevice};
use frondb_wal::owner;

use crate::attachment::answers;
use crate::db::Db;
use crate::directory::existing;
use crate::open::Open;
use crate::open::layout::LOG_DIR;
use crate::open::recovery::Recovery;
use crate::options::Options;

impl Db {
    /// Opens the database in a directory, or creates one there.
    ///
    /// # Errors
    /// `Busy` ("in use by pid N") if it is open already; `NotFound` if there is no database and the
    /// options do not create one; `Exists` if there is one and the options demand a new one;
    /// `Invalid` for bad options, if the directory holds other files, or if the log is not in the
    /// log directory; `Unsupported` if a newer version wrote it; `Corruption`; `Io`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        options.check()?;
        let modes = options.modes()?;
        let read_only = options.read_only;
        let may_make = (options.create || options.create_new) && !read_only;
        let found = existing(path, modes)?;
        let is_there = match &found {
            Some(device) => Open::is_there(device, &options)? || read_only,
            None if may_make => false,
            None => {
                let message = format!("there is no FronDB database in {}", path.display());
                return Err(Error::new(ErrorKind::NotFound, message));
            }
        };
        // Check the log directory first: if another database owns it, nothing has been created yet.
        let log = match &options.log_dir {
            None => None,
            Some(dir) => {
                if !is_there {
                    check_outside(dir, path)?;
                }
                Some(log_device(dir, is_there, modes)?)
            }
        };
        let device = match found {
            Some(device) => device,
            None => Arc::new(PosixDevice::create_with(path, modes)?),
        };
        let (clock, executor) = (SystemClock::shared(), ThreadExecutor::shared());
        let log_dir = options.log_dir.clone();
        let answers = options.attachable && !read_only;
        let open = Open::on(device, log, options, Arc::clone(&clock), &executor)?;
        // Resolve the paths: a relative path changes its meaning with the working directory.
        let paths = std::iter::once(path.to_owned()).chain(log_dir);
        let directories = paths.map(PosixDevice::resolve).collect::<Result<_>>()?;
        let db = Self::of(open).in_directories(directories);
        if !answers {
            return Ok(db);
        }
        let device = PosixDevice::open(path)?.with_modes(modes);
        match answers::start(&device, &db, clock, &executor) {
            Ok(owner) => Ok(db.answering(owner)),
            // Continue: not every file system has sockets, and the database works without one.
            Err(error) => {
                tracing::warn!(%error, "other processes cannot ask this one about the database");
                Ok(db)
            }
        }
    }

    /// Returns the results of the recovery when the database was opened.
    #[must_use]
    pub fn recovery(&self) -> &Recovery {
        &self.shared().recovery
    }
}

/// Checks that the log directory of a new database in `path` does not lie in the database's
/// directory, which holds only files of the engine. Accepts the directory itself and the default
/// directory of the log.
fn check_outside(dir: &Path, path: &Path) -> Result<()> {
    let (log, database) = (PosixDevice::resolve(dir)?, PosixDevice::resolve(path)?);
    match log.strip_prefix(&database) {
        Ok(inside) if inside != Path::new("") && inside != Path::new(LOG_DIR) => {
            Err(Error::invalid(format!(
                "the log directory {} lies in the directory of the database: give a directory \
                 outside of {}, or none, and the log is in {}",
                dir.display(),
                path.display(),
                path.join(LOG_DIR).display()
            )))
        }
        _ => Ok(()),
    }
}

/// Opens the log directory of an existing database (`is_there`). For a new database, checks that
/// the directory is free, or creates it.
fn log_device(dir: &Path, is_there: bool, modes: Modes) -> Result<SharedDevice> {
    match existing(dir, modes)? {
        Some(device) if is_there => Ok(device),
        Some(device) => owner::check_free(&device).map(|()| device),
        None if is_there => Err(owner::missing(&dir.display().to_string())),
        None => Ok(Arc::new(PosixDevice::create_with(dir, modes)?)),
    }
}
