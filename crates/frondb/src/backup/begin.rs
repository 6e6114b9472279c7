//! The steps before the copy: [`Open::begin_backup`] and [`Backup::fix`].

use std::collections::BTreeMap;
use std::ops::Deref;

use frondb_background::Cut;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::SharedDevice;
use frondb_space::Retention;
use frondb_wal::{KeptSegments, Wal};

use super::history;
use super::list::BackupList;
use super::target::check_empty;
use crate::open::Open;
use crate::open::parts::Parts;

/// Most bytes in the name of an attached file.
const NAME_BYTES_MAX: usize = 1024;
/// Most bytes in a part of the name of an attached file: the limit of the usual file systems.
const PART_BYTES_MAX: usize = 255;

/// A backup that has begun ([`Db::begin_backup`](crate::Db::begin_backup)).
///
/// From the fixed moment on, the database keeps space that it frees, and log files that it no
/// longer needs. So copy the backup soon. Dropping the backup gives it up and leaves the target
/// directory empty.
///
/// Threads: any; the backup may move from one thread to another.
#[derive(Debug)]
pub struct Backup {
    /// The fixed moment; `None` before [`fix`](Self::fix).
    pub(super) moment: Option<Moment>,
    pub(super) target: SharedDevice,
    /// The backup that this one continues; `None` for a full backup.
    pub(super) before: Option<BackupList>,
    /// Limit of bytes that are read from the database per second; 0 means no limit.
    pub(super) bytes_per_second: u64,
    /// Files of the caller, by name.
    pub(super) attached: BTreeMap<String, Vec<u8>>,
    pub(super) open: Arc<Open>,
}

/// The fixed moment of a backup. While this object exists, the space and the log that the backup
/// needs are kept, unless the disk gets full.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) retention: Retention,
    pub(super) segments: KeptSegments<Log>,
    pub(super) cut: Cut,
    /// Dropped last, when nothing is kept for the backup any more.
    _turn: Turn,
}

impl Open {
    /// Begins a backup into the directory that `target` opens or creates, which must be empty, and
    /// writes nothing there. Calls `target` after the checks of this database and of `since`, so
    /// that a refused call leaves no new directory. If `since` is set, the new backup continues
    /// this complete backup of the same database, and has only the data that `since` and the
    /// backups before `since` do not have. [`Backup::fix`] fixes the moment.
    ///
    /// # Errors
    /// `Exists` if the target is not empty; `Invalid` if `since` is of another database, or if this
    /// database was opened read-only; `NotFound`, `Corruption` and `Unsupported` for `since`;
    /// `Poisoned`, `Closed`, `Io`; errors of `target`.
    pub(crate) fn begin_backup(
        self: &Arc<Self>,
        target: impl FnOnce() -> Result<SharedDevice>,
        since: Option<&SharedDevice>,
        bytes_per_second: u64,
    ) -> Result<Backup> {
        drop(self.begin_call()?);
        let before = since.map(BackupList::read).transpose()?;
        if let Some(before) = &before {
            self.check_continues(before)?;
        }
        let target = target()?;
        check_empty(&target)?;
        let (attached, open) = (BTreeMap::new(), Arc::clone(self));
        Ok(Backup { moment: None, target, before, bytes_per_second, attached, open })
    }

    /// Checks that this database may continue the backup `before`.
    fn check_continues(&self, before: &BackupList) -> Result<()> {
        if before.db_id != self.edits.manifest.db_id() {
            return Err(Error::invalid("the backup to continue is of another database"));
        }
        if history::has(&self.device, before.id())? {
            return Ok(());
        }
        let message = "the backup to continue is not one that this database has made: the database is a \
                       copy, or was put back to an older state, since then. Make a full backup";
        Err(Error::invalid(message))
    }

    /// Does the work that a backup has held back: recycles the log, and requests that space is
    /// returned to the file system. In an idle database nothing else would start this work.
    fn make_up_for_what_waited(&self) {
        let Ok(_call) = self.begin_call() else { return };
        let Parts { background, log, .. } = &self.parts;
        if let Err(error) = log.wal.recycle(log.from()) {
            tracing::warn!(%error, "segments of the log that a backup kept stay until the next trim");
        }
        background.touched();
        background.queue.add_maintenance();
    }
}

