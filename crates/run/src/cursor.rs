//! A cursor over a run: in either direction, chunk by chunk, within bounds.
//!
//! A reader takes blocks from the cache and reads missing blocks ahead: first one block, then
//! windows that double up to 1 MiB while the scan continues. Blocks of large windows are not
//! inserted into the cache, because a long scan must not empty it. A merge reads the run in windows
//! of 128 KiB (smaller with low memory), bypassing the cache.
//!
//! The blocks of a window stay encoded until the cursor reaches them. So a cursor that stops early
//! has decoded no block in vain, and a damaged block causes an error only if the cursor reaches
//! that block. The window is freed with its last block.
//!
//! A cursor holds its current part of the block index, so it looks up each part only once.
//!
//! With low memory, a reader's cursor charges its current block, because the cache may have evicted
//! that block. When the blocks of all cursors reach a fraction of the memory budget, further
//! cursors hold none: they copy a small chunk out of their block and fetch the block again for the
//! next chunk, most likely from the cache.

mod fetch;
mod window;

use std::ops::Range;

use frondb_block::Block;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, Direction, Result, Source};

use crate::charge::Charge;
use crate::index::BlockIndex;
use crate::low_memory::{CHUNK_ENTRIES_LOW_MEMORY, is_low_memory, merge_window_bytes};
use crate::read::ReadMode;
use crate::reader::Run;
use crate::residency::handover::Handover;
use window::Window;

/// First chunk of a reader's cursor, entries: a short scan must not decode a whole block.
const CHUNK_ENTRIES_FIRST: usize = 32;
/// Smallest first chunk, entries, even if the reader expects fewer: its estimate may be too low.
const CHUNK_ENTRIES_LEAST: usize = 4;
/// First chunk after a long skip, entries: a cursor that skips from group to group needs one entry
/// of each group.
const CHUNK_ENTRIES_AFTER_SKIP: usize = 8;
/// Largest chunk, entries.
const CHUNK_ENTRIES_MAX: usize = 1024;

/// A cursor over part of a run. See the module documentation.
pub struct RunCursor {
    run: Arc<Run>,
    /// The part of the block index that has the current block and the block at which the cursor
    /// continues. The latter may also be the first block of the next part (forward) or the last
    /// block of the previous part (backward).
    index: Arc<BlockIndex>,
    direction: Direction,
    mode: ReadMode,
    /// Blocks not yet begun: `[next, end)`; a backward cursor takes them from the end. The far end
    /// of the range may lie beyond the key bound until the cursor reaches the index part of the
    /// bound: reading that part earlier would be wasted if the cursor stops early.
    next: usize,
    end: usize,
    /// Key bounds; `None` if the bound excludes no part of the run. The cursor searches the block
    /// in which a bound lies when it reaches that block.
    lo: Option<Box<[u8]>>,
    hi: Option<Box<[u8]>>,
    /// The current block; `None` if the cursor does not hold it between two chunks.
    block: Option<Block>,
    /// Number of the current block, for fetching it again if it is not held.
    number: usize,
    /// The entries of the current block that are left.
    left: Range<usize>,
    /// Memory of the current block. With low memory, a cursor without this charge holds no block
    /// between two chunks.
    held: Option<Charge>,
    /// Whether memory is low, so that a reader charges the block that it holds.
    is_low_memory: bool,
    chunk_entries: usize,
    /// Whether the run's filter was not asked about the range, so that the cursor reports whether
    /// the range has entries.
    is_unprobed: bool,
    /// For a merge: counts the cached blocks that readers use.
    handover: Option<Arc<Handover>>,
    /// Whether chunks are small and own their values; nothing is read ahead then.
    is_small: bool,
    /// The blocks read ahead.
    window: Option<Window>,
    /// Bytes of the next read; 0 for a single block.
    window_bytes: usize,
}

impl RunCursor {
    /// Creates a cursor over the entries with `lo <= key < hi`.
    pub fn new(
        run: Arc<Run>,
        direction: Direction,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
        mode: ReadMode,
    ) -> Result<Self> {
        let meta = run.meta();
        let empty = lo.is_some_and(|lo| *lo > *meta.last_key)
            || hi.is_some_and(|hi| *hi <= *meta.first_key)
            || matches!((lo, hi), (Some(lo), Some(hi)) if lo >= hi);
        // Drop bounds that exclude no part of the run, so that no block is searched for them later.
        let lo = lo.filter(|lo| **lo > *meta.first_key);
        let hi = hi.filter(|hi| **hi <= *meta.last_key);
        let (next, end) = match empty {
            true => (0, 0),
            false => (run.blocks_left_of(lo)?, run.blocks_before(hi)?),
        };
        let index = match (direction, lo) {
            (Direction::Forward, Some(lo)) => run.index_for(lo, mode)?,
            (Direction::Forward, None) => run.index_of(0, mode)?,
            (Direction::Backward, _) => run.index_of(end.saturating_sub(1), mode)?,
        };
        let memory = run.env().budget.total();
        let is_low_memory = is_low_memory(memory);
        let mut cursor = Self {
            direction,
            mode,
            next,
            end,
            lo: lo.map(Into::into),
            hi: hi.map(Into::into),
            block: None,
            number: 0,
            left: 0..0,
            held: None,
            is_low_memory,
            chunk_entries: match mode {
                ReadMode::Scan => CHUNK_ENTRIES_FIRST,
                ReadMode::Merge if is_low_memory => CHUNK_ENTRIES_LOW_MEMORY,
                ReadMode::Merge => CHUNK_ENTRIES_MAX,
            },
            is_unprobed: false,
            handover: None,
            is_small: false,
            window: None,
            window_bytes: match mode {
                ReadMode::Scan => 0,
                ReadMode::Merge => merge_window_bytes(memory),
            },
            index,
            run,
        };
        cursor.narrow();
        Ok(cursor)
    }

