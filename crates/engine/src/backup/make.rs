//! [`Engine::backup`].

use std::collections::HashMap;

use frondb_background::Cut;
use frondb_core::budget::Part;
use frondb_core::checksum::{Xxh3, xxh3};
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_space::{Extent, Retention};

use super::cut::{Named, named_extents};
use super::history;
use super::list::{BackupList, ExtentEntry, FileEntry, MANIFEST_FILE, RunName, UNFINISHED_FILE};
use super::meter::Meter;
use super::target::{DataFiles, PIECE_BYTES, for_each_piece};
use crate::engine::Engine;
use crate::layout::LOG_DIR;

/// How a backup is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BackupOptions {
    /// The most bytes to read from the database in a second; 0 means no limit.
    pub bytes_per_second: u64,
}

/// What a backup has copied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupReport {
    /// Bytes that the backup holds: extents, the log and the state of the manifest.
    pub bytes: u64,
    /// Bytes of the extents that the database had, those of earlier backups included.
    pub database_bytes: u64,
    /// Bytes of the log among `bytes`.
    pub log_bytes: u64,
    /// The end of the log in the backup: commits before this position are in it.
    pub log_end: u64,
    /// Whether it continues another backup.
    pub is_incremental: bool,
}

/// The extents of the backup before, for an incremental one.
type Before<'a> = HashMap<Extent, &'a ExtentEntry>;

impl Engine {
    /// Copies the database as of now into the directory `target`, which has to be empty, while others
    /// use it. `since` is a complete backup of this database: the new one then holds only what that
    /// one does not. `progress` gets the bytes read and all bytes to read that are known so far, first
    /// once the state is fixed; it returns `false` to cancel.
    ///
    /// # Errors
    /// `Exists` if the target is not empty; `Invalid` if `since` is of another database, and for a
    /// database that was opened read-only; `Busy` if another backup is being made; `Cancelled`;
    /// `NoSpace` if the target is full, or if the database's disk got full: the space that the backup
    /// keeps then goes to the writers. `NotFound` and `Corruption` of `since`; `Poisoned`, `Closed`,
    /// `Io`. After an error the target has a file that says that the backup is not complete, unless
    /// the fault came after it was complete; the database is as it was.
    pub fn backup(
        &self,
        target: &SharedDevice,
        since: Option<&SharedDevice>,
        options: BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupReport> {
        drop(self.begin_call()?);
        let Some(_only) = self.backing_up.try_lock() else {
            return Err(Error::new(ErrorKind::Busy, "another backup is being made"));
        };
        let db_id = self.background().jobs.edits.manifest.db_id();
        let before = since.map(BackupList::read).transpose()?;
        if let Some(before) = &before {
            self.check_continues(before, db_id)?;
        }
        // Dropped after the retention, whatever happens.
        let _waited = Waited(self);
        let retention = self.txns.reads.runs.space.retain()?;
        begin(target)?;
        let meter = Meter::new(self, options.bytes_per_second, progress);
        let mut copy =
            Copying { engine: self, target, retention, meter, files: Vec::new(), log_bytes: 0 };
        copy.make(db_id, before.as_ref())
    }

    /// Checks that an incremental backup may continue `before`.
    fn check_continues(&self, before: &BackupList, db_id: u128) -> Result<()> {
        if before.db_id != db_id {
            return Err(Error::invalid("the backup to continue is of another database"));
        }
        if history::has(&self.device, before.id())? {
            return Ok(());
        }
        let message = "the backup to continue is not one that this database has made: the database is a \
                       copy, or was put back to an older state, since then. Make a full backup";
        Err(Error::invalid(message))
    }

    /// Durably notes a backup in the database, and everything that the backup may have seen of it: the
    /// id of a run that a power failure takes back would be used again.
    fn remember(&self, name: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let secured = self.background().jobs.edits.manifest.secure_appended();
        secured.inspect_err(|error| self.health().poison_if_unknown(error))?;
        history::add(&self.device, name)
    }

    /// Lets the work go on that a backup has kept back: the log that was not recycled, and the space
    /// that was not returned to the file system. An idle database has nothing else that would.
    fn make_up_for_what_waited(&self) {
        let (background, Ok(_call)) = (self.background(), self.begin_call()) else { return };
        let log = &background.jobs.log;
        if let Err(error) = log.wal.recycle(log.from()) {
            tracing::warn!(%error, "segments of the log that a backup kept stay until the next trim");
        }
        background.touched();
        background.queue.add_maintenance();
    }
}

/// Makes up for what a backup has kept back, when it ends in any way.
struct Waited<'a>(&'a Engine);

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        self.0.make_up_for_what_waited();
    }
}

