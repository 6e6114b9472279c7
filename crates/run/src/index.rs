//! The block index of a run in memory: maps a key to its block.
//!
//! ```text
//!  block       0            1            2            3
//!  separator   ""           "f"          "kiwi" (c)   "m"
//!  keys        [a .. elm]   [f .. kiwi]  [kiwi .. l]  [m .. z]
//! ```
//!
//! (c) marks a block that *continues* the last key of its predecessor: versions of one key may fill
//! several blocks, and the separator is then that key itself. Every other separator lies above the
//! last key of the previous block. So the keys of block `i` are in `[separator(i), separator(i +
//! 1))`, including the end if block `i + 1` continues.
//!
//! An index rebuilt by a salvage may have gaps: blocks that cannot be decoded, whose keys may lie
//! anywhere from their separator to the separator of the next block, both included
//! ([`crate::rebuild`]).
//!
//! The index is packed, about twelve bytes a block: what does not fit into memory is read again and
//! again. Eight blocks are a *group*. A search compares 8-byte prefixes of the groups' first
//! separators, then walks the packed entries of one group. Immutable, so any thread may search it.
//!
//! ```text
//!  group      prefix, place, offset and rank of its first block
//!  packed     | first separator, length, entries | shared, rest, length, entries | ...
//! ```
//! `shared` counts the bytes that a separator shares with the first one of its group that is not
//! empty.

use std::cmp::Ordering;

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::mem::Array;

use crate::format::{RunMeta, decode_index_entry};

/// Blocks of a group. A walk over a group takes some ten nanoseconds a block, and each group has 28
/// bytes of its own.
const GROUP_BLOCKS: usize = 8;

/// Decoded block index. Immutable.
#[derive(Debug)]
pub struct BlockIndex {
    blocks: usize,
    /// Bytes and entries of all blocks.
    bytes: u64,
    entries: u64,
    /// Of each group: the prefix of its first separator, the place of its entries in `packed`, the
    /// logical offset of its first block, and the number of entries before it.
    prefixes: Array<u64>,
    places: Array<u32>,
    offsets: Array<u64>,
    ranks: Array<u64>,
    packed: Array<u8>,
    filters: FilterParts,
}

/// The separator of a block: two strings, to be read as one.
#[derive(Clone, Copy, Debug)]
pub struct Separator<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

/// One block of a group.
struct Packed<'a> {
    separator: Separator<'a>,
    bytes: u64,
    entries: u64,
    continues: bool,
}

/// Where the parts of a run's filter are, and which blocks each covers.
#[derive(Debug)]
struct FilterParts {
    /// End of each part's blocks, as a block number.
    blocks: Array<u32>,
    /// End of each part's frame, relative to the first frame.
    ends: Array<u32>,
    /// Prefix of the separator of each part's first block.
    prefixes: Array<u64>,
}

/// A part of a run's filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FilterPart {
    /// Its number.
    pub(crate) part: u32,
    /// Offset of its frame from the end of the index frame.
    pub(crate) offset: u32,
    /// Bytes of its frame.
    pub(crate) bytes: u32,
}

