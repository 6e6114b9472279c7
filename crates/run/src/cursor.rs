//! A cursor over a run: in either direction, chunk by chunk, within bounds.
//!
//! A reader takes blocks from the cache and reads missing blocks ahead: first one block, then
//! windows that double up to 1 MiB while the scan continues. Blocks of large windows are not
//! inserted into the cache, because a long scan must not empty it. A merge reads the run in windows
//! of 128 KiB, bypassing the cache.
//!
//! The blocks of a window stay encoded until the cursor reaches them. So a cursor that stops early
//! has decoded no block for nothing, and a damaged block fails only when it is reached. The window
//! is freed with its last block.
//!
//! With low memory, a reader's cursor charges its current block, because the cache may have evicted
//! it. When the blocks of all cursors reach a part of the memory, further cursors hold none: they
//! copy a small chunk out of their block and fetch the block again for the next chunk, most likely
//! from the cache.

use std::ops::Range;

use frondb_block::Block;
use frondb_core::budget::{Part, Reservation};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Chunk, Direction, Result, Source};

use crate::block_reads::BlockRead;
use crate::env::RunEnv;
use crate::index::BlockIndex;
use crate::low_memory::{CHUNK_ENTRIES_LOW_MEMORY, is_low_memory, merge_window_bytes};
use crate::read::Span;
use crate::reader::Run;

/// First chunk of a reader's cursor, entries: a short scan must not pay for a whole block.
const CHUNK_ENTRIES_FIRST: usize = 32;
/// First chunk after a long skip, entries: a cursor that skips from group to group needs one entry
/// of each group.
const CHUNK_ENTRIES_AFTER_SKIP: usize = 8;
/// Largest chunk, entries.
const CHUNK_ENTRIES_MAX: usize = 1024;
/// Largest read-ahead of a reader, bytes.
const READ_AHEAD_BYTES_MAX: usize = 1024 * 1024;
/// Windows up to this size leave their blocks in the cache.
const KEEP_WINDOW_BYTES_MAX: usize = 128 * 1024;
/// The windows of all readers together take at most about the memory divided by this.
const WINDOWS_DIVISOR: u64 = 16;
/// With low memory, the blocks that all readers' cursors hold between two chunks take at most
/// the memory divided by this.
const HELD_DIVISOR: u64 = 8;

/// The purpose of a cursor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// A user's scan: through the cache, small reads first.
    Scan,
    /// A merge: bypasses the cache, large windows.
    Merge,
}

/// A cursor over part of a run. See the module's head.
pub struct RunCursor {
    run: Arc<Run>,
    index: Arc<BlockIndex>,
    direction: Direction,
    mode: ReadMode,
    /// Blocks not yet begun: `[next, end)`, taken from the end in a backward cursor.
    next: usize,
    end: usize,
    /// Key bounds, if they cut the run: searched in the first and last block when it is reached.
    lo: Option<Box<[u8]>>,
    hi: Option<Box<[u8]>>,
    /// The current block, and its entries that are left.
    block: Option<Block>,
    /// Number of the current block; it is fetched again if it has entries left and is not held.
    number: usize,
    left: Range<usize>,
    /// Memory of the current block. With low memory, a cursor without this charge holds no block
    /// between two chunks.
    held: Option<Charge>,
    /// With low memory, a reader charges the block that it holds.
    is_low_memory: bool,
    chunk_entries: usize,
    /// Chunks are small and own their values; nothing is read ahead.
    is_small: bool,
    /// The blocks read ahead.
    window: Option<Window>,
    /// Bytes of the next read; 0 for a single block.
    window_bytes: usize,
}

/// Consecutive encoded blocks.
struct Window {
    blocks: Range<usize>,
    /// Logical offset of the first.
    offset: u64,
    span: Span,
    /// Whether its blocks are inserted into the cache.
    keep: bool,
    /// A reader's charge for the window; a merge has reserved its memory in advance.
    _charge: Option<Charge>,
}

/// The memory of a reader's window or block, in the budget and in the sum of its kind.
struct Charge {
    env: Arc<RunEnv>,
    sum: Sum,
    bytes: u64,
    _reserved: Reservation,
}

/// The sum to charge; see [`RunEnv`].
type Sum = fn(&RunEnv) -> &AtomicU64;

