//! [`Cache`]: the shards, and the limit on their total size.

use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, RwLock};

use crate::shard::{Priority, Removed, Shard};
use crate::{CacheKey, CacheOptions};

/// A block larger than the capacity divided by this is not cached, because it would displace too
/// many others.
const DATA_DIVISOR: u64 = 8;
/// The same limit for an index or a filter, which may displace more: without it in the cache, every
/// lookup in its run would read it again.
const META_DIVISOR: u64 = 2;

/// A cache of values, limited to the memory that a budget leaves. `V` must be cheap to clone, such
/// as a counted pointer.
///
/// # Capacity
/// The capacity is not set; every insertion computes it (16 is the default of
/// [`CacheOptions::floor_divisor`]):
///
/// ```text
///   capacity = max(total - bytes of the other parts, total / 16)
/// ```
///
/// So the capacity follows the other parts without notifications. If a reservation or a smaller
/// total makes the sum of all parts exceed the total, the budget also calls the cache, which then
/// evicts the excess, but keeps the sixteenth.
///
/// The limit applies to all shards together: a large filter in one shard takes its room from all
/// shards. With a fixed limit per shard it would not fit. Evictions come from the fuller of two
/// shards (the shard of the insertion and the next in turn), so all shards stay about equally
/// large.
///
/// # Threads
/// Everything may be called from any thread. A hit takes the shared side of one shard's lock. No
/// call holds two locks, no value is dropped while a lock is held, and a reader's value stays alive
/// when the cache evicts it.
pub struct Cache<V> {
    budget: Arc<Budget>,
    options: CacheOptions,
    shards: Box<[Slot<V>]>,
    /// Bytes of all shards. Never too low: an entry counts from before its insertion until after
    /// its removal.
    bytes: AtomicU64,
    /// The shard whose turn it is to evict.
    next_shard: AtomicUsize,
}

/// A shard on cache lines of its own, so that its counters do not slow down its neighbour.
#[repr(align(128))]
struct Slot<V> {
    shard: RwLock<Shard<V>>,
    /// Bytes of the shard after its last change.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    inserts: AtomicU64,
    evictions: AtomicU64,
}

/// Counters and contents of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not find their block.
    pub misses: u64,
    /// Entries inserted.
    pub inserts: u64,
    /// Entries evicted to make room. Removed and replaced entries do not count.
    pub evictions: u64,
    /// Entries held.
    pub items: u64,
    /// Bytes held, including the overhead of each entry.
    pub bytes: u64,
    /// The current capacity in bytes.
    pub capacity: u64,
}

