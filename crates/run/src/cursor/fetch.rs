//! How a cursor gets its blocks: from the cache, from the window that it has read ahead, or from
//! the device; and what memory it charges.

use frondb_block::{Block, frame_raw_len};
use frondb_core::budget::Part;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{Direction, Result};

use super::RunCursor;
use super::window::Window;
use crate::block_reads::BlockRead;
use crate::charge::{Charge, Sum};
use crate::read::ReadMode;

/// Largest read-ahead of a reader, bytes.
const READ_AHEAD_BYTES_MAX: usize = 1024 * 1024;
/// Largest window whose blocks are inserted into the cache, bytes.
const CACHED_WINDOW_BYTES_MAX: usize = 128 * 1024;
/// The read-ahead windows of all readers together take at most about 1/16 of the memory budget.
const WINDOWS_DIVISOR: u64 = 16;
/// With low memory, the blocks that all readers' cursors hold between two chunks take at most 1/8
/// of the memory budget.
const HELD_DIVISOR: u64 = 8;

/// Budget part and sum of the charges for windows, and of the charges for held blocks.
const WINDOWS: (Part, Sum) = (Part::Work, |env| &env.window_bytes);
const HELD: (Part, Sum) = (Part::Work, |env| &env.held_bytes);

impl RunCursor {
    /// Returns whether a reader's cursor charges its block.
    pub(super) fn is_charged(&self) -> bool {
        self.is_low_memory && self.mode == ReadMode::Scan
    }

    /// With low memory, charges the block that a reader is about to hold, if the blocks of all
    /// cursors leave room for it; without a charge, the cursor will not hold the block. The charge
    /// lasts until the cursor holds a larger block or ends.
    pub(super) fn charge(&mut self, block: &Block) {
        if !self.is_charged() {
            return;
        }
        let (env, bytes) = (self.run.env(), block.memory_bytes() as u64);
        if self.is_small || self.held.as_ref().is_some_and(|held| held.bytes < bytes) {
            self.held = None;
        }
        if self.held.is_none() && !self.is_small {
            let most = env.budget.total() / HELD_DIVISOR;
            self.held = Charge::within(env, HELD, bytes, most);
        }
    }

    /// Returns block `number`, from the cache, the window or the device.
    pub(super) fn fetch(&mut self, number: usize) -> Result<Block> {
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
        let mut timed = None;
        let window = match self.window.take() {
            Some(window) if window.blocks.contains(&number) => window,
            other => {
                drop(other);
                timed = if self.mode == ReadMode::Scan { env.pace.begin() } else { None };
                let window = self.read_window(number)?;
                timed = timed.filter(|_| window.blocks.len() == 1);
                if let Some(timed) = &mut timed {
                    timed.end();
                }
                window
            }
        };
        let (offset, len) = self.index.extent(number);
        let frame = window.frame(offset, len);
        let block = match self.mode {
            ReadMode::Scan => self.run.decode(frame, offset)?,
            ReadMode::Merge => self.run.decode_rows(frame, offset)?,
        };
        if let Some(timed) = timed {
            timed.decoded();
        }
        if window.is_cached {
            self.run.cache_block(number, &block, frame);
        } else if self.mode == ReadMode::Scan {
            env.index_pressure.note_block();
        }
        if let Some(handover) = &self.handover {
            let bytes = frame_raw_len(frame).unwrap_or_default() as u64;
            handover.add(bytes, self.run.reads_of_block(number));
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

    /// Reads the block and its neighbours in the cursor's direction with one request. A window ends
    /// where the part of the index ends.
    fn read_window(&mut self, number: usize) -> Result<Window> {
        let mut blocks = number..number + 1;
        let indexed = self.index.blocks();
        let (start, end) = (self.next.max(indexed.start), self.end.min(indexed.end));
        let mut bytes = self.index.extent(number).1;
        while bytes < self.window_bytes {
            let neighbour = match self.direction {
                Direction::Forward if blocks.end < end => blocks.end,
                Direction::Backward if blocks.start > start => blocks.start - 1,
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
        let is_cached = self.mode == ReadMode::Scan
            && (blocks.len() == 1 || self.window_bytes <= CACHED_WINDOW_BYTES_MAX);
        let (span, charge) = match self.mode {
            ReadMode::Scan => {
                // A single block is not charged here: each reading thread has at most one, and
                // `fetch` has charged that one already.
                let charge = || Charge::within(self.run.env(), WINDOWS, len as u64, u64::MAX);
                let charge = (blocks.len() > 1).then(charge).flatten();
                (self.run.read(offset, len)?, charge)
            }
            ReadMode::Merge => (self.run.read_for_merge(offset, len)?, None),
        };
        if self.mode == ReadMode::Scan && !self.is_small {
            self.window_bytes = self.next_window(self.window_bytes.max(last_bytes) * 2);
        }
        Ok(Window { blocks, offset, span, is_cached, _charge: charge })
    }

    /// Returns the size of the next window, at most `wanted` bytes: the windows of all readers
    /// together are limited to a fraction of the memory budget.
    fn next_window(&self, wanted: usize) -> usize {
        let env = self.run.env();
        let others = env.window_bytes.load(Ordering::Relaxed);
        let room = (env.budget.total() / WINDOWS_DIVISOR).saturating_sub(others);
        // With low memory, the blocks of a window are requested several times, so they must fit
        // into the cache.
        let most = if self.is_low_memory { CACHED_WINDOW_BYTES_MAX } else { READ_AHEAD_BYTES_MAX };
        let wanted = wanted.min(most);
        if wanted as u64 <= room { wanted } else { room as usize / 2 }
    }
}
