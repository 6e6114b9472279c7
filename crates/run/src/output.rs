//! The output stream of runs: acquires extents in advance, writes in large aligned pieces, and
//! returns the extents of each run.
//!
//! All runs of a flush share one stream, so that they become one large sequential write.
//!
//! ```text
//!  acquired   |------ extent 1 ------|-- extent 2 --|--- extent 3 ---|
//!  runs       |  run a  |p|  run b   :   run b  |p|     run c    |p|  released
//! ```
//!
//! Each run begins at a page (`p` is padding with zeros) and may continue in the next extent. Life
//! cycle: `new`, then for each run `write`... and [`end_run`](Output::end_run), then
//! [`finish`](Output::finish). A stream that is dropped before `finish` releases every extent that
//! it acquired: the manifest cannot name any of them yet. Used by one thread at a time.

use frondb_core::Result;
use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_space::{Class, Extent, Space};

/// Bytes per write to the device. Larger writes would make a reader's request wait longer for a
/// running write.
const BUFFER_BYTES: usize = 128 * 1024;

/// Maximum number of pages acquired in one call (4 MiB).
const ACQUIRE_PAGES_MAX: u64 = 4 * 1024 * 1024 / PAGE_BYTES as u64;

/// The output stream of runs; see the module documentation.
pub struct Output {
    space: Arc<Space>,
    cause: WriteCause,
    class: Class,
    reserved: bool,
    /// Bytes expected in total: a hint for the size of the next extent.
    expected: u64,
    /// The extent being filled, and the number of its pages already on the device.
    extent: Option<Extent>,
    pages_written: u32,
    /// Page of the extent at which the current run's part begins.
    part_start: u32,
    buf: Buf,
    filled: usize,
    /// Extents, or parts of extents, of the current run.
    run_extents: Vec<Extent>,
    run_bytes: u64,
    /// All extents acquired so far, which are released on failure.
    acquired: Vec<Extent>,
    bytes_written: u64,
}

impl Output {
    /// Creates a stream into `space` that expects about `expected_bytes` and counts its writes for
    /// `cause`. `reserved` lets the stream use the space that is reserved for a full disk.
    #[must_use]
    pub fn new(
        space: Arc<Space>,
        cause: WriteCause,
        class: Class,
        expected_bytes: u64,
        reserved: bool,
    ) -> Self {
        let buf_bytes = (expected_bytes.min(BUFFER_BYTES as u64) as usize)
            .next_multiple_of(PAGE_BYTES)
            .max(PAGE_BYTES);
        Self {
            space,
            cause,
            class,
            reserved,
            expected: expected_bytes,
            extent: None,
            pages_written: 0,
            part_start: 0,
            buf: Buf::zeroed(buf_bytes),
            filled: 0,
            run_extents: Vec::new(),
            run_bytes: 0,
            acquired: Vec::new(),
            bytes_written: 0,
        }
    }

    /// Sets the size of one write, in bytes. REQUIRES: nothing was written yet.
    #[must_use]
    pub fn with_buffer(mut self, bytes: usize) -> Self {
        debug_assert_eq!(self.filled, 0, "what was written would be lost");
        let bytes = bytes.min(self.expected as usize).next_multiple_of(PAGE_BYTES);
        self.buf = Buf::zeroed(bytes.max(PAGE_BYTES));
        self
    }

    /// Returns the number of bytes of the current run so far.
    #[must_use]
    pub fn run_bytes(&self) -> u64 {
        self.run_bytes
    }

    /// Returns the number of bytes sent to the device so far, padding included.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Appends to the current run.
    ///
    /// # Errors
    /// `NoSpace` or an error of the device. After an error the stream can only be dropped.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.run_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = self.room()?;
            let n = room.min(bytes.len());
            self.buf[self.filled..self.filled + n].copy_from_slice(&bytes[..n]);
            self.filled += n;
            bytes = &bytes[n..];
        }
        Ok(())
    }

    /// Ends the current run at a page boundary and returns its extents.
    pub fn end_run(&mut self) -> Vec<Extent> {
        let end = self.filled.next_multiple_of(PAGE_BYTES);
        self.buf[self.filled..end].fill(0);
        self.filled = end;
        self.close_part();
        self.run_bytes = 0;
        std::mem::take(&mut self.run_extents)
    }

    /// Writes the buffer and releases the acquired space that was not used. The extents of ended
    /// runs then belong to the caller. Returns the bytes written, padding included.
    ///
    /// # Errors
    /// Errors of the device. After an error all extents are released, including the extents of
    /// ended runs.
    pub fn finish(mut self) -> Result<u64> {
        debug_assert!(self.run_extents.is_empty(), "the last run was not ended");
        self.write_buffer()?;
        if let Some(extent) = self.extent.take() {
            self.space.shrink(extent, self.pages_written);
        }
        self.acquired.clear();
        Ok(self.bytes_written)
    }

    /// Returns the room in the buffer, in bytes. Acquires an extent and writes the full buffer if
    /// necessary.
    fn room(&mut self) -> Result<usize> {
        loop {
            let Some(extent) = self.extent else {
                self.acquire()?;
                continue;
            };
            let pages_left = (extent.pages - self.pages_written) as usize;
            let limit = self.buf.len().min(pages_left * PAGE_BYTES);
            if self.filled < limit {
                return Ok(limit - self.filled);
            }
            let full = limit == pages_left * PAGE_BYTES;
            if full {
                self.close_part();
            }
            self.write_buffer()?;
            if full {
                self.extent = None;
            }
        }
    }

    fn acquire(&mut self) -> Result<()> {
        let left = self.expected.saturating_sub(self.bytes_written).div_ceil(PAGE_BYTES as u64);
        // Beyond the expected size, acquire an eighth of what was written, at least one buffer.
        let grown = self.bytes_written / (8 * PAGE_BYTES as u64);
        let least = (self.buf.len() / PAGE_BYTES) as u64;
        let pages = left.max(grown).clamp(least, ACQUIRE_PAGES_MAX.max(least)) as u32;
        let extent = if self.reserved {
            self.space.acquire_reserved(pages, self.class)?
        } else {
            self.space.acquire(pages, self.class)?
        };
        self.acquired.push(extent);
        self.extent = Some(extent);
        self.pages_written = 0;
        self.part_start = 0;
        Ok(())
    }

    /// Assigns the pages of the current extent from `part_start` on to the current run.
    fn close_part(&mut self) {
        let Some(extent) = self.extent else { return };
        let end = self.pages_written + (self.filled / PAGE_BYTES) as u32;
        if end == self.part_start {
            return;
        }
        let (page, pages) = (extent.page + self.part_start, end - self.part_start);
        self.part_start = end;
        match self.run_extents.last_mut() {
            // Extents acquired one by one are often adjacent.
            Some(last) if last.file == extent.file && last.end() == page => last.pages += pages,
            _ => self.run_extents.push(Extent { file: extent.file, page, pages }),
        }
    }

    /// Writes whole pages to the device.
    fn write_buffer(&mut self) -> Result<()> {
        let Some(extent) = self.extent else { return Ok(()) };
        debug_assert!(self.filled.is_multiple_of(PAGE_BYTES));
        if self.filled > 0 {
            let offset = u64::from(self.pages_written) * PAGE_BYTES as u64;
            self.space.write(self.cause, extent, offset, &self.buf[..self.filled])?;
            self.pages_written += (self.filled / PAGE_BYTES) as u32;
            self.bytes_written += self.filled as u64;
            self.filled = 0;
        }
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        for extent in self.acquired.drain(..) {
            self.space.release(extent);
        }
    }
}