impl BlockIndex {
    /// Decodes the payload of an index frame, which must describe the blocks and the filter of
    /// `meta`.
    ///
    /// # Errors
    /// [`Truncated`] if it does not.
    pub fn decode(payload: &[u8], meta: &RunMeta) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let count = input.varint_u32()?;
        if count != meta.blocks || u64::from(count) > payload.len() as u64 {
            return Err(Truncated);
        }
        let mut packer = IndexPacker::with_capacity(count as usize);
        let mut separator = Vec::new();
        for _ in 0..count {
            let (bytes, continues, entries) = decode_index_entry(&mut input, &mut separator)?;
            if entries == 0 {
                return Err(Truncated);
            }
            packer.push(&separator, bytes, continues, entries)?;
        }
        let mut filters = FilterParts::decode(&mut input, meta)?;
        let index = packer.finish();
        for part in 0..filters.ends.len() {
            let first = if part == 0 { 0 } else { filters.blocks[part - 1] as usize };
            filters.prefixes.push(key_prefix(&index.separator(first).to_vec()));
        }
        let index = Self { filters, ..index };
        let is_whole = index.bytes == meta.blocks_bytes && input.is_empty() && count > 0;
        if is_whole { Ok(index) } else { Err(Truncated) }
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.blocks
    }

    /// Never true: every run has a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.prefixes.allocated()
            + self.places.allocated()
            + self.offsets.allocated()
            + self.ranks.allocated()
            + self.packed.allocated()
            + self.filters.blocks.allocated()
            + self.filters.ends.allocated()
            + self.filters.prefixes.allocated()
    }

    /// The separator of `block`.
    #[must_use]
    pub fn separator(&self, block: usize) -> Separator<'_> {
        debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
        self.block(block).map_or(Separator { head: &[], tail: &[] }, |block| block.separator)
    }

    /// Logical offset and length of `block`.
    #[must_use]
    pub fn extent(&self, block: usize) -> (u64, usize) {
        debug_assert!(block < self.blocks, "block {block} of {}", self.blocks);
        let group = block / GROUP_BLOCKS;
        let mut walk = self.walk(group);
        let before: u64 = walk.by_ref().take(block % GROUP_BLOCKS).map(|block| block.bytes).sum();
        (self.offsets[group] + before, walk.next().map_or(0, |block| block.bytes as usize))
    }

    /// Number of entries in the blocks before `block`; in all blocks if `block` is `len()`.
    #[must_use]
    pub fn rank(&self, block: usize) -> u64 {
        if block >= self.blocks {
            return self.entries;
        }
        let group = block / GROUP_BLOCKS;
        let before = self.walk(group).take(block % GROUP_BLOCKS);
        self.ranks[group] + before.map(|block| block.entries).sum::<u64>()
    }

    /// Whether `block` begins with the last key of its predecessor.
    #[must_use]
    pub fn continues(&self, block: usize) -> bool {
        block < self.blocks && self.block(block).is_some_and(|block| block.continues)
    }

    /// The first block that can hold `key`; if none can, the block where the key would be. Entries
    /// of larger keys begin in this block or after it; no entry of a smaller key follows it.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let group = self.find_group(key);
        let (mut block, mut may_continue) = (group * GROUP_BLOCKS, false);
        for (number, packed) in (block..).zip(self.walk(group)) {
            match packed.separator.compare(key) {
                Ordering::Greater => break,
                order => may_continue = packed.continues && order == Ordering::Equal,
            }
            block = number;
        }
        if !may_continue {
            return block;
        }
        // The newest versions of a key that fills several blocks are in the first of them.
        while block > 0
            && let Some(Packed { separator, continues: true, .. }) = self.block(block)
            && separator == *key
        {
            block -= 1;
        }
        block
    }

    /// The last group whose first separator is not above `key`.
    #[inline]
    fn find_group(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        let (mut lo, mut hi) = (0, self.prefixes.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            let not_above = match self.prefixes[mid].cmp(&prefix) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.first_separator(mid) <= key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        lo.saturating_sub(1)
    }

    /// The first separator of a group, without decoding the rest of its block.
    #[inline]
    fn first_separator(&self, group: usize) -> &[u8] {
        let mut packed = Reader::new(&self.packed[self.places[group] as usize..]);
        let _shared = packed.varint();
        packed.bytes().unwrap_or_default()
    }

    fn block(&self, block: usize) -> Option<Packed<'_>> {
        self.walk(block / GROUP_BLOCKS).nth(block % GROUP_BLOCKS)
    }

    /// The blocks of a group, in order.
    #[inline]
    fn walk(&self, group: usize) -> Walk<'_> {
        let end = self.places.get(group + 1).map_or(self.packed.len(), |end| *end as usize);
        Walk { rest: Reader::new(&self.packed[self.places[group] as usize..end]), first: &[] }
    }

    /// The part of the filter that covers `block`; `None` if the run has no filter.
    #[inline]
    pub(crate) fn filter_part(&self, block: usize) -> Option<FilterPart> {
        self.part(self.filters.blocks.partition_point(|&end| end as usize <= block))
    }

    /// The part of the filter that contains `key` if any part does; `None` if the run has no filter.
    /// Takes less time than a search for the key's block: there are dozens of blocks to a part.
    #[inline]
    pub(crate) fn filter_part_for(&self, key: &[u8]) -> Option<FilterPart> {
        let FilterParts { blocks, prefixes, .. } = &self.filters;
        let prefix = key_prefix(key);
        let (mut lo, mut hi) = (1, prefixes.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            // A key that continues over the boundary of two parts is in both.
            let not_above = match prefixes[mid].cmp(&prefix) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.separator(blocks[mid - 1] as usize) <= *key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        self.part(lo - 1)
    }

    fn part(&self, part: usize) -> Option<FilterPart> {
        let ends = &self.filters.ends;
        let end = *ends.get(part)?;
        let offset = if part == 0 { 0 } else { ends[part - 1] };
        Some(FilterPart { part: part as u32, offset, bytes: end - offset })
    }
}

