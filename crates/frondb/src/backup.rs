//! Backups of an open database while it is used, and making databases from backups.
//!
//! ```text
//!  begin.rs    the state of the manifest and the end of the log, taken together      milliseconds
//!  cut.rs      the extents that this state, and the log up to that end, name
//!  make.rs     the log and these extents, copied while writers continue              no lock
//!  history.rs  the names of backups, noted in the database
//!  list.rs     `BACKUP`: the copied files and extents, with checksums                last of all
//!  restore.rs  a database from a full backup and the incremental ones after it
//!  verify.rs   whether a backup still has the copied bytes
//! ```
//!
//! # Why the copy is consistent
//! A run and a large value never change, so an extent that the cut names keeps its bytes until its
//! space is reused, and [`Retention`](frondb_space::Retention) prevents that while the backup is
//! made. A crash at the moment of the cut would have left the same state of the manifest and the
//! same log up to a durable record. So recovery can open a restored backup, and no other code is
//! needed.
//!
//! # The directory of a backup
//! | file | content |
//! |---|---|
//! | `BACKUP` | the list; it exists only if the backup is complete |
//! | `BACKUP.unfinished` | exists while the backup is being made, and if it was given up |
//! | `manifest` | the state of the manifest: the edits of a snapshot |
//! | `wal/` | the part of the log that belongs to that state |
//! | `attached/` | files of the caller, such as definitions of tables |
//! | `data-NNNN.fdb` | extents, at their addresses in the database; the rest is holes |
//!
//! An incremental backup has the extents that the backup before it does not have. Runs are compared
//! by id, which is never reused in one history of a database, and by the checksum of their
//! metadata. Large values have no id and are compared by checksum. A restored database has a
//! database id of its own, and a database continues only backups that it has made itself.

pub(crate) mod begin;
mod cut;
mod history;
mod list;
pub(crate) mod make;
mod meter;
pub(crate) mod options;
pub(crate) mod restore;
mod target;
pub(crate) mod verify;

use std::path::{Path, PathBuf};

use crate::backup::make::BackupReport;
use crate::backup::restore::RestoreReport;
use crate::backup::verify::BackupContents;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{Modes, PosixDevice, SharedDevice};

use crate::db::Db;
use crate::directory::existing;
use crate::options::Options;
use crate::target::{Maker, Target, check_apart};
pub use begin::Backup;
pub(crate) use history::HISTORY_FILE;
#[cfg(any(test, feature = "testing"))]
pub(crate) use list::check_list;
pub use options::BackupOptions;

