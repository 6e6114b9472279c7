//! Rebuilds the block index of a run from its blocks, for a salvage: when a file ends in the middle of a run
//! or the index is damaged, the blocks are still there.
//!
//! Blocks follow each other without padding, and each frame states its length, so a walk from the first
//! block finds them all. It ends at the first block that cannot be decoded, unless pages are *missing* there:
//! pages of zeros, as a salvage reads behind the end of a file, or pages that the device cannot read. Then the
//! walk continues at the first frame behind them; the extents of a run may lie in any order in a file. The bytes
//! between are a *gap*; the index lists it as blocks that cannot be decoded:
//!
//! ```text
//!  blocks      | [a .. f] | gap  | [m .. p] | gap, to the end
//!  separator     ""         "f"    "m"        "p"
//! ```
//!
//! A gap may hold any key from the last one before it to the first one behind it, both included, because
//! versions of one key may lie in two blocks.
//!
//! Nothing in a frame names its run, so the walk must not guess. It does not look for frames behind bytes that
//! are merely wrong: the pages there may hold blocks of an earlier run, and a value may look like a frame. Two
//! findings condemn the whole run: a frame with a right checksum whose keys, SeqNos or counts do not belong to
//! the run, and frames behind missing pages that lead neither to more missing pages nor to the end of the
//! blocks.

use frondb_block::{Block, FRAME_HEADER_BYTES, frame_len, frame_raw_len};
use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, SeqNo};

use crate::index::BlockIndex;
use crate::reader::Run;

/// Longest part of a gap that the index lists as one block, bytes: a reader of a gap holds all of it in memory.
const GAP_BYTES_MAX: u64 = 1 << 20;

/// What a block stores for a message beside key and value, at most, bytes.
const MESSAGE_BYTES_MAX: u64 = 24;

/// The index so far.
struct Rebuilding<'a> {
    run: &'a Run,
    index: BlockIndex,
    /// Key and SeqNo of the last message.
    last: Option<(Vec<u8>, SeqNo)>,
    entries: u64,
    /// The index ends with a gap. The block behind it counts as one that continues, so that a lookup of its
    /// first key reads the gap too, and fails.
    is_gap: bool,
    chunk: Chunk,
}

impl Run {
    /// The index of the blocks that can be read. `None` if no block can, or if one is not of this run.
    pub(crate) fn rebuild_index(&self) -> Option<Arc<BlockIndex>> {
        let meta = self.meta();
        let mut rebuilding = Rebuilding {
            run: self,
            index: BlockIndex::with_capacity(meta.blocks as usize),
            last: None,
            entries: 0,
            is_gap: false,
            chunk: Chunk::new(),
        };
        let (mut at, mut is_behind_gap) = (0, false);
        while at < meta.blocks_bytes {
            if let Some((bytes, block)) = self.block_at(at) {
                rebuilding.push(bytes, &block)?;
                at += bytes;
                continue;
            }
            let next = match self.missing_from(at) {
                Some(page) => self.frame_behind(page).unwrap_or(meta.blocks_bytes),
                None if is_behind_gap => return None,
                None => meta.blocks_bytes,
            };
            rebuilding.push_gap(next - at)?;
            (at, is_behind_gap) = (next, true);
        }
        let is_counted = rebuilding.entries < meta.entries && is_behind_gap
            || rebuilding.entries == meta.entries && !is_behind_gap;
        (rebuilding.entries > 0 && is_counted).then(|| Arc::new(rebuilding.index))
    }

    /// Most bytes that a block of this run has before it is encoded. All but the last block are about as large
    /// as the options of the tree say, and one entry larger.
    fn block_bytes_max(&self) -> u64 {
        let meta = self.meta();
        let all = meta.raw_bytes.saturating_add(meta.entries.saturating_mul(MESSAGE_BYTES_MAX));
        (all / u64::from(meta.blocks.max(1))).saturating_mul(4).saturating_add(256 << 10)
    }

