//! The handles that all runs of an engine share: the space, the cache, the budget, the counters.

use std::collections::HashMap;

use frondb_block::{Block, Verify};
use frondb_cache::{Cache, CacheKey, RowCache};
use frondb_core::budget::Budget;
use frondb_core::checksum::xxh3;
use frondb_core::clock::SharedClock;
use frondb_core::events::Events;
use frondb_core::profile;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};
use frondb_filter::FilterReader;
use frondb_space::Space;

use crate::block_reads::BlockReads;
use crate::dictionaries::Dictionaries;
use crate::index::BlockIndex;
use crate::index::TopIndex;
use crate::loads::Loads;
use crate::residency::device_pace::DevicePace;
use crate::residency::frames::{Frame, FrameHits};
use crate::residency::index_pressure::IndexPressure;
use crate::residency::read_credit::ReadCredit;

/// The objects of runs in the cache.
#[derive(Clone)]
pub enum Cached {
    /// A decoded data block.
    Block(Block),
    /// A data block as it is on disk.
    Frame(Frame),
    /// A part of a run's block index, or all of it if it has one part.
    Index(Arc<BlockIndex>),
    /// A part of a run's block index as it is on disk.
    IndexFrame(Frame),
    /// The upper level of a run's block index.
    TopIndex(Arc<TopIndex>),
    /// A part of a run's filter.
    Filter(Arc<FilterReader>),
}

/// Block indexes, and parts of them, that a salvage has rebuilt, by cache key. An index that was
/// rebuilt as a whole has one part.
#[derive(Default)]
pub(crate) struct Rebuilt {
    /// Whether any exist; while none do, readers take no lock.
    any: AtomicBool,
    indexes: Mutex<HashMap<CacheKey, Arc<BlockIndex>>>,
}

impl Rebuilt {
    pub(crate) fn insert(&self, key: CacheKey, index: Arc<BlockIndex>) {
        self.indexes.lock().insert(key, index);
        self.any.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn get(&self, key: CacheKey) -> Option<Arc<BlockIndex>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.indexes.lock().get(&key).cloned()
    }
}

/// Counters of reads since the engine was opened.
#[derive(Debug, Default)]
pub struct RunStats {
    /// Reads sent to the device for lookups and scans.
    pub reads: AtomicU64,
    /// Bytes read from the device for lookups and scans.
    pub read_bytes: AtomicU64,
    /// Blocks that lookups and scans found in the cache as frames, and decoded.
    pub frame_hits: AtomicU64,
    /// Block indexes, and parts of them, that readers found in the cache as frames, and decoded.
    pub index_frame_hits: AtomicU64,
    /// Lookups and short ranges that the filter of a run excluded.
    pub filter_negatives: AtomicU64,
    /// Lookups and short ranges that the filter of a run did not exclude.
    pub filter_positives: AtomicU64,
    /// Reads sent to the device for merges.
    pub merge_reads: AtomicU64,
    /// Bytes read from the device for merges.
    pub merge_read_bytes: AtomicU64,
}

/// The handles that runs use; one object for all runs of an engine.
pub struct RunEnv {
    /// The data files.
    pub space: Arc<Space>,
    /// Decoded blocks, indexes and filters; blocks and indexes as they are on disk.
    pub cache: Arc<Cache<Cached>>,
    /// Rows of blocks that the cache has no room for.
    pub rows: Arc<RowCache>,
    /// Counts the memory of all parts of the engine.
    pub budget: Arc<Budget>,
    /// Decides whether blocks are cached as they are written.
    pub(crate) read_credit: ReadCredit,
    /// Filters and indexes that are being read.
    pub(crate) loads: Loads<Cached>,
    /// Blocks that readers are reading and decoding.
    pub(crate) block_reads: BlockReads,
    /// Decides which hits replace a frame of a block by the decoded block, and likewise for
    /// indexes.
    pub(crate) block_frames: FrameHits,
    pub(crate) index_frames: FrameHits,
    /// Whether the cache should hold parts of indexes as they are on disk.
    pub(crate) index_pressure: IndexPressure,
    /// Whether the cache should hold blocks as they are on disk.
    pub(crate) pace: DevicePace,
    /// Bytes of the read-ahead windows of all readers.
    pub(crate) window_bytes: AtomicU64,
    /// With low memory: bytes of the blocks that readers' cursors hold.
    pub(crate) held_bytes: AtomicU64,
    /// The dictionaries in memory.
    pub(crate) dictionaries: Dictionaries,
    /// Bytes of the top indexes that runs keep.
    pub(crate) top_index_bytes: AtomicU64,
    /// Block indexes rebuilt by a salvage.
    pub(crate) rebuilt: Rebuilt,
    /// Whether the output of fast codecs is verified, too.
    pub verify_fast_codecs: AtomicBool,
    /// Counters of reads since the engine was opened.
    pub stats: RunStats,
    /// Receives reports of damage; shared with the other parts of a database.
    pub events: Arc<Events>,
}

impl RunEnv {
    /// Creates the handles, with all counters at 0. `clock` measures the reads of the device.
    #[must_use]
    pub fn new(
        space: Arc<Space>,
        cache: Arc<Cache<Cached>>,
        budget: Arc<Budget>,
        clock: SharedClock,
    ) -> Arc<Self> {
        Arc::new(Self {
            space,
            cache,
            rows: RowCache::new(&budget),
            budget,
            read_credit: ReadCredit::default(),
            loads: Loads::default(),
            block_reads: BlockReads::default(),
            block_frames: FrameHits::default(),
            index_frames: FrameHits::default(),
            index_pressure: IndexPressure::default(),
            pace: DevicePace::new(clock),
            window_bytes: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            dictionaries: Dictionaries::default(),
            top_index_bytes: AtomicU64::new(0),
            rebuilt: Rebuilt::default(),
            verify_fast_codecs: AtomicBool::new(false),
            stats: RunStats::default(),
            events: Arc::default(),
        })
    }
}

impl RunEnv {
    /// Returns which blocks are decoded and compared as soon as they are written.
    #[must_use]
    pub fn verify(&self) -> Verify {
        if self.verify_fast_codecs.load(Ordering::Relaxed) { Verify::All } else { Verify::Slow }
    }

    /// Runs the read of a large value of `bytes` bytes; counts and times it if a profile is active.
    pub fn profiled_value<T>(&self, bytes: u64, read: impl FnOnce() -> T) -> T {
        profile::count(|profile| {
            profile.reads += 1;
            profile.read_bytes += bytes;
        });
        self.profiled(read)
    }

    /// Runs a read of the device; times it if a profile is active.
    #[inline]
    pub(crate) fn profiled<T>(&self, read: impl FnOnce() -> T) -> T {
        if !profile::is_wanted() {
            return read();
        }
        let begun = self.pace.now();
        let result = read();
        let nanos = self.pace.now().since(begun).as_nanos() as u64;
        profile::count(|profile| profile.read_nanos += nanos);
        result
    }
}

/// Returns the hash that filters store for a key; with `prefix`, the hash of its first `prefix`
/// bytes.
#[inline]
pub(crate) fn filter_hash(key: &[u8], prefix: Option<u16>) -> u64 {
    match prefix {
        Some(n) if key.len() > usize::from(n) => xxh3(&key[..usize::from(n)]),
        _ => xxh3(key),
    }
}