/// An iterator over the blocks of one group.
struct Walk<'a> {
    rest: Reader<'a>,
    /// The first separator of the group, once its block was returned.
    first: &'a [u8],
}

impl<'a> Iterator for Walk<'a> {
    type Item = Packed<'a>;

    #[inline]
    fn next(&mut self) -> Option<Packed<'a>> {
        // The packed bytes were written by `IndexPacker`, so only their end cannot be decoded.
        let shared = self.rest.varint().ok()? as usize;
        let tail = self.rest.bytes().ok()?;
        let (bytes, entries) = (self.rest.varint().ok()?, self.rest.varint().ok()?);
        let separator = Separator { head: self.first.get(..shared)?, tail };
        if self.first.is_empty() {
            self.first = tail;
        }
        Some(Packed { separator, bytes: bytes >> 1, entries, continues: bytes & 1 == 1 })
    }
}

impl Separator<'_> {
    /// The separator as one string.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        [self.head, self.tail].concat()
    }

    #[inline]
    fn compare(&self, key: &[u8]) -> Ordering {
        let (head, tail) = key.split_at(self.head.len().min(key.len()));
        self.head.cmp(head).then_with(|| self.tail.cmp(tail))
    }
}

impl PartialEq<[u8]> for Separator<'_> {
    #[inline]
    fn eq(&self, key: &[u8]) -> bool {
        self.compare(key) == Ordering::Equal
    }
}

impl PartialOrd<[u8]> for Separator<'_> {
    #[inline]
    fn partial_cmp(&self, key: &[u8]) -> Option<Ordering> {
        Some(self.compare(key))
    }
}

/// A [`BlockIndex`] under construction.
#[derive(Debug)]
pub(crate) struct IndexPacker {
    index: BlockIndex,
    /// Separator of the last block, and of the first block of its group.
    last: Vec<u8>,
    first: Vec<u8>,
    /// Scratch space for one block.
    entry: Vec<u8>,
}

impl IndexPacker {
    /// An empty index with room for `blocks` blocks, and without a filter.
    pub(crate) fn with_capacity(blocks: usize) -> Self {
        let groups = blocks.div_ceil(GROUP_BLOCKS);
        let index = BlockIndex {
            blocks: 0,
            bytes: 0,
            entries: 0,
            prefixes: Array::with_capacity(groups),
            places: Array::with_capacity(groups),
            offsets: Array::with_capacity(groups),
            ranks: Array::with_capacity(groups),
            packed: Array::new(),
            filters: FilterParts::none(),
        };
        Self { index, last: Vec::new(), first: Vec::new(), entry: Vec::new() }
    }

    /// Appends a block.
    ///
    /// # Errors
    /// [`Truncated`] if the block has no bytes, or if its separator contradicts the previous one;
    /// the separator of the first block is empty.
    pub(crate) fn push(
        &mut self,
        separator: &[u8],
        bytes: u64,
        continues: bool,
        entries: u64,
    ) -> Result<(), Truncated> {
        let Self { index, last, first, entry } = self;
        let ordered = match (index.blocks, (**last).cmp(separator)) {
            (0, _) => separator.is_empty() && !continues,
            (_, Ordering::Less) => true,
            (_, Ordering::Equal) => continues,
            (_, Ordering::Greater) => false,
        };
        let length = bytes.checked_mul(2).ok_or(Truncated)? | u64::from(continues);
        let end = index.bytes.checked_add(bytes).ok_or(Truncated)?;
        let rank = index.entries.checked_add(entries).ok_or(Truncated)?;
        if !ordered || bytes == 0 {
            return Err(Truncated);
        }
        if index.blocks.is_multiple_of(GROUP_BLOCKS) {
            let place = u32::try_from(index.packed.len()).map_err(|_| Truncated)?;
            index.prefixes.push(key_prefix(separator));
            index.places.push(place);
            index.offsets.push(index.bytes);
            index.ranks.push(index.entries);
            first.clear();
        }
        let shared = shared_bytes(first, separator);
        entry.clear();
        put_varint(entry, shared as u64);
        put_bytes(entry, &separator[shared..]);
        put_varint(entry, length);
        put_varint(entry, entries);
        index.packed.extend_from_slice(entry);
        if first.is_empty() {
            first.extend_from_slice(separator);
        }
        last.clear();
        last.extend_from_slice(separator);
        index.blocks += 1;
        (index.bytes, index.entries) = (end, rank);
        Ok(())
    }

