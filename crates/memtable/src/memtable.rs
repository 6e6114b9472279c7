//! [`Memtable`]: the interface for commits, readers and flushes.

use std::ops::Bound;

use frondb_core::budget::Budget;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::atomic::Ordering;
use frondb_core::sync::{Arc, Mutex, RwLock};
use frondb_core::{Direction, MessageKind, RangeDelete, SeqNo};
use smallvec::SmallVec;

use crate::arena::Slot;
use crate::array::{Bounds, rank_below, rank_visible};
use crate::cursor::{GatherMode, MemCursor};
use crate::ranges::Ranges;
use crate::shared::{Counters, Entry, Published, Shared};
use crate::writer::Writer;

/// Number of range deletes of a memtable for which the messages that they hide are estimated. An
/// estimate takes two searches in every array; a memtable with more range deletes is flushed
/// because of their number alone.
const HIDDEN_PROBES_MAX: u64 = 1000;

/// The newest messages of one tree, ordered, in memory.
///
/// # Structure
///
/// ```text
///  Shared (one RwLock)
///  +-- tail       sorted slots, at most 256: messages of small commits
///  +-- Published  immutable, replaced as a whole
///      +-- arrays   sorted, immutable, newest first; a batch or a full tail becomes one
///      +-- chunks   arena segments: keys and values; append-only, messages never move
///
///  Writer (one Mutex)   arena, unfinished merges, counters
/// ```
///
/// A message is copied once, into the arena. The sorted structures hold 16-byte slots: 8 bytes of
/// the key (`order.rs`) and the position in the arena. A batch is sorted and becomes an array of
/// slots. Arrays of similar size are merged in steps, which later inserts carry out (`tiers.rs`),
/// so a slot moves once per tier, 16 bytes at a time, sequentially. A small commit is inserted into
/// the tail. Ascending keys need no special path: the sort recognises a sorted batch, and arrays
/// that do not overlap are merged by copying.
///
/// A point read searches the tail and every array whose filter does not exclude the key, usually
/// about one array. A scan merges all arrays (`gather.rs`). An entry of a batch of 1,000 random
/// keys of 24 bytes costs 0.14 us; in a B-tree with a lock it costs 0.66 us, in a skip list 1.34
/// us.
///
/// # Thread safety
///
/// All methods may be called from any thread. A mutex serialises the writers. A reader shares the
/// lock of `Shared` while it copies a pointer and searches or copies the tail; a writer holds it
/// exclusively while it swaps a pointer or inserts at most four slots into the tail. No thread
/// merges under the exclusive lock, or calls back under the lock. If a snapshot was published after
/// the insert of a commit returned, readers at this snapshot see all messages of the commit. They
/// filter messages of later commits by SeqNo.
///
/// The budget is charged under the writers' mutex. A pressure callback of the budget must therefore
/// not write to the memtable, freeze it or drop its last reference. The callback may read it.
pub struct Memtable {
    writer: Mutex<Option<Box<Writer>>>,
    shared: RwLock<Shared>,
    ranges: Ranges,
    counters: Counters,
    budget: Arc<Budget>,
}

/// Statistics of one memtable.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct MemtableStats {
    /// Messages, without range deletes.
    pub messages: u64,
    /// Deletes among the messages.
    pub deletes: u64,
    /// Range deletes, which are not among the messages.
    pub range_deletes: u64,
    /// Bytes of keys and values, range deletes included.
    pub data_bytes: u64,
    /// Bytes of memory in use.
    pub bytes: u64,
    /// Sorted arrays that a reader has to search or merge.
    pub arrays: u64,
}

impl Memtable {
    /// Creates an empty memtable that will charge `budget`. It allocates nothing until the first
    /// message arrives.
    #[must_use]
    pub fn new(budget: Arc<Budget>) -> Self {
        Self {
            writer: Mutex::new(None),
            shared: RwLock::new(Shared::default()),
            ranges: Ranges::default(),
            counters: Counters::new(),
            budget,
        }
    }

