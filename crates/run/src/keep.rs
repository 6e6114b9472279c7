//! What is kept in the cache as it is written, so that readers of what a job replaced find the new
//! blocks where the old ones were.
//!
//! ```text
//!   a block of a job -- room in the cache? -- as many reads as blocks? --> decoded and kept
//!                               | no                    | no
//!                               +-----------------------+---> on the device only
//! ```
//!
//! Without it a table that fits memory is read from the device again after each job that rewrites it.
//! It evicts nothing, and where nobody reads it costs nothing: what it costs to decode a block is
//! what the reader it spares would have paid, with a wait on top.

use frondb_block::{Block, BlockKind, Place, decode_frame, frame_raw_len};
use frondb_cache::{CacheKey, Priority};
use frondb_core::budget::Budget;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result, RunId};
use frondb_filter::FilterReader;

use crate::env::{Cached, RunEnv};
use crate::index::BlockIndex;

/// More than a block or an index takes in memory, as a multiple of its raw bytes.
const READER_FACTOR: u64 = 2;

/// The place of what is about to be written.
const UNWRITTEN: Place<'static> = Place { file: "(being written)", offset: 0 };

/// Keeps parts of one run. Those of a run that is never finished are evicted in time: run ids are not reused.
pub(crate) struct Keeper {
    env: Arc<RunEnv>,
    run: RunId,
    /// Reads of the engine when the job was made.
    reads: u64,
}

impl Keeper {
    pub(crate) fn new(env: Arc<RunEnv>, run: RunId, reads: u64) -> Self {
        Self { env, run, reads }
    }

    /// The memory budget that its run is written with.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.env.budget
    }

    /// Keeps data block `number`, if that is worth it.
    ///
    /// # Errors
    /// Corruption if the frame is not what a reader would accept: nothing of it may be written then.
    pub(crate) fn block(&self, number: u32, frame: &[u8]) -> Result<()> {
        if !self.is_worth(frame) {
            return Ok(());
        }
        let block = Block::decode(frame, &UNWRITTEN)?;
        let bytes = block.memory_bytes();
        self.insert(number, Cached::Block(block), bytes, Priority::Data);
        Ok(())
    }

    /// Keeps the block index, of `blocks` blocks of `blocks_bytes`; errors as [`block`](Self::block).
    pub(crate) fn index(&self, frame: &[u8], blocks: u32, blocks_bytes: u64) -> Result<()> {
        if !self.is_worth(frame) {
            return Ok(());
        }
        let payload = decode_frame(frame, BlockKind::Index, &UNWRITTEN)?;
        let index = BlockIndex::decode(&payload, blocks, blocks_bytes)
            .map_err(|_| Error::internal("a block index that contradicts itself"))?;
        let bytes = index.memory_bytes();
        self.insert(CacheKey::INDEX, Cached::Index(Arc::new(index)), bytes, Priority::Meta);
        Ok(())
    }

    /// Keeps the filter; errors as [`block`](Self::block).
    pub(crate) fn filter(&self, frame: &[u8]) -> Result<()> {
        if !self.is_worth(frame) {
            return Ok(());
        }
        let filter = FilterReader::open(decode_frame(frame, BlockKind::Filter, &UNWRITTEN)?)?;
        let bytes = filter.memory_bytes();
        self.insert(CacheKey::FILTER, Cached::Filter(Arc::new(filter)), bytes, Priority::Meta);
        Ok(())
    }

    /// Whether there is demand, and room for what the frame holds with the tables of its reader. Where
    /// there is none, nothing is decoded.
    fn is_worth(&self, frame: &[u8]) -> bool {
        let raw_len = frame_raw_len(frame).unwrap_or(usize::MAX) as u64;
        let room = self.env.cache.room() / READER_FACTOR;
        room >= raw_len && self.env.demand.take(self.reads)
    }

    fn insert(&self, block: u32, value: Cached, bytes: usize, priority: Priority) {
        let key = CacheKey::block(self.run, block);
        self.env.cache.insert_in_room(key, value, bytes as u64, priority);
    }
}
