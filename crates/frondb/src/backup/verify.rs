//! Checks whether a backup still has the bytes that were copied.

use frondb_core::checksum::xxh3;
use frondb_core::mem::Buf;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice};

use super::list::BackupList;
use super::target::{DataFiles, PIECE_BYTES, for_each_piece};

/// The contents of a backup.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BackupContents {
    /// Bytes in the backup.
    pub bytes: u64,
    /// Bytes of all extents that the database had in use, including extents that only earlier
    /// backups have.
    pub database_bytes: u64,
    /// The end of the log in the backup: the backup has the commits before this position.
    pub log_end: u64,
    /// Whether the backup continues another one, which is needed to restore it.
    pub is_incremental: bool,
    /// Descriptions of the files and extents that are missing or do not match their checksums;
    /// empty if the backup is sound.
    pub faults: Vec<String>,
}

/// Reads a backup, and checks all its bytes with their checksums. An incremental backup does not
/// contain the data that it shares with earlier backups: verify each of these, too. `progress` gets
/// the bytes read and the total; it returns `false` to cancel.
///
/// # Errors
/// `NotFound` if there is no complete backup; `Corruption` if its list is damaged; `Unsupported`;
/// `Cancelled`; `Io`.
pub(crate) fn verify_backup(
    source: &SharedDevice,
    progress: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<BackupContents> {
    let list = BackupList::read(source)?;
    let here = || list.extents.iter().filter(|entry| entry.is_here);
    let total = list.here_bytes().saturating_add(list.file_bytes());
    let mut contents = BackupContents {
        bytes: total,
        database_bytes: list.extent_bytes(),
        log_end: list.log.1.get(),
        is_incremental: list.since.is_some(),
        faults: Vec::new(),
    };
    let mut done = 0;
    let mut report = |bytes: u64| {
        done += bytes;
        match progress(done, total) {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Cancelled, "the check was cancelled")),
        }
    };
    for file in &list.files {
        let read = read_file(source, &file.name, file.bytes);
        match read.map(|bytes| bytes.len() as u64 == file.bytes && xxh3(&bytes) == file.checksum) {
            Ok(true) => {}
            Ok(false) => contents.faults.push(format!("{} does not match its checksum", file.name)),
            Err(error) => contents.faults.push(fault(error)?),
        }
        report(file.bytes)?;
    }
    let mut data = DataFiles::to_read(source);
    let mut buf = Buf::zeroed(PIECE_BYTES);
    for entry in here() {
        let extent = entry.extent;
        let checksum = for_each_piece(
            extent,
            &mut buf,
            &mut |at, piece| data.read(extent, at, piece),
            &mut |_, _| Ok(()),
        );
        match checksum {
            Ok(checksum) if checksum == entry.checksum => {}
            Ok(_) => contents.faults.push(format!("extent {extent} does not match its checksum")),
            Err(error) => {
                let fault = fault(error)?;
                // A missing file is reported once, however many extents it had.
                if !contents.faults.contains(&fault) {
                    contents.faults.push(fault);
                }
            }
        }
        report(extent.bytes())?;
    }
    Ok(contents)
}

/// Describes the fault of the backup that has caused a read error.
///
/// # Errors
/// `error`, if its cause is not a fault of the backup.
fn fault(error: Error) -> Result<String> {
    match error.kind() {
        // `Invalid`: a directory or a named pipe has the name of the file.
        ErrorKind::NotFound | ErrorKind::Corruption | ErrorKind::Invalid => Ok(error.to_string()),
        _ => Err(error),
    }
}

/// Reads a file of a backup, at most one byte more than expected: from this byte the caller sees
/// that the file is too long.
///
/// # Errors
/// `NotFound`, `Io`.
pub(super) fn read_file(source: &SharedDevice, name: &str, expected: u64) -> Result<Vec<u8>> {
    let file = source.open(name, OpenOptions::READ)?;
    let length = file.len()?.min(expected.saturating_add(1));
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
    file.read_exact_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Returns the error for a backup whose bytes differ from the bytes that were copied.
pub(super) fn damaged(source: &SharedDevice, message: &str) -> Error {
    Error::corruption(source.describe(), 0, "backup", message.to_owned())
}