    /// Offset of the first missing page in what may be a block at `offset`.
    fn missing_from(&self, offset: u64) -> Option<u64> {
        let end = self.meta().blocks_bytes.min(offset.saturating_add(self.block_bytes_max()));
        let pages = (offset.next_multiple_of(PAGE_BYTES as u64)..end).step_by(PAGE_BYTES);
        pages.into_iter().find(|page| self.is_missing(*page))
    }

    fn is_missing(&self, page: u64) -> bool {
        let read = self.read_for_merge(page, PAGE_BYTES);
        read.map_or(true, |page| page.bytes().iter().all(|byte| *byte == 0))
    }

    /// Offset of the first frame behind the missing pages that begin with `page`.
    fn frame_behind(&self, page: u64) -> Option<u64> {
        let end = self.meta().blocks_bytes;
        let mut pages = (page..end).step_by(PAGE_BYTES);
        let from = pages.find(|page| !self.is_missing(*page))?;
        let mut places = from..end.min(from.saturating_add(self.block_bytes_max()));
        places.find(|place| self.block_at(*place).is_some())
    }

    /// The block whose frame begins at `offset`, with the length of the frame. `None` if it cannot be read or
    /// decoded, or states a length that no block of this run has: memory is not taken for a damaged length.
    fn block_at(&self, offset: u64) -> Option<(u64, Block)> {
        let meta = self.meta();
        let header = self.read_for_merge(offset, FRAME_HEADER_BYTES).ok()?;
        let (len, raw_len) = (frame_len(header.bytes())?, frame_raw_len(header.bytes())?);
        let is_likely = raw_len as u64 <= self.block_bytes_max()
            && len - FRAME_HEADER_BYTES <= raw_len
            && len as u64 <= meta.blocks_bytes - offset;
        if !is_likely {
            return None;
        }
        let span = self.read_for_merge(offset, len).ok()?;
        self.decode(span.bytes(), offset).ok().map(|block| (len as u64, block))
    }
}

impl Rebuilding<'_> {
    /// Appends a block; `None` if it cannot be the next one of the run.
    fn push(&mut self, bytes: u64, block: &Block) -> Option<()> {
        let meta = self.run.meta();
        let chunk = &mut self.chunk;
        self.run.fill(block, 0..block.len(), chunk);
        let message = |i: usize| (chunk.key(i), std::cmp::Reverse(chunk.seqs[i]));
        let end = chunk.len().checked_sub(1)?;
        let last = self.last.as_ref().map(|(key, seq)| (&**key, std::cmp::Reverse(*seq)));
        let begins_right = match last {
            Some(last) => last < message(0),
            None if self.index.is_empty() => *chunk.key(0) == *meta.first_key,
            None => *chunk.key(0) >= *meta.first_key,
        };
        let is_of_run = begins_right
            && (1..=end).all(|i| message(i - 1) < message(i))
            && *chunk.key(end) <= *meta.last_key
            && chunk.seqs.iter().all(|seq| (meta.min_seq..=meta.max_seq).contains(seq));
        if !is_of_run {
            return None;
        }
        let separator = if self.index.is_empty() { &[] } else { chunk.key(0) };
        let continues = self.is_gap || last.is_some_and(|(key, _)| *key == *chunk.key(0));
        self.index.push(separator, bytes, continues, chunk.len() as u64).ok()?;
        self.entries += chunk.len() as u64;
        self.last = Some((chunk.key(end).to_vec(), chunk.seqs[end]));
        self.is_gap = false;
        Some(())
    }

    /// Appends a gap of so many bytes; `None` if the index cannot hold it.
    fn push_gap(&mut self, bytes: u64) -> Option<()> {
        let separator = self.last.as_ref().map_or(&[][..], |(key, _)| key);
        let mut left = bytes;
        while left > 0 {
            let part = left.min(GAP_BYTES_MAX);
            // As if the gap began with another version of the key before it.
            let continues = !self.index.is_empty();
            self.index.push(separator, part, continues, 0).ok()?;
            left -= part;
        }
        self.is_gap = true;
        Some(())
    }
}
