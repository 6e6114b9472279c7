//! One shard: a table of entries, and the two queues of S3-FIFO.
//!
//! ```text
//!                    not in the ghost            read again while there
//!   a miss inserts ----------------> small (10 %) ----------------> main (90 %)
//!                  |                   | else                         |  ^ read since it was last
//!                  |                   v                              |  | here: once more round
//!                  |                 ghost (keys only)                +--+
//!                  +-- in the ghost, or metadata --> main             v else evicted
//!   a merge replaces a block that was read ------>
//! ```
//!
//! A hit adds one to a counter of the entry (at most 3) and moves nothing, so hits can share the
//! lock. "Read again" means at least two reads after the insertion: a scan reads each block at most
//! once after reading it ahead.
//!
//! Threads: a shard is used under its lock; a hit holds only the shared side, hence the atomic
//! counter.

use frondb_core::sync::atomic::{AtomicU8, Ordering};

use crate::CacheKey;
use crate::ghost::Ghost;
use crate::list::{Link, Links, List};
use crate::table::Table;

/// Limit of an entry's read counter.
const READS_MAX: u8 = 3;
/// Number of reads in the small queue that move an entry to the main queue.
const READS_TO_MAIN: u8 = 2;

/// The priority of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Priority {
    /// A data block: it starts in the small queue.
    Data,
    /// A data block that a merge wrote in place of a cached block that was read this many times
    /// ([`Cache::reads_of`]). It starts in the main queue with one read less, so data that is no
    /// longer read leaves the cache after a few merges.
    ///
    /// [`Cache::reads_of`]: crate::Cache::reads_of
    Successor(u8),
    /// An index or a filter. It starts in the main queue, because lookups of many blocks need it.
    Meta,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Small,
    Main,
}

struct Entry<V> {
    key: CacheKey,
    /// `None` in a vacant slot.
    value: Option<V>,
    bytes: u64,
    reads: AtomicU8,
    queue: Queue,
    link: Link,
}

struct Entries<V>(Vec<Entry<V>>);

impl<V> Links for Entries<V> {
    fn link(&mut self, at: u32) -> &mut Link {
        &mut self.0[at as usize].link
    }
}

/// A table of entries with the two queues and the ghost; see the module's head.
pub(crate) struct Shard<V> {
    table: Table,
    entries: Entries<V>,
    vacant: Vec<u32>,
    small: List,
    main: List,
    ghost: Ghost,
    small_bytes: u64,
    bytes: u64,
}

/// An entry that left the shard; the caller drops its value outside the lock.
pub(crate) struct Removed<V> {
    pub(crate) value: V,
    pub(crate) bytes: u64,
}

impl<V> Shard<V> {
    /// Overhead of an entry in bytes: the entry itself, its slots in the table and in the ghost,
    /// and the spare capacity of doubling vectors.
    pub(crate) const ENTRY_BYTES: u64 = (size_of::<Entry<V>>() * 3 / 2 + 16 + 16) as u64;

