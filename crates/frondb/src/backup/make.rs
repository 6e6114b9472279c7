//! [`Backup::copy`]: makes the backup.

use std::collections::HashMap;

use frondb_background::Cut;
use frondb_block::{DamagedFrame, PassingFrames};
use frondb_core::budget::Part;
use frondb_core::checksum::{Xxh3, xxh3};
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_space::{Extent, data_file_name};

use super::begin::{Backup, Moment};
use super::cut::{Named, NamedRun, named_extents};
use super::history;
use super::list::{
    ATTACHED_DIR, BackupList, ExtentEntry, FileEntry, MANIFEST_FILE, UNFINISHED_FILE,
};
use super::meter::Meter;
use super::target::{DataFiles, PIECE_BYTES, check_empty, for_each_piece};
use crate::open::Open;
use crate::open::layout::LOG_DIR;

/// The result of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupReport {
    /// Bytes in the backup: extents, the log, the state of the manifest and attached files.
    pub bytes: u64,
    /// Bytes of all extents that the database had in use, including extents that only earlier
    /// backups have.
    pub database_bytes: u64,
    /// Bytes of the log among `bytes`.
    pub log_bytes: u64,
    /// The end of the log in the backup: the backup has the commits before this position.
    pub log_end: u64,
    /// Whether the backup continues another one, which is needed to restore it.
    pub is_incremental: bool,
}

/// The entries of the backup that an incremental backup continues.
type Before<'a> = HashMap<Extent, &'a ExtentEntry>;

impl Open {
    /// Durably records the name of a backup in the database. Before that, makes every manifest edit
    /// durable that the backup may contain. Otherwise a power failure could undo the edit that
    /// added a run, a later run would get the same id, and an incremental backup could take the
    /// later run for the one that this backup has.
    fn remember(&self, name: u64) -> Result<()> {
        let _call = self.begin_call()?;
        let secured = self.edits.manifest.secure_appended();
        secured.inspect_err(|error| self.health.poison_if_unknown(error))?;
        let bytes = history::add(&self.device, name)?;
        self.wear.add_other(bytes);
        Ok(())
    }
}

impl Backup {
    /// Copies the database as of the moment of the backup; if [`fix`](Self::fix) was not called,
    /// fixes the moment first. `progress` receives the bytes read and the bytes to read, as far as
    /// they are known; the call ends with `Cancelled` when `progress` returns `false`.
    ///
    /// # Errors
    /// `Exists` if the target has files by now; `Busy` if another backup has a moment; `Cancelled`;
    /// `NoSpace` on either side; `Corruption` of the database; `Poisoned`; `Closed`; `Io`.
    pub fn copy(mut self, progress: &mut dyn FnMut(u64, u64) -> bool) -> Result<BackupReport> {
        let open = Arc::clone(&self.open);
        begin(&self.target)?;
        if self.moment.is_none() {
            self.fix()?;
        }
        let Some(moment) = &self.moment else {
            return Err(Error::internal("a backup has no moment"));
        };
        let meter = Meter::new(&open, self.bytes_per_second, progress);
        let mut copy =
            Copying { open: &open, backup: &self, moment, meter, files: Vec::new(), bytes: (0, 0) };
        copy.make()
    }
}

/// Checks that a directory is empty, and durably marks it as a backup that is not complete.
fn begin(target: &SharedDevice) -> Result<()> {
    check_empty(target)?;
    let file = target.open(UNFINISHED_FILE, OpenOptions::CREATE_NEW)?;
    file.write_at(0, b"This backup is being made, or was given up. It cannot be restored.\n")?;
    file.sync()?;
    target.sync_dir("")
}

/// A backup that is being copied.
struct Copying<'a> {
    open: &'a Open,
    backup: &'a Backup,
    moment: &'a Moment,
    meter: Meter<'a>,
    files: Vec<FileEntry>,
    /// Bytes copied: of the log, and of the manifest and the attached files.
    bytes: (u64, u64),
}