fn report(list: &BackupList, log_bytes: u64) -> BackupReport {
    let manifest = list.files.iter().filter(|file| file.name == MANIFEST_FILE);
    let manifest: u64 = manifest.map(|file| file.bytes).sum();
    BackupReport {
        bytes: list.here_bytes() + manifest + log_bytes,
        database_bytes: list.extent_bytes(),
        log_bytes,
        log_end: list.log.1.get(),
        is_incremental: list.since.is_some(),
    }
}

/// Durably marks an empty directory as one whose backup is not complete.
fn begin(target: &SharedDevice) -> Result<()> {
    if let Some(name) = target.list("")?.first() {
        let place = target.describe();
        let message = format!("{place} is not empty (it has {name:?}); give an empty directory");
        return Err(Error::new(ErrorKind::Exists, message));
    }
    let file = target.open(UNFINISHED_FILE, OpenOptions::CREATE_NEW)?;
    file.write_at(0, b"This backup is being made, or was given up. It cannot be restored.\n")?;
    file.sync()?;
    target.sync_dir("")
}

/// A backup that is being made.
struct Copying<'a> {
    engine: &'a Engine,
    target: &'a SharedDevice,
    retention: Retention,
    meter: Meter<'a>,
    files: Vec<FileEntry>,
    /// Bytes of the log that were copied.
    log_bytes: u64,
}