    /// Inserts the messages of a commit, in any order. Every SeqNo must be larger than the SeqNos
    /// of all messages inserted before; each message of the batch has its own.
    ///
    /// # Panics
    /// If a key has more than 65,535 bytes or a value about 2 GiB (the engine's limits are lower),
    /// or after [`seal`](Self::seal).
    pub fn insert_batch(&self, batch: &[Entry<'_>]) {
        let Some(first) = batch.iter().map(|entry| entry.seq).min() else { return };
        let mut writer = self.writer.lock();
        let probes = &self.counters.probes;
        let writer = writer.get_or_insert_with(|| Writer::new(&self.budget, first, probes));
        writer.insert(batch, &self.shared, &self.counters);
    }

    /// Inserts a range delete. The memtable does not apply it to its messages: readers ask
    /// [`newest_range_delete`](Self::newest_range_delete).
    ///
    /// # Panics
    /// After [`seal`](Self::seal).
    pub fn add_range_delete(&self, range: RangeDelete) {
        let mut writer = self.writer.lock();
        let probes = &self.counters.probes;
        let writer = writer.get_or_insert_with(|| Writer::new(&self.budget, range.seq, probes));
        writer.note_range_delete(&range, &self.counters);
        if self.range_delete_count() <= HIDDEN_PROBES_MAX {
            let end =
                range.hi.as_deref().map_or_else(|| self.len(), |hi| self.approximate_rank(hi));
            let hidden = end.saturating_sub(self.approximate_rank(&range.lo));
            self.counters.hidden.fetch_add(hidden, Ordering::Relaxed);
        }
        self.ranges.add(range);
        writer.charge(&self.counters);
    }

    /// Returns the number of range deletes.
    #[must_use]
    pub fn range_delete_count(&self) -> u64 {
        self.counters.range_deletes.load(Ordering::Relaxed)
    }

    /// Returns an estimate of the number of messages that range deletes hide; a message hidden by
    /// several range deletes counts once for each. Range deletes after the first thousand do not
    /// count.
    #[must_use]
    pub fn hidden(&self) -> u64 {
        self.counters.hidden.load(Ordering::Relaxed)
    }

    /// Returns the SeqNo of the newest range delete that covers `key` and is visible at `snapshot`;
    /// 0 if there is none.
    #[inline]
    #[must_use]
    pub fn newest_range_delete(&self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        if self.range_delete_count() == 0 {
            return SeqNo(0);
        }
        self.ranges.newest_covering(key, snapshot)
    }

    /// Returns the current range deletes as a few sets, for readers. Usually sorts only the range
    /// deletes that were added since the last call.
    #[must_use]
    pub fn range_delete_sets(&self) -> Arc<[RangeDeletes]> {
        if self.range_delete_count() == 0 { Arc::default() } else { self.ranges.sets() }
    }

    /// Returns the current range deletes as one set, built anew at each call.
    #[must_use]
    pub fn range_deletes(&self) -> RangeDeletes {
        let sets = self.range_delete_sets();
        match &*sets {
            [one] => one.clone(),
            sets => RangeDeletes::new(sets.iter().flat_map(RangeDeletes::iter).cloned()),
        }
    }

    /// Freezes the memtable: no more inserts may follow. Releases the memory that only the writer
    /// needs, including the output of unfinished merges.
    pub fn seal(&self) {
        if let Some(writer) = &mut *self.writer.lock() {
            writer.seal(&self.counters);
        }
    }

    /// Passes the messages of `key` that `snapshot` may see to `visit`, newest first, until `visit`
    /// returns `false` or no message is left. Calls `visit` without holding a lock.
    pub fn get(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        visit: &mut dyn FnMut(SeqNo, MessageKind, &[u8]) -> bool,
    ) {
        let mut recent: SmallVec<[Slot; 4]> = SmallVec::new();
        let (state, probe) = {
            let shared = self.shared.read();
            let Some(state) = &shared.state else { return };
            let probe = state.chunks.probe(key);
            let at = rank_visible(&shared.tail, &state.chunks, &probe, snapshot);
            let same = |&&slot: &&Slot| state.chunks.compare_key(slot, &probe).is_eq();
            recent.extend(shared.tail[at..].iter().take_while(same).copied());
            (Arc::clone(state), probe)
        };
        let chunks = &state.chunks;
        let mut visit = |slot: Slot| {
            let message = chunks.get(slot);
            visit(message.seq, message.kind, message.value)
        };
        // All messages of the tail are newer than the messages of the arrays.
        if !recent.iter().all(|&slot| visit(slot)) {
            return;
        }
        let hash = probe.hash();
        for array in &state.arrays {
            if array.seqs().min > snapshot || array.excludes(&probe, hash) {
                continue;
            }
            let at = array.rank_visible(chunks, &probe, snapshot);
            for &slot in &array.slots()[at..] {
                if chunks.compare_key(slot, &probe).is_ne() {
                    break;
                }
                if !visit(slot) {
                    return;
                }
            }
        }
    }

    /// Returns a cursor over the messages between two keys that `snapshot` may see. The cursor
    /// reads the memtable as of now and ignores later inserts.
    #[must_use]
    pub fn cursor(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        snapshot: SeqNo,
    ) -> MemCursor {
        self.cursor_of(GatherMode::All, direction, (from, to), snapshot)
    }

    /// As [`cursor`](Self::cursor), but omits, where that saves work, messages that are older than
    /// a visible put or delete of the same key. No reader of the snapshot needs them. A row that
    /// was written a thousand times then costs a scan hardly more than any other row.
    #[must_use]
    pub fn visible_cursor(
        &self,
        direction: Direction,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        snapshot: SeqNo,
    ) -> MemCursor {
        self.cursor_of(GatherMode::Pieces, direction, (from, to), snapshot)
    }

    /// Returns a cursor over all messages, ascending, in large chunks, for a flush.
    #[must_use]
    pub fn scan_all(&self) -> MemCursor {
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.cursor(Direction::Forward, all.0, all.1, SeqNo::MAX).in_large_chunks()
    }

    /// Returns the number of messages, without range deletes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.counters.messages.load(Ordering::Relaxed)
    }

