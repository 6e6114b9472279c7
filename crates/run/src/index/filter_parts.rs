//! [`FilterParts`]: the parts of the run's filter that cover the blocks of one part of its index.
//!
//! A part of the filter lies within one part of the index, because a filter part that is under
//! construction ends with the index part.

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Reader, Truncated};
use frondb_core::mem::Array;

use super::separator::Separator;

/// A part of a run's filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterPart {
    /// Number of the part in the run.
    pub(crate) part: u32,
    /// Offset of the part's frame from the end of the index.
    pub(crate) offset: u32,
    /// Length of the part's frame in bytes.
    pub(crate) bytes: u32,
}

/// The filter parts that cover the blocks of one part of the index: number and frame offset of the
/// first filter part, number of filter parts, and bytes of their frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FilterSpan {
    pub(crate) first: u32,
    pub(crate) offset: u32,
    pub(crate) parts: u32,
    pub(crate) bytes: u32,
}

/// The parts of a filter, and the blocks that each covers. Blocks are numbered from the first block
/// of the index part.
#[derive(Debug)]
pub(super) struct FilterParts {
    span: FilterSpan,
    /// The end of each part's blocks, as a block number.
    blocks: Array<u32>,
    /// The end of each part's frame, relative to the first frame.
    ends: Array<u32>,
    /// Prefix of the separator of each part's first block.
    prefixes: Array<u64>,
}

impl FilterParts {
    pub(super) fn none() -> Self {
        Self {
            span: FilterSpan::default(),
            blocks: Array::new(),
            ends: Array::new(),
            prefixes: Array::new(),
        }
    }

    /// Returns a list of one part, which covers `blocks` blocks.
    pub(super) fn one(span: FilterSpan, blocks: u32) -> Result<Self, Truncated> {
        let mut parts = Self { span, ..Self::none() };
        parts.push(blocks, span.bytes)?;
        Ok(parts)
    }

    /// Decodes the parts of `span`, which cover `blocks` blocks.
    pub(super) fn decode(
        input: &mut Reader<'_>,
        span: FilterSpan,
        blocks: u32,
    ) -> Result<Self, Truncated> {
        if u64::from(span.parts) > input.rest().len() as u64 {
            return Err(Truncated);
        }
        let count = span.parts as usize;
        let mut parts = Self {
            span,
            blocks: Array::with_capacity(count),
            ends: Array::with_capacity(count),
            prefixes: Array::with_capacity(count),
        };
        for _ in 0..count {
            parts.push(input.varint_u32()?, input.varint_u32()?)?;
        }
        let ends = (parts.blocks.last().copied(), parts.ends.last().copied());
        if ends == (Some(blocks), Some(span.bytes)) { Ok(parts) } else { Err(Truncated) }
    }

    /// Appends a part of `bytes` bytes that covers the next `blocks` blocks.
    fn push(&mut self, blocks: u32, bytes: u32) -> Result<(), Truncated> {
        if blocks == 0 || bytes == 0 {
            return Err(Truncated);
        }
        let after = |ends: &Array<u32>, more| {
            ends.last().copied().unwrap_or(0).checked_add(more).ok_or(Truncated)
        };
        let (blocks, end) = (after(&self.blocks, blocks)?, after(&self.ends, bytes)?);
        self.blocks.push(blocks);
        self.ends.push(end);
        Ok(())
    }

    /// Stores the prefixes of the separators of the parts' first blocks, for searches.
    pub(super) fn set_separators<'a>(&mut self, separator: impl Fn(u32) -> Separator<'a>) {
        for part in 0..self.ends.len() {
            let first = if part == 0 { 0 } else { self.blocks[part - 1] };
            self.prefixes.push(key_prefix(&separator(first).to_vec()));
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.allocated() + self.ends.allocated() + self.prefixes.allocated()
    }

    /// Returns the part that covers `block`; `None` if the run has no filter.
    #[inline]
    pub(super) fn of_block(&self, block: u32) -> Option<FilterPart> {
        self.part(self.blocks.partition_point(|&end| end <= block))
    }

    /// Returns the part that contains `key` if any part does; `None` if the run has no filter.
    /// `separator` returns the separator of a block.
    #[inline]
    pub(super) fn of_key<'a>(
        &self,
        key: &[u8],
        separator: impl Fn(u32) -> Separator<'a>,
    ) -> Option<FilterPart> {
        let prefix = key_prefix(key);
        let (mut lo, mut hi) = (1, self.prefixes.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            // A key that continues across the boundary of two parts is in both.
            let not_above = match self.prefixes[mid].cmp(&prefix) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Greater => false,
                std::cmp::Ordering::Equal => separator(self.blocks[mid - 1]) <= *key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        self.part(lo - 1)
    }

    fn part(&self, part: usize) -> Option<FilterPart> {
        let end = *self.ends.get(part)?;
        let offset = if part == 0 { 0 } else { self.ends[part - 1] };
        let FilterSpan { first, offset: base, .. } = self.span;
        Some(FilterPart { part: first + part as u32, offset: base + offset, bytes: end - offset })
    }
}
