//! [`CacheWarmer`]: inserts blocks into the cache as they are written, so that readers of the runs
//! that a job replaces find the new blocks there.
//!
//! ```text
//!   a block of a job -- does it replace cached blocks that readers use? -- yes ---> cached
//!                               | no                                                  ^
//!                        room in the cache? -- yes -- is a read credit left? -- yes --+
//!                               | no                     | no
//!                               +------------------------+---> on the device only
//! ```
//!
//! Without warming, a table that fits in memory would be read from the device again after each job
//! that rewrites it. A block that replaces cached blocks in use may evict other blocks: the blocks
//! that it replaces leave the cache when their runs are released. Every other block is cached only
//! if it evicts nothing and a read credit is left (one read of the engine buys one block). The
//! block builder decodes and verifies each block that will be cached, so a fault of a fast codec
//! cannot reach the cache. Decoding costs as much here as for the reader that needs the block, and
//! saves that reader the wait for the device. While the cache holds frames, the warmer inserts the
//! new blocks and indexes as frames too.

use frondb_block::{Block, BlockKind, Place, decode_frame, frame_raw_len};
use frondb_cache::{CacheKey, Priority};
use frondb_core::sync::Arc;
use frondb_core::{Error, Result, RunId};
use frondb_filter::FilterReader;

use crate::env::{Cached, RunEnv};
use crate::format::RunMeta;
use crate::index::{BlockIndex, IndexFrames, TopIndex};
use crate::residency::frames;
use crate::residency::handover::Handover;

/// The position that error messages give for a frame that is not written yet.
const UNWRITTEN: Place<'static> = Place { file: "(being written)", offset: 0 };

/// Inserts the parts of one run into the cache.
pub(crate) struct CacheWarmer {
    env: Arc<RunEnv>,
    run: RunId,
    /// Number of seeks, and of lookups that found a value, from the open until the job was created.
    reads: u64,
    /// Counts the cached blocks in use that the job has read and not yet replaced, in bytes.
    handover: Arc<Handover>,
    /// Whether a block of the run has replaced cached blocks in use. The run's index and filter,
    /// which are far smaller, are then cached too, even if this evicts other entries.
    has_taken_over: bool,
    /// The number of the last cached block, plus one. The blocks below it leave the cache if the
    /// run is never finished.
    blocks: u32,
}

impl Drop for CacheWarmer {
    fn drop(&mut self) {
        if self.blocks > 0 {
            self.env.cache.remove_run(self.run, self.blocks, 0, 0);
        }
    }
}

impl CacheWarmer {
    pub(crate) fn new(env: Arc<RunEnv>, run: RunId, reads: u64, handover: Arc<Handover>) -> Self {
        Self { env, run, reads, handover, has_taken_over: false, blocks: 0 }
    }

    /// Keeps the cached blocks: the run is finished.
    pub(crate) fn keep(mut self) {
        self.blocks = 0;
    }

    /// Decides whether to cache the next block, of `bytes` bytes: if it replaces cached blocks in
    /// use, or if reads justify it and the cache has room. Returns the priority of the block, or
    /// `None` if the block is not to be cached. Call it once for each block.
    pub(crate) fn priority(&mut self, bytes: u64) -> Option<Priority> {
        match self.handover.take(bytes) {
            Some(reads) => Some(Priority::Successor(reads)),
            None => self.env.warms(bytes, self.reads).then_some(Priority::Data),
        }
    }

    /// Caches data block `number`, decoded as `block` or as its `frame`, at the priority that
    /// [`priority`](Self::priority) returned.
    pub(crate) fn block(&mut self, number: u32, priority: Priority, block: Block, frame: &[u8]) {
        let bytes = block.memory_bytes() as u64;
        let key = CacheKey::block(self.run, number);
        let (value, bytes) = if self.env.wants_frame(frame.len(), bytes) {
            let (frame, bytes) = frames::copy_of(frame);
            (Cached::Frame(frame), bytes)
        } else {
            (Cached::Block(block), bytes)
        };
        self.blocks = number + 1;
        if matches!(priority, Priority::Successor(_)) {
            self.has_taken_over = true;
            self.env.cache.insert(key, value, bytes, priority);
        } else {
            self.env.cache.insert_in_room(key, value, bytes, priority);
        }
    }

    /// Caches the block index of the finished run that `meta` describes.
    ///
    /// # Errors
    /// `Corruption` or `Internal` if a reader would reject the frame, which was verified when it
    /// was encoded.
    pub(crate) fn index(&self, frames: &IndexFrames, meta: &RunMeta) -> Result<()> {
        let wrong = |_| Error::internal("a block index that was just written cannot be decoded");
        let payload = |frame| decode_frame(frame, BlockKind::Index, &UNWRITTEN);
        let Some(top) = &frames.top else {
            let only = frames.parts.iter().filter(|frame| self.is_worth(frame));
            return only.into_iter().try_for_each(|frame| {
                let index = BlockIndex::decode(&payload(frame)?, meta).map_err(wrong)?;
                self.insert_index(CacheKey::index(self.run), index, frame);
                Ok(())
            });
        };
        if !self.is_worth(top) {
            return Ok(());
        }
        let top = TopIndex::decode(&payload(top)?, meta).map_err(wrong)?;
        for (part, frame) in (0..top.len()).zip(&frames.parts) {
            if self.is_worth(frame) {
                let place = top.place(part);
                let index = BlockIndex::decode_part(&payload(frame)?, &place).map_err(wrong)?;
                self.insert_index(CacheKey::index_part(self.run, part as u32), index, frame);
            }
        }
        let (key, bytes) = (CacheKey::index(self.run), top.memory_bytes());
        self.insert_meta(key, Cached::TopIndex(Arc::new(top)), bytes);
        Ok(())
    }

    fn insert_index(&self, key: CacheKey, index: BlockIndex, frame: &[u8]) {
        if self.env.wants_index_frames() {
            let (frame, bytes) = frames::copy_of(frame);
            return self.insert_meta(key, Cached::IndexFrame(frame), bytes as usize);
        }
        let bytes = index.memory_bytes();
        self.insert_meta(key, Cached::Index(Arc::new(index)), bytes);
    }

    /// Caches a part of the filter; errors as [`index`](Self::index).
    pub(crate) fn filter(&self, part: u32, frame: &[u8]) -> Result<()> {
        if !self.is_worth(frame) {
            return Ok(());
        }
        let filter = FilterReader::open(decode_frame(frame, BlockKind::Filter, &UNWRITTEN)?);
        let wrong = |_| Error::internal("a filter that was just written cannot be decoded");
        let filter = filter.map_err(wrong)?;
        let bytes = filter.memory_bytes();
        let key = CacheKey::filter(self.run, part);
        self.insert_meta(key, Cached::Filter(Arc::new(filter)), bytes);
        Ok(())
    }

    /// Returns whether a frame of the index or the filter is worth caching.
    fn is_worth(&self, frame: &[u8]) -> bool {
        self.has_taken_over || self.env.warms(raw_len(frame), self.reads)
    }

    fn insert_meta(&self, key: CacheKey, value: Cached, bytes: usize) {
        let (cache, bytes) = (&self.env.cache, bytes as u64);
        if self.has_taken_over {
            cache.insert(key, value, bytes, Priority::Meta);
        } else {
            cache.insert_in_room(key, value, bytes, Priority::Meta);
        }
    }
}

/// Returns the number of bytes of the frame's contents.
fn raw_len(frame: &[u8]) -> u64 {
    frame_raw_len(frame).unwrap_or(usize::MAX) as u64
}