impl Backup {
    /// Fixes the moment: the backup will have everything that was committed before this call, and
    /// nothing that is committed after it. Writers wait for some milliseconds. A second call fixes
    /// a new moment, and keeps the attached files.
    ///
    /// # Errors
    /// `Busy` if another backup has a moment; `NoSpace`, `Poisoned`, `Closed`, `Io`: no moment is
    /// fixed then.
    pub fn fix(&mut self) -> Result<()> {
        self.moment = None;
        let open = &self.open;
        drop(open.begin_call()?);
        let turn = Turn::take(open)?;
        let retention = open.runs.space.retain()?;
        let segments = KeptSegments::new(Log(Arc::clone(open)));
        let cut = {
            let _call = open.begin_call()?;
            // Sync the log, so that all earlier commits are part of the backup, whatever their
            // durability.
            let synced = segments.wal().sync();
            synced.inspect_err(|error| open.health.poison_if_unknown(error))?;
            open.background.cut()?
        };
        self.moment = Some(Moment { retention, segments, cut, _turn: turn });
        Ok(())
    }

    /// Adds a file to the backup that belongs to the moment but is not in the database, such as a
    /// position in another log. `name` is a relative path; the file will be in the directory
    /// `attached` of the backup. [`Db::verify_backup`](crate::Db::verify_backup) checks it like all
    /// other files; [`Db::restore`](crate::Db::restore) does not copy it.
    ///
    /// # Errors
    /// `Invalid` if `name` is not a relative path without `.`, `..`, line breaks and NUL, has more
    /// than 1024 bytes or a part with more than 255, was given before, or cannot exist beside a
    /// name that was given before (`a` beside `a/b`).
    pub fn attach(&mut self, name: &str, bytes: impl Into<Vec<u8>>) -> Result<()> {
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        let is_path = name.split('/').all(is_part) && !name.contains(['\0', '\n', '\r']);
        if !is_path {
            return Err(Error::invalid(format!("{name:?} is no relative path of a file")));
        }
        if name.len() > NAME_BYTES_MAX || name.split('/').any(|part| part.len() > PART_BYTES_MAX) {
            return Err(Error::invalid(format!(
                "the name of the attached file {name:?} is too long: it may have at most \
                 {NAME_BYTES_MAX} bytes, and each of its parts {PART_BYTES_MAX}"
            )));
        }
        if self.attached.contains_key(name) {
            return Err(Error::invalid(format!("the file {name:?} is attached twice")));
        }
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        let inside = format!("{name}/");
        let below = || self.attached.range(inside.clone()..).next();
        let in_the_way = above.find(|dir| self.attached.contains_key(*dir)).or_else(|| {
            below().map(|(other, _)| other.as_str()).filter(|other| other.starts_with(&inside))
        });
        if let Some(other) = in_the_way {
            return Err(Error::invalid(format!(
                "the files {other:?} and {name:?} cannot both be attached: one would have to be the \
                 directory of the other"
            )));
        }
        self.attached.insert(name.to_owned(), bytes.into());
        Ok(())
    }
}

/// Gives access to the log of an open database, and keeps the database open.
#[derive(Debug)]
pub(super) struct Log(Arc<Open>);

impl Deref for Log {
    type Target = Wal;

    fn deref(&self) -> &Wal {
        &self.0.wal
    }
}

/// The right to make a backup; only one exists at a time. Its drop starts the work that the backup
/// has held back.
#[derive(Debug)]
pub(super) struct Turn(pub(super) Arc<Open>);

impl Turn {
    fn take(open: &Arc<Open>) -> Result<Self> {
        if open.is_backing_up.swap(true, Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Busy, "another backup is being made"));
        }
        Ok(Self(Arc::clone(open)))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.is_backing_up.store(false, Ordering::Release);
        self.0.make_up_for_what_waited();
    }
}
