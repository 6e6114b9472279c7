//! The segment that is being written: maps Lsns to file offsets, allocates space ahead, and starts
//! writeback. One writing leader at a time uses it.

use frondb_block::frame;
use frondb_core::{Lsn, Result};
use frondb_device::SharedFile;

use crate::format::{HEADER_BYTES, SegmentHeader};
use crate::options::WalOptions;

/// Zeros after the last record, so that a reader finds an end even in a reused file.
pub(crate) const END_MARK: [u8; frame::HEADER_BYTES] = [0; frame::HEADER_BYTES];

/// The file in which the log ends.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: SharedFile,
    /// File offset up to which space is allocated.
    reserved_to: u64,
    /// Whether the last attempt to allocate space ahead failed.
    pub(crate) reserve_failed: bool,
    /// File offset up to which the operating system was asked to write the file to disk.
    writeback_to: u64,
}

impl Segment {
    pub(crate) fn new(
        header: SegmentHeader,
        file: SharedFile,
        reserved_to: u64,
        reserve_failed: bool,
    ) -> Self {
        Self { header, file, reserved_to, reserve_failed, writeback_to: 0 }
    }

    /// Returns the file offset of `lsn`.
    pub(crate) fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + lsn.get().saturating_sub(self.header.first.get())
    }

    /// Writes records from `at` on, and an end mark after them.
    pub(crate) fn write(&mut self, at: Lsn, bytes: &[u8], options: &WalOptions) -> Result<()> {
        let offset = self.offset(at);
        let end = offset + bytes.len() as u64;
        self.reserve(end, options);
        self.file.write_vectored_at(offset, &[bytes, &END_MARK])?;
        self.reserved_to = self.reserved_to.max(end + END_MARK.len() as u64);
        if options.writeback_bytes > 0 && end - self.writeback_to >= options.writeback_bytes {
            // Only a hint: a sync reports any error that matters.
            let _ = self.file.start_writeback(self.writeback_to, end - self.writeback_to);
            self.writeback_to = end;
        }
        Ok(())
    }

    /// Bytes of the file that are allocated, without the header.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_to.saturating_sub(HEADER_BYTES)
    }

    /// Allocates space after `end` once half of the space allocated ahead is used.
    fn reserve(&mut self, end: u64, options: &WalOptions) {
        if options.reserve_bytes == 0 || self.reserved_to >= end + options.reserve_bytes / 2 {
            return;
        }
        let most = HEADER_BYTES + options.segment_bytes;
        let to = (end + options.reserve_bytes).min(most.max(end));
        if to > self.reserved_to {
            // Ignore an error: on a full disk, writes use the space allocated earlier, and fail
            // when that space is used up.
            let took = self.file.allocate(self.reserved_to, to - self.reserved_to);
            self.reserve_failed = took.is_err();
            self.reserved_to = if took.is_ok() { to } else { self.reserved_to };
        }
    }

    /// Durably cuts off everything that a failed write has left after `end`. If the cut fails, the
    /// content of the file is unknown.
    pub(crate) fn cut(&self, end: Lsn) -> Result<()> {
        self.file.set_len(self.offset(end))?;
        self.file.sync()
    }
}
