//! [`RowCache`]: rows that lookups found in blocks for which the block cache had no free room.
//!
//! If the data is much larger than the memory, the keys that are read often are seldom neighbours,
//! so a cache of blocks keeps a hundred cold rows for each hot one. A lookup that has read a block
//! from the device therefore caches its row here too, and later lookups search here before they
//! look for the block. While the block cache has room, this cache stays empty and costs nothing.
//!
//! ```text
//!   shard | bundles of rows: oldest ... newest |     bundle.rs, shard.rs
//!   shard | ...                                |
//!   share   how much of the cache rows may take      share.rs
//! ```
//!
//! A row is named by its run and its key. Runs are immutable and their ids are never reused (rule
//! 7), so a row never becomes stale.
//!
//! # Capacity
//! Rows are charged to [`Part::Rows`], so the block cache, which takes what the other parts leave,
//! yields to rows. The share of rows in the memory of both is adjusted to the load ([`share`]).
//!
//! # Threads
//! Everything may be called from any thread. A hit takes the shared side of one shard's lock. No
//! call holds two locks, and no call allocates or frees a bundle while it holds a lock.

mod bundle;
mod shard;
mod share;

use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::checksum::xxh3_seeded;
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, RwLock};

pub use bundle::Row;
use bundle::{Bundle, ROW_BYTES_MAX};
use shard::RowShard;
use share::{Share, Use};

/// Largest number of shards.
const SHARDS_MAX: u64 = 16;
/// There is one shard for this many bytes of the budget. Each shard has a bundle that is being
/// filled, so with little memory there are fewer shards, and each still has several bundles.
const BYTES_PER_SHARD: u64 = 4 << 20;

/// Maximum number of bundles that a call frees because rows exceed their share: a reduced share
/// takes effect over several calls, so that no call takes long.
const FREED_PER_CALL_MAX: usize = 4;

/// A cache of single rows, for data much larger than the memory; see the module's head.
pub struct RowCache {
    budget: Arc<Budget>,
    shards: Box<[Slot]>,
    share: Share,
    /// Number of bundles of all shards.
    bundles: AtomicU64,
    /// The shard whose turn it is to free a bundle.
    next_shard: AtomicUsize,
}

/// A shard on cache lines of its own.
#[repr(align(128))]
#[derive(Default)]
struct Slot {
    shard: RwLock<RowShard>,
    hits: AtomicU64,
    /// Row hits since the last step of the share; `recent_blocks` has the block hits.
    recent: AtomicU64,
    recent_blocks: AtomicU64,
}

/// Counters and contents of a [`RowCache`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowStats {
    /// Lookups that found their row.
    pub hits: u64,
    /// Bytes of memory.
    pub bytes: u64,
}

impl RowCache {
    /// Creates an empty cache that charges [`Part::Rows`] of `budget`.
    #[must_use]
    pub fn new(budget: &Arc<Budget>) -> Arc<Self> {
        let shards = (budget.total() / BYTES_PER_SHARD).clamp(1, SHARDS_MAX);
        let cache = Arc::new(Self {
            budget: Arc::clone(budget),
            shards: (0..shards).map(|_| Slot::default()).collect(),
            share: Share::default(),
            bundles: AtomicU64::new(0),
            next_shard: AtomicUsize::new(0),
        });
        // The budget outlives the cache; a strong pointer would keep both for ever.
        let weak = Arc::downgrade(&cache);
        budget.on_pressure(Box::new(move |over| {
            if let Some(cache) = weak.upgrade() {
                cache.yield_bytes(over);
            }
        }));
        cache
    }

