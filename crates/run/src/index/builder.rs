//! [`IndexBuilder`]: encodes the block index while a run is written.
//!
//! ```text
//!  blocks   | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
//!  index    |  part 0       |  part 1   |       a part ends with the block in which it is full
//!  filter   | 0     | 1     |  2    | 3 |       and in which a part of the filter ends
//! ```
//!
//! The frames follow the blocks, so they are kept in memory until the last block is written: about
//! eight bytes a block.

use frondb_block::{BlockKind, Codec, encode_frame};
use frondb_core::Result;
use frondb_core::codec::{put_bytes, put_varint};
use frondb_core::mem::Array;

use super::separator::shared_bytes;

/// The usual number of blocks after which a part ends: about 4 KiB on disk, so reading a part costs
/// as much as reading a block.
pub const INDEX_PART_BLOCKS: u32 = 768;

/// A part also ends when its payload reaches this many bytes times the usual number of blocks; only
/// long keys reach this limit.
const BLOCK_BYTES: usize = 16;

/// Encodes the index of one run. Used by one thread at a time.
#[derive(Debug)]
pub(crate) struct IndexBuilder {
    part_blocks: u32,
    /// The blocks of the part under construction, encoded.
    payload: Vec<u8>,
    part: Part,
    /// Separator of the last block.
    separator: Vec<u8>,
    /// Whether the block under construction continues a key; `None` between blocks.
    pending: Option<bool>,
    finished: Vec<Part>,
    frames: Vec<Array<u8>>,
    /// Number of filter parts that the finished index parts list.
    filters: usize,
    count: u32,
    bytes: u64,
    scratch: Vec<u8>,
}

/// A part's entry in the top index.
#[derive(Clone, Debug, Default)]
struct Part {
    separator: Vec<u8>,
    continues: bool,
    blocks: u32,
    bytes: u64,
    entries: u64,
    frame_bytes: u32,
    filters: u32,
    filter_bytes: u32,
}

/// The frames of an index: its parts, and the top index if there are several.
pub(crate) struct IndexFrames {
    pub(crate) parts: Vec<Array<u8>>,
    pub(crate) top: Option<Vec<u8>>,
}

impl IndexFrames {
    /// Returns the frames in the order in which they are written.
    pub(crate) fn frames(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|frame| &frame[..]).chain(self.top.as_deref())
    }
}

impl IndexBuilder {
    /// Creates a builder whose parts have about `part_blocks` blocks.
    pub(crate) fn new(part_blocks: u32) -> Self {
        Self {
            part_blocks: part_blocks.max(1),
            payload: Vec::new(),
            part: Part::default(),
            separator: Vec::new(),
            pending: None,
            finished: Vec::new(),
            frames: Vec::new(),
            filters: 0,
            count: 0,
            bytes: 0,
            scratch: Vec::new(),
        }
    }

    /// Begins a block with key `first`; the previous block ended with `last`.
    pub(crate) fn begin_block(&mut self, last: Option<&[u8]>, first: &[u8]) {
        let previous = std::mem::take(&mut self.separator);
        let mut continues = false;
        if let Some(last) = last {
            let shared = shared_bytes(last, first);
            continues = last == first;
            self.separator.extend_from_slice(&first[..first.len().min(shared + 1)]);
        }
        let shared = match self.part.blocks {
            0 => {
                (self.part.separator, self.part.continues) = (self.separator.clone(), continues);
                0
            }
            _ => shared_bytes(&previous, &self.separator),
        };
        put_varint(&mut self.payload, shared as u64);
        put_bytes(&mut self.payload, &self.separator[shared..]);
        self.pending = Some(continues);
    }

    /// Ends the current block, which has `bytes` bytes on disk and `entries` messages.
    pub(crate) fn end_block(&mut self, bytes: u64, entries: u64) {
        let continues = self.pending.take().unwrap_or(false);
        put_varint(&mut self.payload, bytes << 1 | u64::from(continues));
        put_varint(&mut self.payload, entries);
        self.part.blocks += 1;
        self.part.bytes += bytes;
        self.part.entries += entries;
        self.count += 1;
        self.bytes += bytes;
    }

