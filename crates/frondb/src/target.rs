//! [`Target`]: the directory in which a salvage or a restore makes a database.
//!
//! The new database is made in a subdirectory (`unfinished-salvage`, `unfinished-restore`). Once
//! the database is complete and durable, its files are moved up, the superblock last. A directory
//! without a superblock is not a database, so the target is not one until it is complete, even
//! after a crash. The new database is not made next to the target, because the target may be a
//! mount point, or the only directory that the user may write to. Only one thread uses the target.

use std::path::{Path, PathBuf};

use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Device, Modes, PosixDevice};
use frondb_manifest::SUPER_FILE;

use crate::directory::{existing, not_empty};

/// The operation that makes the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Maker {
    Salvage,
    Restore,
}

impl Maker {
    fn noun(self) -> &'static str {
        match self {
            Self::Salvage => "salvage",
            Self::Restore => "restore",
        }
    }

    /// Returns words for the source directories, for messages.
    fn sources(self) -> &'static str {
        match self {
            Self::Salvage => "the database and its log",
            Self::Restore => "the backups",
        }
    }

    /// Returns the subdirectory that has the new database until it is complete.
    fn unfinished(self) -> &'static str {
        match self {
            Self::Salvage => "unfinished-salvage",
            Self::Restore => "unfinished-restore",
        }
    }
}

/// The target of a salvage or a restore in progress. Its drop removes the directories that
/// [`make`](Self::make) created, unless [`finish`](Self::finish) was called.
#[derive(Debug)]
pub(crate) struct Target {
    to: PathBuf,
    maker: Maker,
    /// Whether `make` created `to`.
    is_new: bool,
    is_finished: bool,
}

impl Target {
    /// Checks that `to` may become the new database; changes nothing. `others` are the source
    /// directories.
    ///
    /// # Errors
    /// `Exists` if `to` is not empty; `Invalid` if `to` lies inside one of `others` or contains
    /// one; `Io`.
    pub(crate) fn check(to: &Path, modes: Modes, maker: Maker, others: &[PathBuf]) -> Result<()> {
        check_apart(to, others, maker.sources())?;
        let there = existing(to, modes)?.map_or(Ok(Vec::new()), |device| device.list(""))?;
        let to = to.display().to_string();
        let Some(mut message) = not_empty(&to, &there) else { return Ok(()) };
        if there.iter().any(|name| name == maker.unfinished()) {
            let noun = maker.noun();
            message = format!(
                "{to} holds an unfinished {noun}: if none is running, remove the directory"
            );
        }
        Err(Error::new(ErrorKind::Exists, message))
    }

    /// Creates the target directory, and in it the subdirectory for the new database.
    ///
    /// # Errors
    /// `Exists` if another call was faster; `NoSpace`; `Io`.
    pub(crate) fn make(to: &Path, modes: Modes, maker: Maker) -> Result<Self> {
        let is_new = existing(to, modes)?.is_none();
        PosixDevice::create_with(to, modes)?;
        match PosixDevice::create_new(to.join(maker.unfinished()), modes) {
            Ok(_) => Ok(Self { to: to.to_owned(), maker, is_new, is_finished: false }),
            Err(error) => {
                if is_new {
                    // Fails if another call has put files into `to`.
                    let _ = PosixDevice::remove_empty(to);
                }
                Err(error)
            }
        }
    }

    /// Returns the subdirectory in which the new database is made.
    pub(crate) fn path(&self) -> PathBuf {
        self.to.join(self.maker.unfinished())
    }

    /// Makes `to` the new database. The database in [`path`](Self::path) must be closed and
    /// durable.
    ///
    /// # Errors
    /// `Io`. After an error, `to` is either no database or the complete database.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.is_finished = true;
        let device = PosixDevice::open(&self.to)?;
        let unfinished = self.maker.unfinished();
        let mut names = device.list(unfinished)?;
        names.sort_by_key(|name| name == SUPER_FILE);
        for name in names {
            if name == SUPER_FILE {
                device.sync_dir("")?;
            }
            device.rename(&format!("{unfinished}/{name}"), &name)?;
        }
        device.sync_dir("")?;
        PosixDevice::remove_empty(self.path())?;
        device.sync_dir("")
    }
}

/// Checks that `to` neither lies inside one of `others` nor contains one; `what` names `others` in
/// the message. Accepts a `to` that equals one of `others`: the check that `to` is empty has the
/// better message.
///
/// # Errors
/// `Invalid`; `Io`.
pub(crate) fn check_apart(to: &Path, others: &[PathBuf], what: &str) -> Result<()> {
    let resolved = PosixDevice::resolve(to)?;
    let dirs = others.iter().map(PosixDevice::resolve).collect::<Result<Vec<_>>>()?;
    let shares = |dir: &&PathBuf| resolved.starts_with(dir) || dir.starts_with(&resolved);
    match dirs.iter().find(shares) {
        Some(dir) if !dirs.contains(&resolved) => {
            let (to, dir) = (to.display(), dir.display());
            let message = format!("{to} and {dir} overlap: give a directory outside of {what}");
            Err(Error::invalid(message))
        }
        _ => Ok(()),
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        // If removing fails, the remaining files are no database, and the next call reports them.
        let _ = PosixDevice::remove_all(self.path());
        if self.is_new {
            let _ = PosixDevice::remove_empty(&self.to);
        }
    }
}
