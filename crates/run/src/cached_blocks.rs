//! Data blocks in the cache: decoded, with columns or with rows, or as they are on disk.
//!
//! ```text
//!   read from the device --+-- room in the cache ------------------> rows
//!                          +-- no room -----------------------------> columns -- many reads --> rows
//!                          +-- no room, slow device, compresses ----> frame -- many reads --> columns
//! ```
//!
//! A frame takes less memory than the decoded block, so the cache holds more blocks and the device
//! reads fewer, but each hit decodes it. [`DevicePace`](crate::device_pace::DevicePace) decides
//! whether that pays.

use frondb_block::Block;
use frondb_cache::{CacheKey, Priority};
use frondb_core::mem::Bytes;
use frondb_core::sync::atomic::Ordering;

use crate::env::Cached;
use crate::reader::{NO_PLACE, Run};

/// Blocks are decoded with rows while the cache has room for the memory budget divided by this.
const ROOM_DIVISOR: u64 = 64;
/// The cache of a slow device holds decoded blocks while it has room for the memory budget divided by
/// this.
const MUCH_ROOM_DIVISOR: u64 = 4;
/// A frame can be replaced by the decoded block once it was read so often, as far as the cache counts.
const FRAME_READS: u8 = 3;
/// Of the hits of such frames, one in so many replaces its frame: a decoded block takes the memory of
/// several frames, so only those are worth it that are read far more often than most.
const FRAME_HITS: u64 = 256;

impl Run {
    /// Whether a block that is decoded now should have rows: many reads will find it in the cache,
    /// because the cache has room for it. The room changes with the blocks that other threads are
    /// reading, so little room counts as none.
    pub(crate) fn wants_rows(&self) -> bool {
        let env = self.env();
        let least = (env.budget.total() / ROOM_DIVISOR).max(2 * self.raw_block_bytes());
        env.cache.room() >= least
    }

    /// Whether the cache has so much room that it need not save memory: more than background work and
    /// readers take for a while and give back.
    pub(crate) fn has_much_room(&self) -> bool {
        let env = self.env();
        env.cache.room() >= env.budget.total() / MUCH_ROOM_DIVISOR
    }

    /// How often data block `number` was read in the cache lately; not a read of it.
    pub(crate) fn reads_of_block(&self, number: usize) -> u8 {
        self.env().cache.reads_of(self.key_of(number))
    }

    /// Data block `number`, if the cache has it.
    pub(crate) fn cached_block(&self, number: usize) -> Option<Block> {
        match self.hit(number)? {
            Cached::Block(block) => Some(self.laid_out(number, block)),
            Cached::Frame(frame) => self.decode_frame_of(number, &frame),
            _ => None,
        }
    }

    /// Data block `number`, which the caller holds as `block` and has inserted, read once more.
    pub(crate) fn cached_again(&self, number: usize, block: &Block) -> Block {
        match self.hit(number) {
            Some(Cached::Block(block)) => self.laid_out(number, block),
            _ => block.clone(),
        }
    }

    fn hit(&self, number: usize) -> Option<Cached> {
        let (cached, rows) = (self.env().cache.get(self.key_of(number))?, &self.env().rows);
        if !rows.is_empty() {
            rows.note_block_hit(self.meta().id, number);
        }
        Some(cached)
    }

    /// Inserts a block, whose frame on disk is `frame`, into the cache. Returns whether the cache has
    /// room for more such blocks.
    pub(crate) fn cache_block(&self, number: usize, block: &Block, frame: &[u8]) -> bool {
        let (env, bytes) = (self.env(), block.memory_bytes() as u64);
        env.index_pressure.note_block();
        let has_room = env.cache.room() >= 2 * bytes;
        let saves_a_quarter = frame.len() as u64 * 4 <= bytes * 3;
        if saves_a_quarter && env.pace.is_slow() && !self.has_much_room() {
            let frame = Bytes::copy_from(frame);
            let bytes = frame.footprint() as u64;
            env.cache.insert(self.key_of(number), Cached::Frame(frame), bytes, Priority::Data);
        } else {
            self.insert(number, block);
        }
        if !has_room {
            env.rows.note_block_read();
        }
        has_room
    }

    /// A block that was found in the cache.
    #[inline]
    fn laid_out(&self, number: usize, block: Block) -> Block {
        if block.has_columns() { self.with_rows(number, block) } else { block }
    }

    /// A block with columns that was found in the cache: if reads have found it there often, or the
    /// cache has room by now, replaces it by the same block with rows.
    #[cold]
    fn with_rows(&self, number: usize, block: Block) -> Block {
        if !block.is_worth_rows() && !self.wants_rows() {
            return block;
        }
        let block = block.to_rows();
        self.insert(number, &block);
        block
    }

    /// The block of a frame that was found in the cache. It may replace a frame that was read often,
    /// and does if the cache has room by now. `None` if the frame cannot be decoded: it was intact
    /// when it was read, so the device still has the block.
    #[cold]
    fn decode_frame_of(&self, number: usize, frame: &Bytes) -> Option<Block> {
        let env = self.env();
        let has_room = self.has_much_room();
        let block = match has_room {
            true => Block::decode(frame, &NO_PLACE),
            false => Block::decode_columns(frame, &NO_PLACE),
        };
        let Ok(block) = block else {
            drop(env.cache.remove(self.key_of(number)));
            return None;
        };
        let hits = env.stats.frame_hits.fetch_add(1, Ordering::Relaxed);
        let is_chosen = hits.is_multiple_of(FRAME_HITS) || !env.pace.is_slow();
        if has_room || (is_chosen && self.reads_of_block(number) >= FRAME_READS) {
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