    /// Returns whether the part must end as soon as a part of the filter ends.
    pub(crate) fn is_full(&self) -> bool {
        self.is_longer_than(self.part_blocks)
    }

    /// Returns whether the part, and with it the part of the filter, must end with the current
    /// block.
    pub(crate) fn is_overdue(&self) -> bool {
        self.is_longer_than(self.part_blocks.saturating_add(self.part_blocks / 4))
    }

    fn is_longer_than(&self, blocks: u32) -> bool {
        self.part.blocks >= blocks || self.payload.len() >= blocks as usize * BLOCK_BYTES
    }

    /// Ends the part under construction; the index then has several parts and a top index.
    /// `filters` has the number of blocks and of bytes of each finished part of the filter.
    ///
    /// # Errors
    /// As [`encode_frame`].
    pub(crate) fn end_part(&mut self, filters: &[(u32, u32)]) -> Result<()> {
        let filters = filters.get(self.filters..).unwrap_or_default();
        let mut part = std::mem::take(&mut self.part);
        let mut out = Vec::with_capacity(self.payload.len() + 10 + 8 * filters.len());
        put_varint(&mut out, u64::from(part.blocks));
        out.append(&mut self.payload);
        put_varint(&mut out, filters.len() as u64);
        put_filters(&mut out, filters);
        self.scratch.clear();
        encode_frame(BlockKind::Index, INDEX_CODEC, &out, &mut self.scratch)?;
        part.frame_bytes = self.scratch.len() as u32;
        part.filters = filters.len() as u32;
        part.filter_bytes = filters.iter().map(|(_, bytes)| bytes).sum();
        self.filters += filters.len();
        self.frames.push(Array::from(&self.scratch[..]));
        self.finished.push(part);
        Ok(())
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn blocks_bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends the index. `filters` is empty if the run has no filter, even if finished index parts
    /// list parts of a filter that was dropped.
    ///
    /// # Errors
    /// As [`encode_frame`].
    pub(crate) fn finish(mut self, filters: &[(u32, u32)]) -> Result<IndexFrames> {
        if self.finished.is_empty() {
            let payload = self.only_payload(filters);
            self.scratch.clear();
            encode_frame(BlockKind::Index, INDEX_CODEC, &payload, &mut self.scratch)?;
            let parts = vec![Array::from(&self.scratch[..])];
            return Ok(IndexFrames { parts, top: None });
        }
        self.end_part(filters)?;
        let mut top = Vec::new();
        encode_frame(BlockKind::Index, INDEX_CODEC, &self.top_payload(filters), &mut top)?;
        Ok(IndexFrames { parts: self.frames, top: Some(top) })
    }

    /// Returns the payload of the index's only part.
    pub(super) fn only_payload(&self, filters: &[(u32, u32)]) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.payload.len() + 5 + 8 * filters.len());
        put_varint(&mut out, u64::from(self.count));
        out.extend_from_slice(&self.payload);
        if filters.len() > 1 {
            put_filters(&mut out, filters);
        }
        out
    }

    fn top_payload(&self, filters: &[(u32, u32)]) -> Vec<u8> {
        let (mut out, mut last) = (Vec::new(), &[][..]);
        put_varint(&mut out, self.finished.len() as u64);
        for part in &self.finished {
            let shared = shared_bytes(last, &part.separator);
            put_varint(&mut out, shared as u64);
            put_bytes(&mut out, &part.separator[shared..]);
            put_varint(&mut out, u64::from(part.blocks));
            put_varint(&mut out, part.bytes << 1 | u64::from(part.continues));
            put_varint(&mut out, part.entries);
            put_varint(&mut out, u64::from(part.frame_bytes));
            if !filters.is_empty() {
                put_varint(&mut out, u64::from(part.filters));
                put_varint(&mut out, u64::from(part.filter_bytes));
            }
            last = &part.separator;
        }
        out
    }
}

/// The codec of index frames.
const INDEX_CODEC: Codec = Codec::Zstd(1);

fn put_filters(out: &mut Vec<u8>, filters: &[(u32, u32)]) {
    for &(blocks, bytes) in filters {
        put_varint(out, u64::from(blocks));
        put_varint(out, u64::from(bytes));
    }
}
