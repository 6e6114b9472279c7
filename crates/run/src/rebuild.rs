//! Rebuilds the block index of a run from its blocks, for a salvage: when a file ends in the middle of a run
//! or the index is damaged, the blocks are still there.
//!
//! Blocks follow each other without padding, and each frame states its length. When a block is damaged the
//! walk continues at the next frame with a right checksum. The bytes between are a *gap*; the index lists
//! it as a block that cannot be decoded:
//!
//! ```text
//!  blocks      | [a .. f] | gap  | [m .. p] | gap, to the end
//!  separator     ""         "f"    "m"        "p"
//! ```
//!
//! A gap may hold any key from the last one before it to the first one behind it, both included, because
//! versions of one key may lie in two blocks.
//!
//! A frame counts as a block of the run only if its checksum is right, its keys lie above those before it and
//! within the run's bounds, and its SeqNos lie within the run's.

use frondb_block::{Block, FRAME_HEADER_BYTES, frame_len, may_be_data_frame};
use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, SeqNo};

use crate::index::BlockIndex;
use crate::reader::Run;

/// Bytes searched for a frame at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// Longest gap that the index lists as one block, bytes: a reader of a gap holds all of it in memory.
const PIECE_BYTES: u64 = 1 << 20;

/// The index so far.
struct Rebuilding<'a> {
    run: &'a Run,
    index: BlockIndex,
    /// Key and SeqNo of the last message.
    last: Option<(Vec<u8>, SeqNo)>,
    entries: u64,
    has_gap: bool,
    chunk: Chunk,
}

impl Run {
    /// The index of the blocks that can be read. `None` if no block can, or if there is no gap and the blocks
    /// have more or fewer messages than the manifest says.
    pub(crate) fn rebuild_index(&self) -> Option<Arc<BlockIndex>> {
        let end = self.meta().blocks_bytes;
        let mut rebuilding = Rebuilding {
            run: self,
            index: BlockIndex::with_capacity(self.meta().blocks as usize),
            last: None,
            entries: 0,
            has_gap: false,
            chunk: Chunk::new(),
        };
        let mut at = 0;
        while at < end {
            at = match rebuilding.block(at) {
                Some(bytes) => at + bytes,
                None => {
                    let next = self.next_frame(at, end);
                    rebuilding.gap(next - at)?;
                    next
                }
            };
        }
        let is_whole = rebuilding.has_gap || rebuilding.entries == self.meta().entries;
        (rebuilding.entries > 0 && is_whole).then(|| Arc::new(rebuilding.index))
    }

    /// The data block whose frame begins at `offset`, with the length of the frame, if its checksum is right.
    fn block_at(&self, offset: u64, end: u64) -> Option<(u64, Block)> {
        let header = self.read_for_merge(offset, FRAME_HEADER_BYTES).ok()?;
        let len = frame_len(header.bytes())? as u64;
        if !may_be_data_frame(header.bytes()) || len > end - offset {
            return None;
        }
        let span = self.read_for_merge(offset, len as usize).ok()?;
        self.decode(span.bytes(), offset).ok().map(|block| (len, block))
    }

    /// Offset of the first frame behind `offset`, or `end`. The length that the damaged frame states is tried
    /// first, because a value inside the frame may itself look like a frame.
    fn next_frame(&self, offset: u64, end: u64) -> u64 {
        let header = self.read_for_merge(offset, FRAME_HEADER_BYTES);
        if let Ok(header) = header
            && may_be_data_frame(header.bytes())
            && let Some(len) = frame_len(header.bytes())
        {
            let behind = offset + len as u64;
            if behind == end || behind < end && self.block_at(behind, end).is_some() {
                return behind;
            }
        }
        let mut at = offset + 1;
        while at + (FRAME_HEADER_BYTES as u64) < end {
            let len = WINDOW_BYTES.min((end - at) as usize);
            // A page that cannot be read fails the whole window; then try the first page alone.
            let page = PAGE_BYTES - (at % PAGE_BYTES as u64) as usize;
            let window = self
                .read_for_merge(at, len)
                .or_else(|_| self.read_for_merge(at, len.min(page.max(FRAME_HEADER_BYTES))));
            let Ok(window) = window else {
                at += page as u64;
                continue;
            };
            let headers = window.bytes().windows(FRAME_HEADER_BYTES);
            let mut found = headers.enumerate().filter(|(_, header)| may_be_data_frame(header));
            let is_frame = |place: &u64| self.block_at(*place, end).is_some();
            if let Some(place) = found.by_ref().map(|(i, _)| at + i as u64).find(is_frame) {
                return place;
            }
            // A header may span the end of the window.
            at += (window.bytes().len() - FRAME_HEADER_BYTES + 1) as u64;
        }
        end
    }
}

impl Rebuilding<'_> {
    /// Appends the block at `offset` and returns its length; `None` if no block of the run lies there.
    fn block(&mut self, offset: u64) -> Option<u64> {
        let meta = self.run.meta();
        let (bytes, block) = self.run.block_at(offset, meta.blocks_bytes)?;
        let chunk = &mut self.chunk;
        self.run.fill(&block, 0..block.len(), chunk);
        let at = |i: usize| (chunk.key(i), std::cmp::Reverse(chunk.seqs[i]));
        let end = chunk.len().checked_sub(1)?;
        let last = self.last.as_ref();
        let is_of_run = (1..=end).all(|i| at(i - 1) < at(i))
            && last.is_none_or(|(key, seq)| (&**key, std::cmp::Reverse(*seq)) < at(0))
            && *meta.first_key <= *chunk.key(0)
            && *chunk.key(end) <= *meta.last_key
            && chunk.seqs.iter().all(|seq| (meta.min_seq..=meta.max_seq).contains(seq));
        if !is_of_run {
            return None;
        }
        let before = self.index.len().checked_sub(1).map(|block| self.index.separator(block));
        let continues = last.is_some_and(|(key, _)| **key == *chunk.key(0));
        // The first key behind a leading gap may be the empty one.
        let continues = continues || before == Some(chunk.key(0));
        let separator = if before.is_none() { &[][..] } else { chunk.key(0) };
        self.index.push(separator, bytes, continues, chunk.len() as u64).ok()?;
        self.entries += chunk.len() as u64;
        self.last = Some((chunk.key(end).to_vec(), chunk.seqs[end]));
        Some(bytes)
    }

    /// Appends a gap; `None` if the index cannot hold it.
    fn gap(&mut self, bytes: u64) -> Option<()> {
        self.has_gap = true;
        let separator = self.last.as_ref().map_or(&[][..], |(key, _)| key);
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(PIECE_BYTES);
            let continues = !self.index.is_empty();
            self.index.push(separator, piece, continues, 0).ok()?;
            left -= piece;
        }
        Some(())
    }
}