impl Db {
    /// Copies the database into the directory `to`, while others read and write it. The backup has
    /// everything that was committed before the call, and nothing that is committed after the first
    /// call of `progress`: its moment is fixed between the two. Writers wait for some milliseconds
    /// while it is fixed. [`restore`](Self::restore) makes a database of the backup.
    ///
    /// `to` must be empty or missing, and lie outside of the database and its log. While the backup
    /// is made, space that the database frees is not reused before the backup has read it, so the
    /// files may grow by the amount of data that is rewritten meanwhile. If less than 128 MiB of
    /// the disk is left, the backup is given up, so that writers can continue. A backup that fails
    /// leaves a file `BACKUP.unfinished` and cannot be restored.
    ///
    /// `progress` receives the bytes read and the bytes to read, as far as they are known; the call
    /// ends with `Cancelled` when `progress` returns `false`. Reads of the backup bypass the caches
    /// of the database and, if possible, of the operating system.
    ///
    /// Threads: any; one backup at a time.
    ///
    /// # Errors
    /// `Exists` if `to` has files; `Invalid` if `to` overlaps the database, its log or the backup
    /// to continue, if this database has not made that backup, or if the database was opened
    /// read-only; `NotFound`, `Corruption` and `Unsupported` for the backup to continue;
    /// `Corruption` also if a run of the database is damaged; `Busy` if another backup is being
    /// made; `Cancelled`; `NoSpace` on either side; `Poisoned`; `Closed`; `Io`.
    ///
    /// ```
    /// # use frondb::{BackupOptions, Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let (path, full, inc, copy) =
    /// #     (dir.path().join("db"), dir.path().join("full"), dir.path().join("inc"), dir.path().join("copy"));
    /// let db = Db::open(&path, Options::default())?;
    /// let tree = db.create_tree("t", TreeOptions::default())?;
    /// tree.put(b"a", b"1")?;
    /// db.backup(&full, &BackupOptions::new(), &mut |_, _| true)?;
    /// tree.put(b"b", b"2")?;
    /// db.backup(&inc, &BackupOptions::new().since(&full), &mut |_, _| true)?;
    ///
    /// Db::restore(&[&full, &inc], &copy, &Options::default(), &mut |_, _| true)?;
    /// let copy = Db::open(&copy, Options::default())?;
    /// assert_eq!(copy.open_tree("t")?.get(b"b")?.as_deref(), Some(&b"2"[..]));
    /// # copy.close()?;
    /// # db.close()
    /// # }
    /// ```
    pub fn backup(
        &self,
        to: impl AsRef<Path>,
        options: &BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupReport> {
        self.begin_backup(to, options)?.copy(progress)
    }

    /// Begins a backup into `to` whose moment is fixed later, by [`Backup::fix`]. A program that
    /// must hold back its writers does so only during that call, for some milliseconds, and can add
    /// its own files of the same moment ([`Backup::attach`]). [`Backup::copy`] then makes the
    /// backup. If `options` names a backup to continue, this call reads that backup's list of
    /// files. The call also creates the directory `to`.
    ///
    /// Threads: any; only one backup at a time can have a fixed moment, until that backup is copied
    /// or dropped.
    ///
    /// # Errors
    /// As [`backup`](Self::backup), except `Busy`.
    ///
    /// ```
    /// # use frondb::{BackupOptions, Db, Options, TreeOptions};
    /// # fn main() -> frondb::Result<()> {
    /// # let dir = frondb_testkit::TempDir::new("doc");
    /// # let (path, to) = (dir.path().join("db"), dir.path().join("backup"));
    /// # let db = Db::open(&path, Options::default())?;
    /// let mut backup = db.begin_backup(&to, &BackupOptions::new())?;
    /// backup.fix()?; // while writers wait
    /// backup.attach("position", b"of this moment")?;
    /// backup.copy(&mut |_, _| true)?;
    /// assert_eq!(std::fs::read(to.join("attached/position")).unwrap(), b"of this moment");
    /// # db.close()
    /// # }
    /// ```
    pub fn begin_backup(&self, to: impl AsRef<Path>, options: &BackupOptions) -> Result<Backup> {
        let (to, modes) = (to.as_ref(), options.modes()?);
        check_apart(to, self.directories(), "the database and its log")?;
        let since = options.since.as_deref().map(backup_device).transpose()?;
        if let Some(since) = &options.since {
            check_apart(to, std::slice::from_ref(since), "the backup that it continues")?;
        }
        let target = || Ok(Arc::new(PosixDevice::create_with(to, modes)?) as SharedDevice);
        self.shared().begin_backup(target, since.as_ref(), options.bytes_per_second)
    }

    /// Makes a database in the directory `to` from `backups`: a full backup, and the incremental
    /// backups after it in the order in which they were made. The database has the state of the
    /// last backup, and is opened like any other. All bytes are checked with their checksums.
    ///
    /// `to` must be empty or missing, and lie outside of the backups. Until the restore is
    /// complete, `to` has only a directory `unfinished-restore`; a failed call removes that
    /// directory, a killed process leaves it. Of `options` only the permission bits are used. The
    /// log is in `to`, too: to have it elsewhere, move the directory `wal` before the database is
    /// opened.
    ///
    /// `progress` receives the bytes written and the total; the call ends with `Cancelled` when
    /// `progress` returns `false`.
    ///
    /// # Errors
    /// `NotFound` if a directory has no complete backup; `Invalid` if no backup is given, or if the
    /// backups do not continue each other or overlap `to`; `Exists` if `to` has files; `Corruption`
    /// if a backup is damaged, with its directory; `Unsupported`; `Cancelled`; `NoSpace`; `Io`.
    pub fn restore(
        backups: &[impl AsRef<Path>],
        to: impl AsRef<Path>,
        options: &Options,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<RestoreReport> {
        let (to, modes) = (to.as_ref(), options.modes()?);
        let paths: Vec<PathBuf> = backups.iter().map(|path| path.as_ref().to_owned()).collect();
        let chain = paths.iter().map(|path| backup_device(path)).collect::<Result<Vec<_>>>()?;
        Target::check(to, modes, Maker::Restore, &paths)?;
        let target = Target::make(to, modes, Maker::Restore)?;
        let device: SharedDevice = Arc::new(PosixDevice::open(target.path())?.with_modes(modes));
        let report = restore::restore(&chain, &device, None, progress)?;
        drop(device);
        target.finish()?;
        Ok(report)
    }

    /// Reads the backup in a directory, and checks all its bytes with their checksums;
    /// [`BackupContents::faults`] lists the faults. An incremental backup does not contain the data
    /// that it shares with earlier backups: verify each of these, too.
    ///
    /// `progress` receives the bytes read and the total; the call ends with `Cancelled` when
    /// `progress` returns `false`.
    ///
    /// # Errors
    /// `NotFound` if there is no complete backup; `Corruption` if its list is damaged;
    /// `Unsupported`; `Cancelled`; `Io`.
    pub fn verify_backup(
        backup: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupContents> {
        verify::verify_backup(&backup_device(backup.as_ref())?, progress)
    }
}

/// Opens the directory of a backup.
fn backup_device(path: &Path) -> Result<SharedDevice> {
    existing(path, Modes::PRIVATE)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no directory {}", path.display()))
    })
}