    pub(crate) fn new() -> Self {
        Self {
            table: Table::default(),
            entries: Entries(Vec::new()),
            vacant: Vec::new(),
            small: List::default(),
            main: List::default(),
            ghost: Ghost::default(),
            small_bytes: 0,
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the number of bytes of all entries.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the value of a key; counts the read.
    #[inline]
    pub(crate) fn get(&self, key: CacheKey, hash: u64) -> Option<&V> {
        let at = self.table.find(hash, |at| self.entries.0[at as usize].key == key)?;
        let entry = &self.entries.0[at as usize];
        // A read lost between load and store does no harm; a locked add would cost more.
        let reads = entry.reads.load(Ordering::Relaxed);
        if reads < READS_MAX {
            entry.reads.store(reads + 1, Ordering::Relaxed);
        }
        entry.value.as_ref()
    }

    /// Returns the read counter of a key: the count that its priority gave it, plus the reads
    /// since, at most `READS_MAX`, less what its rounds in the queues have used up; 0 if the key is
    /// not cached. The call does not count as a read.
    pub(crate) fn reads_of(&self, key: CacheKey, hash: u64) -> u8 {
        let at = self.table.find(hash, |at| self.entries.0[at as usize].key == key);
        at.map_or(0, |at| self.entries.0[at as usize].reads.load(Ordering::Relaxed))
    }

    /// Adds an entry, or replaces the entry of its key. Returns the replaced entry.
    pub(crate) fn insert(
        &mut self,
        key: CacheKey,
        value: V,
        bytes: u64,
        priority: Priority,
    ) -> Option<Removed<V>> {
        let hash = key.hash64();
        let old = self.remove(key, hash);
        let returned = old.is_some() || self.ghost.take(hash);
        let (queue, reads) = match priority {
            Priority::Meta => (Queue::Main, READS_MAX),
            Priority::Successor(reads) => (Queue::Main, reads.saturating_sub(1).min(READS_MAX)),
            Priority::Data if returned => (Queue::Main, 0),
            Priority::Data => (Queue::Small, 0),
        };
        let link = Link::default();
        let entry =
            Entry { key, value: Some(value), bytes, reads: AtomicU8::new(reads), queue, link };
        let at = self.place(entry);
        self.table.insert(hash, at);
        self.enqueue(at, queue);
        self.bytes += bytes;
        old
    }

    pub(crate) fn remove(&mut self, key: CacheKey, hash: u64) -> Option<Removed<V>> {
        let at = self.table.remove(hash, |at| self.entries.0[at as usize].key == key)?;
        self.vacate(at)
    }

    /// Evicts one entry. Entries that were read get another round first, so the search ends after
    /// at most `READS_MAX` rounds. `None` if the shard is empty.
    pub(crate) fn evict(&mut self) -> Option<Removed<V>> {
        loop {
            let small = self.small.oldest().filter(|_| self.small_bytes * 10 >= self.bytes);
            let oldest = small.or_else(|| self.main.oldest()).or_else(|| self.small.oldest())?;
            let entry = &mut self.entries.0[oldest as usize];
            let reads = *entry.reads.get_mut();
            let hash = entry.key.hash64();
            match entry.queue {
                Queue::Small if reads >= READS_TO_MAIN => {
                    *entry.reads.get_mut() = reads - READS_TO_MAIN;
                    self.requeue(oldest, Queue::Main);
                }
                Queue::Main if reads > 0 => {
                    *entry.reads.get_mut() = reads - 1;
                    self.requeue(oldest, Queue::Main);
                }
                queue => {
                    if queue == Queue::Small {
                        self.ghost.resize(self.table.len());
                        self.ghost.insert(hash);
                    }
                    self.table.remove(hash, |at| at == oldest);
                    return self.vacate(oldest);
                }
            }
        }
    }

    /// Frees the memory of the tables if the shard is empty.
    pub(crate) fn shrink_to_fit(&mut self) {
        if self.table.len() == 0 {
            *self = Self::new();
        }
    }

    /// Returns the number of bytes of the tables, by their capacity.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn table_bytes(&self) -> usize {
        self.table.bytes()
            + self.entries.0.capacity() * size_of::<Entry<V>>()
            + self.vacant.capacity() * size_of::<u32>()
            + self.ghost.bytes()
    }

    fn place(&mut self, entry: Entry<V>) -> u32 {
        match self.vacant.pop() {
            Some(at) => {
                self.entries.0[at as usize] = entry;
                at
            }
            None => {
                self.entries.0.push(entry);
                self.entries.0.len() as u32 - 1
            }
        }
    }

    fn enqueue(&mut self, at: u32, queue: Queue) {
        self.entries.0[at as usize].queue = queue;
        match queue {
            Queue::Small => {
                self.small_bytes += self.entries.0[at as usize].bytes;
                self.small.push(&mut self.entries, at);
            }
            Queue::Main => self.main.push(&mut self.entries, at),
        }
    }

    fn dequeue(&mut self, at: u32) {
        match self.entries.0[at as usize].queue {
            Queue::Small => {
                self.small_bytes -= self.entries.0[at as usize].bytes;
                self.small.remove(&mut self.entries, at);
            }
            Queue::Main => self.main.remove(&mut self.entries, at),
        }
    }

    fn requeue(&mut self, at: u32, queue: Queue) {
        self.dequeue(at);
        self.enqueue(at, queue);
    }

    /// Removes an entry from its queue and its slot. REQUIRES: the table no longer has the entry.
    fn vacate(&mut self, at: u32) -> Option<Removed<V>> {
        self.dequeue(at);
        self.vacant.push(at);
        let entry = &mut self.entries.0[at as usize];
        self.bytes -= entry.bytes;
        entry.value.take().map(|value| Removed { value, bytes: entry.bytes })
    }
}

#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use super::*;
    use frondb_core::RunId;