    /// Returns whether the cache holds no row.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bundles.load(Ordering::Relaxed) == 0
    }

    /// Calls `visit` with the row of `key` in `run`, under the lock of a shard, and returns the
    /// result; `None` if the row is not cached. `visit` must not use a cache or reserve memory:
    /// both may need the lock.
    #[inline]
    pub fn get<T>(&self, run: RunId, key: &[u8], visit: impl FnOnce(Row<'_>) -> T) -> Option<T> {
        let hash = hash_of(run, key);
        let slot = self.slot(hash);
        let result = slot.shard.read().get(run, key, hash).map(visit);
        if result.is_some() {
            slot.hits.fetch_add(1, Ordering::Relaxed);
            slot.recent.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Counts a lookup or a scan that found block `number` of `run` in the block cache.
    #[inline]
    pub fn note_block_hit(&self, run: RunId, number: usize) {
        let at = (run.get() as usize ^ number) % self.shards.len();
        self.shards[at].recent_blocks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a block that was read from the device while the block cache had no free room for it.
    /// Adjusts the share of the rows from time to time, and frees rows beyond the share.
    pub fn note_block_read(&self) {
        if self.is_empty() {
            return;
        }
        if self.share.note_read(self.budget.total()) {
            self.adjust_share();
        }
        self.shrink();
    }

    /// Counts a block index, or a part of one, that was read from the device and takes `bytes` of
    /// memory. Such reads reduce the memory of the rows: if rows displace indexes, every lookup
    /// becomes more expensive.
    pub fn note_index_read(&self, bytes: u64) {
        if !self.is_empty() {
            self.share.note_index_read(bytes, self.budget.total());
        }
    }

    /// Inserts a row, unless it is longer than a kilobyte.
    pub fn insert(&self, row: &Row<'_>) {
        if row.key.len() + row.value.len() > ROW_BYTES_MAX {
            return;
        }
        let hash = hash_of(row.run, row.key);
        let slot = self.slot(hash);
        if slot.shard.write().insert(row, hash) {
            return;
        }
        let bundle = Bundle::new(self.budget.reserve(Part::Rows, Bundle::FOOTPRINT));
        self.bundles.fetch_add(1, Ordering::Relaxed);
        let is_over = self.is_over();
        let (refused, evicted) = {
            let mut shard = slot.shard.write();
            // Another thread may have added a bundle in the meantime.
            if shard.insert(row, hash) {
                (Some(bundle), None)
            } else {
                let refused = shard.push(bundle);
                shard.insert(row, hash);
                // The eviction appends rows that were read to the new bundle. If the shard has no
                // older bundle, `shrink` frees a bundle of another shard.
                let can_evict = is_over && shard.len() > 1;
                (refused, if can_evict { shard.evict(hash_of_row) } else { None })
            }
        };
        self.release(refused);
        self.release(evicted);
        self.shrink();
    }

    /// Returns the counters, read from the shards one after the other.
    #[must_use]
    pub fn stats(&self) -> RowStats {
        RowStats {
            hits: self.shards.iter().map(|slot| slot.hits.load(Ordering::Relaxed)).sum(),
            bytes: self.bundles.load(Ordering::Relaxed) * Bundle::FOOTPRINT,
        }
    }

    /// Returns the number of bytes that rows may take of the memory that the other parts leave to
    /// rows and blocks.
    fn capacity(&self) -> u64 {
        let rows = self.budget.used_by(Part::Rows);
        self.share.of(self.budget.left_for(Part::Cache) + rows)
    }

    fn is_over(&self) -> bool {
        self.bundles.load(Ordering::Relaxed) * Bundle::FOOTPRINT > self.capacity()
    }

    /// Frees some bundles if the rows have more than their share of the memory.
    fn shrink(&self) {
        for _ in 0..FREED_PER_CALL_MAX {
            if !self.is_over() || !self.evict_one() {
                break;
            }
        }
    }

    fn adjust_share(&self) {
        let sum = |of: fn(&Slot) -> &AtomicU64| {
            self.shards.iter().map(|slot| of(slot).swap(0, Ordering::Relaxed)).sum()
        };
        let bytes = self.budget.used_by(Part::Rows);
        let rows = Use { hits: sum(|slot| &slot.recent), bytes };
        let bytes = self.budget.used_by(Part::Cache);
        let blocks = Use { hits: sum(|slot| &slot.recent_blocks), bytes };
        self.share.step(rows, blocks);
    }

    /// Frees about `over` bytes.
    fn yield_bytes(&self, over: u64) {
        for _ in 0..over.div_ceil(Bundle::FOOTPRINT) {
            if !self.evict_one() {
                break;
            }
        }
    }

    /// Frees the oldest bundle of the shard whose turn it is, or of the next shard that has one;
    /// `false` if no shard has.
    fn evict_one(&self) -> bool {
        let first = self.next_shard.fetch_add(1, Ordering::Relaxed);
        let count = self.shards.len();
        (0..count).any(|step| {
            let slot = &self.shards[(first % count + step) % count];
            let evicted = slot.shard.write().evict(hash_of_row);
            self.release(evicted)
        })
    }

    /// Frees a bundle; returns whether there was one.
    fn release(&self, evicted: Option<Bundle>) -> bool {
        let was_present = evicted.is_some();
        drop(evicted);
        self.bundles.fetch_sub(u64::from(was_present), Ordering::Relaxed);
        was_present
    }

    #[inline]
    fn slot(&self, hash: u64) -> &Slot {
        &self.shards[(hash >> 32) as usize % self.shards.len()]
    }
}

impl std::fmt::Debug for RowCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowCache({:?})", self.stats())
    }
}

/// Returns a hash: the lower half is the fingerprint, the upper half chooses the shard.
#[inline]
fn hash_of(run: RunId, key: &[u8]) -> u64 {
    xxh3_seeded(key, run.get())
}

fn hash_of_row(row: &Row<'_>) -> u64 {
    hash_of(row.run, row.key)
}
