//! Memory for blocks, arenas and I/O: [`Buf`] is unique and writable, [`Bytes`] is shared and
//! read-only. (Backing by mapped size classes follows; rule 24.)

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use crate::limits::PAGE_BYTES;

/// A zeroed page with the alignment that direct I/O needs.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A unique, writable buffer, aligned to [`PAGE_BYTES`].
pub struct Buf {
    pages: Vec<Page>,
    len: usize,
}

impl Buf {
    /// A zeroed buffer of `len` bytes.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let pages = vec![bytemuck::Zeroable::zeroed(); len.div_ceil(PAGE_BYTES)];
        Self { pages, len }
    }

    /// Cuts the buffer to `len` bytes (no effect if it is shorter).
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes it shareable.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        let range = 0..self.len;
        Bytes { buf: Arc::new(self), range }
    }
}

impl std::fmt::Debug for Buf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buf({} bytes)", self.len)
    }
}

impl Deref for Buf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.pages)[..self.len]
    }
}

impl DerefMut for Buf {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.pages)[..self.len]
    }
}

/// A shared, read-only part of a [`Buf`]. Cloning counts a reference.
#[derive(Clone)]
pub struct Bytes {
    buf: Arc<Buf>,
    range: Range<usize>,
}

impl Bytes {
    /// A copy of `bytes`.
    #[must_use]
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut buf = Buf::zeroed(bytes.len());
        buf.copy_from_slice(bytes);
        buf.freeze()
    }

    /// The part at `range`.
    ///
    /// # Panics
    /// If the range lies outside.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.range.len());
        let range = self.range.start + range.start..self.range.start + range.end;
        Self { buf: Arc::clone(&self.buf), range }
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} bytes)", self.range.len())
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buf[self.range.clone()]
    }
}
