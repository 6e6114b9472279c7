//! The block index of a run in memory: where the block of a key lies.
//!
//! Arrays, searched by 8-byte prefixes first. A search returns the block that holds the first
//! entry with a key not below the one sought, or the end of the block before it.

use std::cmp::Ordering;

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Reader, Truncated, put_varint};

use crate::format::decode_index_entry;

/// Decoded block index. Immutable.
#[derive(Debug)]
pub struct BlockIndex {
    prefixes: Vec<u64>,
    key_ends: Vec<u32>,
    keys: Vec<u8>,
    /// Logical offset of each block, and the end of the last.
    offsets: Vec<u64>,
    /// Entries before each block, and all of them.
    ranks: Vec<u64>,
    /// Blocks that begin with the last key of the block before, ascending.
    continues: Vec<u32>,
}

impl BlockIndex {
    /// Decodes an index frame's payload that must describe `blocks` blocks of `blocks_bytes`.
    ///
    /// # Errors
    /// [`Truncated`] if it does not.
    pub fn decode(payload: &[u8], blocks: u32, blocks_bytes: u64) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let count = input.varint_u32()?;
        if count != blocks || u64::from(count) > payload.len() as u64 {
            return Err(Truncated);
        }
        let n = count as usize;
        let mut index = Self {
            prefixes: Vec::with_capacity(n),
            key_ends: Vec::with_capacity(n),
            keys: Vec::new(),
            offsets: Vec::with_capacity(n + 1),
            ranks: Vec::with_capacity(n + 1),
            continues: Vec::new(),
        };
        let (mut offset, mut rank) = (0u64, 0u64);
        let mut separator = Vec::new();
        for block in 0..count {
            let (bytes, continues, entries) = decode_index_entry(&mut input, &mut separator)?;
            if block > 0 && index.compare(block as usize - 1, &separator) == Ordering::Greater {
                return Err(Truncated);
            }
            index.prefixes.push(key_prefix(&separator));
            index.keys.extend_from_slice(&separator);
            index.key_ends.push(u32::try_from(index.keys.len()).map_err(|_| Truncated)?);
            index.offsets.push(offset);
            index.ranks.push(rank);
            if continues {
                if block == 0 {
                    return Err(Truncated);
                }
                index.continues.push(block);
            }
            offset = offset.checked_add(bytes).ok_or(Truncated)?;
            rank = rank.checked_add(entries).ok_or(Truncated)?;
        }
        index.offsets.push(offset);
        index.ranks.push(rank);
        index.keys.shrink_to_fit();
        if offset == blocks_bytes && input.is_empty() && n > 0 { Ok(index) } else { Err(Truncated) }
    }

    /// Number of blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Never: a run has a block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Memory it takes, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.prefixes.capacity() * 8
            + self.key_ends.capacity() * 4
            + self.keys.capacity()
            + self.offsets.capacity() * 8
            + self.ranks.capacity() * 8
            + self.continues.capacity() * 4
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

    /// Entries in the blocks before `block` (`len()` gives all).
    #[must_use]
    pub fn rank(&self, block: usize) -> u64 {
        self.ranks[block]
    }

    /// Whether `block` begins with the last key of the block before it.
    #[must_use]
    pub fn continues(&self, block: usize) -> bool {
        !self.continues.is_empty() && self.continues.binary_search(&(block as u32)).is_ok()
    }

    /// The first block that can hold `key`.
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
        while block > 0 && self.continues(block) {
            block -= 1;
        }
        block
    }

    fn compare(&self, block: usize, key: &[u8]) -> Ordering {
        self.separator(block).cmp(key)
    }
}

/// Collects the index while a run is written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    payload: Vec<u8>,
    separator: Vec<u8>,
    pending: Option<bool>,
    count: u32,
    bytes: u64,
}

impl IndexBuilder {
    /// A block begins with `first`; the block before ended with `last`.
    pub(crate) fn begin_block(&mut self, last: Option<&[u8]>, first: &[u8]) {
        let previous = std::mem::take(&mut self.separator);
        let mut continues = false;
        if let Some(last) = last {
            let shared = last.iter().zip(first).take_while(|(a, b)| a == b).count();
            continues = last == first;
            self.separator.extend_from_slice(&first[..first.len().min(shared + 1)]);
        }
        let shared = previous.iter().zip(&self.separator).take_while(|(a, b)| a == b).count();
        put_varint(&mut self.payload, shared as u64);
        frondb_core::codec::put_bytes(&mut self.payload, &self.separator[shared..]);
        self.pending = Some(continues);
    }

    /// The block that began is finished.
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
