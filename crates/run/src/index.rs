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
//! The index consists of arrays and is searched by 8-byte prefixes first. Immutable, so any thread
//! may search it.

use std::cmp::Ordering;

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Reader, Truncated, put_bytes, put_varint};
use frondb_core::mem::Array;

use crate::format::decode_index_entry;

/// Decoded block index. Immutable.
#[derive(Debug)]
pub struct BlockIndex {
    prefixes: Array<u64>,
    key_ends: Array<u32>,
    keys: Array<u8>,
    /// Logical offset of each block, and the end of the last.
    offsets: Array<u64>,
    /// Number of entries before each block, and the total.
    ranks: Array<u64>,
    /// Blocks that begin with the last key of their predecessor, ascending.
    continues: Array<u32>,
}

impl BlockIndex {
    /// Decodes the payload of an index frame, which must describe `blocks` blocks of
    /// `blocks_bytes`.
    ///
    /// # Errors
    /// [`Truncated`] if it does not.
    pub fn decode(payload: &[u8], blocks: u32, blocks_bytes: u64) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let count = input.varint_u32()?;
        if count != blocks || u64::from(count) > payload.len() as u64 {
            return Err(Truncated);
        }
        let mut index = Self::with_capacity(count as usize);
        let mut separator = Vec::new();
        for _ in 0..count {
            let (bytes, continues, entries) = decode_index_entry(&mut input, &mut separator)?;
            if entries == 0 {
                return Err(Truncated);
            }
            index.push(&separator, bytes, continues, entries)?;
        }
        index.keys = Array::from(&index.keys[..]);
        let is_whole = index.bytes() == blocks_bytes && input.is_empty() && count > 0;
        if is_whole { Ok(index) } else { Err(Truncated) }
    }

    /// An empty index with room for `blocks` blocks.
    pub(crate) fn with_capacity(blocks: usize) -> Self {
        let mut index = Self {
            prefixes: Array::with_capacity(blocks),
            key_ends: Array::with_capacity(blocks),
            keys: Array::new(),
            offsets: Array::with_capacity(blocks + 1),
            ranks: Array::with_capacity(blocks + 1),
            continues: Array::new(),
        };
        index.offsets.push(0);
        index.ranks.push(0);
        index
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
        let ordered = match self.len().checked_sub(1) {
            None => separator.is_empty() && !continues,
            Some(before) => match self.separator(before).cmp(separator) {
                Ordering::Less => true,
                Ordering::Equal => continues,
                Ordering::Greater => false,
            },
        };
        if !ordered || bytes == 0 {
            return Err(Truncated);
        }
        let block = u32::try_from(self.len()).map_err(|_| Truncated)?;
        let key_end = u32::try_from(self.keys.len() + separator.len()).map_err(|_| Truncated)?;
        let offset = self.bytes().checked_add(bytes).ok_or(Truncated)?;
        let rank = self.ranks[self.len()].checked_add(entries).ok_or(Truncated)?;
        self.prefixes.push(key_prefix(separator));
        self.keys.extend_from_slice(separator);
        self.key_ends.push(key_end);
        self.offsets.push(offset);
        self.ranks.push(rank);
        if continues {
            self.continues.push(block);
        }
        Ok(())
    }

    /// Bytes of all blocks.
    fn bytes(&self) -> u64 {
        self.offsets[self.len()]
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// True only during construction: every run has a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.prefixes.allocated()
            + self.key_ends.allocated()
            + self.keys.allocated()
            + self.offsets.allocated()
            + self.ranks.allocated()
            + self.continues.allocated()
    }

    /// The separator of `block`.
    #[must_use]
    pub fn separator(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.key_ends[block - 1] as usize };
        &self.keys[start..self.key_ends[block] as usize]
    }

    /// Logical offset and length of `block`.
    #[must_use]
    pub fn extent(&self, block: usize) -> (u64, usize) {
        let start = self.offsets[block];
        (start, (self.offsets[block + 1] - start) as usize)
    }

    /// Number of entries in the blocks before `block`; in all blocks if `block` is `len()`.
    #[must_use]
    pub fn rank(&self, block: usize) -> u64 {
        self.ranks[block]
    }

    /// Whether `block` begins with the last key of its predecessor.
    #[must_use]
    pub fn continues(&self, block: usize) -> bool {
        !self.continues.is_empty() && self.continues.binary_search(&(block as u32)).is_ok()
    }

    /// The first block that can hold `key`; if none can, the block where the key would be. Entries
    /// of larger keys begin in this block or after it; no entry of a smaller key follows it.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        let (mut lo, mut hi) = (0, self.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            let not_above = match self.prefixes[mid].cmp(&prefix) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.separator(mid) <= key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        let mut block = lo.saturating_sub(1);
        // The newest versions of a key that fills several blocks are in the first of them.
        while block > 0 && self.separator(block) == key && self.continues(block) {
            block -= 1;
        }
        block
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

    pub(crate) fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 5);
        put_varint(&mut out, u64::from(self.count));
        out.extend_from_slice(&self.payload);
        out
    }
}

#[cfg(test)]
mod tests {
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
        builder.finish()
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
        let index = BlockIndex::decode(&build(&PICTURE), 4, bytes_of(4)).unwrap();
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
        let index = BlockIndex::decode(&index, 4, bytes_of(4)).unwrap();
        assert_eq!([index.find(b"k"), index.find(b"k\0"), index.find(b"j")], [0, 3, 0]);
    }

    #[test]
    fn an_index_that_contradicts_itself_or_the_metadata_is_refused() {
        let right = build(&PICTURE);
        assert!(BlockIndex::decode(&right, 3, bytes_of(4)).is_err());
        assert!(BlockIndex::decode(&right, 4, bytes_of(4) + 1).is_err());
        assert!(BlockIndex::decode(&right[..right.len() - 1], 4, bytes_of(4)).is_err());
        let longer = [&right[..], &[0]].concat();
        assert!(BlockIndex::decode(&longer, 4, bytes_of(4)).is_err());
        for (at, byte, what) in [
            (2, 1, "the first separator is not empty"),
            (3, 0x15, "the first block continues nothing"),
            (7, b'l', "separators do not ascend"),
            (4, 0, "a block without messages"),
            (3, 0, "a block without bytes"),
        ] {
            let mut wrong = right.clone();
            wrong[at] = byte;
            assert!(BlockIndex::decode(&wrong, 4, bytes_of(4)).is_err(), "{what}");
        }
    }
}
