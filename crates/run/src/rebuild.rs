//! Rebuilds the block index of a run from its blocks, for a salvage: if a file ends in the middle
//! of a run or the index is damaged, the blocks are still there. The rebuilt index has one part.
//!
//! Blocks follow each other without padding, and each frame states its length, so a pass from the
//! first block finds all of them. But no frame names its run. Space is reused, so intact blocks of
//! an earlier run may lie in the run's extents, and a value may look like a block; a salvage must
//! not guess. An index is rebuilt as a whole in two cases:
//!
//! 1. *Only the index is damaged.* All blocks can be read, and have exactly the messages that the
//!    manifest counts, of each kind and in bytes, from the run's first key to its last.
//! 2. *Pages of the index are missing*: they are zeros, which a salvage reads beyond the end of a
//!    file, or the device cannot read them. Then pages of the blocks may be missing too, anywhere,
//!    because extents lie in any order. The pass continues at the first frame after missing pages,
//!    and ends at other damage. The bytes that it skips are a *gap*, which the index lists as
//!    blocks that cannot be decoded:
//!
//! ```text
//!  blocks      | [a .. f] | gap  | [m .. p] | gap, to the end
//!  separator     ""         "f"    "m"        "p"
//! ```
//!
//! If one of several parts of an index is damaged and the top index is intact, only that part is
//! rebuilt: the top index says where the part's blocks are, and counts the blocks and their
//! messages. If some of these blocks cannot be read, only the keys of this part are lost.
//!
//! A gap may hold any key from the last key before it to the first key after it, both included,
//! because versions of one key may lie in two blocks. The block before a gap and the block after it
//! count as parts of the gap: each lacks a neighbour that would show that it is in the right place.
//!
//! In any other case the whole run counts as damaged. With missing pages (2) it also does in two
//! cases: if a frame with a right checksum has keys, SeqNos or counts that do not belong to the
//! run; and if the frames after missing pages lead neither to more missing pages nor to the end of
//! the blocks.

use frondb_block::{Block, FRAME_HEADER_BYTES, frame_len, frame_raw_len, may_be_data_frame};
use frondb_cache::CacheKey;
use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Result};

use crate::index::{BlockIndex, IndexPacker, PartPlace, TopIndex};
use crate::read::ReadMode;
use crate::reader::Run;
use crate::verify::Tally;

/// Longest part of a gap that the index lists as one block, bytes: a reader that meets the gap
/// holds the whole part in memory.
const GAP_BYTES_MAX: u64 = 1 << 20;

/// Maximum number of bytes that a block stores per message besides key and value.
const MESSAGE_BYTES_MAX: u64 = 24;

/// The index under construction.
struct IndexRebuilder<'a> {
    run: &'a Run,
    index: IndexPacker,
    found: Tally,
    /// The last block, which is not yet in the index.
    last: Option<IndexedBlock>,
    /// Last key in the index.
    last_key: Vec<u8>,
    /// Bytes of the gap that the blocks so far end with, not yet in the index; 0 without a gap.
    gap_bytes: u64,
    /// Whether the gap includes the block after it.
    is_gap_closed: bool,
    chunk: Chunk,
}

/// The fields of a block that the index stores, and the block's last key.
struct IndexedBlock {
    bytes: u64,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    entries: u64,
    continues: bool,
}

impl Run {
    /// Returns the top index, or `None` if the block index has one part. If the top index or the
    /// only part cannot be read, rebuilds the index as one part, which all later reads use.
    pub(crate) fn top_index_or_rebuilt(&self) -> Result<Option<TopIndex>> {
        let read = match self.in_parts() {
            true => self.read_top_index().map(Some),
            false => self.only_index().map(|_| None),
        };
        let Err(error) = read else { return read };
        let index = self.rebuild_index().ok_or(error)?;
        // The rebuilt index may number the blocks differently.
        self.uncache();
        self.env().rebuilt.insert(CacheKey::index(self.meta().id), index);
        Ok(None)
    }

    /// Returns part `part` of the index. `top` is the result of
    /// [`top_index_or_rebuilt`](Self::top_index_or_rebuilt). If the part cannot be read, rebuilds
    /// it, provided that all of its blocks can be read.
    pub(crate) fn index_part_or_rebuilt(
        &self,
        top: Option<&TopIndex>,
        part: usize,
    ) -> Result<Arc<BlockIndex>> {
        let Some(top) = top else { return self.only_index() };
        self.read_index_part(top, part, ReadMode::Merge).or_else(|error| {
            let index = Arc::new(self.rebuild_part(&top.place(part)).ok_or(error)?);
            let key = CacheKey::index_part(self.meta().id, part as u32);
            self.env().rebuilt.insert(key, Arc::clone(&index));
            Ok(index)
        })
    }

