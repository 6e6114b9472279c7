//! [`Engine::backup`].

use std::collections::HashMap;

use frondb_background::{Cut, Throttle};
use frondb_core::checksum::{Xxh3, xxh3};
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result, RunId};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_space::{Extent, Retention};

use super::cut::{Named, named_extents};
use super::list::{BackupList, ExtentEntry, FileEntry, MANIFEST_FILE, UNFINISHED_FILE};
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
    /// one does not. `progress` gets the bytes read and all bytes to read, first once the state is
    /// fixed; it returns `false` to cancel.
    ///
    /// # Errors
    /// `Exists` if the target is not empty; `Invalid` if `since` is of another database; `Busy` if another
    /// backup is being made; `Cancelled`; `NoSpace` if the target is full, or if the database's disk
    /// got full: the space that the backup keeps then goes to the writers. `NotFound` and `Corruption`
    /// of `since`; `Poisoned`, `Closed`, `Io`. After an error the target has a file that says that
    /// the backup is not complete, and the database is as it was.
    pub fn backup(
        &self,
        target: &SharedDevice,
        since: Option<&SharedDevice>,
        options: BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<BackupReport> {
        let db_id = self.background().jobs.edits.manifest.db_id();
        let before = since.map(BackupList::read).transpose()?;
        if before.as_ref().is_some_and(|before| before.db_id != db_id) {
            return Err(Error::invalid("the backup to continue is of another database"));
        }
        let retention = self.txns.reads.runs.space.retain()?;
        begin(target)?;
        let mut copy = Copying { engine: self, target, retention, files: Vec::new(), log_bytes: 0 };
        let cut = copy.fix_state(db_id)?;
        let named = copy.named(&cut, db_id)?;
        let known = before.as_ref().map(BackupList::by_extent).unwrap_or_default();
        let extents = copy.copy_extents(&named, &known, options, progress)?;
        let log_bytes = copy.log_bytes;
        let list = BackupList {
            db_id,
            since: before.as_ref().map(BackupList::id),
            log: (cut.start, cut.end),
            files: copy.files,
            extents,
        };
        list.write(target)?;
        target.remove(UNFINISHED_FILE)?;
        target.sync_dir("")?;
        Ok(report(&list, log_bytes))
    }
}

fn report(list: &BackupList, log_bytes: u64) -> BackupReport {
    let manifest = list.files.iter().filter(|file| file.name == MANIFEST_FILE);
    let manifest: u64 = manifest.map(|file| file.bytes).sum();
    let here = list.extents.iter().filter(|entry| entry.is_here);
    let here: u64 = here.map(|entry| entry.extent.bytes()).sum();
    BackupReport {
        bytes: here + manifest + log_bytes,
        database_bytes: list.extents.iter().map(|entry| entry.extent.bytes()).sum(),
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
    files: Vec<FileEntry>,
    /// Bytes of the log that were copied.
    log_bytes: u64,
}

impl Copying<'_> {
    /// Fixes the state that the backup will have, and copies the parts of it that change: the log
    /// and the state of the manifest.
    fn fix_state(&mut self, db_id: u128) -> Result<Cut> {
        let engine = self.engine;
        let wal = &engine.background().jobs.log.wal;
        let _call = engine.begin_call()?;
        let segments = wal.keep_segments();
        // What was committed before the call is in the backup, whatever its durability.
        wal.sync().inspect_err(|error| engine.health().poison_if_unknown(error))?;
        let cut = engine.background().cut()?;
        let log = self.target.subdevice(LOG_DIR)?;
        let mut log_bytes = 0;
        segments.copy(&log, cut.start, cut.end, &mut |bytes| {
            log_bytes += bytes;
            engine.health().check()
        })?;
        self.log_bytes = log_bytes;
        drop(segments);
        let file = self.target.open(MANIFEST_FILE, OpenOptions::CREATE_NEW)?;
        file.write_at(0, &cut.manifest)?;
        file.sync()?;
        let bytes = cut.manifest.len() as u64;
        let checksum = xxh3(&cut.manifest);
        self.files.push(FileEntry { name: MANIFEST_FILE.to_owned(), bytes, checksum });
        debug_assert_eq!(wal.db_id(), db_id);
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

    fn copy_extents(
        &self,
        named: &Named,
        known: &Before<'_>,
        options: BackupOptions,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Vec<ExtentEntry>> {
        let total: u64 = named
            .iter()
            .filter(|(extent, run)| same_run(known, **extent, **run).is_none())
            .map(|(extent, _)| extent.bytes())
            .sum();
        let mut reader = Reader {
            engine: self.engine,
            throttle: Throttle::new(options.bytes_per_second),
            buf: Buf::zeroed(PIECE_BYTES),
            done: 0,
            total,
            progress,
        };
        reader.report()?;
        let mut to = DataFiles::to_write(self.target, self.engine.options.direct_io);
        let mut entries = Vec::with_capacity(named.len());
        for (&extent, &run) in named {
            let entry = match same_run(known, extent, run) {
                Some(entry) => ExtentEntry { is_here: false, ..*entry },
                None => self.copy_extent(extent, run, known, &mut reader, &mut to)?,
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
        &self,
        extent: Extent,
        run: Option<RunId>,
        known: &Before<'_>,
        reader: &mut Reader<'_>,
        to: &mut DataFiles<'_>,
    ) -> Result<ExtentEntry> {
        let known = known.get(&extent).filter(|entry| run.is_none() && entry.run.is_none());
        if let Some(known) = known
            && reader.read(extent, &mut |_, _| Ok(()))? == known.checksum
        {
            self.check_retention()?;
            return Ok(ExtentEntry { is_here: false, ..**known });
        }
        let checksum = reader.read(extent, &mut |at, piece| to.write(extent, at, piece))?;
        self.check_retention()?;
        Ok(ExtentEntry { extent, run, checksum, is_here: true })
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
fn same_run<'a>(known: &Before<'a>, extent: Extent, run: Option<RunId>) -> Option<&'a ExtentEntry> {
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

/// Reads extents of the database, within the limit, and reports the progress.
struct Reader<'a> {
    engine: &'a Engine,
    throttle: Throttle,
    buf: Buf,
    done: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Reader<'_> {
    /// Passes the pieces of an extent to `take`; returns the checksum of the extent.
    fn read(
        &mut self,
        extent: Extent,
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let mut buf = std::mem::replace(&mut self.buf, Buf::zeroed(0));
        let checksum = for_each_piece(
            extent,
            &mut buf,
            &mut |at, piece| self.read_piece(extent, at, piece),
            take,
        );
        self.buf = buf;
        checksum
    }

    fn read_piece(&mut self, extent: Extent, at: u64, piece: &mut [u8]) -> Result<()> {
        let (clock, health) = (&*self.engine.txns.reads.clock, self.engine.health());
        self.throttle.wait(clock, &mut || health.is_closed());
        self.engine.txns.reads.runs.space.read(extent, at, piece)?;
        self.throttle.pay(piece.len() as u64, clock.now());
        self.done += piece.len() as u64;
        self.report()
    }

    fn report(&mut self) -> Result<()> {
        self.engine.health().check()?;
        if (self.progress)(self.done.min(self.total), self.total) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Cancelled, "the backup was cancelled"))
        }
    }
}
