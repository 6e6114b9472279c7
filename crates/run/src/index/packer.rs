//! [`IndexPacker`]: builds a part of a block index in memory, block by block.

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Truncated, put_varint};
use frondb_core::mem::Array;

use super::packed::{PackedHead, fold};
use super::part::{BlockIndex, GROUP_BLOCKS};
use super::separator::{may_follow, shared_bytes};

/// A [`BlockIndex`] under construction.
#[derive(Debug)]
pub(crate) struct IndexPacker {
    index: BlockIndex,
    /// Separator of the last block, and the first non-empty separator of its group.
    last: Vec<u8>,
    first: Vec<u8>,
    /// Bytes and entries of the first block of the group.
    base: (u64, u64),
    /// The group under construction: its separators, and its sizes.
    separators: Vec<u8>,
    sizes: Vec<u8>,
}

impl IndexPacker {
    /// Creates an empty index with room for `blocks` blocks, and without a filter.
    pub(crate) fn with_capacity(blocks: usize) -> Self {
        Self {
            index: BlockIndex::with_capacity(blocks),
            last: Vec::new(),
            first: Vec::new(),
            base: (0, 0),
            separators: Vec::new(),
            sizes: Vec::new(),
        }
    }

    /// Appends a block.
    ///
    /// # Errors
    /// [`Truncated`] if the block has no bytes, if its separator contradicts the previous one, or
    /// if a sum overflows.
    pub(crate) fn push(
        &mut self,
        separator: &[u8],
        bytes: u64,
        continues: bool,
        entries: u64,
    ) -> Result<(), Truncated> {
        if self.index.blocks.is_multiple_of(GROUP_BLOCKS) {
            self.end_group()?;
        }
        let Self { index, last, first, base, separators, sizes } = self;
        let is_ordered = index.blocks == 0 || may_follow(last, separator, continues);
        let end = index.bytes.checked_add(bytes).ok_or(Truncated)?;
        let rank = index.entries.checked_add(entries).ok_or(Truncated)?;
        if !is_ordered || bytes == 0 {
            return Err(Truncated);
        }
        if sizes.is_empty() {
            *base = (bytes, entries);
            let start = [index.bytes, index.entries, bytes, entries];
            start.iter().for_each(|number| put_varint(sizes, *number));
            first.clear();
        }
        let shared = shared_bytes(first, separator);
        PackedHead { shared, rest: separator.len() - shared, continues }.encode(separators);
        separators.extend_from_slice(&separator[shared..]);
        put_varint(sizes, fold(base.0, bytes));
        put_varint(sizes, fold(base.1, entries));
        if first.is_empty() {
            first.extend_from_slice(separator);
        }
        last.clear();
        last.extend_from_slice(separator);
        index.blocks += 1;
        (index.bytes, index.entries) = (end, rank);
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), Truncated> {
        let Self { index, separators, sizes, .. } = self;
        if sizes.is_empty() {
            return Ok(());
        }
        index.places.push(u32::try_from(index.packed.len()).map_err(|_| Truncated)?);
        let mut length = Vec::with_capacity(4);
        put_varint(&mut length, separators.len() as u64);
        for bytes in [&length, &*separators, &*sizes] {
            index.packed.extend_from_slice(bytes);
        }
        separators.clear();
        sizes.clear();
        Ok(())
    }

    /// Returns whether the index has no block yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.blocks == 0
    }

    /// Returns the number of entries of all blocks so far.
    pub(crate) fn entries(&self) -> u64 {
        self.index.entries
    }

    /// Returns the finished index.
    ///
    /// # Errors
    /// [`Truncated`] if the index would take more than 4 GiB.
    pub(crate) fn finish(mut self) -> Result<BlockIndex, Truncated> {
        self.end_group()?;
        self.index.packed = Array::from(&self.index.packed[..]);
        let groups = self.index.places.len();
        if groups > 0 {
            self.index.prefixes.push(0);
        }
        if groups > 1 {
            let last = self.index.first_separator(groups - 1);
            self.index.common = shared_bytes(self.index.first_separator(1), last);
        }
        for group in 1..groups {
            let separator = self.index.first_separator(group);
            let prefix = key_prefix(&separator[self.index.common..]);
            self.index.prefixes.push(prefix);
        }
        Ok(self.index)
    }
}