impl<V: Clone + Send + Sync + 'static> Cache<V> {
    /// Creates a cache that charges [`Part::Cache`] of `budget` and yields to its other parts.
    #[must_use]
    pub fn new(budget: Arc<Budget>, options: CacheOptions) -> Arc<Self> {
        let options = options.clamped();
        let cache = Arc::new(Self {
            budget: Arc::clone(&budget),
            options,
            shards: (0..options.shards).map(|_| Slot::new()).collect(),
            bytes: AtomicU64::new(0),
            next_shard: AtomicUsize::new(0),
        });
        // The cache holds the budget, so a strong pointer from the budget would keep both for ever.
        let weak = Arc::downgrade(&cache);
        budget.on_pressure(Box::new(move |over| {
            if let Some(cache) = weak.upgrade() {
                cache.yield_bytes(over);
            }
        }));
        cache
    }

    /// Returns the value of a key, if it is cached.
    #[inline]
    #[must_use]
    pub fn get(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash64();
        let slot = &self.shards[self.shard_of(hash)];
        let value = slot.shard.read().get(key, hash).cloned();
        let counter = if value.is_some() { &slot.hits } else { &slot.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        value
    }

    /// Returns how often a key was read lately, up to 3; 0 if the key is not cached. The call does
    /// not count as a read, so that a merge can call it for the blocks that it replaces.
    #[must_use]
    pub fn reads_of(&self, key: CacheKey) -> u8 {
        let hash = key.hash64();
        self.shards[self.shard_of(hash)].shard.read().reads_of(key, hash)
    }

    /// Inserts a value of `bytes` bytes of memory, replacing the key's previous value. A value too
    /// large for the cache is not inserted.
    pub fn insert(&self, key: CacheKey, value: V, bytes: u64, priority: Priority) {
        let bytes = bytes + Shard::<V>::ENTRY_BYTES;
        let own = self.shard_of(key.hash64());
        let divisor = match priority {
            Priority::Data | Priority::Successor(_) => DATA_DIVISOR,
            Priority::Meta => META_DIVISOR,
        };
        if bytes > self.capacity() / divisor {
            drop(self.remove(key));
            return;
        }
        self.make_room(bytes, own);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.count(Part::Cache, bytes);
        let slot = &self.shards[own];
        slot.inserts.fetch_add(1, Ordering::Relaxed);
        let old = slot.change(|shard| shard.insert(key, value, bytes, priority));
        self.uncount(old);
        // Another thread may have used the room that was made above.
        self.make_room(0, own);
    }

    /// Inserts a value as [`insert`](Self::insert) does, but only if it fits without an eviction.
    pub fn insert_in_room(&self, key: CacheKey, value: V, bytes: u64, priority: Priority) {
        if bytes.saturating_add(Shard::<V>::ENTRY_BYTES) <= self.room() {
            self.insert(key, value, bytes, priority);
        }
    }

    /// Removes one key and returns its value.
    pub fn remove(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash64();
        let slot = &self.shards[self.shard_of(hash)];
        let removed = slot.change(|shard| shard.remove(key, hash));
        self.uncount(removed)
    }

    /// Removes a run that was dropped: its first `blocks` blocks, the first `filters` parts of its
    /// filter, and its index with the first `indexes` parts. Correctness does not depend on this,
    /// because run ids are never reused: the call only frees memory earlier than an eviction would.
    pub fn remove_run(&self, run: RunId, blocks: u32, filters: u32, indexes: u32) {
        let blocks = (0..blocks).map(|block| CacheKey::block(run, block));
        let filters = (0..filters).map(|part| CacheKey::filter(run, part));
        let indexes = (0..indexes).map(|part| CacheKey::index_part(run, part));
        for key in blocks.chain(filters).chain(indexes).chain([CacheKey::index(run)]) {
            drop(self.remove(key));
        }
    }

    /// Evicts all entries, and frees the memory of the tables.
    pub fn clear(&self) {
        for slot in &self.shards {
            loop {
                let evicted = slot.change(Shard::evict);
                if self.uncount(evicted).is_none() {
                    break;
                }
            }
            slot.shard.write().shrink_to_fit();
        }
    }

    /// Returns the current capacity in bytes.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let floor = self.budget.total() / self.options.floor_divisor;
        self.budget.left_for(Part::Cache).max(floor)
    }

    /// Returns the number of bytes that can be inserted before anything is evicted.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.capacity().saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    /// Returns the counters, read from the shards one after the other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            bytes: self.bytes.load(Ordering::Relaxed),
            capacity: self.capacity(),
            ..Stats::default()
        };
        for slot in &self.shards {
            stats.hits += slot.hits.load(Ordering::Relaxed);
            stats.misses += slot.misses.load(Ordering::Relaxed);
            stats.inserts += slot.inserts.load(Ordering::Relaxed);
            stats.evictions += slot.evictions.load(Ordering::Relaxed);
            stats.items += slot.shard.read().len() as u64;
        }
        stats
    }

    /// Returns the number of entries evicted to make room so far.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.shards.iter().map(|slot| slot.evictions.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of bytes of the cache's own tables, to check the overhead charged per
    /// entry.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.shards.iter().map(|slot| slot.shard.read().table_bytes()).sum()
    }

    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        // The highest bits, because the tables use the lowest bits of either half.
        (hash >> 54) as usize & (self.shards.len() - 1)
    }

    /// Evicts until `bytes` more bytes fit.
    fn make_room(&self, bytes: u64, own: usize) {
        while self.bytes.load(Ordering::Relaxed) + bytes > self.capacity() {
            if !self.evict_one(own) {
                break;
            }
        }
    }

    /// Evicts about `over` bytes; stops when the cache is down to its floor, the part of the budget
    /// that it keeps ([`CacheOptions::floor_divisor`]).
    fn yield_bytes(&self, over: u64) {
        let floor = self.budget.total() / self.options.floor_divisor;
        let target = self.bytes.load(Ordering::Relaxed).saturating_sub(over).max(floor);
        while self.bytes.load(Ordering::Relaxed) > target {
            let next = self.next_shard.load(Ordering::Relaxed) % self.shards.len();
            if !self.evict_one(next) {
                break;
            }
        }
    }

    /// Evicts one entry from the fuller of two shards; `false` if the whole cache is empty.
    fn evict_one(&self, own: usize) -> bool {
        let count = self.shards.len();
        let turn = self.next_shard.fetch_add(1, Ordering::Relaxed) % count;
        let held = |at: usize| self.shards[at].bytes.load(Ordering::Relaxed);
        let first = if held(turn) > held(own) { turn } else { own };
        // The two shards may be empty while another shard is not.
        for at in (0..count).map(|step| (first + step) % count) {
            if held(at) == 0 {
                continue;
            }
            let evicted = self.shards[at].change(Shard::evict);
            if self.uncount(evicted).is_some() {
                self.shards[at].evictions.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Releases the memory charge of an entry that has left its shard. Returns its value.
    fn uncount(&self, removed: Option<Removed<V>>) -> Option<V> {
        let removed = removed?;
        self.bytes.fetch_sub(removed.bytes, Ordering::Relaxed);
        self.budget.uncount(Part::Cache, removed.bytes);
        Some(removed.value)
    }
}

impl<V> Slot<V> {
    fn new() -> Self {
        Self {
            shard: RwLock::new(Shard::new()),
            bytes: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// Changes the shard; the caller drops the result outside the lock.
    fn change<T>(&self, change: impl FnOnce(&mut Shard<V>) -> T) -> T {
        let mut shard = self.shard.write();
        let result = change(&mut shard);
        self.bytes.store(shard.bytes(), Ordering::Relaxed);
        result
    }
}

impl<V> Drop for Cache<V> {
    fn drop(&mut self) {
        self.budget.uncount(Part::Cache, self.bytes.load(Ordering::Relaxed));
    }
}

impl<V> std::fmt::Debug for Cache<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cache({} bytes)", self.bytes.load(Ordering::Relaxed))
    }
}
