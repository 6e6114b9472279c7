//! The files in the log's directory: how a segment is created, and what becomes of its file.
//!
//! # Life of a file
//! 1. `N.new` is created, and its header is written and synced. (Or a spare gets a new header.)
//! 2. The file is renamed to `N.wal`, and the directory is synced. From then on the file is a
//!    segment, so a segment always has a durable header. The previous segment is synced before, so
//!    the existence of `N.wal` proves that the previous segment is durable up to `end before`.
//! 3. When none of its records is needed any more, the file is renamed to `N.spare` and the
//!    directory is synced, or the file is removed. A spare may be written only after that sync;
//!    otherwise a power loss could bring back the old name with the new content.
//!
//! In steps 1 and 2 a failed sync or rename is `Poisoned`. A failed write, for example on a full
//! disk, is not: the file is then removed or stays a spare.

use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{OpenOptions, SharedDevice, SharedFile};

use crate::format::{FileName, HEADER_BYTES, SegmentHeader};
use crate::options::WalOptions;
use crate::segment::END_MARK;

/// The files found in the directory.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Numbers of the segments, ascending.
    pub(crate) segments: Vec<u64>,
    /// Numbers of the spares, ascending.
    pub(crate) spares: Vec<u64>,
}

/// The log's directory.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    device: SharedDevice,
}

impl Directory {
    pub(crate) fn new(device: SharedDevice) -> Self {
        Self { device }
    }

    pub(crate) fn device(&self) -> &SharedDevice {
        &self.device
    }

    /// Returns the directory's name for messages.
    pub(crate) fn describe(&self) -> String {
        self.device.describe()
    }

    /// Lists the segments and spares. Removes segments that were never finished.
    pub(crate) fn list(&self) -> Result<Listing> {
        let mut listing = Listing::default();
        for name in self.device.list("")? {
            match FileName::parse(&name) {
                Some(FileName::Segment(number)) => listing.segments.push(number),
                Some(FileName::Spare(number)) => listing.spares.push(number),
                Some(FileName::Unfinished(_)) => self.device.remove(&name)?,
                None => {}
            }
        }
        listing.segments.sort_unstable();
        listing.spares.sort_unstable();
        Ok(listing)
    }

    /// Makes the names of the files durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.device.sync_dir("").map_err(|error| error.with_kind(ErrorKind::Poisoned))
    }

    /// Opens a segment and checks its header.
    ///
    /// # Errors
    /// `Corruption`; `Unsupported`; `Invalid` if the segment belongs to another database.
    pub(crate) fn open(&self, number: u64, db_id: u128) -> Result<(SharedFile, SegmentHeader)> {
        let name = FileName::Segment(number).to_string();
        let file = self.device.open(&name, OpenOptions::WRITE)?;
        let mut bytes = [0; HEADER_BYTES as usize];
        let read = file.read_at(0, &mut bytes)?;
        let header = SegmentHeader::decode(&name, &bytes[..read])?;
        if header.db_id != db_id {
            return Err(Error::invalid(format!(
                "log segment {name} in {} belongs to another database ({:032x}, not {db_id:032x})",
                self.describe(),
                header.db_id
            )));
        }
        if header.generation != number {
            let message = format!("the header belongs to segment {}", header.generation);
            return Err(Error::corruption(name, 0, crate::format::WHAT_HEADER, message));
        }
        Ok((file, header))
    }

    /// Creates a segment in a new file. Returns the file and the offset up to which space is
    /// allocated.
    pub(crate) fn create(
        &self,
        header: &SegmentHeader,
        options: &WalOptions,
    ) -> Result<(SharedFile, u64)> {
        let name = FileName::Unfinished(header.generation).to_string();
        let file = self.device.open(&name, OpenOptions::CREATE)?;
        let reserve = options.reserve_bytes.min(options.segment_bytes);
        let written = file.set_len(0).and_then(|()| file.write_at(0, &header.encode()));
        if let Err(error) = written {
            // The file is no segment and must not take space. The next attempt creates it again.
            let _ = self.device.remove(&name);
            return Err(error);
        }
        // If the allocation fails, the log still works until the disk is full.
        let reserved = reserve > 0 && file.allocate(HEADER_BYTES, reserve).is_ok();
        let file = self.establish(&name, &file, header)?;
        Ok((file, if reserved { HEADER_BYTES + reserve } else { HEADER_BYTES }))
    }

    /// Creates a segment in the file of a spare. Returns the file and the offset up to which space
    /// is allocated.
    pub(crate) fn reuse(&self, spare: u64, header: &SegmentHeader) -> Result<(SharedFile, u64)> {
        let name = FileName::Spare(spare).to_string();
        let file = self.device.open(&name, OpenOptions::WRITE)?;
        let len = file.len()?;
        // The end mark separates the header from the records of the former segment.
        file.write_vectored_at(0, &[&header.encode(), &END_MARK])?;
        let file = self.establish(&name, &file, header)?;
        Ok((file, len))
    }

    /// Renames a file that has a header to the name of its segment. Returns the file opened by its
    /// new name, so that errors show the new name.
    fn establish(
        &self,
        name: &str,
        file: &SharedFile,
        header: &SegmentHeader,
    ) -> Result<SharedFile> {
        let segment = FileName::Segment(header.generation).to_string();
        file.sync()
            .and_then(|()| self.device.rename(name, &segment))
            .and_then(|()| self.device.sync_dir(""))
            .and_then(|()| self.device.open(&segment, OpenOptions::WRITE))
            .map_err(|error| error.with_kind(ErrorKind::Poisoned))
    }

    /// Removes segments from the log, by number: renames the files of `spares` to spares, and
    /// deletes the files of `removed`.
    pub(crate) fn retire(&self, spares: &[u64], removed: &[u64]) -> Result<()> {
        for &number in removed {
            self.device.remove(&FileName::Segment(number).to_string())?;
        }
        for &number in spares {
            let spare = FileName::Spare(number).to_string();
            self.device.rename(&FileName::Segment(number).to_string(), &spare)?;
        }
        // Deletions need no sync: a segment that comes back after a power loss is deleted again.
        if spares.is_empty() { Ok(()) } else { self.device.sync_dir("") }
    }

    pub(crate) fn remove_spares(&self, spares: &[u64]) -> Result<()> {
        spares
            .iter()
            .try_for_each(|&number| self.device.remove(&FileName::Spare(number).to_string()))
    }
}