    /// Rebuilds the part of the index at `place` from its blocks, without the filter. `None` unless
    /// the numbers of blocks, messages and bytes are those in the top index.
    fn rebuild_part(&self, place: &PartPlace<'_>) -> Option<BlockIndex> {
        let (mut at, end) = (place.offset, place.offset + place.bytes);
        let mut packer = IndexPacker::with_capacity(place.blocks as usize);
        let (mut found, mut chunk) = (Tally::default(), Chunk::new());
        while at < end {
            let (bytes, block) = self.block_at(at)?;
            self.fill(&block, 0..block.len(), &mut chunk);
            if chunk.is_empty() {
                return None;
            }
            let first_key = chunk.key(0).to_vec();
            let continues = match &found.last {
                None => place.continues,
                Some((last, _)) => *last == first_key,
            };
            let separator = if packer.is_empty() { place.separator } else { &*first_key };
            if separator > &*first_key || !found.add(&chunk) {
                return None;
            }
            packer.push(separator, bytes, continues, chunk.len() as u64).ok()?;
            at += bytes;
        }
        packer.finish().ok()?.placed(place).ok()
    }

    /// Rebuilds the index from the readable blocks. `None` if it is not certain that the blocks
    /// belong to this run.
    pub(crate) fn rebuild_index(&self) -> Option<Arc<BlockIndex>> {
        let meta = self.meta();
        let mut rebuilding = IndexRebuilder {
            run: self,
            index: IndexPacker::with_capacity(meta.blocks as usize),
            found: Tally::default(),
            last: None,
            last_key: Vec::new(),
            gap_bytes: 0,
            is_gap_closed: false,
            chunk: Chunk::new(),
        };
        let (mut at, mut is_behind_gap) = (0, false);
        while at < meta.blocks_bytes {
            if let Some((bytes, block)) = self.block_at(at) {
                rebuilding.block(bytes, &block)?;
                at += bytes;
                continue;
            }
            if !self.is_index_missing() {
                return None;
            }
            let next = match self.missing_from(at) {
                Some(page) => self.frame_behind(page).unwrap_or(meta.blocks_bytes),
                None if is_behind_gap => return None,
                None => meta.blocks_bytes,
            };
            rebuilding.gap(next - at);
            (at, is_behind_gap) = (next, true);
        }
        let found = &rebuilding.found;
        let is_sound = match is_behind_gap {
            true => found.is_part_of(meta) && (rebuilding.gap_bytes > 0 || found.has_last_of(meta)),
            false => found.is_all_of(meta),
        };
        if !is_sound {
            return None;
        }
        rebuilding.add_pending()?;
        let has_entries = rebuilding.index.entries() > 0;
        let index = rebuilding.index.finish().ok().filter(|_| has_entries)?;
        Some(Arc::new(index))
    }

    /// Returns an upper bound for the raw bytes of a block of this run, from the average: every
    /// block but the last has about the size in the tree's options, plus at most one entry.
    fn block_bytes_max(&self) -> u64 {
        let meta = self.meta();
        let all = meta.raw_bytes.saturating_add(meta.entries.saturating_mul(MESSAGE_BYTES_MAX));
        (all / u64::from(meta.blocks.max(1))).saturating_mul(4).saturating_add(256 << 10)
    }

    fn is_index_missing(&self) -> bool {
        let (from, page) = (self.meta().blocks_bytes, PAGE_BYTES as u64);
        let end = from + u64::from(self.meta().index_bytes);
        (from / page * page..end).step_by(PAGE_BYTES).any(|page| self.is_missing(page))
    }

    /// Returns the offset of the first missing page into which a block at `offset` could reach.
    fn missing_from(&self, offset: u64) -> Option<u64> {
        let end = self.meta().blocks_bytes.min(offset.saturating_add(self.block_bytes_max()));
        let mut pages = (offset.next_multiple_of(PAGE_BYTES as u64)..end).step_by(PAGE_BYTES);
        pages.find(|page| self.is_missing(*page))
    }