impl Charge {
    /// A charge, unless it would raise the sum above `most`.
    fn within(env: &Arc<RunEnv>, sum: Sum, bytes: u64, most: u64) -> Option<Self> {
        let before = sum(env).fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > most {
            sum(env).fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        let reserved = env.budget.reserve(Part::Work, bytes);
        Some(Self { env: Arc::clone(env), sum, bytes, _reserved: reserved })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        (self.sum)(&self.env).fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl RunCursor {
    /// A cursor over the entries with `lo <= key < hi`.
    pub fn new(
        run: Arc<Run>,
        direction: Direction,
        lo: Option<&[u8]>,
        hi: Option<&[u8]>,
        mode: ReadMode,
    ) -> Result<Self> {
        let index = run.index()?;
        let meta = run.meta();
        let empty = lo.is_some_and(|lo| *lo > *meta.last_key)
            || hi.is_some_and(|hi| *hi <= *meta.first_key)
            || matches!((lo, hi), (Some(lo), Some(hi)) if lo >= hi);
        // Drop bounds that do not cut the run, so that no search pays for them later.
        let lo = lo.filter(|lo| **lo > *meta.first_key);
        let hi = hi.filter(|hi| **hi <= *meta.last_key);
        let next = lo.map_or(0, |lo| index.find(lo));
        let end = hi.map_or(index.len(), |hi| {
            let block = index.find(hi);
            // A block whose separator equals the bound has no entry below it.
            if index.separator(block) < hi { block + 1 } else { block }
        });
        let memory = run.env().budget.total();
        let is_low_memory = is_low_memory(memory);
        Ok(Self {
            direction,
            mode,
            next,
            end: if empty { next } else { end },
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
            is_small: false,
            window: None,
            window_bytes: match mode {
                ReadMode::Scan => 0,
                ReadMode::Merge => merge_window_bytes(memory),
            },
            index,
            run,
        })
    }

    /// Forward [`Source::skip`].
    fn skip_below(&mut self, key: &[u8]) -> Result<()> {
        // The block behind the current one begins above the key.
        let is_here = self.next >= self.end || self.index.separator(self.next) > key;
        let target = if is_here { self.next } else { self.index.find(key) };
        // The versions of a key that fills several blocks begin in the first of these blocks.
        if is_here || target < self.next {
            if let Some(at) = self.find_in_block(key)? {
                self.skipped(at - self.left.start);
                self.left.start = at;
            }
            return Ok(());
        }
        self.leave_block(target != self.next);
        self.next = target;
        if self.lo.as_ref().is_none_or(|lo| **lo < *key) {
            self.lo = Some(key.into());
        }
        Ok(())
    }

    /// Backward [`Source::skip`].
    fn skip_from(&mut self, key: &[u8]) -> Result<()> {
        // The current block begins below the key.
        let is_here = !self.left.is_empty() && self.index.separator(self.number) < key;
        let target = if is_here { self.end } else { self.index.find(key) };
        if target >= self.end {
            if let Some(at) = self.find_in_block(key)? {
                self.skipped(self.left.end - at);
                self.left.end = at;
            }
            return Ok(());
        }
        self.leave_block(target + 1 != self.end);
        self.end = self.end.min(target + 1);
        if self.hi.as_ref().is_none_or(|hi| **hi > *key) {
            self.hi = Some(key.into());
        }
        Ok(())
    }

    /// Index of the current block's first remaining entry that is not below the key.
    fn find_in_block(&mut self, key: &[u8]) -> Result<Option<usize>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let at = self.take_block()?.lower_bound(key);
        Ok(Some(at.clamp(self.left.start, self.left.end)))
    }

    /// The current block, which has entries left.
    fn take_block(&mut self) -> Result<&Block> {
        let block = match self.block.take() {
            Some(block) => block,
            None => self.fetch(self.number)?,
        };
        Ok(&*self.block.insert(block))
    }

    /// Leaves the current block for a neighbour, or for one further away.
    fn leave_block(&mut self, is_far: bool) {
        self.block = None;
        self.left = 0..0;
        self.skipped(CHUNK_ENTRIES_FIRST);
        if is_far && self.mode == ReadMode::Scan {
            self.window_bytes = 0;
        }
    }

    /// Notes that `entries` entries of a block were skipped: a reader that skips far needs few
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
            let block = self.fetch(number)?;
            match self.direction {
                Direction::Forward => self.next += 1,
                Direction::Backward => self.end -= 1,
            }
            let start = match &self.lo {
                Some(lo) if self.index.separator(number) <= &**lo => block.lower_bound(lo),
                _ => 0,
            };
            let is_last = number + 1 == self.index.len();
            let end = match &self.hi {
                Some(hi) if is_last || self.index.separator(number + 1) >= &**hi => {
                    block.lower_bound(hi)
                }
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

    /// Whether a reader's cursor charges its block.
    fn is_charged(&self) -> bool {
        self.is_low_memory && self.mode == ReadMode::Scan
    }

    /// With low memory, charges the block that a reader is about to hold, if there is room for it.
    /// The charge lasts until the cursor holds a larger block or ends. With very many cursors,
    /// further ones hold no block.
    fn charge(&mut self, block: &Block) {
        if !self.is_charged() {
            return;
        }
        let (env, bytes) = (self.run.env(), block.memory_bytes() as u64);
        if self.is_small || self.held.as_ref().is_some_and(|held| held.bytes < bytes) {
            self.held = None;
        }
        if self.held.is_none() && !self.is_small {
            let most = env.budget.total() / HELD_DIVISOR;
            self.held = Charge::within(env, |env| &env.held_bytes, bytes, most);
        }
    }

    /// Block `number`, from the cache, the window or the device.
    fn fetch(&mut self, number: usize) -> Result<Block> {
        if self.mode == ReadMode::Scan
            && let Some(block) = self.run.cached_block(number)
        {
            return Ok(block);
        }
        let env = Arc::clone(self.run.env());
        let read =
            (self.mode == ReadMode::Scan).then(|| self.run.begin_read(&env, &self.index, number));
        if read.as_ref().is_some_and(BlockRead::has_waited)
            && let Some(block) = self.run.cached_block(number)
        {
            return Ok(block);
        }
        let window = match self.window.take() {
            Some(window) if window.blocks.contains(&number) => window,
            other => {
                drop(other);
                self.read_window(number)?
            }
        };
        let (offset, len) = self.index.extent(number);
        let at = (offset - window.offset) as usize;
        let block = self.run.decode(&window.span.bytes()[at..at + len], offset)?;
        if window.keep {
            self.run.keep_block(number, &block);
        }
        let is_last = match self.direction {
            Direction::Forward => number + 1 == window.blocks.end,
            Direction::Backward => number == window.blocks.start,
        };
        if !is_last {
            self.window = Some(window);
        }
        Ok(block)
    }

    /// Reads the block and its neighbours in the cursor's direction with one request.
    fn read_window(&mut self, number: usize) -> Result<Window> {
        let mut blocks = number..number + 1;
        let mut bytes = self.index.extent(number).1;
        while bytes < self.window_bytes {
            let neighbour = match self.direction {
                Direction::Forward if blocks.end < self.end => blocks.end,
                Direction::Backward if blocks.start > self.next => blocks.start - 1,
                _ => break,
            };
            bytes += self.index.extent(neighbour).1;
            if bytes > self.window_bytes {
                break;
            }
            blocks = blocks.start.min(neighbour)..blocks.end.max(neighbour + 1);
        }
        let offset = self.index.extent(blocks.start).0;
        let (last_offset, last_bytes) = self.index.extent(blocks.end - 1);
        let len = (last_offset - offset) as usize + last_bytes;
        let keep = self.mode == ReadMode::Scan
            && (blocks.len() == 1 || self.window_bytes <= KEEP_WINDOW_BYTES_MAX);
        let windows: Sum = |env| &env.window_bytes;
        let (span, charge) = match self.mode {
            ReadMode::Scan => {
                // A single block needs no limit: each reading thread has one at most, and only
                // briefly.
                let charge = || Charge::within(self.run.env(), windows, len as u64, u64::MAX);
                let charge = (blocks.len() > 1).then(charge).flatten();
                (self.run.read(offset, len)?, charge)
            }
            ReadMode::Merge => (self.run.read_for_merge(offset, len)?, None),
        };
        if self.mode == ReadMode::Scan && !self.is_small {
            self.window_bytes = self.next_window(self.window_bytes.max(last_bytes) * 2);
        }
        Ok(Window { blocks, offset, span, keep, _charge: charge })
    }

    /// The size of the next window, at most `wanted` bytes: the windows of all readers together
    /// take a part of the memory.
    fn next_window(&self, wanted: usize) -> usize {
        let env = self.run.env();
        let others = env.window_bytes.load(Ordering::Relaxed);
        let room = (env.budget.total() / WINDOWS_DIVISOR).saturating_sub(others);
        // With low memory the blocks of a window are requested several times.
        let most = if self.is_low_memory { KEEP_WINDOW_BYTES_MAX } else { READ_AHEAD_BYTES_MAX };
        let wanted = wanted.min(most);
        if wanted as u64 <= room { wanted } else { room as usize / 2 }
    }
}

impl Source for RunCursor {
    fn next_chunk(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.clear();
        if self.left.is_empty() && !self.next_block()? {
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
