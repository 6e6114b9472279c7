//! [`BlockIndex`]: one part of a block index in memory, or all of it if it has one part.
//!
//! The part is packed, about eight bytes a block, because a part that does not fit into memory has
//! to be read again and again. Sixteen blocks are a *group*. A search compares eight bytes of the
//! groups' first separators, then walks the packed blocks of one group. Immutable, so any thread
//! may search it.
//!
//! ```text
//!  common     number of bytes that the first separators of all groups but the first share
//!  prefixes   the next eight bytes of these separators; 0 for the first group
//!  places     the place of each group in `packed`
//!  packed     | group | group | ...
//!  group      length of the separators | separators | offset, rank, bytes, entries | sizes
//!  separator  head | rest of the separator
//!  size       bytes | entries
//! ```
//! `offset` and `rank` are the bytes and the entries from the part's first block to the group's
//! first block; `bytes` and `entries` are the sizes of that block. The sizes of each block are
//! stored as differences to these two numbers. `head` holds the number of bytes that the separator
//! shares with the first non-empty separator of its group, and the length of the rest, in four bits
//! each ([`PackedHead`](super::packed::PackedHead)). A search reads only the separators;
//! [`BlockIndex::extent`] and [`BlockIndex::rank`] read only the sizes.
//!
//! Blocks, offsets and ranks in the interface are counted from the beginning of the run. An index
//! rebuilt by a salvage may have gaps: blocks that cannot be decoded, whose keys may lie anywhere
//! from their separator to the separator of the next block, both included ([`crate::rebuild`]).

use std::cmp::Ordering;
use std::ops::Range;

use frondb_core::chunk::key_prefix;
use frondb_core::mem::Array;

use super::filter_parts::{FilterPart, FilterParts};
use super::packed::{PackedSeparators, PackedSizes, take_varint};
use super::separator::Separator;

/// Blocks of a group. A walk over a group takes a few nanoseconds a block, and each group costs
/// about twenty bytes of its own.
pub(super) const GROUP_BLOCKS: usize = 16;

/// Decoded block index of a run, or a part of it. Immutable.
#[derive(Debug)]
pub struct BlockIndex {
    /// Number, logical offset and rank of the first block.
    pub(super) first: usize,
    pub(super) offset: u64,
    pub(super) rank: u64,
    /// Number of blocks, and their bytes and entries.
    pub(super) blocks: usize,
    pub(super) bytes: u64,
    pub(super) entries: u64,
    /// Number of bytes that the first separators of all groups but the first share.
    pub(super) common: usize,
    pub(super) prefixes: Array<u64>,
    pub(super) places: Array<u32>,
    pub(super) packed: Array<u8>,
    pub(super) filters: FilterParts,
    /// Separator of the block after the last one, and whether that block continues a key. `None`
    /// for the last part.
    pub(super) next: Option<(Box<[u8]>, bool)>,
}

/// One block of a group.
pub(super) struct Packed<'a> {
    pub(super) separator: Separator<'a>,
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) continues: bool,
}

impl BlockIndex {
    /// Creates an index without blocks, to be filled by an [`IndexPacker`](super::IndexPacker).
    pub(super) fn with_capacity(blocks: usize) -> Self {
        let groups = blocks.div_ceil(GROUP_BLOCKS);
        Self {
            first: 0,
            offset: 0,
            rank: 0,
            blocks: 0,
            bytes: 0,
            entries: 0,
            common: 0,
            prefixes: Array::with_capacity(groups),
            places: Array::with_capacity(groups),
            packed: Array::new(),
            filters: FilterParts::none(),
            next: None,
        }
    }