impl Copying<'_> {
    fn make(&mut self, db_id: u128, before: Option<&BackupList>) -> Result<BackupReport> {
        let cut = self.fix_state()?;
        let named = self.named(&cut, db_id)?;
        let known = before.map(BackupList::by_extent).unwrap_or_default();
        let extents = self.copy_extents(&named, &known)?;
        let list = BackupList {
            db_id,
            since: before.map(BackupList::id),
            log: (cut.start, cut.end),
            files: std::mem::take(&mut self.files),
            extents,
        };
        self.engine.remember(list.id())?;
        list.write(self.target)?;
        // The list decides; the other file is only for readers.
        let _ = self.target.remove(UNFINISHED_FILE).and_then(|()| self.target.sync_dir(""));
        Ok(report(&list, self.log_bytes))
    }

    /// Fixes the state that the backup will have, and copies the parts of it that change: the log
    /// and the state of the manifest.
    fn fix_state(&mut self) -> Result<Cut> {
        let engine = self.engine;
        let wal = &engine.background().jobs.log.wal;
        let segments = wal.keep_segments();
        let cut = {
            let _call = engine.begin_call()?;
            // What was committed before the call is in the backup, whatever its durability.
            wal.sync().inspect_err(|error| engine.health().poison_if_unknown(error))?;
            engine.background().cut()?
        };
        self.meter.expect(cut.end.get() - cut.start.get())?;
        let log = self.target.subdevice(LOG_DIR)?;
        let (meter, log_bytes) = (&mut self.meter, &mut self.log_bytes);
        segments.copy(&log, cut.start, cut.end, &mut |bytes| {
            *log_bytes += bytes;
            meter.read(bytes)
        })?;
        drop(segments);
        let file = self.target.open(MANIFEST_FILE, OpenOptions::CREATE_NEW)?;
        file.write_at(0, &cut.manifest)?;
        file.sync()?;
        let bytes = cut.manifest.len() as u64;
        let checksum = xxh3(&cut.manifest);
        self.files.push(FileEntry { name: MANIFEST_FILE.to_owned(), bytes, checksum });
        Ok(cut)
    }

    /// The extents that the backup needs; the others are no longer kept.
    fn named(&mut self, cut: &Cut, db_id: u128) -> Result<Named> {
        let engine = self.engine;
        let log = self.target.subdevice(LOG_DIR)?;
        let clock = Arc::clone(&engine.txns.reads.clock);
        let options = engine.options.wal();
        let named = named_extents(&cut.manifest, &log, options, db_id, cut.end, clock)?;
        for name in log.list("")? {
            self.files.push(entry_of(&log, &name)?);
        }
        self.retention.only(named.keys().copied());
        Ok(named)
    }

    fn copy_extents(&mut self, named: &Named, known: &Before<'_>) -> Result<Vec<ExtentEntry>> {
        let is_new = |(extent, run): &(&Extent, &Option<RunName>)| {
            same_run(known, **extent, **run).is_none()
        };
        self.meter.expect(named.iter().filter(is_new).map(|(extent, _)| extent.bytes()).sum())?;
        let mut to = DataFiles::to_write(self.target, self.engine.options.direct_io);
        let budget = &self.engine.txns.reads.budget;
        let _charged = budget.reserve(Part::Other, PIECE_BYTES as u64);
        let mut buf = Buf::zeroed(PIECE_BYTES);
        let mut entries = Vec::with_capacity(named.len());
        for (&extent, &run) in named {
            let entry = match same_run(known, extent, run) {
                Some(entry) => ExtentEntry { is_here: false, ..*entry },
                None => self.copy_extent(extent, run, known, &mut buf, &mut to)?,
            };
            entries.push(entry);
            self.retention.done(extent);
        }
        to.sync()?;
        // Nothing that was read was used again in the meantime.
        self.engine.health().check()?;
        Ok(entries)
    }

    fn copy_extent(
        &mut self,
        extent: Extent,
        run: Option<RunName>,
        known: &Before<'_>,
        buf: &mut Buf,
        to: &mut DataFiles<'_>,
    ) -> Result<ExtentEntry> {
        let known = known.get(&extent).filter(|entry| run.is_none() && entry.run.is_none());
        if let Some(known) = known
            && self.read(extent, buf, &mut |_, _| Ok(()))? == known.checksum
        {
            self.check_retention()?;
            return Ok(ExtentEntry { is_here: false, ..**known });
        }
        let checksum = self.read(extent, buf, &mut |at, piece| to.write(extent, at, piece))?;
        self.check_retention()?;
        Ok(ExtentEntry { extent, run, checksum, is_here: true })
    }

    /// Passes the pieces of an extent of the database to `take`; returns the checksum of the extent.
    fn read(
        &mut self,
        extent: Extent,
        buf: &mut Buf,
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (space, meter) = (&self.engine.txns.reads.runs.space, &mut self.meter);
        let read = &mut |at, piece: &mut [u8]| {
            space.read(extent, at, piece)?;
            meter.read(piece.len() as u64)
        };
        let checksum = for_each_piece(extent, buf, read, take);
        // What is no longer kept may be cut off the file: the reason is not damage.
        checksum.or_else(|error| self.check_retention().and(Err(error)))
    }

    fn check_retention(&self) -> Result<()> {
        if self.retention.is_lost() {
            let message = "the disk of the database got full, and the space that the backup kept \
                           went to the writers: the backup is given up";
            return Err(Error::new(ErrorKind::NoSpace, message));
        }
        Ok(())
    }
}

/// The entry of the backup before for an extent of the same run: runs never change.
fn same_run<'a>(
    known: &Before<'a>,
    extent: Extent,
    run: Option<RunName>,
) -> Option<&'a ExtentEntry> {
    let run = run?;
    known.get(&extent).copied().filter(|entry| entry.run == Some(run))
}

/// The entry of a file of the log that was copied.
fn entry_of(log: &SharedDevice, name: &str) -> Result<FileEntry> {
    let file = log.open(name, OpenOptions::READ)?;
    let bytes = file.len()?;
    let (mut checksum, mut at) = (Xxh3::new(), 0);
    let mut buf = vec![0; PIECE_BYTES];
    while at < bytes {
        let piece = &mut buf[..(bytes - at).min(PIECE_BYTES as u64) as usize];
        file.read_exact_at(at, piece)?;
        checksum.update(piece);
        at += piece.len() as u64;
    }
    Ok(FileEntry { name: format!("{LOG_DIR}/{name}"), bytes, checksum: checksum.finish() })
}
