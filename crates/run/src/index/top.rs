//! [`TopIndex`]: the upper level of a block index that has several parts.
//!
//! ```text
//!  part         0            1            2          end
//!  separator    ""           "f"          "m"               of its first block
//!  start        block, offset, rank, frame, filter           of its first block
//! ```
//!
//! A start has the sums of all earlier parts; the last start has the sums of the whole run.
//! Immutable, so any thread may search it.

use std::cmp::Ordering;

use frondb_core::chunk::key_prefix;
use frondb_core::codec::{Reader, Truncated};
use frondb_core::limits::KEY_BYTES_MAX;
use frondb_core::mem::Array;

use super::filter_parts::FilterSpan;
use super::separator::may_follow;
use crate::format::RunMeta;

/// Decoded upper level of a block index.
#[derive(Debug)]
pub struct TopIndex {
    /// The start of each part, and the end.
    starts: Array<Start>,
    /// Prefix of each part's separator.
    prefixes: Array<u64>,
    /// The separators one after the other.
    separators: Array<u8>,
}

/// The beginning of a part.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    offset: u64,
    rank: u64,
    block: u32,
    /// Offset of the part's frame from the first part's frame.
    frame: u32,
    /// Number of the part's first filter part, and the offset of that filter part's frame.
    filter: u32,
    filter_offset: u32,
    /// Offset of the part's separator, shifted left by one; bit 0 is set if the part's first block
    /// continues a key.
    separator: u32,
}

/// The top index's description of one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartPlace<'a> {
    /// Offset of the part's frame from the first part's frame, and the frame's length.
    pub(crate) frame: u32,
    pub(crate) frame_bytes: u32,
    /// Number, logical offset and rank of the part's first block.
    pub(crate) first: usize,
    pub(crate) offset: u64,
    pub(crate) rank: u64,
    /// Number of the part's blocks, and their bytes and entries.
    pub(crate) blocks: u32,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Separator of the part's first block, and whether that block continues a key.
    pub(crate) separator: &'a [u8],
    pub(crate) continues: bool,
    /// The same for the next part; `None` for the last part.
    pub(crate) next: Option<(&'a [u8], bool)>,
    /// The filter parts that cover the part's blocks; `None` if the run has no filter.
    pub(crate) filters: Option<FilterSpan>,
}

impl TopIndex {
    /// Decodes the payload of the top index's frame.
    ///
    /// # Errors
    /// [`Truncated`] if the payload does not agree with `meta`.
    pub fn decode(payload: &[u8], meta: &RunMeta) -> Result<Self, Truncated> {
        let mut input = Reader::new(payload);
        let count = input.varint_u32()?;
        if count != meta.index_parts || count < 2 || u64::from(count) > payload.len() as u64 {
            return Err(Truncated);
        }
        let mut top = Self {
            starts: Array::with_capacity(count as usize + 1),
            prefixes: Array::with_capacity(count as usize),
            separators: Array::new(),
        };
        let (mut start, mut separator, mut last) = (Start::default(), Vec::new(), Vec::new());
        for part in 0..count {
            let shared = input.varint()? as usize;
            if shared > last.len() {
                return Err(Truncated);
            }
            separator.clear();
            separator.extend_from_slice(&last[..shared]);
            separator.extend_from_slice(input.bytes()?);
            let (blocks, bytes, entries) = (input.varint_u32()?, input.varint()?, input.varint()?);
            let (continues, bytes) = (bytes & 1 == 1, bytes >> 1);
            let frame = input.varint_u32()?;
            let (filters, filter_bytes) = match meta.filter_parts {
                0 => (0, 0),
                _ => (input.varint_u32()?, input.varint_u32()?),
            };
            let is_ordered = match part {
                0 => separator.is_empty() && !continues,
                _ => may_follow(&last, &separator, continues),
            };
            let has_filter = filters > 0 && filters <= blocks && filters <= filter_bytes;
            let is_sound = is_ordered
                && separator.len() <= KEY_BYTES_MAX
                && blocks > 0
                && bytes >= u64::from(blocks)
                && entries >= u64::from(blocks)
                && frame > 0
                && (has_filter || meta.filter_parts == 0);
            if !is_sound {
                return Err(Truncated);
            }
            let place = top.separators.len() << 1 | usize::from(continues);
            start.separator = u32::try_from(place).map_err(|_| Truncated)?;
            top.starts.push(start);
            top.prefixes.push(key_prefix(&separator));
            top.separators.extend_from_slice(&separator);
            start = start.after([blocks, frame, filters, filter_bytes], bytes, entries)?;
            std::mem::swap(&mut last, &mut separator);
        }
        start.separator = u32::try_from(top.separators.len() << 1).map_err(|_| Truncated)?;
        top.starts.push(start);
        top.separators = Array::from(&top.separators[..]);
        let is_whole = (start.block, start.offset, start.rank)
            == (meta.blocks, meta.blocks_bytes, meta.entries)
            && Some(start.frame) == meta.index_bytes.checked_sub(meta.top_index_bytes)
            && (start.filter, start.filter_offset) == (meta.filter_parts, meta.filter_bytes)
            && input.is_empty();
        if is_whole { Ok(top) } else { Err(Truncated) }
    }