    /// Returns the number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// Returns `false`: every part has a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Returns the numbers of the blocks.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> Range<usize> {
        self.first..self.first + self.blocks
    }

    /// Returns the number of bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.prefixes.allocated()
            + self.places.allocated()
            + self.packed.allocated()
            + self.filters.memory_bytes()
            + self.next.as_ref().map_or(0, |(separator, _)| separator.len())
    }

    /// Returns the separator of `block`, which is in this part or is the first block after the
    /// part.
    #[must_use]
    pub fn separator(&self, block: usize) -> Separator<'_> {
        debug_assert!(block >= self.first, "block {block} is before {}", self.first);
        if let Some((separator, _)) = &self.next
            && block == self.blocks().end
        {
            return Separator::whole(separator);
        }
        debug_assert!(block < self.blocks().end, "block {block} of {}", self.blocks().end);
        self.block(block).map_or(Separator::whole(&[]), |block| block.separator)
    }

    /// Returns the separator of the block after `block`; `None` for the last block of the run.
    #[must_use]
    pub fn separator_after(&self, block: usize) -> Option<Separator<'_>> {
        let has_more = block + 1 < self.blocks().end || self.next.is_some();
        has_more.then(|| self.separator(block + 1))
    }

    /// Returns whether this is the last part of the index.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.next.is_none()
    }

    /// Returns the logical offset and length of `block`.
    #[must_use]
    pub fn extent(&self, block: usize) -> (u64, usize) {
        debug_assert!(self.blocks().contains(&block), "block {block} of {:?}", self.blocks());
        let number = block - self.first;
        let mut sizes = self.sizes(number / GROUP_BLOCKS);
        let start = self.offset + sizes.offset;
        let within = sizes.by_ref().take(number % GROUP_BLOCKS);
        let before: u64 = within.map(|(bytes, _)| bytes).sum();
        (start + before, sizes.next().map_or(0, |(bytes, _)| bytes as usize))
    }

    /// Returns the number of the run's entries in the blocks before `block`, which is in this part
    /// or is the first block after the part.
    #[must_use]
    pub fn rank(&self, block: usize) -> u64 {
        if block >= self.blocks().end {
            return self.rank + self.entries;
        }
        let number = block - self.first;
        let sizes = self.sizes(number / GROUP_BLOCKS);
        let start = self.rank + sizes.rank;
        start + sizes.take(number % GROUP_BLOCKS).map(|(_, entries)| entries).sum::<u64>()
    }

    /// Returns whether `block` begins with the last key of its predecessor. `block` is in this part
    /// or is the first block after the part.
    #[must_use]
    pub fn continues(&self, block: usize) -> bool {
        if block >= self.blocks().end {
            return self.next.as_ref().is_some_and(|(_, continues)| *continues);
        }
        self.block(block).is_some_and(|block| block.continues)
    }

    /// Returns whether a search for `key` in the whole index ends in this part.
    #[must_use]
    pub fn holds(&self, key: &[u8]) -> bool {
        // A key that continues across the boundary of two parts begins in the first of them.
        let begins = || match self.separator(self.first) {
            separator if separator == *key => self.first == 0 || !self.continues(self.first),
            separator => separator < *key,
        };
        let ends = |(separator, continues): &(Box<[u8]>, bool)| match (**separator).cmp(key) {
            Ordering::Less => false,
            Ordering::Equal => *continues,
            Ordering::Greater => true,
        };
        self.next.as_ref().is_none_or(ends) && begins()
    }

    /// Returns the first block that can hold `key`; if none can, the block into which `key` sorts.
    /// Larger keys are in this block or later ones, smaller keys in this block or earlier ones.
    /// REQUIRES: the part [`holds`](Self::holds) the key.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let group = self.find_group(key);
        let (last, may_continue) = self.separators(group).last_not_above(key);
        let mut block = self.first + group * GROUP_BLOCKS + last;
        if !may_continue {
            return block;
        }
        // The newest versions of a key that fills several blocks are in the first of these blocks.
        while block > self.first
            && let Some(Packed { separator, continues: true, .. }) = self.block(block)
            && separator == *key
        {
            block -= 1;
        }
        block
    }

    /// Returns the end of the blocks that may have keys below `key`. REQUIRES: as
    /// [`find`](Self::find).
    #[must_use]
    pub fn end_before(&self, key: &[u8]) -> usize {
        let block = self.find(key);
        // A block whose separator equals the key has no entry below it.
        if self.separator(block) < *key { block + 1 } else { block }
    }

    /// Returns the last group whose first separator is not above `key`.
    #[inline]
    fn find_group(&self, key: &[u8]) -> usize {
        if self.prefixes.len() < 2 {
            return 0;
        }
        let (begin, rest) = key.split_at(self.common.min(key.len()));
        match begin.cmp(&self.first_separator(1)[..self.common]) {
            Ordering::Less => return 0,
            Ordering::Equal => {}
            Ordering::Greater => return self.prefixes.len() - 1,
        }
        let prefix = key_prefix(rest);
        let (mut lo, mut hi) = (1, self.prefixes.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            let not_above = match self.prefixes[mid].cmp(&prefix) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.first_separator(mid) <= key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        lo - 1
    }

    #[inline]
    pub(super) fn first_separator(&self, group: usize) -> &[u8] {
        self.separators(group).next().map_or(&[], |(_, separator)| separator)
    }

    pub(super) fn block(&self, block: usize) -> Option<Packed<'_>> {
        let number = block - self.first;
        self.walk(number / GROUP_BLOCKS).nth(number % GROUP_BLOCKS)
    }

    /// Returns the packed separators and the packed sizes of a group.
    #[inline]
    fn group(&self, group: usize) -> (&[u8], &[u8]) {
        let end = self.places.get(group + 1).map_or(self.packed.len(), |end| *end as usize);
        let mut packed = &self.packed[self.places[group] as usize..end];
        let length = take_varint(&mut packed).unwrap_or(0) as usize;
        packed.split_at(length.min(packed.len()))
    }

    #[inline]
    fn separators(&self, group: usize) -> PackedSeparators<'_> {
        PackedSeparators(self.group(group).0)
    }

    /// Returns the sizes of a group's blocks.
    #[inline]
    fn sizes(&self, group: usize) -> PackedSizes<'_> {
        PackedSizes::new(self.group(group).1)
    }

    /// Returns the blocks of a group, in order.
    pub(super) fn walk(&self, group: usize) -> impl Iterator<Item = Packed<'_>> {
        let (separators, sizes) = self.group(group);
        let mut first = &[][..];
        let blocks = PackedSeparators(separators).zip(PackedSizes::new(sizes));
        blocks.map(move |((head, tail), (bytes, entries))| {
            let separator = Separator { head: first.get(..head.shared).unwrap_or_default(), tail };
            if first.is_empty() {
                first = tail;
            }
            Packed { separator, bytes, entries, continues: head.continues }
        })
    }

    /// Returns the part of the filter that covers `block`; `None` if the run has no filter.
    #[inline]
    pub(crate) fn filter_part(&self, block: usize) -> Option<FilterPart> {
        self.filters.of_block((block - self.first) as u32)
    }

    /// Returns the part of the filter that contains `key` if any part does; `None` if the run has
    /// no filter. Faster than a search for the key's block, because a part covers dozens of blocks.
    /// REQUIRES: as [`find`](Self::find).
    #[inline]
    pub(crate) fn filter_part_for(&self, key: &[u8]) -> Option<FilterPart> {
        self.filters.of_key(key, |block| self.separator(self.first + block as usize))
    }
}
