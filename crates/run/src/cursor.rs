//! Walks a run in either direction, chunk by chunk, within bounds.
//!
//! For readers blocks come from the cache, and what is missing is read ahead: one block first,
//! then windows that double up to 1 MiB while the walk goes on. Blocks of large windows are not
//! kept in the cache: a long scan must not empty it. For merges the run is read in windows of
//! 128 KiB past the cache.
//!
//! A window stays encoded until the walk comes to its blocks, so a walk that ends early has
//! decoded no block in vain, and a damaged block fails when it is reached and not before. It goes with its
//! last block.
//!
//! With little memory a reader's walk charges the block that it is in: the cache may have evicted it. When
//! what all walks hold has grown to a part of the memory, the next ones hold none: they copy a small chunk
//! out of their block and ask for it again, which the cache most likely still has.

use std::ops::Range;

use frondb_block::Block;
use frondb_core::budget::{Part, Reservation};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Chunk, Direction, Result, Source};

use crate::env::RunEnv;
use crate::flights::Flight;
use crate::index::BlockIndex;
use crate::little::{CHUNK_ENTRIES_LITTLE, is_little, merge_window_bytes};
use crate::read::Span;
use crate::reader::Run;

/// First chunk of a reader's walk, entries: a short scan must not pay for a whole block.
const CHUNK_ENTRIES_FIRST: usize = 32;
/// First chunk behind a leap, entries: one who leaps from group to group needs one of them.
const CHUNK_ENTRIES_LEAP: usize = 8;
/// Largest chunk, entries.
const CHUNK_ENTRIES_MAX: usize = 1024;
/// Largest read-ahead of a reader, bytes.
const READ_AHEAD_BYTES_MAX: usize = 1024 * 1024;
/// Windows up to this size leave their blocks in the cache.
const KEEP_WINDOW_BYTES_MAX: usize = 128 * 1024;
/// Windows of all readers together take at most the memory divided by this, about.
const WINDOWS_DIVISOR: u64 = 16;
/// With little memory, the blocks that all walks of readers hold between two chunks take at most the memory
/// divided by this.
const HELD_DIVISOR: u64 = 8;

/// Who walks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadMode {
    /// A user's scan: through the cache, small first.
    Scan,
    /// A merge: past the cache, large windows.
    Merge,
}

/// A walk over part of a run. See the module's head.
pub struct RunCursor {
    run: Arc<Run>,
    index: Arc<BlockIndex>,
    direction: Direction,
    mode: ReadMode,
    /// Blocks not yet begun: `[next, end)` forward, taken from the end backward.
    next: usize,
    end: usize,
    /// Key bounds, if they cut the run: looked up in the first and last block when it is reached.
    lo: Option<Box<[u8]>>,
    hi: Option<Box<[u8]>>,
    /// The block being handed out and the entries of it that are left.
    block: Option<Block>,
    /// That block's number; it is fetched again if entries are left of it and it is not held.
    number: usize,
    left: Range<usize>,
    /// What that block takes; with little memory a walk without it holds none between two chunks.
    held: Option<Charge>,
    /// There is little memory, so a reader charges the block that it holds.
    is_little: bool,
    chunk_entries: usize,
    /// Chunks are small and have their own values; nothing is read ahead.
    is_small: bool,
    /// What was read ahead.
    window: Option<Window>,
    /// Bytes to read at once; 0 for a single block.
    window_bytes: usize,
}

/// Consecutive blocks as they lie on disk.
struct Window {
    blocks: Range<usize>,
    /// Logical offset of the first.
    offset: u64,
    span: Span,
    /// Whether its blocks go into the cache.
    keep: bool,
    /// What a reader's takes of the budget; a merge has reserved its own.
    _charge: Option<Charge>,
}

/// The memory of a reader's window or block, in the budget and in the sum of all of its kind.
struct Charge {
    env: Arc<RunEnv>,
    sum: Sum,
    bytes: u64,
    _reserved: Reservation,
}

/// Which sum: see [`RunEnv`].
type Sum = fn(&RunEnv) -> &AtomicU64;

