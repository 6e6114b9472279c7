//! Makes a database from a full backup and the incremental backups after it.

use frondb_core::checksum::xxh3;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};
use frondb_manifest::{Manifest, ManifestOptions};
use frondb_wal::owner;

use super::list::{ATTACHED_DIR, BackupList, ExtentEntry, FileEntry, MANIFEST_FILE};
use super::target::{DataFiles, PIECE_BYTES, for_each_piece};
use super::verify::{damaged, read_file};
use crate::open::layout::{LOCK_FILE, LOG_DIR};
use crate::open::recovery::new_db_id;

/// The result of a restore.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Bytes written.
    pub bytes: u64,
    /// The end of the log: commits before this position are in the database.
    pub log_end: u64,
}

/// Makes a database in the empty directory `target` from `chain`: a full backup and the incremental
/// backups after it, in order. The database has the state of the last backup. `log_target` is the
/// directory of the log; `None` means the directory `wal` in `target`. All bytes are checked with
/// their checksums. `progress` gets the bytes written and the total; it returns `false` to cancel.
///
/// # Errors
/// `NotFound` if a directory has no complete backup; `Invalid` if the backups do not continue each
/// other; `Exists` if the target is not empty; `Corruption` if a backup is damaged; `Cancelled`;
/// `Unsupported`; `Busy`, `NoSpace`, `Io`. After an error there is no database in the target.
pub(crate) fn restore(
    chain: &[SharedDevice],
    target: &SharedDevice,
    log_target: Option<&SharedDevice>,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<RestoreReport> {
    let lists = chain.iter().map(BackupList::read).collect::<Result<Vec<_>>>()?;
    check_chain(chain, &lists)?;
    let (Some(last), Some(source)) = (lists.last(), chain.last()) else {
        return Err(Error::invalid("no backup is given"));
    };
    if Manifest::exists(target)? {
        let message = format!("{} already has a database", target.describe());
        return Err(Error::new(ErrorKind::Exists, message));
    }
    if target.list("")?.iter().any(|name| name != LOCK_FILE) {
        let message = format!("{} is not empty", target.describe());
        return Err(Error::new(ErrorKind::Exists, message));
    }
    let _lock = target.lock(LOCK_FILE)?;
    let log_target = match log_target {
        Some(log_target) => Arc::clone(log_target),
        None => target.subdevice(LOG_DIR)?,
    };
    owner::check_free(&log_target)?;

    // Attached files belong to the caller of the backup and are not copied.
    let attached = format!("{ATTACHED_DIR}/");
    let is_restored = |file: &&FileEntry| !file.name.starts_with(&attached);
    let files = last.files.iter().filter(is_restored);
    let total = files.fold(last.extent_bytes(), |sum, file| sum.saturating_add(file.bytes));
    let mut written = Written { bytes: 0, total, progress };
    copy_extents(chain, &lists, target, &mut written)?;
    copy_log(source, last, &log_target, &mut written)?;
    let manifest = last.files.iter().find(|file| file.name == MANIFEST_FILE);
    let manifest = manifest.ok_or_else(|| damaged(source, "its list has no manifest"))?;
    let manifest = read_checked(source, manifest)?;
    written.add(manifest.len())?;
    // The original and the restored database may both be used from here on. With different ids,
    // neither takes the other's log or continues the other's backups.
    let db_id = new_db_id();
    frondb_wal::give_to(&log_target, last.db_id, db_id)?;
    target.sync_dir("")?;
    Manifest::create(Arc::clone(target), db_id, ManifestOptions::default(), &manifest)?;
    Ok(RestoreReport { bytes: written.bytes, log_end: last.log.1.get() })
}

/// Checks that the first backup is full, and that each later one continues the one before it.
fn check_chain(chain: &[SharedDevice], lists: &[BackupList]) -> Result<()> {
    let mut before: Option<(u64, u128)> = None;
    for (list, device) in lists.iter().zip(chain) {
        let place = device.describe();
        match (before, list.since) {
            (None, Some(_)) => {
                return Err(Error::invalid(format!(
                    "the backup in {place} is incremental: name the full one and all before it first"
                )));
            }
            (Some(_), None) => {
                let message = format!(
                    "the backup in {place} is a full one: name it first, or leave out those before it"
                );
                return Err(Error::invalid(message));
            }
            (Some((id, db_id)), since) if since != Some(id) || db_id != list.db_id => {
                return Err(Error::invalid(format!(
                    "the backup in {place} does not continue the one named before it"
                )));
            }
            _ => {}
        }
        before = Some((list.id(), list.db_id));
    }
    Ok(())
}

/// Counts the bytes written so far, and reports them.
struct Written<'a> {
    bytes: u64,
    total: u64,
    progress: &'a mut dyn FnMut(u64, u64) -> bool,
}

impl Written<'_> {
    fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes as u64;
        if (self.progress)(self.bytes, self.total) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Cancelled, "the restore was cancelled"))
        }
    }
}

/// Copies the extents that the last backup lists, each from the newest backup that has its bytes.
fn copy_extents(
    chain: &[SharedDevice],
    lists: &[BackupList],
    target: &SharedDevice,
    written: &mut Written<'_>,
) -> Result<()> {
    let by_extent: Vec<_> = lists.iter().map(BackupList::by_extent).collect();
    let mut sources: Vec<_> = chain.iter().map(DataFiles::to_read).collect();
    let mut to = DataFiles::to_write(target, false);
    let mut buf = Buf::zeroed(PIECE_BYTES);
    let last = lists.last().map_or(&[][..], |last| &last.extents);
    for entry in last {
        let holds = |known: &ExtentEntry| {
            known.is_here && known.run == entry.run && known.checksum == entry.checksum
        };
        let place = by_extent
            .iter()
            .rposition(|known| known.get(&entry.extent).is_some_and(|known| holds(known)));
        let Some(place) = place else {
            let message = format!("no backup of the chain has extent {}", entry.extent);
            return Err(damaged(&chain[chain.len() - 1], &message));
        };
        let extent = entry.extent;
        let source = &mut sources[place];
        let checksum = for_each_piece(
            extent,
            &mut buf,
            &mut |at, piece| source.read(extent, at, piece),
            &mut |at, piece| {
                to.write(extent, at, piece)?;
                written.add(piece.len())
            },
        )?;
        if checksum != entry.checksum {
            let message = format!("the checksum of extent {extent} does not match");
            return Err(damaged(&chain[place], &message));
        }
        to.reach(extent)?;
    }
    to.sync()
}

/// Copies the files of the log.
fn copy_log(
    source: &SharedDevice,
    list: &BackupList,
    target: &SharedDevice,
    written: &mut Written<'_>,
) -> Result<()> {
    let prefix = format!("{LOG_DIR}/");
    for file in &list.files {
        let Some(name) = file.name.strip_prefix(&prefix) else { continue };
        let bytes = read_checked(source, file)?;
        let copy = target.open(name, OpenOptions::CREATE_NEW)?;
        copy.write_at(0, &bytes)?;
        copy.sync()?;
        written.add(bytes.len())?;
    }
    target.sync_dir("")
}

/// Reads a file of a backup, and checks its length and checksum.
fn read_checked(source: &SharedDevice, entry: &FileEntry) -> Result<Vec<u8>> {
    let bytes = read_file(source, &entry.name, entry.bytes)?;
    if bytes.len() as u64 != entry.bytes || xxh3(&bytes) != entry.checksum {
        let message = format!("the checksum of {} does not match", entry.name);
        return Err(damaged(source, &message));
    }
    Ok(bytes)
}
