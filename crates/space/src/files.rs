//! The data files: their names, opening and creating them, and which files were written since the
//! last sync.
//!
//! A file stays open as long as the space does. Each file holds up to
//! [`file_bytes_max`](crate::SpaceOptions::file_bytes_max) bytes of data, so few files are open,
//! whatever the number of trees.

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, RwLock};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::Extent;

/// One open data file.
pub(crate) struct DataFile {
    pub(crate) handle: SharedFile,
    /// Set after each write, cleared before each sync: the next sync covers a write that ends
    /// during the current one.
    written: AtomicBool,
}

/// All data files by number. A number without a file belongs to a file that was lost or never
/// created.
pub(crate) struct DataFiles {
    device: SharedDevice,
    direct: bool,
    files: RwLock<Vec<Option<Arc<DataFile>>>>,
}

impl DataFiles {
    /// Opens every data file of the device.
    pub(crate) fn open(device: SharedDevice, direct: bool) -> Result<Self> {
        let mut files = Vec::new();
        for name in device.list("")? {
            let Some(number) = parse_name(&name) else { continue };
            let handle = device.open(&name, OpenOptions::WRITE.direct(direct))?;
            if files.len() <= number as usize {
                files.resize_with(number as usize + 1, || None);
            }
            files[number as usize] = Some(DataFile::shared(handle));
        }
        Ok(Self { device, direct, files: RwLock::new(files) })
    }

    /// Returns the number of the next file: one more than the highest number in use.
    pub(crate) fn count(&self) -> usize {
        self.files.read().len()
    }

    /// Returns the open file with this number.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<DataFile>> {
        self.files.read().get(number as usize).cloned().flatten()
    }

    /// Returns whether a file with this number exists.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.files.read().get(number).is_some_and(Option::is_some)
    }

    /// Returns the bytes of free space on the device.
    pub(crate) fn free_bytes(&self) -> Result<u64> {
        self.device.free_bytes()
    }

    /// Creates the next file; its name is durable when this returns.
    pub(crate) fn create_next(&self) -> Result<()> {
        let number = self.count();
        let Ok(number) = u32::try_from(number) else {
            return Err(Error::new(
                frondb_core::ErrorKind::NoSpace,
                "cannot create another data file: all file numbers are used",
            ));
        };
        let handle = self.device.open(&name_of(number), OpenOptions::CREATE.direct(self.direct))?;
        self.device.sync_dir("")?;
        self.files.write().push(Some(DataFile::shared(handle)));
        Ok(())
    }

    /// Returns the file and the file offset of `len` bytes at `offset` of an extent; `Corruption`
    /// if the file is missing, or if the bytes do not lie inside the extent.
    pub(crate) fn locate(&self, extent: Extent, offset: u64, len: usize) -> Result<Located> {
        let file = self.get(extent.file);
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= extent.bytes());
        match file {
            Some(file) if inside => Ok(Located { file, offset: extent.offset() + offset }),
            _ => {
                // The extent or the offset may have been read from disk: from a block index, or
                // from a reference to a large value.
                let name = name_of(extent.file);
                let message =
                    format!("{len} bytes at offset {offset} are not inside extent {extent}");
                Err(Error::corruption(name, extent.offset(), "extent", message))
            }
        }
    }

    /// Syncs every file that was written since its last sync.
    pub(crate) fn sync_written(&self) -> Result<()> {
        let files: Vec<Arc<DataFile>> = self.files.read().iter().flatten().cloned().collect();
        for file in files {
            if file.written.swap(false, Ordering::AcqRel) {
                file.handle.sync()?;
            }
        }
        Ok(())
    }
}

/// A position in an open data file.
pub(crate) struct Located {
    pub(crate) file: Arc<DataFile>,
    pub(crate) offset: u64,
}

impl Located {
    /// Adds this position to the error of a read, if the device could not read the data.
    pub(crate) fn name_unreadable(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Io => error.unreadable_at(self.file.handle.name(), self.offset),
            _ => error,
        }
    }
}

impl DataFile {
    fn shared(handle: SharedFile) -> Arc<Self> {
        Arc::new(Self { handle, written: AtomicBool::new(false) })
    }

    /// Returns the number of whole pages in the file.
    pub(crate) fn pages(&self) -> Result<u32> {
        let pages = self.handle.len()? / PAGE_BYTES as u64;
        u32::try_from(pages).map_err(|_| {
            let message = format!("the file has {pages} pages, more than a data file may have");
            Error::corruption(self.handle.name(), 0, "data file", message)
        })
    }

    /// Marks the file as written. Called after the write: see [`Self::written`].
    pub(crate) fn note_written(&self) {
        self.written.store(true, Ordering::Release);
    }
}

/// Extends data files so that they contain `used`, for a salvage on a device whose writes do not
/// reach the disk: missing bytes then read as zeros, which match no checksum.
///
/// # Errors
/// Errors of the device.
pub fn extend_files(device: &SharedDevice, used: &[Extent]) -> Result<()> {
    let mut ends: Vec<u64> = Vec::new();
    for extent in used {
        let file = extent.file as usize;
        ends.resize(ends.len().max(file + 1), 0);
        ends[file] = ends[file].max(extent.offset() + extent.bytes());
    }
    for (number, end) in (0..).zip(ends) {
        let file = device.open(&name_of(number), OpenOptions::CREATE)?;
        if file.len()? < end {
            file.set_len(end)?;
        }
    }
    Ok(())
}

/// Returns the name of a data file.
#[must_use]
pub fn data_file_name(number: u32) -> String {
    format!("data-{number:04}.fdb")
}

pub(crate) use data_file_name as name_of;

/// Returns the number in the name of a data file; `None` for other files, and for names that this
/// crate would not have written.
fn parse_name(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("data-")?.strip_suffix(".fdb")?;
    let number: u32 = digits.parse().ok()?;
    // A corrupt directory must not make the caller allocate a table of four billion files.
    (number <= 1 << 20 && name_of(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_generated_names_are_data_files() {
        for number in [0, 7, 9999, 10_000] {
            assert_eq!(parse_name(&name_of(number)), Some(number));
        }
        for name in ["data-1.fdb", "data-00001.fdb", "data-+001.fdb", "data-0001.fdb.old", "x"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
    }
}
