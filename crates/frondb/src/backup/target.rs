//! Data files of a backup, or of a database that is being restored: extents are read and written
//! one by one at given addresses.

use std::collections::BTreeMap;

use frondb_core::checksum::Xxh3;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};
use frondb_space::{Extent, data_file_name};

use crate::directory::not_empty;

/// Bytes read and written at a time.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// The data files of a directory, opened when they are first needed.
pub(super) struct DataFiles {
    device: SharedDevice,
    options: OpenOptions,
    files: BTreeMap<u32, SharedFile>,
}

impl DataFiles {
    /// Returns the data files of `device`, to write them. With `direct` the writes bypass the
    /// operating system's cache, because the data will not be read soon.
    pub(super) fn to_write(device: &SharedDevice, direct: bool) -> Self {
        let options = OpenOptions::CREATE.direct(direct);
        Self { device: Arc::clone(device), options, files: BTreeMap::new() }
    }

    /// Returns the data files of `device`, to read them.
    pub(super) fn to_read(device: &SharedDevice) -> Self {
        Self { device: Arc::clone(device), options: OpenOptions::READ, files: BTreeMap::new() }
    }

    fn file(&mut self, number: u32) -> Result<&SharedFile> {
        if !self.files.contains_key(&number) {
            let file = self.device.open(&data_file_name(number), self.options)?;
            self.files.insert(number, file);
        }
        Ok(&self.files[&number])
    }

    /// Reads a piece of an extent.
    ///
    /// # Errors
    /// `NotFound` if the file is missing; `Corruption` if it is too short; `Io`.
    pub(super) fn read(&mut self, extent: Extent, at: u64, buf: &mut [u8]) -> Result<()> {
        self.file(extent.file)?.read_exact_at(extent.offset() + at, buf)
    }

    /// Writes a piece of an extent.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(super) fn write(&mut self, extent: Extent, at: u64, buf: &[u8]) -> Result<()> {
        self.file(extent.file)?.write_at(extent.offset() + at, buf)
    }

    /// Extends the file of `extent` to the end of `extent` if the file is shorter.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn reach(&mut self, extent: Extent) -> Result<()> {
        let (file, end) = (self.file(extent.file)?, extent.offset() + extent.bytes());
        if file.len()? < end { file.set_len(end) } else { Ok(()) }
    }

    /// Makes the written data durable, including the names of the files.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn sync(&self) -> Result<()> {
        self.files.values().try_for_each(|file| file.sync())?;
        self.device.sync_dir("")
    }
}

/// Checks that the directory of a new backup is empty.
///
/// # Errors
/// `Exists`; `Io`.
pub(super) fn check_empty(target: &SharedDevice) -> Result<()> {
    match not_empty(&target.describe(), &target.list("")?) {
        None => Ok(()),
        Some(message) => Err(Error::new(ErrorKind::Exists, message)),
    }
}

/// Reads `extent` piece by piece with `read`, and passes each piece to `take`. Returns the checksum
/// of the extent.
///
/// # Errors
/// Errors of `read` and `take`.
pub(super) fn for_each_piece(
    extent: Extent,
    buf: &mut Buf,
    read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    take: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u64> {
    let (mut checksum, mut at) = (Xxh3::new(), 0);
    while at < extent.bytes() {
        let length = (extent.bytes() - at).min(buf.len() as u64);
        let piece = &mut buf[..length as usize];
        read(at, piece)?;
        checksum.update(piece);
        take(at, piece)?;
        at += length;
    }
    Ok(checksum.finish())
}