    /// Returns whether there are neither messages nor range deletes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.min_seq().is_none()
    }

    /// Returns the number of messages that cursors have taken from the memtable so far. Messages
    /// that a cursor omitted do not count.
    #[must_use]
    pub fn gathered(&self) -> u64 {
        self.counters.probes.gathered()
    }

    /// Returns the number of deletes among the messages.
    #[must_use]
    pub fn deletes(&self) -> u64 {
        self.counters.deletes.load(Ordering::Relaxed)
    }

    /// Returns an estimate of the number of deletes in the longest tombstone run (rule 15). Exact
    /// when rows are deleted in ascending or descending order.
    #[must_use]
    pub fn tombstone_run(&self) -> u64 {
        self.counters.tombstone_run.load(Ordering::Relaxed)
    }

    /// Returns the first and the last key of the open tombstone run, which need not be the longest;
    /// `None` if no run is open, because a put ended it or no delete has come.
    #[must_use]
    pub fn tombstone_run_bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.writer.lock().as_ref()?.tombstone_run_bounds()
    }

    /// Returns the bytes of keys and values, range deletes included.
    #[must_use]
    pub fn data_bytes(&self) -> u64 {
        self.counters.data_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes of memory, as charged to the budget.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.counters.bytes.load(Ordering::Relaxed)
    }

    /// Returns the smallest SeqNo of messages and range deletes; `None` if there are none.
    #[must_use]
    pub fn min_seq(&self) -> Option<SeqNo> {
        let seq = self.counters.min_seq.load(Ordering::Relaxed);
        (seq != u64::MAX).then_some(SeqNo(seq))
    }

    /// Returns the largest SeqNo of messages and range deletes; `None` if there are none.
    #[must_use]
    pub fn max_seq(&self) -> Option<SeqNo> {
        self.min_seq()?;
        Some(SeqNo(self.counters.max_seq.load(Ordering::Relaxed)))
    }

    /// Returns the smallest key of any message; `None` without messages.
    #[must_use]
    pub fn first_key(&self) -> Option<Vec<u8>> {
        self.extreme_key(|slots| slots.first().copied(), |a, b| a < b)
    }

    /// Returns the largest key of any message; `None` without messages.
    #[must_use]
    pub fn last_key(&self) -> Option<Vec<u8>> {
        self.extreme_key(|slots| slots.last().copied(), |a, b| a > b)
    }

    /// Returns the number of messages with a smaller key, obsolete ones included.
    #[must_use]
    pub fn approximate_rank(&self, key: &[u8]) -> u64 {
        let (state, probe, in_tail) = {
            let shared = self.shared.read();
            let Some(state) = &shared.state else { return 0 };
            let probe = state.chunks.probe(key);
            let in_tail = rank_below(&shared.tail, &state.chunks, &probe);
            (Arc::clone(state), probe, in_tail)
        };
        let below = state.arrays.iter().map(|array| array.rank_below(&state.chunks, &probe));
        (below.sum::<usize>() + in_tail) as u64
    }

    /// Returns the current statistics.
    #[must_use]
    pub fn stats(&self) -> MemtableStats {
        let arrays = self.shared.read().state.as_ref().map_or(0, |state| state.arrays.len());
        MemtableStats {
            messages: self.len(),
            deletes: self.deletes(),
            range_deletes: self.range_delete_count(),
            data_bytes: self.data_bytes(),
            bytes: self.bytes(),
            arrays: arrays as u64,
        }
    }

    fn cursor_of(
        &self,
        how: GatherMode,
        direction: Direction,
        bounds: Bounds<'_>,
        snapshot: SeqNo,
    ) -> MemCursor {
        self.counters.probes.add();
        self.merge_for_readers();
        match self.view() {
            Some((state, tail)) => MemCursor::new(state, tail, direction, bounds, snapshot, how),
            None => MemCursor::empty(),
        }
    }

    /// Does one merge step, of at most a millisecond, if the probes of readers since the last merge
    /// justify it. Does nothing while another thread holds the writer's lock: a reader never waits
    /// for that lock, and the next cursor tries again.
    fn merge_for_readers(&self) {
        if !self.counters.probes.is_due() {
            return;
        }
        if let Some(mut writer) = self.writer.try_lock()
            && let Some(writer) = &mut *writer
        {
            writer.merge_for_readers(&self.shared, &self.counters);
        }
    }

    /// Returns the published arrays and a copy of the tail, taken at one moment.
    fn view(&self) -> Option<(Arc<Published>, Vec<Slot>)> {
        let shared = self.shared.read();
        let state = Arc::clone(shared.state.as_ref()?);
        Some((state, shared.tail.clone()))
    }

    fn extreme_key(
        &self,
        end: impl Fn(&[Slot]) -> Option<Slot>,
        better: impl Fn(&[u8], &[u8]) -> bool,
    ) -> Option<Vec<u8>> {
        let shared = self.shared.read();
        let state = shared.state.as_ref()?;
        let arrays = state.arrays.iter().map(|array| array.slots());
        let mut best: Option<&[u8]> = None;
        for slot in arrays.chain([&*shared.tail]).filter_map(end) {
            let key = state.chunks.key(slot);
            if best.is_none_or(|best| better(key, best)) {
                best = Some(key);
            }
        }
        best.map(<[u8]>::to_vec)
    }
}

impl std::fmt::Debug for Memtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memtable({:?})", self.stats())
    }
}