    fn key(block: u32) -> CacheKey {
        CacheKey::block(RunId(1), block)
    }

    fn get(shard: &Shard<u32>, block: u32) -> Option<&u32> {
        shard.get(key(block), key(block).hash64())
    }

    /// Inserts an entry of ten bytes. Returns what is evicted to keep the shard at ten entries.
    fn insert(shard: &mut Shard<u32>, block: u32, priority: Priority) -> Vec<u32> {
        shard.insert(key(block), block, 10, priority);
        let mut evicted = Vec::new();
        while shard.bytes() > 100 {
            evicted.extend(shard.evict().map(|removed| removed.value));
        }
        evicted
    }

    #[test]
    fn blocks_read_once_are_evicted_first_and_reenter_the_main_queue() {
        let mut shard = Shard::new();
        for block in 0..10 {
            assert_eq!(insert(&mut shard, block, Priority::Data), []);
        }
        for _ in 0..2 {
            assert!(get(&shard, 0).is_some());
        }
        assert!(get(&shard, 1).is_some());
        assert_eq!(
            insert(&mut shard, 10, Priority::Data),
            [1],
            "one read, as by a scan, does not keep the entry"
        );
        assert_eq!(insert(&mut shard, 11, Priority::Data), [2]);
        assert_eq!(
            insert(&mut shard, 2, Priority::Data),
            [3],
            "entry 2 is in the main queue with 0 reads"
        );
        for block in 100..150 {
            insert(&mut shard, block, Priority::Data);
        }
        assert!(get(&shard, 0).is_some() && get(&shard, 2).is_some());
        assert!(get(&shard, 4).is_none());
    }

    #[test]
    fn a_successor_of_what_was_read_outlives_what_is_read_once() {
        let mut shard = Shard::new();
        let reads = |shard: &Shard<u32>, block| shard.reads_of(key(block), key(block).hash64());
        insert(&mut shard, 0, Priority::Data);
        assert_eq!((reads(&shard, 0), reads(&shard, 1)), (0, 0));
        for _ in 0..5 {
            assert!(get(&shard, 0).is_some());
        }
        assert_eq!(reads(&shard, 0), READS_MAX);
        for block in 1..5 {
            let before = reads(&shard, block - 1);
            insert(&mut shard, block, Priority::Successor(before));
        }
        assert_eq!((reads(&shard, 1), reads(&shard, 3), reads(&shard, 4)), (2, 0, 0));
        for block in 100..110 {
            insert(&mut shard, block, Priority::Data);
        }
        assert!(get(&shard, 4).is_some(), "it is in the main queue");
    }

    #[test]
    fn metadata_outlives_many_blocks_and_not_all() {
        let mut shard = Shard::new();
        insert(&mut shard, 7, Priority::Meta);
        for block in 100..140 {
            insert(&mut shard, block, Priority::Data);
        }
        assert!(get(&shard, 7).is_some());
        while shard.len() > 0 {
            shard.evict().unwrap();
        }
        assert!(shard.evict().is_none());
        assert_eq!((shard.bytes(), shard.small_bytes), (0, 0));
    }

    #[test]
    fn an_entry_is_replaced_and_removed() {
        let mut shard = Shard::new();
        assert!(shard.insert(key(1), 1, 10, Priority::Data).is_none());
        let old = shard.insert(key(1), 2, 30, Priority::Data).unwrap();
        assert_eq!((old.value, old.bytes), (1, 10));
        assert_eq!((shard.len(), shard.bytes()), (1, 30));
        assert_eq!(shard.remove(key(1), key(1).hash64()).unwrap().value, 2);
        assert!(shard.remove(key(1), key(1).hash64()).is_none());
        assert_eq!((shard.len(), shard.bytes()), (0, 0));
        assert_eq!(shard.entries.0.len(), 1, "the slot is reused");
    }
}