    /// Returns the number of parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Returns `false`: a top index has at least two parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
    }

    /// Returns the number of bytes of memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.starts.allocated()
            + self.prefixes.allocated()
            + self.separators.allocated()
    }

    /// Returns the part in which a search for `key` ends.
    #[inline]
    #[must_use]
    pub fn find(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        // Skip the first part, whose separator is empty.
        let (mut lo, mut hi) = (1, self.prefixes.len());
        while lo < hi {
            let mid = (lo + hi) / 2;
            let not_above = match self.prefixes[mid].cmp(&prefix) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => self.separator(mid) <= key,
            };
            if not_above { lo = mid + 1 } else { hi = mid }
        }
        let mut part = lo - 1;
        // The newest versions of a key that fills several blocks are in the first of these blocks.
        while part > 0 && self.continues(part) && self.separator(part) == key {
            part -= 1;
        }
        part
    }

    /// Returns the part that lists `block`; the last part if there is no such block.
    #[must_use]
    pub fn part_of(&self, block: usize) -> usize {
        self.first_not(|start| start.block as usize <= block)
    }

    /// Returns the first part that has, together with the parts before it, at least `entries`
    /// entries; the last part if there is none.
    #[must_use]
    pub fn part_behind(&self, entries: u64) -> usize {
        self.first_not(|start| start.rank < entries)
    }

    /// Returns the last part whose start satisfies `is_before`; part 0 if no later part does.
    /// REQUIRES: `is_before` holds for a prefix of the starts.
    fn first_not(&self, is_before: impl Fn(&Start) -> bool) -> usize {
        let last = self.len() - 1;
        self.starts[1..=last].partition_point(is_before)
    }

    /// Returns the end of a part, as a block number, such that all entries with a key below `key`
    /// are in earlier blocks.
    #[must_use]
    pub fn end_before(&self, key: &[u8]) -> usize {
        let part = self.find(key);
        let end = if self.separator(part) < key { part + 1 } else { part };
        self.starts[end].block as usize
    }

    /// Returns the first block of the part in which a search for `key` ends. No entry in earlier
    /// blocks has this key or a larger one.
    #[must_use]
    pub fn begin_of(&self, key: &[u8]) -> usize {
        self.starts[self.find(key)].block as usize
    }

    pub(crate) fn place(&self, part: usize) -> PartPlace<'_> {
        let (start, end) = (&self.starts[part], &self.starts[part + 1]);
        let has_filter = self.starts[self.len()].filter > 0;
        PartPlace {
            frame: start.frame,
            frame_bytes: end.frame - start.frame,
            first: start.block as usize,
            offset: start.offset,
            rank: start.rank,
            blocks: end.block - start.block,
            bytes: end.offset - start.offset,
            entries: end.rank - start.rank,
            separator: self.separator(part),
            continues: self.continues(part),
            next: (part + 1 < self.len())
                .then(|| (self.separator(part + 1), self.continues(part + 1))),
            filters: has_filter.then(|| FilterSpan {
                first: start.filter,
                offset: start.filter_offset,
                parts: end.filter - start.filter,
                bytes: end.filter_offset - start.filter_offset,
            }),
        }
    }

    #[inline]
    fn separator(&self, part: usize) -> &[u8] {
        let (start, end) = (self.starts[part].separator, self.starts[part + 1].separator);
        &self.separators[(start >> 1) as usize..(end >> 1) as usize]
    }

    fn continues(&self, part: usize) -> bool {
        self.starts[part].separator & 1 == 1
    }
}

impl Start {
    /// Returns the start of the next part. `counts` has the numbers of this part: its blocks, the
    /// bytes of its frame, its filter parts, and the bytes of their frames.
    fn after(&self, counts: [u32; 4], bytes: u64, entries: u64) -> Result<Self, Truncated> {
        let add = |a: u32, b: u32| a.checked_add(b).ok_or(Truncated);
        Ok(Self {
            offset: self.offset.checked_add(bytes).ok_or(Truncated)?,
            rank: self.rank.checked_add(entries).ok_or(Truncated)?,
            block: add(self.block, counts[0])?,
            frame: add(self.frame, counts[1])?,
            filter: add(self.filter, counts[2])?,
            filter_offset: add(self.filter_offset, counts[3])?,
            separator: 0,
        })
    }
}