impl Charge {
    /// A charge, unless the sum would pass `most` with it.
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
    /// A walk over the entries with `lo <= key < hi`.
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
        // Bounds that do not cut the run cost no search later.
        let lo = lo.filter(|lo| **lo > *meta.first_key);
        let hi = hi.filter(|hi| **hi <= *meta.last_key);
        let next = lo.map_or(0, |lo| index.find(lo));
        let end = hi.map_or(index.len(), |hi| {
            let block = index.find(hi);
            // A block whose separator is the bound has nothing below it.
            if index.separator(block) < hi { block + 1 } else { block }
        });
        let memory = run.env().budget.total();
        let is_little = is_little(memory);
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
            is_little,
            chunk_entries: match mode {
                ReadMode::Scan => CHUNK_ENTRIES_FIRST,
                ReadMode::Merge if is_little => CHUNK_ENTRIES_LITTLE,
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

    /// See [`Source::skip`]. Forward.
    fn skip_below(&mut self, key: &[u8]) -> Result<()> {
        // The block after the one that is being handed out begins above the key.
        let is_here = self.next >= self.end || self.index.separator(self.next) > key;
        let target = if is_here { self.next } else { self.index.find(key) };
        // Versions of a key that fills several blocks begin in the first of them.
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

    /// See [`Source::skip`]. Backward.
    fn skip_from(&mut self, key: &[u8]) -> Result<()> {
        // The block that is being handed out begins below the key.
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

    /// The first entry that is left of the block being handed out and is not below the key.
    fn find_in_block(&mut self, key: &[u8]) -> Result<Option<usize>> {
        if self.left.is_empty() {
            return Ok(None);
        }
        let at = self.take_block()?.lower_bound(key);
        Ok(Some(at.clamp(self.left.start, self.left.end)))
    }

    /// The block being handed out, of which entries are left.
    fn take_block(&mut self) -> Result<&Block> {
        let block = match self.block.take() {
            Some(block) => block,
            None => self.fetch(self.number)?,
        };
        Ok(&*self.block.insert(block))
    }

    /// Gives up the block that is being handed out, for one that is its neighbour or further away.
    fn leave_block(&mut self, is_far: bool) {
        self.block = None;
        self.left = 0..0;
        self.skipped(CHUNK_ENTRIES_FIRST);
        if is_far && self.mode == ReadMode::Scan {
            self.window_bytes = 0;
        }
    }

    /// So many entries of a block were passed over: where a reader leaps far it needs few at each place.
    fn skipped(&mut self, entries: usize) {
        if entries >= CHUNK_ENTRIES_FIRST && self.mode == ReadMode::Scan {
            self.chunk_entries = self.chunk_entries.min(CHUNK_ENTRIES_LEAP);
        }
    }

    /// Takes up the next block that has entries within the bounds.
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

    /// Whether a reader's walk charges its block.
    fn is_charged(&self) -> bool {
        self.is_little && self.mode == ReadMode::Scan
    }

    /// With little memory, charges the block that a reader is about to hold, if there is room for it: until
    /// a larger one comes or the walk ends. One of a crowd holds none.
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

    /// The block of that number, from the cache, the window or the device.
    fn fetch(&mut self, number: usize) -> Result<Block> {
        if self.mode == ReadMode::Scan
            && let Some(block) = self.run.cached_block(number)
        {
            return Ok(block);
        }
        let env = Arc::clone(self.run.env());
        let flight = (self.mode == ReadMode::Scan).then(|| self.run.fly(&env, &self.index, number));
        if flight.as_ref().is_some_and(Flight::has_waited)
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

    /// Reads the block and its neighbours in the walk's direction with one request.
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
                // Of a single block there is one for each thread that reads, and for a moment.
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

    /// The size of the next window, of `wanted` bytes at most: windows of all readers together take a part
    /// of the memory.
    fn next_window(&self, wanted: usize) -> usize {
        let env = self.run.env();
        let others = env.window_bytes.load(Ordering::Relaxed);
        let room = (env.budget.total() / WINDOWS_DIVISOR).saturating_sub(others);
        // With little memory the blocks of a window are asked for several times.
        let most = if self.is_little { KEEP_WINDOW_BYTES_MAX } else { READ_AHEAD_BYTES_MAX };
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
                ReadMode::Scan if !self.is_little => CHUNK_ENTRIES_MAX,
                ReadMode::Scan => CHUNK_ENTRIES_LITTLE,
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