    /// Whether the index has no block yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.index.blocks == 0
    }

    /// Number of entries of all blocks so far.
    pub(crate) fn entries(&self) -> u64 {
        self.index.entries
    }

    pub(crate) fn finish(mut self) -> BlockIndex {
        self.index.packed = Array::from(&self.index.packed[..]);
        self.index
    }
}

impl FilterParts {
    fn none() -> Self {
        Self { blocks: Array::new(), ends: Array::new(), prefixes: Array::new() }
    }

    /// Decodes the parts that follow the blocks. A filter of one part covers all blocks, and is not
    /// listed.
    fn decode(input: &mut Reader<'_>, meta: &RunMeta) -> Result<Self, Truncated> {
        if meta.filter_parts < 2 {
            let mut parts = Self::none();
            if meta.filter_parts == 1 {
                parts.push(meta.blocks, meta.filter_bytes)?;
            }
            return Ok(parts);
        }
        if u64::from(meta.filter_parts) > input.rest().len() as u64 {
            return Err(Truncated);
        }
        let count = meta.filter_parts as usize;
        let mut parts = Self {
            blocks: Array::with_capacity(count),
            ends: Array::with_capacity(count),
            prefixes: Array::with_capacity(count),
        };
        for _ in 0..count {
            parts.push(input.varint_u32()?, input.varint_u32()?)?;
        }
        let ends = (parts.blocks.last().copied(), parts.ends.last().copied());
        let is_whole = ends == (Some(meta.blocks), Some(meta.filter_bytes));
        if is_whole { Ok(parts) } else { Err(Truncated) }
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
}

fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Builds the index while a run is written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    payload: Vec<u8>,
    separator: Vec<u8>,
    pending: Option<bool>,
    count: u32,
    bytes: u64,
}

impl IndexBuilder {
    /// Begins a block with key `first`; the previous block ended with `last`.
    pub(crate) fn begin_block(&mut self, last: Option<&[u8]>, first: &[u8]) {
        let previous = std::mem::take(&mut self.separator);
        let mut continues = false;
        if let Some(last) = last {
            let shared = shared_bytes(last, first);
            continues = last == first;
            self.separator.extend_from_slice(&first[..first.len().min(shared + 1)]);
        }
        let shared = shared_bytes(&previous, &self.separator);
        put_varint(&mut self.payload, shared as u64);
        put_bytes(&mut self.payload, &self.separator[shared..]);
        self.pending = Some(continues);
    }

