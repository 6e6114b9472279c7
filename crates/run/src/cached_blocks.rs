//! Data blocks in the cache: decoded, with columns or with rows, or as they are on disk. A block
//! with columns takes less memory than one with rows, but each read of a value has to gather it.
//!
//! ```text
//!   read from the device --+-- room in the cache --------------> rows
//!                          +-- no room ------------------------> columns -- many reads --> rows
//!                          +-- no room, compresses well -------> frame -- many reads --> columns
//! ```
//!
//! A frame takes less memory than the decoded block, so the cache holds more blocks and the device
//! reads fewer, but each hit decodes the frame. Caching frames pays off for blocks that compress to
//! a sixth or less, and for others if [`DevicePace`](crate::residency::device_pace::DevicePace)
//! finds the device slow.

use frondb_block::Block;
use frondb_cache::{CacheKey, Priority};
use frondb_core::profile;
use frondb_core::sync::atomic::Ordering;

use crate::env::Cached;
use crate::reader::{NO_PLACE, Run};
use crate::residency::frames::{self, Frame};

/// A frame may be replaced by the decoded block after this many reads, the most that the cache
/// counts.
const FRAME_READS: u8 = 3;

impl Run {
    /// Whether a block that is decoded now should have rows.
    pub(crate) fn wants_rows(&self) -> bool {
        self.env().wants_rows(self.raw_block_bytes())
    }

    /// Returns how often readers have found data block `number` in the cache lately. The call does
    /// not count as a read.
    pub(crate) fn reads_of_block(&self, number: usize) -> u8 {
        self.env().cache.reads_of(self.key_of(number))
    }

    /// Returns whether the cache has data block `number`. Counts as a read of the block, but not in
    /// a profile, which counts the read when the block is used.
    pub(crate) fn has_cached_block(&self, number: usize) -> bool {
        self.found(number).is_some()
    }

    /// Returns data block `number`, if the cache has it.
    pub(crate) fn cached_block(&self, number: usize) -> Option<Block> {
        self.cached_for_lookup(number).map(|(block, _)| block)
    }

    /// Returns data block `number`, if the cache has it, and whether a lookup should insert the row
    /// that it finds into the row cache, which saves decoding the block's frame again.
    pub(crate) fn cached_for_lookup(&self, number: usize) -> Option<(Block, bool)> {
        match self.hit(number)? {
            Cached::Block(block) => Some((self.laid_out(number, block), false)),
            Cached::Frame(frame) => Some((self.decode_frame_of(number, &frame)?, true)),
            _ => None,
        }
    }

    /// Works as [`cached_for_lookup`](Self::cached_for_lookup), but never reads the device: returns
    /// `None` also if the block is cached as a frame and its dictionary is not in memory.
    pub(crate) fn block_in_memory(&self, number: usize) -> Option<(Block, bool)> {
        match self.hit(number)? {
            Cached::Block(block) => Some((self.laid_out(number, block), false)),
            Cached::Frame(frame) => {
                // Hold the dictionary, so that decoding finds it even if the run does not keep it.
                let _held = match (self.meta().dictionary, self.dictionary.get()) {
                    (Some(named), None) => Some(self.env().dictionaries.find(named.hash)?),
                    _ => None,
                };
                Some((self.decode_frame_of(number, &frame)?, true))
            }
            _ => None,
        }
    }

    /// Counts another read of data block `number`, which the caller has inserted and holds as
    /// `block`. Returns the decoded block that the cache has now, or else `block`.
    pub(crate) fn cached_again(&self, number: usize, block: &Block) -> Block {
        match self.hit(number) {
            Some(Cached::Block(block)) => self.laid_out(number, block),
            _ => block.clone(),
        }
    }

    fn hit(&self, number: usize) -> Option<Cached> {
        let found = self.found(number)?;
        profile::count(|profile| profile.cached_blocks += 1);
        Some(found)
    }

    fn found(&self, number: usize) -> Option<Cached> {
        let (cached, rows) = (self.env().cache.get(self.key_of(number))?, &self.env().rows);
        if !rows.is_empty() {
            rows.note_block_hit(self.meta().id, number);
        }
        Some(cached)
    }

    /// Inserts a block, whose frame on disk is `frame`, into the cache. Returns whether the cache
    /// has room for more such blocks.
    pub(crate) fn cache_block(&self, number: usize, block: &Block, frame: &[u8]) -> bool {
        let (env, bytes) = (self.env(), block.memory_bytes() as u64);
        env.index_pressure.note_block();
        let has_room = env.cache.room() >= 2 * bytes;
        if env.wants_frame(frame.len(), bytes) {
            let (frame, bytes) = frames::copy_of(frame);
            env.cache.insert(self.key_of(number), Cached::Frame(frame), bytes, Priority::Data);
        } else {
            self.insert(number, block);
        }
        if !has_room {
            env.rows.note_block_read();
        }
        has_room
    }

    /// Returns a block that was found in the cache, converted to rows if that pays off now.
    #[inline]
    fn laid_out(&self, number: usize, block: Block) -> Block {
        if block.has_columns() { self.with_rows(number, block) } else { block }
    }

    /// Replaces a block with columns that was found in the cache by the same block with rows, if
    /// reads have found it there often or the cache now has room.
    #[cold]
    fn with_rows(&self, number: usize, block: Block) -> Block {
        if !block.is_worth_rows() && !self.wants_rows() {
            return block;
        }
        let block = block.to_rows();
        self.insert(number, &block);
        block
    }

    /// Decodes a block whose frame was found in the cache, and may replace the frame by the decoded
    /// block. `None` if the dictionary cannot be read, or if the frame cannot be decoded: the frame
    /// was intact when it was read, so the device still has the block.
    #[cold]
    fn decode_frame_of(&self, number: usize, frame: &Frame) -> Option<Block> {
        let env = self.env();
        let held = self.dictionary().ok()?;
        let dictionary = held.as_deref().map(|held| &**held.dictionary());
        let Ok(block) = Block::decode_columns(frame, dictionary, &NO_PLACE) else {
            drop(env.cache.remove(self.key_of(number)));
            return None;
        };
        let hits = env.stats.frame_hits.fetch_add(1, Ordering::Relaxed);
        let has_reason = env.prefers_frame(frame.len(), block.memory_bytes() as u64);
        let is_chosen = env.replaces_frame(&env.block_frames, hits, has_reason);
        if is_chosen && self.reads_of_block(number) >= FRAME_READS {
            self.insert(number, &block);
        }
        Some(block)
    }

    fn insert(&self, number: usize, block: &Block) {
        let bytes = block.memory_bytes() as u64;
        let block = Cached::Block(block.clone());
        self.env().cache.insert(self.key_of(number), block, bytes, Priority::Data);
    }

    fn key_of(&self, number: usize) -> CacheKey {
        CacheKey::block(self.meta().id, number as u32)
    }
}