impl Copying<'_> {
    fn make(&mut self) -> Result<BackupReport> {
        let open = self.open;
        let (cut, Backup { before, target, .. }) = (&self.moment.cut, self.backup);
        self.copy_what_changes()?;
        let named = self.named(cut)?;
        self.write_attached()?;
        let known = before.as_ref().map(BackupList::by_extent).unwrap_or_default();
        let extents = self.copy_extents(&named, &known)?;
        let list = BackupList {
            db_id: open.edits.manifest.db_id(),
            since: before.as_ref().map(BackupList::id),
            log: (cut.start, cut.end),
            files: std::mem::take(&mut self.files),
            extents,
        };
        self.open.remember(list.id())?;
        list.write(target)?;
        // The list makes the backup complete; the marker only informs users, so a failure to remove
        // it is harmless.
        let _ = target.remove(UNFINISHED_FILE).and_then(|()| target.sync_dir(""));
        let (log_bytes, other_bytes) = self.bytes;
        Ok(BackupReport {
            bytes: list.here_bytes() + log_bytes + other_bytes,
            database_bytes: list.extent_bytes(),
            log_bytes,
            log_end: cut.end.get(),
            is_incremental: list.since.is_some(),
        })
    }

    /// Copies the log, releases its segments, and writes the state of the manifest.
    fn copy_what_changes(&mut self) -> Result<()> {
        let (Moment { cut, segments, .. }, target) = (self.moment, &self.backup.target);
        self.meter.expect(cut.end.get() - cut.start.get())?;
        let log = target.subdevice(LOG_DIR)?;
        let (meter, (log_bytes, _)) = (&mut self.meter, &mut self.bytes);
        segments.copy(&log, cut.start, cut.end, &mut |bytes| {
            *log_bytes += bytes;
            meter.read(bytes)
        })?;
        segments.end();
        self.write_file(target, MANIFEST_FILE, MANIFEST_FILE.to_owned(), &cut.manifest)
    }

    /// Writes the attached files, each into the directory named in its path.
    fn write_attached(&mut self) -> Result<()> {
        let mut open: Option<(&str, SharedDevice)> = None;
        let backup = self.backup;
        for (name, bytes) in &backup.attached {
            let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
            let within = match open.take().filter(|(known, _)| *known == dir) {
                Some((_, within)) => within,
                None => self.attached_dir(dir)?,
            };
            self.write_file(&within, file, format!("{ATTACHED_DIR}/{name}"), bytes)?;
            // Call `progress`, so that the caller can cancel the backup.
            self.meter.read(0)?;
            open = Some((dir, within));
        }
        Ok(())
    }

    /// Durably creates a directory below the directory of the attached files.
    fn attached_dir(&self, dir: &str) -> Result<SharedDevice> {
        let mut within = Arc::clone(&self.backup.target);
        for part in [ATTACHED_DIR].into_iter().chain(dir.split('/')).filter(|part| !part.is_empty())
        {
            let next = within.subdevice(part)?;
            within.sync_dir("")?;
            within = next;
        }
        Ok(within)
    }

    fn write_file(
        &mut self,
        within: &SharedDevice,
        name: &str,
        listed: String,
        bytes: &[u8],
    ) -> Result<()> {
        let file = within.open(name, OpenOptions::CREATE_NEW)?;
        file.write_at(0, bytes)?;
        file.sync()?;
        self.bytes.1 += bytes.len() as u64;
        let (bytes, checksum) = (bytes.len() as u64, xxh3(bytes));
        self.files.push(FileEntry { name: listed, bytes, checksum });
        within.sync_dir("")
    }

    /// Lists the copied files of the log, determines the extents that the backup needs, and lets
    /// the database reuse the others.
    fn named(&mut self, cut: &Cut) -> Result<Named> {
        let (open, backup) = (self.open, self.backup);
        let log = backup.target.subdevice(LOG_DIR)?;
        let clock = Arc::clone(&open.reads.clock);
        let options = open.options.wal();
        let db_id = open.edits.manifest.db_id();
        let named = named_extents(&cut.manifest, &log, options, db_id, cut.end, clock)?;
        for name in log.list("")? {
            self.files.push(entry_of(&log, &name)?);
        }
        self.moment.retention.only(named.extents());
        Ok(named)
    }

    fn copy_extents(&mut self, named: &Named, known: &Before<'_>) -> Result<Vec<ExtentEntry>> {
        let new = named.runs.values().filter(|run| entries_of_run(known, run).is_none());
        let new = new.flat_map(|run| &run.extents).chain(&named.others);
        self.meter.expect(new.map(|extent| extent.bytes()).sum())?;
        let _charged = self.open.budget.reserve(Part::Other, PIECE_BYTES as u64);
        let direct = self.open.options.direct_io;
        let mut to = DataFiles::to_write(&self.backup.target, direct);
        let mut buf = Buf::zeroed(PIECE_BYTES);
        let mut entries = Vec::new();
        for run in named.runs.values() {
            match entries_of_run(known, run) {
                Some(before) => entries.extend(before),
                None => self.copy_run(run, &mut buf, &mut to, &mut entries)?,
            }
            run.extents.iter().for_each(|extent| self.moment.retention.done(*extent));
        }
        for &extent in &named.others {
            entries.push(self.copy_other(extent, known, &mut buf, &mut to)?);
            self.moment.retention.done(extent);
        }
        to.sync()?;
        // If the database was closed meanwhile, another process may have reused extents while they
        // were read.
        self.open.health.check()?;
        entries.sort_by_key(|entry| entry.extent);
        Ok(entries)
    }

    /// Copies a run, and checks its frames with their checksums: a backup of damaged data could
    /// replace a good one.
    fn copy_run(
        &mut self,
        run: &NamedRun,
        buf: &mut Buf,
        to: &mut DataFiles,
        entries: &mut Vec<ExtentEntry>,
    ) -> Result<()> {
        let mut frames = PassingFrames::new(run.frames_bytes);
        for &extent in &run.extents {
            let checksum = self.read(extent, buf, &mut |at, piece| {
                frames.take(piece).map_err(|DamagedFrame(at)| damaged(run, at))?;
                to.write(extent, at, piece)
            })?;
            entries.push(ExtentEntry { extent, run: Some(run.name), checksum, is_here: true });
        }
        if frames.are_complete() { Ok(()) } else { Err(damaged(run, run.frames_bytes)) }
    }

    /// Copies an extent of a large value, or of a run that is in no tree yet. The list names no run
    /// for such an extent, so the extent is copied unless the previous backup has it with the same
    /// checksum.
    fn copy_other(
        &mut self,
        extent: Extent,
        known: &Before<'_>,
        buf: &mut Buf,
        to: &mut DataFiles,
    ) -> Result<ExtentEntry> {
        if let Some(known) = known.get(&extent).filter(|entry| entry.run.is_none())
            && self.read(extent, buf, &mut |_, _| Ok(()))? == known.checksum
        {
            return Ok(ExtentEntry { is_here: false, ..**known });
        }
        let checksum = self.read(extent, buf, &mut |at, piece| to.write(extent, at, piece))?;
        Ok(ExtentEntry { extent, run: None, checksum, is_here: true })
    }

    /// Reads an extent of the database and passes its pieces to `take`. Returns the checksum of the
    /// extent.
    fn read(
        &mut self,
        extent: Extent,
        buf: &mut Buf,
        take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<u64> {
        let (space, meter) = (&self.open.runs.space, &mut self.meter);
        let read = &mut |at, piece: &mut [u8]| {
            space.read(extent, at, piece)?;
            meter.read(piece.len() as u64)
        };
        let checksum = for_each_piece(extent, buf, read, take);
        // If the extent is no longer kept, its space may have been truncated or reused: then report
        // the full disk, not damage.
        checksum.or_else(|error| self.check_retention().and(Err(error))).and_then(|checksum| {
            self.check_retention()?;
            Ok(checksum)
        })
    }

    fn check_retention(&self) -> Result<()> {
        if self.moment.retention.is_lost() {
            let message = "the disk of the database got full, and the space that the backup kept \
                           went to the writers: the backup is given up";
            return Err(Error::new(ErrorKind::NoSpace, message));
        }
        Ok(())
    }
}

/// Returns the entries of a run in the previous backup; `None` if that backup does not have the
/// run. Runs never change.
fn entries_of_run(known: &Before<'_>, run: &NamedRun) -> Option<Vec<ExtentEntry>> {
    let entry = |extent| {
        let entry: &ExtentEntry = known.get(extent).filter(|entry| entry.run == Some(run.name))?;
        Some(ExtentEntry { is_here: false, ..*entry })
    };
    run.extents.iter().map(entry).collect()
}

/// Returns the error for a damaged frame, `at` bytes from the beginning of the run.
fn damaged(run: &NamedRun, at: u64) -> Error {
    let mut left = at;
    let place = run.extents.iter().find(|extent| match left.checked_sub(extent.bytes()) {
        Some(after) => {
            left = after;
            false
        }
        None => true,
    });
    let (file, offset) = place.map_or_else(
        || (String::new(), 0),
        |extent| (data_file_name(extent.file), extent.offset() + left),
    );
    let message = format!(
        "run {} does not match its checksum: no backup is made of damaged data; see CHECK or verify",
        run.name.id
    );
    Error::corruption(file, offset, "run", message)
}

/// Reads a copied file of the log, and returns its entry.
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
