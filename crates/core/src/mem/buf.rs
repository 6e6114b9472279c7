//! [`Buf`], the only owner of a block, and [`Bytes`], a shared owner.
//!
//! Invariant: the bytes `start..start + len` are initialised, and exist as long as their block.
//! Only a `Buf` can write the bytes; a `Bytes` only reads them.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

use super::allocator::Block;
use crate::limits::PAGE_BYTES;
use crate::sync::Arc;

/// A writable buffer of fixed size, with one owner.
///
/// If the buffer has [`PAGE_BYTES`] bytes or more, address and capacity are multiples of
/// [`PAGE_BYTES`], as direct I/O requires, unless [`packed`](Self::packed) created the buffer.
pub struct Buf {
    block: Block,
    len: usize,
}

impl Buf {
    /// Creates a buffer of `len` zeros.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        Self { block: Block::alloc_zeroed(len, len >= PAGE_BYTES), len }
    }

    /// Creates a page-aligned buffer of `len` bytes with unspecified contents (old blocks, zeros).
    /// For a caller that overwrites the whole buffer.
    #[must_use]
    pub fn paged(len: usize) -> Self {
        Self { block: Block::alloc(len, true), len }
    }

    /// Creates a buffer of `len` bytes with unspecified contents, aligned to 16 bytes. Its size is
    /// rounded up less than with [`paged`](Self::paged). For decoded blocks, which are kept for
    /// long and are never read from or written to disk.
    #[must_use]
    pub fn packed(len: usize) -> Self {
        Self { block: Block::alloc(len, false), len }
    }

    /// Creates a packed buffer with a copy of `bytes`.
    #[must_use]
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut buf = Self::packed(bytes.len());
        buf.copy_from_slice(bytes);
        buf
    }

    /// Truncates the buffer to at most `len` bytes, and keeps the memory.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns the bytes of memory, including rounding: the number to charge to the budget.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.block.bytes() + size_of::<Self>()
    }

    /// Converts the buffer to a shared, read-only one.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes { start: self.block.start(), len: self.len, owner: Arc::new(self) }
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} bytes)", self.len)
    }
}

impl Deref for Buf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the buffer owns the block, which holds at least `len` initialised bytes; `&self`
        // excludes writers.
        unsafe { std::slice::from_raw_parts(self.block.start().as_ptr(), self.len) }
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `&mut self` excludes all other access.
        unsafe { std::slice::from_raw_parts_mut(self.block.start().as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Buf {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

/// A shared, read-only part of a [`Buf`]. A clone increments a reference count.
///
/// A `Bytes` stores an address instead of a range of the owner, because every lookup reads blocks
/// through a `Bytes`: an access through the owner would add a dependent load and a bounds check to
/// the hot path.
#[derive(Clone)]
pub struct Bytes {
    start: NonNull<u8>,
    len: usize,
    owner: Arc<Buf>,
}

// SAFETY: the bytes belong to a block that the owner keeps alive and that no thread writes once a
// `Buf` is frozen.
unsafe impl Send for Bytes {}
// SAFETY: as above.
unsafe impl Sync for Bytes {}

impl Bytes {
    /// Creates a shared buffer with a copy of `bytes`.
    #[must_use]
    pub fn copy_from(bytes: &[u8]) -> Self {
        Buf::copy_from(bytes).freeze()
    }

    /// Returns the part of these bytes at `range`.
    ///
    /// # Panics
    /// If the range is not inside these bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "slice out of range");
        // SAFETY: the range was checked to lie inside this part.
        let start = unsafe { self.start.add(range.start) };
        Self { start, len: range.end - range.start, owner: Arc::clone(&self.owner) }
    }

    /// Returns the bytes of memory that this part keeps alive: the whole buffer, which all its
    /// parts share.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.owner.footprint() + 2 * size_of::<usize>()
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({} bytes)", self.len)
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: `start..start + len` lies in the owner's block, which lives as long as `self` and
        // is no longer written.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl From<Buf> for Bytes {
    fn from(buf: Buf) -> Self {
        buf.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_a_page_and_more_are_aligned_for_direct_io() {
        for len in [4096, 4097, 5000, 16 << 10, 100_000, 1 << 20, 5 << 20] {
            for buf in [Buf::zeroed(len), Buf::paged(len)] {
                assert_eq!(buf.len(), len);
                assert_eq!(buf.as_ptr().addr() % PAGE_BYTES, 0);
            }
        }
        assert_eq!(Buf::paged(10).as_ptr().addr() % PAGE_BYTES, 0);
        assert!(Buf::packed(17_000).footprint() < Buf::paged(17_000).footprint());
    }

    #[test]
    fn a_zeroed_buffer_is_zero_after_reuse_too() {
        for len in [0, 1, 1000, 1024, 20_000, 4 << 20, (4 << 20) + 1] {
            let mut dirty = Buf::paged(len);
            dirty.fill(0xa5);
            drop(dirty);
            assert!(Buf::zeroed(len).iter().all(|&byte| byte == 0), "length {len}");
        }
    }

    #[test]
    fn parts_share_the_buffer_and_keep_it_alive() {
        let whole = Bytes::copy_from(b"0123456789");
        let part = whole.slice(2..7).slice(1..4);
        drop(whole);
        assert_eq!(&*part, b"345");
        assert_eq!(&*part.slice(3..3), b"");
        let mut buf = Buf::copy_from(b"abc");
        buf.truncate(2);
        buf.truncate(5);
        assert_eq!(&*buf.freeze(), b"ab");
        assert_eq!(&*Bytes::copy_from(b""), b"");
    }

    #[test]
    #[should_panic(expected = "slice out of range")]
    fn a_slice_outside_the_buffer_panics() {
        let _ = Bytes::copy_from(b"0123456789").slice(2..7).slice(1..6);
    }
}
