//! What all runs of an engine share: the space, the cache, the budget, the counters.

use std::collections::BTreeMap;

use frondb_block::Block;
use frondb_cache::Cache;
use frondb_core::RunId;
use frondb_core::budget::Budget;
use frondb_core::checksum::xxh3;
use frondb_core::sync::atomic::AtomicU64;
use frondb_core::sync::{Arc, Mutex};
use frondb_filter::FilterReader;
use frondb_space::Space;

use crate::demand::Demand;
use crate::flights::Flights;
use crate::index::BlockIndex;
use crate::loads::Loads;

/// What the cache holds of runs.
#[derive(Clone)]
pub enum Cached {
    /// A decoded data block.
    Block(Block),
    /// A run's block index.
    Index(Arc<BlockIndex>),
    /// A run's filter.
    Filter(Arc<FilterReader>),
}

/// What reading did, counted since the engine was opened.
#[derive(Debug, Default)]
pub struct RunStats {
    /// Reads sent to the device for lookups and scans.
    pub reads: AtomicU64,
    /// Bytes of those reads.
    pub read_bytes: AtomicU64,
    /// Lookups that a filter answered with "not here".
    pub filter_negatives: AtomicU64,
    /// Lookups that a filter passed.
    pub filter_positives: AtomicU64,
    /// Reads sent to the device for merges.
    pub merge_reads: AtomicU64,
    /// Bytes of those reads.
    pub merge_read_bytes: AtomicU64,
}

/// The handles a run needs; one for all runs of an engine.
pub struct RunEnv {
    /// Where the bytes are.
    pub space: Arc<Space>,
    /// Decoded blocks, indexes and filters.
    pub cache: Arc<Cache<Cached>>,
    /// The one memory budget.
    pub budget: Arc<Budget>,
    /// Whether blocks are worth keeping as they are written.
    pub(crate) demand: Demand,
    /// Filters and indexes that are being read.
    pub(crate) loads: Loads<Cached>,
    /// Blocks that readers are reading and decoding.
    pub(crate) flights: Flights,
    /// Bytes that the windows of readers' walks have.
    pub(crate) window_bytes: AtomicU64,
    /// With little memory, bytes of the blocks that readers' walks hold.
    pub(crate) held_bytes: AtomicU64,
    /// Block indexes that a salvage rebuilt, by run.
    pub(crate) rebuilt: Mutex<BTreeMap<RunId, Arc<BlockIndex>>>,
    /// Counters.
    pub stats: RunStats,
}

impl RunEnv {
    /// The handles, with all counters at 0.
    #[must_use]
    pub fn new(space: Arc<Space>, cache: Arc<Cache<Cached>>, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            space,
            cache,
            budget,
            demand: Demand::default(),
            loads: Loads::default(),
            flights: Flights::default(),
            window_bytes: AtomicU64::new(0),
            held_bytes: AtomicU64::new(0),
            rebuilt: Mutex::default(),
            stats: RunStats::default(),
        })
    }
}

/// The hash by which filters know a key.
#[inline]
pub(crate) fn filter_hash(key: &[u8], prefix: Option<u16>) -> u64 {
    match prefix {
        Some(n) if key.len() > usize::from(n) => xxh3(&key[..usize::from(n)]),
        _ => xxh3(key),
    }
}
