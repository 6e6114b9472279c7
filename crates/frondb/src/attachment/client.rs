//! [`Attachment`]: asks the owner of a database, the process that has it open.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::backup::make::BackupReport;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::PosixDevice;

use super::format::{
    ANSWER_BYTES_MAX, BACKUP, DONE, ERROR, Fields, Frame, MAGIC, PROGRESS, PROMETHEUS, SOCKET,
    STATS, TREE, error_in, receive, send,
};
use crate::backup::options::BackupOptions;
use crate::db::Db;

/// Asks another process about a database that it has open, if that process allows questions
/// ([`Options::attachable`](crate::Options::attachable)). Each call makes a connection of its own.
///
/// ```
/// use frondb::{BackupOptions, Db, Options};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let (path, copy) = (dir.path().join("db"), dir.path().join("copy"));
/// let db = Db::open(&path, Options::default().attachable(true))?;
///
/// // In another process:
/// let attached = Db::attach(&path)?;
/// let stats = attached.stats()?;
/// assert!(stats.database.iter().any(|(name, _)| name == "commits"));
/// attached.backup(&copy, &BackupOptions::new(), &mut |_, _| true)?;
/// # db.close()
/// # }
/// ```
#[derive(Debug)]
pub struct Attachment {
    device: PosixDevice,
}

/// The statistics of a database that another process has open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct AttachedStats {
    /// Statistics and latencies of the database: name and value.
    pub database: Vec<(String, u64)>,
    /// Statistics of each tree, ordered by the names of the trees.
    pub trees: Vec<AttachedTree>,
    /// The statistics and latencies of the database as a readable page.
    pub page: String,
}

/// The statistics of a tree of a database that another process has open.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct AttachedTree {
    /// The tree's name.
    pub name: String,
    /// The tree's statistics: name and value.
    pub stats: Vec<(String, u64)>,
    /// The tree's statistics as a readable page.
    pub page: String,
}

impl Db {
    /// Prepares questions to the process that has the database in `path` open. Connects once to
    /// check that the process accepts connections.
    ///
    /// # Errors
    /// `NotFound` if there is no such directory, or if no process answers: none has the database
    /// open, or the one that has does not allow questions; `Busy` if the process accepts no
    /// connection for 30 s; `Io`, for example without permission.
    pub fn attach(path: impl AsRef<Path>) -> Result<Attachment> {
        let device = PosixDevice::open(path)?;
        drop(device.connect(SOCKET)?);
        Ok(Attachment { device })
    }
}

impl Attachment {
    /// Returns the statistics of the database and of its trees.
    ///
    /// # Errors
    /// `NotFound` if the process has ended; `Closed`, `Busy`, `Io`.
    pub fn stats(&self) -> Result<AttachedStats> {
        let mut trees = Vec::new();
        let mut answer = self.ask(STATS, &Fields::default(), &mut |frame| {
            if frame.what == TREE {
                let (name, page) = (frame.text()?, frame.text()?);
                trees.push(AttachedTree { name, page, stats: frame.numbers()? });
            }
            Ok(())
        })?;
        let (page, database) = (answer.text()?, answer.numbers()?);
        Ok(AttachedStats { database, trees, page })
    }

    /// Returns statistics and latencies as [`Db::prometheus`] does.
    ///
    /// # Errors
    /// As [`stats`](Self::stats).
    pub fn prometheus(&self) -> Result<String> {
        self.ask(PROMETHEUS, &Fields::default(), &mut |_| Ok(()))?.text()
    }

    /// Makes the other process copy the database into the directory `to`, with the permissions of
    /// that process; its user owns the files. If this process ends, the other process cancels the
    /// backup. Otherwise as [`Db::backup`].
    ///
    /// # Errors
    /// As [`Db::backup`]; `NotFound` if the other process has ended, or has made the backup in a
    /// file system that this process does not see; `Io` if the other process runs as another user
    /// and this process does not run as root.
    pub fn backup(
        &self,
        to: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupReport> {
        let (since, bytes_per_second, mode) = options.parts();
        let since = since.map(absolute).transpose()?.unwrap_or_default();
        let fields = Fields::default().number(bytes_per_second).number(mode.into());
        let to = absolute(to.as_ref())?;
        let fields = fields.bytes(raw(&to)).bytes(raw(&since));
        let mut answer = self.ask(BACKUP, &fields, &mut |frame| {
            if frame.what == PROGRESS && !progress(frame.number()?, frame.number()?) {
                return Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled"));
            }
            Ok(())
        })?;
        check_seen(&to)?;
        Ok(BackupReport {
            bytes: answer.number()?,
            database_bytes: answer.number()?,
            log_bytes: answer.number()?,
            log_end: answer.number()?,
            is_incremental: answer.number()? != 0,
        })
    }

    /// Sends a question and returns the last frame of the answer; `each` gets the earlier frames.
    fn ask(
        &self,
        what: u8,
        fields: &Fields,
        each: &mut dyn FnMut(&mut Frame) -> Result<()>,
    ) -> Result<Frame> {
        let connection = self.device.connect(SOCKET)?;
        let failed = |error| Error::io("write to", "the socket of the database", &error);
        if what == BACKUP {
            // The owner may send nothing for a long time, for example while it syncs all files.
            connection.wait_for_ever().map_err(failed)?;
        }
        let mut out = &connection;
        // An owner that refuses the connection does not read the question, so sending may fail:
        // read its answer nevertheless.
        let sent = out.write_all(MAGIC).and_then(|()| send(out, what, fields));
        loop {
            let received = receive(&connection, ANSWER_BYTES_MAX);
            let mut frame = match (received, &sent) {
                (Ok(frame), _) => frame,
                (Err(_), Err(error)) => {
                    return Err(Error::io("write to", "the socket of the database", error));
                }
                (Err(error), Ok(())) => return Err(error),
            };
            match frame.what {
                DONE => return Ok(frame),
                ERROR => return Err(error_in(&mut frame)?),
                // Progress or a tree; callers ignore other frames, which a newer version may send.
                _ => each(&mut frame)?,
            }
        }
    }
}

/// Checks that this process finds the new backup: the other process may have a root directory or a
/// `/tmp` of its own.
fn check_seen(to: &Path) -> Result<()> {
    match PosixDevice::open(to) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "the process that has the database open made the backup in its own {}, which this one does not \
                 see (a container, or PrivateTmp of systemd): give a directory that both see",
                to.display()
            ),
        )),
        // A user without access to the directory cannot check it, but the backup may be sound.
        _ => Ok(()),
    }
}

/// Returns the absolute form of a path: the other process has a working directory of its own.
fn absolute(path: &Path) -> Result<PathBuf> {
    let failed = |error| Error::io("find", &path.display().to_string(), &error);
    std::path::absolute(path).map_err(failed)
}

fn raw(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}