    /// Makes the cursor report whether its range has entries ([`Run::note_range`]), because the
    /// filter was not asked about the range.
    #[must_use]
    pub fn unprobed(mut self) -> Self {
        self.is_unprobed = true;
        self
    }

    /// Makes the cursor add the cached blocks that readers use to `handover`, for a merge whose
    /// output replaces the run.
    #[must_use]
    pub fn handing_over(mut self, handover: &Arc<Handover>) -> Self {
        self.handover = Some(Arc::clone(handover));
        self
    }

    /// Makes `next` and `end` exact if the bounds lie in the current part of the index.
    fn narrow(&mut self) {
        if let Some(lo) = self.lo.as_ref().filter(|lo| self.index.holds(lo)) {
            self.next = self.next.max(self.index.find(lo));
        }
        if let Some(hi) = self.hi.as_ref().filter(|hi| self.index.holds(hi)) {
            self.end = self.end.min(self.index.end_before(hi));
        }
        if self.index.is_last() {
            self.end = self.end.min(self.index.blocks().end);
        }
    }

    /// Makes sure that the current part of the index has block `number`.
    fn reach(&mut self, number: usize) -> Result<()> {
        if !self.index.blocks().contains(&number) {
            self.index = self.run.index_of(number, self.mode)?;
            self.narrow();
        }
        Ok(())
    }

    /// Returns the part of the index in which a search for `key` ends, and the block that the
    /// search finds.
    fn search(&self, key: &[u8]) -> Result<(Arc<BlockIndex>, usize)> {
        let index = match self.index.holds(key) {
            true => Arc::clone(&self.index),
            false => self.run.index_for(key, self.mode)?,
        };
        let block = index.find(key);
        Ok((index, block))
    }

    /// Carries out [`Source::skip`] in a forward cursor.
    fn skip_below(&mut self, key: &[u8]) -> Result<()> {
        if self.hi.as_ref().is_some_and(|hi| **hi <= *key) {
            self.finish();
            return Ok(());
        }
        // Whether the search would end here: the block after the current one begins above the key,
        // or there is none.
        let is_here = self.next >= self.end || self.index.separator(self.next) > *key;
        let target = if is_here { None } else { Some(self.search(key)?) };
        // For a key that fills several blocks, the search finds the first of them, which the cursor
        // may have passed.
        let Some((index, target)) = target.filter(|(_, target)| *target >= self.next) else {
            if let Some(at) = self.find_in_block(key)? {
                self.skipped(at - self.left.start);
                self.left.start = at;
            }
            return Ok(());
        };
        self.leave_block(target != self.next);
        self.next = target;
        if self.lo.as_ref().is_none_or(|lo| **lo < *key) {
            self.lo = Some(key.into());
        }
        self.index = index;
        self.narrow();
        Ok(())
    }

    /// Carries out [`Source::skip`] in a backward cursor.
    fn skip_from(&mut self, key: &[u8]) -> Result<()> {
        if self.lo.as_ref().is_some_and(|lo| *key <= **lo) {
            self.finish();
            return Ok(());
        }
        // Whether the search would end here: the current block begins below the key.
        let is_here = !self.left.is_empty() && self.index.separator(self.number) < *key;
        let target = if is_here { None } else { Some(self.search(key)?) };
        let Some((index, target)) = target.filter(|(_, target)| *target < self.end) else {
            if let Some(at) = self.find_in_block(key)? {
                self.skipped(self.left.end - at);
                self.left.end = at;
            }
            return Ok(());
        };
        self.leave_block(target + 1 != self.end);
        self.end = self.end.min(target + 1);
        if self.hi.as_ref().is_none_or(|hi| **hi > *key) {
            self.hi = Some(key.into());
        }
        self.index = index;
        self.narrow();
        Ok(())
    }