    /// Ends the current block.
    pub(crate) fn end_block(&mut self, bytes: u64, entries: u64) {
        let continues = self.pending.take().unwrap_or(false);
        put_varint(&mut self.payload, bytes << 1 | u64::from(continues));
        put_varint(&mut self.payload, entries);
        self.count += 1;
        self.bytes += bytes;
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn blocks_bytes(&self) -> u64 {
        self.bytes
    }

    /// The payload of the index frame. `filters` has the number of blocks and the bytes of each
    /// part of the filter.
    pub(crate) fn finish(self, filters: &[(u32, u32)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 5 + 8 * filters.len());
        put_varint(&mut out, u64::from(self.count));
        out.extend_from_slice(&self.payload);
        if filters.len() > 1 {
            for &(blocks, bytes) in filters {
                put_varint(&mut out, u64::from(blocks));
                put_varint(&mut out, u64::from(bytes));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use frondb_core::prng::Prng;

    use super::*;

    fn build(blocks: &[(&str, &str)]) -> Vec<u8> {
        let mut builder = IndexBuilder::default();
        let mut last = None;
        for (i, (first, end)) in blocks.iter().enumerate() {
            builder.begin_block(last, first.as_bytes());
            builder.end_block(10 + i as u64, 2);
            last = Some(end.as_bytes());
        }
        assert_eq!(builder.count() as usize, blocks.len());
        builder.finish(&[])
    }

    /// Metadata of a run with so many blocks and without a filter.
    fn meta(blocks: u32, blocks_bytes: u64) -> RunMeta {
        let (filter_bytes, filter_parts) = (0, 0);
        RunMeta { blocks, blocks_bytes, filter_bytes, filter_parts, ..crate::fuzz::meta() }
    }

    fn bytes_of(blocks: usize) -> u64 {
        (0..blocks as u64).map(|i| 10 + i).sum()
    }

    const PICTURE: [(&str, &str); 4] =
        [("a", "elm"), ("fig", "kiwi"), ("kiwi", "l"), ("mango", "z")];

    #[test]
    fn golden_bytes() {
        let expected = b"\x04\
            \x00\x00\x14\x02\
            \x00\x01f\x16\x02\
            \x00\x04kiwi\x19\x02\
            \x00\x01m\x1a\x02";
        assert_eq!(build(&PICTURE), expected);
        // For a separator only the bytes that it does not share with its predecessor are stored.
        let expected = b"\x03\x00\x00\x14\x02\x00\x03abd\x16\x02\x03\x01d\x18\x02";
        assert_eq!(build(&[("abc", "abcz"), ("abd", "abdc"), ("abddef", "b")]), expected);
    }

    #[test]
    fn a_search_finds_the_first_block_that_can_hold_the_key() {
        let index = BlockIndex::decode(&build(&PICTURE), &meta(4, bytes_of(4))).unwrap();
        for (key, block) in [("", 0), ("a", 0), ("eno", 0), ("f", 1), ("kiw", 1), ("kiwi", 1)] {
            assert_eq!(index.find(key.as_bytes()), block, "{key}");
        }
        for (key, block) in [("kiwi\0", 2), ("lz", 2), ("m", 3), ("zz", 3)] {
            assert_eq!(index.find(key.as_bytes()), block, "{key}");
        }
        assert!(index.continues(2) && !index.continues(1) && !index.continues(4));
        assert_eq!((index.extent(2), index.rank(2), index.rank(4)), ((21, 12), 4, 8));
        // A key that fills several blocks is found at its newest version.
        let index = build(&[("a", "k"), ("k", "k"), ("k", "k"), ("k", "n")]);
        let index = BlockIndex::decode(&index, &meta(4, bytes_of(4))).unwrap();
        assert_eq!([index.find(b"k"), index.find(b"k\0"), index.find(b"j")], [0, 3, 0]);
    }

    /// The blocks of a random run: first and last key, bytes, entries.
    fn random_blocks(prng: &mut Prng) -> Vec<(Vec<u8>, Vec<u8>, u64, u64)> {
        let longest = 1 + prng.index(20);
        let mut key = || {
            let len = prng.index(longest + 1);
            let bytes: Vec<u8> = (0..len).map(|_| [0, b'a', b'b', 0xff][prng.index(4)]).collect();
            [&b"common"[..prng.index(7)], &bytes].concat()
        };
        let mut keys: Vec<_> = (0..200).map(|_| key()).collect();
        keys.sort();
        let mut blocks = Vec::new();
        while !keys.is_empty() && blocks.len() < 100 {
            let mut rest = keys.split_off(1 + prng.index(keys.len().min(4)));
            std::mem::swap(&mut keys, &mut rest);
            let (first, last) = (rest[0].clone(), rest[rest.len() - 1].clone());
            blocks.push((first, last, 1 + prng.below(1 << 20), 1 + prng.below(300)));
        }
        blocks
    }

    #[test]
    fn a_packed_index_answers_as_a_list_of_its_blocks() {
        let mut prng = Prng::new(7);
        for round in 0..300 {
            let blocks = random_blocks(&mut prng);
            let (mut builder, mut last) = (IndexBuilder::default(), None::<&[u8]>);
            for (first, end, bytes, entries) in &blocks {
                builder.begin_block(last, first);
                builder.end_block(*bytes, *entries);
                last = Some(end);
            }
            let all: u64 = blocks.iter().map(|block| block.2).sum();
            let payload = builder.finish(&[]);
            let index = BlockIndex::decode(&payload, &meta(blocks.len() as u32, all)).unwrap();
            let (mut offset, mut rank) = (0, 0);
            for (i, (first, _, bytes, entries)) in blocks.iter().enumerate() {
                assert_eq!(index.extent(i), (offset, *bytes as usize), "round {round}");
                assert_eq!(index.rank(i), rank);
                let continues = i > 0 && blocks[i - 1].1 == *first;
                assert_eq!(index.continues(i), continues);
                let separator = index.separator(i);
                assert!(separator <= **first && separator == *separator.to_vec());
                assert!(i == 0 || continues || separator > *blocks[i - 1].1);
                (offset, rank) = (offset + bytes, rank + entries);
            }
            assert_eq!((index.len(), index.rank(index.len())), (blocks.len(), rank));
            for (first, end, ..) in &blocks {
                for key in [first.clone(), end.clone(), [end, &[0][..]].concat()] {
                    // The last separator not above the key, or the first of its blocks.
                    let below = |i: &usize| index.separator(*i) <= *key;
                    let mut at = (0..blocks.len()).rev().find(below).unwrap();
                    while at > 0 && index.continues(at) && index.separator(at) == *key {
                        at -= 1;
                    }
                    assert_eq!(index.find(&key), at, "round {round}, {key:?}");
                }
            }
        }
    }

    #[test]
    fn a_packed_index_of_a_large_leaf_takes_twelve_bytes_a_block() {
        let (mut builder, mut last, blocks) = (IndexBuilder::default(), None::<Vec<u8>>, 16 << 10);
        for i in 0..blocks {
            let key = |n: u64| [&[3, 7][..], &(n * 0x9e37_79b9).to_be_bytes()[..]].concat();
            builder.begin_block(last.as_deref(), &key(2 * i));
            builder.end_block(4000 + i % 900, 180 + i % 60);
            last = Some(key(2 * i + 1));
        }
        let all = builder.blocks_bytes();
        let index = BlockIndex::decode(&builder.finish(&[]), &meta(blocks as u32, all)).unwrap();
        let bytes = index.memory_bytes() as u64 / blocks;
        assert!((10..=13).contains(&bytes), "{bytes} bytes a block");
    }

    #[test]
    fn each_block_belongs_to_one_part_of_the_filter() {
        let parts = |filter_parts, filter_bytes| RunMeta {
            filter_parts,
            filter_bytes,
            ..meta(4, bytes_of(4))
        };
        let part = |part, offset, bytes| Some(FilterPart { part, offset, bytes });
        let with = |filters: &[(u32, u32)]| {
            let mut builder = IndexBuilder::default();
            let mut last = None;
            for (i, (first, end)) in PICTURE.iter().enumerate() {
                builder.begin_block(last, first.as_bytes());
                builder.end_block(10 + i as u64, 2);
                last = Some(end.as_bytes());
            }
            builder.finish(filters)
        };
        let index = BlockIndex::decode(&build(&PICTURE), &parts(0, 0)).unwrap();
        assert_eq!(index.filter_part(0), None);
        // One part is not listed, as in earlier versions, in which a filter had one part.
        assert_eq!(with(&[(4, 500)]), build(&PICTURE));
        let index = BlockIndex::decode(&with(&[(4, 500)]), &parts(1, 500)).unwrap();
        assert_eq!([0, 3].map(|block| index.filter_part(block)), [part(0, 0, 500); 2]);
        let two = with(&[(3, 300), (1, 200)]);
        assert_eq!(two[build(&PICTURE).len()..], *b"\x03\xac\x02\x01\xc8\x01");
        let index = BlockIndex::decode(&two, &parts(2, 500)).unwrap();
        let found = [0, 2, 3].map(|block| index.filter_part(block));
        assert_eq!(found, [part(0, 0, 300), part(0, 0, 300), part(1, 300, 200)]);
        for (filters, count, bytes) in [
            (&[(3, 300), (1, 200)][..], 1, 500),
            (&[(3, 300), (1, 200)], 3, 500),
            (&[(3, 300), (1, 200)], 2, 501),
            (&[(3, 300), (2, 200)], 2, 500),
            (&[(4, 300), (0, 200)], 2, 500),
            (&[(3, 500), (1, 0)], 2, 500),
        ] {
            let refused = BlockIndex::decode(&with(filters), &parts(count, bytes));
            assert!(refused.is_err(), "{filters:?}, {count}, {bytes}");
        }
    }

    #[test]
    fn an_index_that_contradicts_itself_or_the_metadata_is_refused() {
        let right = build(&PICTURE);
        assert!(BlockIndex::decode(&right, &meta(3, bytes_of(4))).is_err());
        assert!(BlockIndex::decode(&right, &meta(4, bytes_of(4) + 1)).is_err());
        assert!(BlockIndex::decode(&right[..right.len() - 1], &meta(4, bytes_of(4))).is_err());
        let longer = [&right[..], &[0]].concat();
        assert!(BlockIndex::decode(&longer, &meta(4, bytes_of(4))).is_err());
        for (at, byte, what) in [
            (2, 1, "the first separator is not empty"),
            (3, 0x15, "the first block continues nothing"),
            (7, b'l', "separators do not ascend"),
            (4, 0, "a block without messages"),
            (3, 0, "a block without bytes"),
        ] {
            let mut wrong = right.clone();
            wrong[at] = byte;
            assert!(BlockIndex::decode(&wrong, &meta(4, bytes_of(4))).is_err(), "{what}");
        }
    }
}
