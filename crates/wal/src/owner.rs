//! `LOG`: names the database to which a log directory belongs. The log may be in a directory of its
//! own, where an empty log looks like a missing log. So the directory names its database from the
//! beginning.
//!
//! ```text
//!  LOG        64 bytes: the header of segment 0, which has no records; names the database, and has
//!            a flag that says whether `LOG.mark` must exist too
//!  LOG.new    the same, while the database is created
//!  LOG.lock   the lock of the directory
//! ```
//!
//! # Protocol
//! 1. [`claim`]: `LOG.new` is made durable, in a directory that has neither `LOG` nor segments.
//! 2. The database is created, by its superblock.
//! 3. [`take`], here and at every open: `LOG.new` is renamed to `LOG`.
//! 4. `note_mark`, when the first mark is durable: `LOG` is written again, with the flag, by way of
//!    `LOG.new`. The log of an earlier build takes this step at its first open. A crash before the
//!    rename leaves a `LOG` without the flag, and the next open repeats the step.
//!
//! A crash before step 2 leaves a `LOG.new` that has no effect: the next claim replaces it. A crash
//! between steps 2 and 3 leaves a database whose log has only `LOG.new`. Such a database has
//! committed nothing yet, because its first open executes step 3 before anything else. Like `LOG`,
//! a segment proves to which database the log belongs, and whether there is a mark: a `LOG` that is
//! restored from a segment gets the segment's flag.

use frondb_core::{Error, ErrorKind, Lsn, Result};
use frondb_device::{Device, DeviceLock, OpenOptions, SharedDevice};

use crate::files::Directory;
use crate::format::{FileName, HEADER_BYTES, SegmentHeader};

/// The file that names the database to which the log belongs.
pub const OWNER_FILE: &str = "LOG";
/// The same file while the database is created.
pub const OWNER_FILE_NEW: &str = "LOG.new";
/// The lock file of a log's directory.
pub const LOCK_FILE: &str = "LOG.lock";

/// Checks that a new database may keep its log in `device`. Changes nothing.
///
/// # Errors
/// `Invalid` if `device` has the log of a database; `Io`.
pub fn check_free(device: &SharedDevice) -> Result<()> {
    if device.exists(OWNER_FILE)? || device.list("")?.iter().any(|name| is_of_log(name)) {
        return Err(Error::invalid(format!(
            "{} holds the log of another database; a database needs a log directory of its own",
            device.describe()
        )));
    }
    Ok(())
}

/// Durably prepares `device` for the log of a database that is about to be created.
///
/// # Errors
/// Like [`check_free`]; `Busy` if a database is open or being created there; `NoSpace`.
pub fn claim(device: &SharedDevice, db_id: u128) -> Result<DeviceLock> {
    check_free(device)?;
    let lock = device.lock(LOCK_FILE)?;
    check_free(device)?;
    write_new(&**device, db_id, false)?;
    Ok(lock)
}

/// Takes the lock of the log directory of database `db_id`. The log belongs to the caller until the
/// lock is dropped.
///
/// # Errors
/// `Invalid` if the log of this database is not there; `Corruption`; `Busy`; `Io`. Creates no file
/// in a directory that does not belong to this log.
pub fn take(device: &SharedDevice, db_id: u128) -> Result<DeviceLock> {
    check(device, db_id)?;
    let lock = device.lock(LOCK_FILE)?;
    complete_claim(device, db_id)?;
    Ok(lock)
}

/// Takes only the lock of a log directory, for a log that may be damaged. After the repair, call
/// [`complete_claim`].
///
/// # Errors
/// `Busy`; `Io`.
pub fn lock(device: &SharedDevice) -> Result<DeviceLock> {
    device.lock(LOCK_FILE)
}

/// Completes the [`claim`], once the database exists. REQUIRES: the directory's lock.
///
/// # Errors
/// Like [`take`].
pub fn complete_claim(device: &SharedDevice, db_id: u128) -> Result<()> {
    let marked = check(device, db_id)?;
    if !is_named(&**device, OWNER_FILE, db_id)? {
        if !is_named(&**device, OWNER_FILE_NEW, db_id)? {
            write_new(&**device, db_id, marked)?;
        }
        device.rename(OWNER_FILE_NEW, OWNER_FILE)?;
    }
    // This sync also covers a name that a killed process left without a sync.
    device.sync_dir("")
}