    fn is_missing(&self, page: u64) -> bool {
        let read = self.read_for_merge(page, PAGE_BYTES);
        read.map_or(true, |page| page.bytes().iter().all(|byte| *byte == 0))
    }

    /// Returns the offset of the first frame after the missing pages that begin with `page`.
    fn frame_behind(&self, page: u64) -> Option<u64> {
        let end = self.meta().blocks_bytes;
        let mut pages = (page..end).step_by(PAGE_BYTES);
        let from = pages.find(|page| !self.is_missing(*page))?;
        let end = end.min(from.saturating_add(self.block_bytes_max()));
        (from..end).step_by(PAGE_BYTES).find_map(|page| self.frame_from(page))
    }

    /// Returns the offset of the first data frame that begins in `page` and can be decoded.
    fn frame_from(&self, page: u64) -> Option<u64> {
        let both = PAGE_BYTES + FRAME_HEADER_BYTES;
        // A header may span two pages, and the second may be missing.
        let span = self.read_for_merge(page, both);
        let span = span.or_else(|_| self.read_for_merge(page, PAGE_BYTES)).ok()?;
        let headers = span.bytes().windows(FRAME_HEADER_BYTES).take(PAGE_BYTES);
        let mut places = headers.zip(page..).filter(|(header, _)| may_be_data_frame(header));
        places.find(|(_, place)| self.block_at(*place).is_some()).map(|(_, place)| place)
    }

    /// Returns the block whose frame begins at `offset`, with the frame's length. `None` if the
    /// block cannot be read or decoded, or if its header states a length that no block of this run
    /// has: a damaged length must not cause a large allocation.
    fn block_at(&self, offset: u64) -> Option<(u64, Block)> {
        let left = self.meta().blocks_bytes.checked_sub(offset)?;
        let header = self.read_for_merge(offset, FRAME_HEADER_BYTES).ok()?;
        let (len, raw_len) = (frame_len(header.bytes())?, frame_raw_len(header.bytes())?);
        let is_likely = raw_len as u64 <= self.block_bytes_max()
            && len - FRAME_HEADER_BYTES <= raw_len
            && len as u64 <= left;
        if !is_likely {
            return None;
        }
        let span = self.read_for_merge(offset, len).ok()?;
        self.decode(span.bytes(), offset).ok().map(|block| (len as u64, block))
    }
}

impl IndexRebuilder<'_> {
    /// Appends a block; `None` if it cannot be the next block of the run.
    fn block(&mut self, bytes: u64, block: &Block) -> Option<()> {
        let (meta, chunk) = (self.run.meta(), &mut self.chunk);
        self.run.fill(block, 0..block.len(), chunk);
        let end = chunk.len().checked_sub(1)?;
        let (first_key, last_key) = (chunk.key(0).to_vec(), chunk.key(end).to_vec());
        let continues = self.found.last.as_ref().is_some_and(|(key, _)| *key == first_key);
        let is_of_run = self.found.add(chunk)
            && *meta.first_key <= *first_key
            && *last_key <= *meta.last_key
            && chunk.seqs.iter().all(|seq| (meta.min_seq..=meta.max_seq).contains(seq));
        if !is_of_run {
            return None;
        }
        if self.gap_bytes > 0 && !self.is_gap_closed {
            self.gap_bytes += bytes;
            self.is_gap_closed = true;
            return Some(());
        }
        let entries = chunk.len() as u64;
        self.add_pending()?;
        self.last = Some(IndexedBlock { bytes, first_key, last_key, entries, continues });
        Some(())
    }

    /// Appends a gap of `bytes` bytes.
    fn gap(&mut self, bytes: u64) {
        self.gap_bytes += bytes + self.last.take().map_or(0, |last| last.bytes);
        self.is_gap_closed = false;
    }

    /// Adds the pending block or gap to the index; `None` if the index cannot hold it.
    fn add_pending(&mut self) -> Option<()> {
        if let Some(last) = self.last.take() {
            let separator = if self.index.is_empty() { &[] } else { &*last.first_key };
            self.index.push(separator, last.bytes, last.continues, last.entries).ok()?;
            self.last_key = last.last_key;
        }
        while self.gap_bytes > 0 {
            let part = self.gap_bytes.min(GAP_BYTES_MAX);
            // The gap may begin with another version of the last key before it, so list the gap as
            // a block that continues that key.
            let continues = !self.index.is_empty();
            self.index.push(&self.last_key, part, continues, 0).ok()?;
            self.gap_bytes -= part;
        }
        Some(())
    }
}
