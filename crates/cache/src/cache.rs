//! [`Cache`]: the shards, and how much they may hold.

use frondb_core::RunId;
use frondb_core::budget::{Budget, Part};
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, RwLock};

use crate::shard::{Priority, Removed, Shard};
use crate::{CacheKey, CacheOptions};

/// A block larger than the capacity divided by this is not kept: it would cost too many others.
const DATA_DIVISOR: u64 = 8;
/// The same for metadata. Every lookup in its run would read it again, so it may cost more.
const META_DIVISOR: u64 = 2;

/// A cache of `V`s (cheap to clone: a counted pointer), bounded by what a memory budget leaves.
///
/// # How large it is
/// The capacity is no number that is set; it is computed whenever something is inserted:
///
/// ```text
///   capacity = max(total - what the other parts hold, total / 16)
/// ```
///
/// So it follows the other parts without being told. Only when they grow while nothing is inserted
/// does someone have to act: the budget then calls back, and the cache evicts what the sum is over.
///
/// The bytes of all shards count together and not shard by shard: a large filter that lands in
/// one shard takes its room from all of them, where a fixed share for each would refuse it.
/// Evictions come from the fuller of two shards (the one that was inserted into and the next in
/// turn), which keeps them level.
///
/// # Threads
/// Everything may be called from any thread. A hit takes the shared side of one shard's lock.
/// No call holds two locks, values are dropped outside of them, and a reader that holds a value
/// keeps it alive whatever is evicted meanwhile.
pub struct Cache<V> {
    budget: Arc<Budget>,
    options: CacheOptions,
    shards: Box<[Slot<V>]>,
    /// Bytes of all shards, counted before they go in and after they are out: never too few.
    bytes: AtomicU64,
    /// The shard whose turn it is to give something up.
    hand: AtomicUsize,
}

/// A shard on cache lines of its own, so that the counters of one do not slow the next one down.
#[repr(align(128))]
struct Slot<V> {
    shard: RwLock<Shard<V>>,
    /// What the shard held when it was last changed.
    bytes: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    inserts: AtomicU64,
    evictions: AtomicU64,
}

/// What the cache did and holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Lookups that found their block.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Entries inserted.
    pub inserts: u64,
    /// Entries evicted to make room (not those that were removed or replaced).
    pub evictions: u64,
    /// Entries held.
    pub items: u64,
    /// Bytes held, with what each entry costs.
    pub bytes: u64,
    /// Bytes it may hold now.
    pub capacity: u64,
}

impl<V: Clone + Send + Sync + 'static> Cache<V> {
    /// A cache that charges [`Part::Cache`] of `budget` and yields to its other parts.
    #[must_use]
    pub fn new(budget: Arc<Budget>, options: CacheOptions) -> Arc<Self> {
        let options = options.clamped();
        let cache = Arc::new(Self {
            budget: Arc::clone(&budget),
            options,
            shards: (0..options.shards).map(|_| Slot::new()).collect(),
            bytes: AtomicU64::new(0),
            hand: AtomicUsize::new(0),
        });
        // The budget outlives its cache; a strong pointer would keep both for ever.
        let weak = Arc::downgrade(&cache);
        budget.on_pressure(Box::new(move |over| {
            if let Some(cache) = weak.upgrade() {
                cache.yield_bytes(over);
            }
        }));
        cache
    }

    /// The value of a key, if it is here.
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

    /// Keeps a value that holds `bytes` bytes of memory, in place of the one its key has. What is
    /// too large for the cache is not kept.
    pub fn insert(&self, key: CacheKey, value: V, bytes: u64, priority: Priority) {
        let bytes = bytes + Shard::<V>::ENTRY_BYTES;
        let own = self.shard_of(key.hash64());
        let divisor = match priority {
            Priority::Data => DATA_DIVISOR,
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
        // Another thread may have made use of the same room.
        self.make_room(0, own);
    }

    /// [`insert`](Self::insert) if nothing has to be evicted for it. Returns whether it was done.
    pub fn insert_in_room(&self, key: CacheKey, value: V, bytes: u64, priority: Priority) -> bool {
        let fits = bytes.saturating_add(Shard::<V>::ENTRY_BYTES) <= self.room();
        if fits {
            self.insert(key, value, bytes, priority);
        }
        fits
    }

    /// Removes one key and returns its value.
    pub fn remove(&self, key: CacheKey) -> Option<V> {
        let hash = key.hash64();
        let slot = &self.shards[self.shard_of(hash)];
        let removed = slot.change(|shard| shard.remove(key, hash));
        self.uncount(removed)
    }

    /// Removes the index, the filter and the first `blocks` blocks of a run that was dropped.
    /// Nothing needs this to be correct, for run ids are never reused: it makes room at once that
    /// would be found in time.
    pub fn remove_run(&self, run: RunId, blocks: u32) {
        for block in (0..blocks).chain([CacheKey::INDEX, CacheKey::FILTER]) {
            drop(self.remove(CacheKey::block(run, block)));
        }
    }

    /// Evicts everything, and gives back the tables' memory too.
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

    /// Bytes it may hold now.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        let floor = self.budget.total() / self.options.floor_divisor;
        self.budget.left_for(Part::Cache).max(floor)
    }

    /// Bytes that fit before something is evicted.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.capacity().saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    /// The counters, summed over the shards one after the other.
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

    /// Bytes of the cache's own tables, for checking what an entry is charged.
    #[doc(hidden)]
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.shards.iter().map(|slot| slot.shard.read().table_bytes()).sum()
    }

    #[inline]
    fn shard_of(&self, hash: u64) -> usize {
        // The highest bits: the tables begin at the lowest of either half.
        (hash >> 54) as usize & (self.shards.len() - 1)
    }

    /// Evicts until `bytes` more fit.
    fn make_room(&self, bytes: u64, own: usize) {
        while self.bytes.load(Ordering::Relaxed) + bytes > self.capacity() {
            if !self.evict_one(own) {
                break;
            }
        }
    }

    /// Evicts about `over` bytes, down to the floor.
    fn yield_bytes(&self, over: u64) {
        let floor = self.budget.total() / self.options.floor_divisor;
        let target = self.bytes.load(Ordering::Relaxed).saturating_sub(over).max(floor);
        while self.bytes.load(Ordering::Relaxed) > target {
            let next = self.hand.load(Ordering::Relaxed) % self.shards.len();
            if !self.evict_one(next) {
                break;
            }
        }
    }

    /// Evicts one entry from the fuller of two shards; `false` if the whole cache is empty.
    fn evict_one(&self, own: usize) -> bool {
        let count = self.shards.len();
        let turn = self.hand.fetch_add(1, Ordering::Relaxed) % count;
        let held = |at: usize| self.shards[at].bytes.load(Ordering::Relaxed);
        let first = if held(turn) > held(own) { turn } else { own };
        // Both may be empty while another one is not.
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

    /// Gives back what an entry was charged, now that it is out of its shard.
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

    /// Changes the shard; what the change returns is dropped by the caller, outside the lock.
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
