//! Reads spans of a run's logical bytes from its extents, aligned as direct I/O requires.

use frondb_core::limits::PAGE_BYTES;
use frondb_core::mem::Buf;
use frondb_core::{Error, Result};
use frondb_space::{Extent, ExtentRead, Space};

/// The purpose of a cursor, or of the read of a part of the block index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// A user's scan: reads through the cache, first in small pieces.
    Scan,
    /// A merge: bypasses the cache and reads large windows.
    Merge,
}

/// Bytes read from a run: whole pages, and the position of the requested span in them.
pub(crate) struct Span {
    buf: Buf,
    start: usize,
    len: usize,
}

impl Span {
    /// Returns an unread span of `len` bytes at `offset`, and the offset of its first page.
    fn around(offset: u64, len: usize) -> (Self, u64) {
        let page = PAGE_BYTES as u64;
        let first = offset / page * page;
        let start = (offset - first) as usize;
        let buf = Buf::paged((start + len).next_multiple_of(PAGE_BYTES));
        (Self { buf, start, len }, first)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buf[self.start..self.start + self.len]
    }
}

/// Reads `len` bytes at logical `offset` of a run whose extents are `extents`, in order.
pub(crate) fn read_span(
    space: &Space,
    extents: &[Extent],
    offset: u64,
    len: usize,
) -> Result<Span> {
    let (mut span, first) = Span::around(offset, len);
    let mut filled = 0;
    for (extent, skip, n) in pieces(extents, first, span.buf.len()) {
        space.read(extent, skip, &mut span.buf[filled..filled + n])?;
        filled += n;
    }
    if filled == span.buf.len() {
        Ok(span)
    } else {
        Err(beyond_the_end(space, SpanPlace { extents, offset, len }))
    }
}

/// A span of one of the runs of a space, for [`read_spans`].
#[derive(Clone, Copy)]
pub(crate) struct SpanPlace<'a> {
    pub(crate) extents: &'a [Extent],
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

/// Reads several spans, concurrently if the device can. The results are in the order of `places`.
pub(crate) fn read_spans(space: &Space, places: &[SpanPlace<'_>]) -> Vec<Result<Span>> {
    let mut spans: Vec<(Span, u64)> =
        places.iter().map(|place| Span::around(place.offset, place.len)).collect();
    let mut results: Vec<Result<()>> = Vec::with_capacity(places.len());
    let (mut reads, mut span_of_read) = (Vec::with_capacity(places.len()), Vec::new());
    for (i, (place, (span, first))) in places.iter().zip(&mut spans).enumerate() {
        let mut rest = &mut span.buf[..];
        for (extent, byte_offset, n) in pieces(place.extents, *first, rest.len()) {
            let (buf, after) = rest.split_at_mut(n);
            reads.push(ExtentRead { extent, byte_offset, buf });
            span_of_read.push(i);
            rest = after;
        }
        let is_whole = rest.is_empty();
        let whole = if is_whole { Ok(()) } else { Err(beyond_the_end(space, *place)) };
        results.push(whole);
    }
    for (i, result) in span_of_read.into_iter().zip(space.read_many(reads)) {
        // Keep the first error of a span.
        if results[i].is_ok() {
            results[i] = result;
        }
    }
    let spans = spans.into_iter().zip(results);
    spans.map(|((span, _), result)| result.map(|()| span)).collect()
}

/// Splits `len` bytes at logical offset `first`, whole pages, at the ends of extents. Returns for
/// each piece the extent, the offset in the extent, and the length.
fn pieces(
    extents: &[Extent],
    first: u64,
    len: usize,
) -> impl Iterator<Item = (Extent, u64, usize)> {
    let (mut skip, mut rest) = (first, len);
    extents.iter().filter_map(move |extent| {
        if skip >= extent.bytes() {
            skip -= extent.bytes();
            return None;
        }
        let n = ((extent.bytes() - skip) as usize).min(rest);
        let piece = (*extent, skip, n);
        (skip, rest) = (0, rest - n);
        (n > 0).then_some(piece)
    })
}

/// Returns the error for a span beyond the run's end: the run's metadata or block index is wrong.
fn beyond_the_end(space: &Space, place: SpanPlace<'_>) -> Error {
    let SpanPlace { extents, offset, len } = place;
    let (file, at) = locate(space, extents, offset);
    let message = format!("a read of {len} bytes at {offset} reaches beyond the end of the run");
    Error::corruption(file, at, "run", message)
}

/// Returns whether a position, as [`locate`] returns it, lies in one of the extents.
pub(crate) fn holds(space: &Space, extents: &[Extent], file: &str, offset: u64) -> bool {
    extents.iter().any(|extent| {
        (extent.offset()..extent.offset() + extent.bytes()).contains(&offset)
            && space.file(extent.file).is_ok_and(|of| of.name() == file)
    })
}

/// Returns the file name and file offset of logical `offset`, for an error message.
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
