//! The segment that is being written: where an Lsn lies in its file, and what of the file is
//! reserved and on its way to disk. Used by one writing leader at a time.

use frondb_block::frame;
use frondb_core::{Lsn, Result};
use frondb_device::SharedFile;

use crate::format::{HEADER_BYTES, SegmentHeader};
use crate::options::WalOptions;

/// Zeros behind the last record, so that a reader sees an end even where the file was used before.
pub(crate) const END_MARK: [u8; frame::HEADER_BYTES] = [0; frame::HEADER_BYTES];

/// The file the log ends in.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) file: SharedFile,
    /// File offset up to which space is taken.
    reserved_to: u64,
    /// Whether no space could be taken ahead the last time.
    pub(crate) short: bool,
    /// File offset up to which the operating system was asked to write.
    writeback_to: u64,
}

impl Segment {
    pub(crate) fn new(
        header: SegmentHeader,
        file: SharedFile,
        reserved_to: u64,
        short: bool,
    ) -> Self {
        Self { header, file, reserved_to, short, writeback_to: 0 }
    }

    /// Where `lsn` lies in the file.
    pub(crate) fn offset(&self, lsn: Lsn) -> u64 {
        HEADER_BYTES + lsn.get().saturating_sub(self.header.first.get())
    }

    /// Writes records whose first is `at`, and an end mark behind them.
    pub(crate) fn write(&mut self, at: Lsn, bytes: &[u8], options: &WalOptions) -> Result<()> {
        let offset = self.offset(at);
        let end = offset + bytes.len() as u64;
        self.reserve(end, options);
        self.file.write_vectored_at(offset, &[bytes, &END_MARK])?;
        self.reserved_to = self.reserved_to.max(end + END_MARK.len() as u64);
        if options.writeback_bytes > 0 && end - self.writeback_to >= options.writeback_bytes {
            // Only a hint: a sync would report what matters.
            let _ = self.file.start_writeback(self.writeback_to, end - self.writeback_to);
            self.writeback_to = end;
        }
        Ok(())
    }

    /// Takes space ahead of `end` once half of the reserve is used, while there is any.
    fn reserve(&mut self, end: u64, options: &WalOptions) {
        if options.reserve_bytes == 0 || self.reserved_to >= end + options.reserve_bytes / 2 {
            return;
        }
        let most = HEADER_BYTES + options.segment_bytes;
        let to = (end + options.reserve_bytes).min(most.max(end));
        if to > self.reserved_to {
            // On a full disk the write itself decides; the reserve is then what is used up.
            let took = self.file.allocate(self.reserved_to, to - self.reserved_to);
            self.short = took.is_err();
            self.reserved_to = if took.is_ok() { to } else { self.reserved_to };
        }
    }

    /// Cuts off, durably, whatever a failed write left behind `end`. If it fails nobody knows what
    /// a reader of this file would find.
    pub(crate) fn cut(&self, end: Lsn) -> Result<()> {
        self.file.set_len(self.offset(end))?;
        self.file.sync()
    }
}
