//! Reading spans of a run's logical bytes from its extents, aligned as direct I/O needs.

use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::{Error, Result};
use frondb_space::{Extent, Space};

/// The purpose of a cursor, or of the read of a part of the block index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// A user's scan: through the cache, small reads first.
    Scan,
    /// A merge: bypasses the cache, large windows.
    Merge,
}

/// Bytes read from a run: whole pages, and the offset of the requested span in them.
pub(crate) struct Span {
    buf: Buf,
    start: usize,
    len: usize,
}

impl Span {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[self.start..self.start + self.len]
    }
}

/// Reads `len` bytes at logical `offset` of the space that `extents` make up.
pub(crate) fn read_span(
    space: &Space,
    extents: &[Extent],
    offset: u64,
    len: usize,
) -> Result<Span> {
    let page = PAGE_BYTES as u64;
    let first = offset / page * page;
    let start = (offset - first) as usize;
    let mut buf = Buf::paged((start + len).next_multiple_of(PAGE_BYTES));
    let (mut skip, mut filled) = (first, 0);
    for extent in extents {
        if skip >= extent.bytes() {
            skip -= extent.bytes();
            continue;
        }
        let n = ((extent.bytes() - skip) as usize).min(buf.len() - filled);
        space.read(*extent, skip, &mut buf[filled..filled + n])?;
        filled += n;
        skip = 0;
        if filled == buf.len() {
            return Ok(Span { buf, start, len });
        }
    }
    Err(Error::internal(format!(
        "a read of {len} bytes at {offset} reaches beyond the end of the run"
    )))
}

/// File name and offset of logical `offset`, for the message of a corruption.
pub(crate) fn locate(space: &Space, extents: &[Extent], offset: u64) -> (String, u64) {
    let mut skip = offset;
    for extent in extents {
        if skip < extent.bytes() {
            let name = space.file(extent.file).map_or_else(|_| "data".into(), |f| f.name().into());
            return (name, extent.offset() + skip);
        }
        skip -= extent.bytes();
    }
    (String::from("data"), offset)
}
