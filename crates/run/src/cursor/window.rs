//! The blocks that a cursor has read ahead.

use std::ops::Range;

use crate::charge::Charge;
use crate::read::Span;

/// Consecutive encoded blocks.
pub(super) struct Window {
    pub(super) blocks: Range<usize>,
    /// Logical offset of the first block.
    pub(super) offset: u64,
    pub(super) span: Span,
    /// Whether the blocks are inserted into the cache when they are decoded.
    pub(super) is_cached: bool,
    /// A reader's charge for the window. `None` for a single block, which `fetch` has charged, and
    /// in a merge, which has reserved its memory in advance.
    pub(super) _charge: Option<Charge>,
}

impl Window {
    /// Returns the frame of a block of the window, by its logical offset and length.
    pub(super) fn frame(&self, offset: u64, len: usize) -> &[u8] {
        let at = (offset - self.offset) as usize;
        &self.span.bytes()[at..at + len]
    }
}
