//! A manifest file that is being written: records at its end, and space allocated ahead of it.

use frondb_block::frame::{self, Body, RecordPlace};
use frondb_core::Result;
use frondb_device::SharedFile;

use crate::format::RecordKind;

/// A manifest file and its end. One thread at a time uses it: the leader, or the writer of a new
/// file.
#[derive(Clone, Debug)]
pub(crate) struct LogFile {
    pub(crate) generation: u64,
    pub(crate) file: SharedFile,
    /// File offset after the last record written.
    pub(crate) end: u64,
    /// File offset below which everything is durable.
    pub(crate) durable: u64,
    /// File offset up to which space is allocated.
    pub(crate) reserved_to: u64,
}

impl LogFile {
    /// Appends records of one kind in one write and returns the bytes written. First allocates
    /// `reserve_bytes` of space after the records, if less than half of that is left.
    ///
    /// # Errors
    /// `NoSpace`, `Io`; part of the records may be in the file, but `end` does not move. `Invalid`
    /// for a record of 1 GiB or more.
    pub(crate) fn write<'a>(
        &mut self,
        kind: RecordKind,
        bodies: impl IntoIterator<Item = Body<'a>>,
        reserve_bytes: u64,
    ) -> Result<u64> {
        let mut bytes = Vec::new();
        for body in bodies {
            let position = self.end + bytes.len() as u64;
            let place = RecordPlace { generation: self.generation, position };
            // Only the first record of a write stores the durable position, because all records of
            // the write have the same one.
            let synced = bytes.is_empty().then_some(self.durable);
            frame::append(&mut bytes, place, kind as u8, synced, body)?;
        }
        let written = bytes.len() as u64;
        self.reserve(self.end + written, reserve_bytes);
        self.file.write_at(self.end, &bytes)?;
        self.end += written;
        self.reserved_to = self.reserved_to.max(self.end);
        Ok(written)
    }

    /// Allocates `reserve_bytes` of space after `end`, if less than half of that is allocated
    /// there.
    pub(crate) fn reserve(&mut self, end: u64, reserve_bytes: u64) {
        let to = end + reserve_bytes;
        if reserve_bytes == 0 || self.reserved_to >= end + reserve_bytes / 2 {
            return;
        }
        // Ignore an error: on a full disk, writes use the space allocated earlier and fail when it
        // is used up.
        let from = self.reserved_to.max(self.end);
        if self.file.allocate(from, to - from).is_ok() {
            self.reserved_to = to;
        }
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        self.durable = self.end;
        Ok(())
    }

    /// Durably cuts off the remains of a failed write after the end.
    pub(crate) fn cut(&mut self) -> Result<()> {
        self.file.set_len(self.end)?;
        self.reserved_to = self.end;
        self.file.sync()?;
        self.durable = self.end;
        Ok(())
    }
}