    /// Returns the index of the current block's first remaining entry that is not below the key, or
    /// the end of the remaining entries; `None` if no entries remain.
    fn find_in_block(&mut self, key: &[u8]) -> Result<Option<usize>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let at = self.take_block()?.lower_bound(key);
        Ok(Some(at.clamp(self.left.start, self.left.end)))
    }

    /// Returns the current block, which has entries left. Fetches the block if the cursor does not
    /// hold it.
    fn take_block(&mut self) -> Result<&Block> {
        let block = match self.block.take() {
            Some(block) => block,
            None => self.fetch(self.number)?,
        };
        Ok(&*self.block.insert(block))
    }

    /// Ends the cursor, because a skip leads beyond its bounds.
    fn finish(&mut self) {
        (self.block, self.held, self.window) = (None, None, None);
        self.left = 0..0;
        self.end = self.next;
    }

    /// Leaves the current block for a neighbour, or, with `is_far`, for a block further away.
    fn leave_block(&mut self, is_far: bool) {
        self.block = None;
        self.left = 0..0;
        self.skipped(CHUNK_ENTRIES_FIRST);
        if is_far && self.mode == ReadMode::Scan {
            self.window_bytes = 0;
        }
    }

    /// Makes the next chunk small after a skip of many `entries`: a reader that skips far needs few
    /// entries at each place.
    fn skipped(&mut self, entries: usize) {
        if entries >= CHUNK_ENTRIES_FIRST && self.mode == ReadMode::Scan {
            self.chunk_entries = self.chunk_entries.min(CHUNK_ENTRIES_AFTER_SKIP);
        }
    }

    /// Moves to the next block that has entries within the bounds.
    fn next_block(&mut self) -> Result<bool> {
        while self.next < self.end {
            let number = match self.direction {
                Direction::Forward => self.next,
                Direction::Backward => self.end - 1,
            };
            self.reach(number)?;
            if !(self.next..self.end).contains(&number) {
                // The new part of the index shows that this block is out of bounds.
                continue;
            }
            let block = self.fetch(number)?;
            match self.direction {
                Direction::Forward => self.next += 1,
                Direction::Backward => self.end -= 1,
            }
            let start = match &self.lo {
                Some(lo) if self.index.separator(number) <= **lo => block.lower_bound(lo),
                _ => 0,
            };
            let is_below = |hi: &[u8]| self.index.separator_after(number).is_some_and(|s| s < *hi);
            let end = match &self.hi {
                Some(hi) if !is_below(hi) => block.lower_bound(hi),
                _ => block.len(),
            };
            if start < end {
                (self.number, self.left) = (number, start..end);
                self.charge(&block);
                self.block = Some(block);
                return Ok(true);
            }
        }
        (self.block, self.held, self.window) = (None, None, None);
        Ok(false)
    }
}

impl Source for RunCursor {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        let has_entries = !self.left.is_empty() || self.next_block()?;
        if std::mem::take(&mut self.is_unprobed) {
            self.run.note_range(has_entries);
        }
        if !has_entries {
            return Ok(false);
        }
        let holds_none = self.is_charged() && self.held.is_none();
        if holds_none {
            self.chunk_entries = self.chunk_entries.min(CHUNK_ENTRIES_FIRST);
        }
        let block = self.take_block()?.clone();
        let n = self.left.len().min(self.chunk_entries);
        let range = match self.direction {
            Direction::Forward => self.left.start..self.left.start + n,
            Direction::Backward => self.left.end - n..self.left.end,
        };
        self.run.fill(&block, range.clone(), chunk);
        match self.direction {
            Direction::Forward => self.left.start = range.end,
            Direction::Backward => self.left.end = range.start,
        }
        if self.is_small || holds_none {
            chunk.own_values();
        }
        if holds_none {
            self.block = None;
        }
        if !self.is_small {
            let most = match self.mode {
                ReadMode::Scan if !self.is_low_memory => CHUNK_ENTRIES_MAX,
                ReadMode::Scan => CHUNK_ENTRIES_LOW_MEMORY,
                ReadMode::Merge => self.chunk_entries,
            };
            self.chunk_entries = (self.chunk_entries * 2).min(most);
        }
        Ok(true)
    }

    fn expect(&mut self, messages: usize) {
        if messages == 0 {
            return;
        }
        let most = if self.is_low_memory { CHUNK_ENTRIES_FIRST } else { CHUNK_ENTRIES_MAX };
        self.chunk_entries = messages.clamp(CHUNK_ENTRIES_LEAST, most);
    }

    fn keep_small(&mut self, messages: usize) {
        self.is_small = true;
        self.chunk_entries = self.chunk_entries.min(messages.max(1));
        (self.window, self.window_bytes, self.held) = (None, 0, None);
    }

    fn skip(&mut self, key: &[u8]) -> Result<()> {
        match self.direction {
            Direction::Forward => self.skip_below(key),
            Direction::Backward => self.skip_from(key),
        }
    }
}