/// Whether the `LOG` of this database says that `LOG.mark` exists. `false` if `LOG` is damaged,
/// missing, or names another database.
///
/// # Errors
/// `Unsupported`; `Io`.
pub(crate) fn is_marked(device: &SharedDevice, db_id: u128) -> Result<bool> {
    match read(&**device, OWNER_FILE) {
        Ok(owner) => Ok(owner.db_id == db_id && owner.marked),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Durably records in `LOG` that `LOG.mark` exists. Returns `false` if there is no space for that.
/// REQUIRES: the content of the mark is durable.
///
/// # Errors
/// `Poisoned`; `Io`.
pub(crate) fn note_mark(device: &SharedDevice, db_id: u128) -> Result<bool> {
    let poisoned = |error: Error| error.with_kind(ErrorKind::Poisoned);
    // The name of the mark must be durable before any file says that it exists.
    device.sync_dir("").map_err(poisoned)?;
    match write_new(&**device, db_id, true) {
        Err(error) if error.kind() == ErrorKind::NoSpace => {
            let _ = device.remove(OWNER_FILE_NEW);
            return Ok(false);
        }
        written => written?,
    }
    device.rename(OWNER_FILE_NEW, OWNER_FILE)?;
    device.sync_dir("").map_err(poisoned).map(|()| true)
}

/// Writes a `LOG` that says that `LOG.mark` exists into a directory without a `LOG`. The rename is
/// not durable yet. REQUIRES: the mark is durable, except for its name.
///
/// # Errors
/// `NoSpace`; `Io`.
pub(crate) fn write_marked(device: &SharedDevice, db_id: u128) -> Result<()> {
    write_new(&**device, db_id, true)?;
    device.rename(OWNER_FILE_NEW, OWNER_FILE)
}

/// Replaces a damaged or missing `LOG` by one without the flag for `LOG.mark`.
///
/// # Errors
/// `Invalid` if `LOG` names another database; `Unsupported`; `Io`.
pub fn restore_owner(device: &SharedDevice, db_id: u128) -> Result<()> {
    match read(&**device, OWNER_FILE) {
        Ok(owner) if owner.db_id == db_id => return Ok(()),
        Ok(owner) => {
            let message = format!("it holds the log of database {:032x}", owner.db_id);
            return Err(log_is_elsewhere(&**device, db_id, &message));
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => {}
        Err(error) => return Err(error),
    }
    if device.exists(OWNER_FILE)? {
        device.remove(OWNER_FILE)?;
    }
    write_new(&**device, db_id, false)?;
    device.rename(OWNER_FILE_NEW, OWNER_FILE)
}

/// Whether the files of the log say that `LOG.mark` exists. An error if the log does not belong to
/// this database.
fn check(device: &SharedDevice, db_id: u128) -> Result<bool> {
    let named = match read(&**device, OWNER_FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        other => Some(other),
    };
    match named {
        Some(Ok(owner)) if owner.db_id == db_id => return Ok(owner.marked),
        Some(Ok(owner)) => {
            let message = format!("it holds the log of database {:032x}", owner.db_id);
            return Err(log_is_elsewhere(&**device, db_id, &message));
        }
        // Accept `LOG.new` only where there is no `LOG`.
        None if is_named(&**device, OWNER_FILE_NEW, db_id)? => return Ok(false),
        Some(Err(_)) | None => {}
    }
    let names = device.list("")?;
    let newest = names.iter().filter_map(|name| segment_number(name)).max();
    match (newest, named) {
        (Some(newest), _) => Directory::new(SharedDevice::clone(device))
            .open(newest, db_id)
            .map(|(_, header)| header.marked),
        (None, Some(Err(error))) => Err(error),
        (None, _) => Err(log_is_elsewhere(&**device, db_id, "it holds no log")),
    }
}

fn is_of_log(name: &str) -> bool {
    matches!(FileName::parse(name), Some(FileName::Segment(_) | FileName::Spare(_)))
}

fn segment_number(name: &str) -> Option<u64> {
    match FileName::parse(name) {
        Some(FileName::Segment(number)) => Some(number),
        _ => None,
    }
}

/// Advice to a user whose database has lost its log.
const LOST: &str = "if the log is lost, `frondb salvage` saves what the data files have";

fn log_is_elsewhere(device: &dyn Device, db_id: u128, found: &str) -> Error {
    Error::invalid(format!(
        "the log of this database ({db_id:032x}) is not in {}: {found}. Open the database with the \
         log directory it was made with; {LOST}",
        device.describe()
    ))
}

/// Returns the error for a database whose log cannot be in `dir`, because `dir` does not exist.
#[must_use]
pub fn missing(dir: &str) -> Error {
    Error::invalid(format!(
        "the log of this database is not in {dir}, which does not exist. Open the database with \
         the log directory it was made with; {LOST}"
    ))
}

/// Whether the file names this database. `false` for a damaged file; an error for a file that
/// cannot be read, because it might name this database.
fn is_named(device: &dyn Device, name: &str, db_id: u128) -> Result<bool> {
    match read(device, name) {
        Ok(owner) => Ok(owner.db_id == db_id),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn read(device: &dyn Device, name: &str) -> Result<SegmentHeader> {
    let file = device.open(name, OpenOptions::READ)?;
    let mut bytes = [0; HEADER_BYTES as usize];
    let read = file.read_at(0, &mut bytes)?;
    SegmentHeader::decode(name, &bytes[..read])
}

fn write_new(device: &dyn Device, db_id: u128, marked: bool) -> Result<()> {
    let (first, end_before) = (Lsn(0), Lsn(0));
    let used_before = false;
    let header = SegmentHeader { db_id, generation: 0, first, end_before, used_before, marked };
    let file = device.open(OWNER_FILE_NEW, OpenOptions::CREATE)?;
    file.set_len(0)?;
    file.write_at(0, &header.encode())?;
    file.sync()?;
    device.sync_dir("")
}
