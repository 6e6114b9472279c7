//! The writer's side of the memtable: arena, tail, merges and counters, used under one lock.

use std::cmp::Reverse;

use frondb_core::budget::{Budget, Part as BudgetPart, Reservation};
use frondb_core::sync::atomic::Ordering::Relaxed;
use frondb_core::sync::{Arc, RwLock};
use frondb_core::{MessageKind, RangeDelete, SeqNo};

use crate::arena::{Arena, Chunks, Slot};
use crate::array::{SeqSpan, rank_below};
use crate::gather::sort_stable;
use crate::order::KeyOrder;
use crate::probes::ProbeCount;
use crate::shared::{Counters, Entry, Published, Shared};
use crate::tiers::Tiers;
use crate::tombstone_run::TombstoneRun;

/// Longest tail, in slots. An insertion into a tail of this length moves 2 KiB on average.
const TAIL_SLOTS_MAX: usize = 256;
/// The slots of a batch of up to this many are inserted into the tail one by one. A larger batch is
/// merged with the tail into a new tail.
const INSERT_SINGLY_MAX: usize = 4;

pub(crate) struct Writer {
    arena: Arena,
    /// The arena's segments as readers see them.
    chunks: Chunks,
    tiers: Tiers,
    /// Bytes of `tiers`, updated when `tiers` changes.
    tier_bytes: usize,
    /// Slots of the current batch.
    slots: Vec<Slot>,
    tombstone_run: TombstoneRun,
    /// Length, capacity and SeqNos of the tail.
    tail_len: usize,
    tail_capacity: usize,
    tail_seqs: SeqSpan,
    range_delete_bytes: usize,
    probes: Arc<ProbeCount>,
    reservation: Reservation,
    sealed: bool,
}

impl Writer {
    pub(crate) fn new(budget: &Arc<Budget>, first: SeqNo, probes: &Arc<ProbeCount>) -> Box<Self> {
        let arena = Arena::new(first);
        Box::new(Self {
            chunks: arena.chunks(),
            arena,
            tiers: Tiers::new(),
            tier_bytes: 0,
            slots: Vec::new(),
            tombstone_run: TombstoneRun::default(),
            tail_len: 0,
            tail_capacity: 0,
            tail_seqs: SeqSpan::EMPTY,
            range_delete_bytes: 0,
            probes: Arc::clone(probes),
            reservation: budget.reserve(BudgetPart::Memtable, 0),
            sealed: false,
        })
    }

    /// Inserts a batch, which is not empty, and makes it visible.
    pub(crate) fn insert(&mut self, batch: &[Entry<'_>], shared: &RwLock<Shared>, c: &Counters) {
        assert!(!self.sealed, "insert into a frozen memtable");
        let chunks_before = self.arena.chunk_count();
        self.slots.clear();
        let (mut data_bytes, mut deletes) = (0, 0);
        let mut seqs = SeqSpan::EMPTY;
        for entry in batch {
            self.slots.push(self.arena.append(entry.key, entry.seq, entry.kind, entry.value));
            data_bytes += entry.key.len() + entry.value.len();
            deletes += u64::from(entry.kind == MessageKind::Delete);
            seqs = seqs.joined(SeqSpan { min: entry.seq, max: entry.seq });
        }
        let new_chunks = self.arena.chunk_count() != chunks_before;
        if new_chunks {
            self.chunks = self.arena.chunks();
        }
        self.sort_slots();
        if deletes > 0 || self.tombstone_run.is_open() {
            self.follow_tombstone_run();
            c.tombstone_run.store(self.tombstone_run.longest(), Relaxed);
        }
        // Counted before the messages are published, so that a reader that sees a message never
        // sees an empty memtable.
        add(&c.messages, batch.len() as u64);
        add(&c.deletes, deletes);
        add(&c.data_bytes, data_bytes as u64);
        note_seqs(c, seqs);

        self.tail_seqs = self.tail_seqs.joined(seqs);
        if self.tail_len + batch.len() <= TAIL_SLOTS_MAX {
            self.insert_into_tail(shared, new_chunks);
        } else {
            self.spill(shared, c);
        }
        self.charge(c);
    }

    /// Does a merge step on behalf of readers, if their probes justify it.
    pub(crate) fn merge_for_readers(&mut self, shared: &RwLock<Shared>, c: &Counters) {
        let probes = c.probes.count();
        if self.sealed || !self.tiers.pays(probes) {
            c.probes.postpone();
            return;
        }
        self.tiers.advance(0, c.probes.take(), &self.chunks);
        self.tier_bytes = self.tiers.bytes();
        let state = self.state();
        let retired = shared.write().state.replace(state);
        drop(retired);
        self.charge(c);
    }

    /// Counts a range delete, which the caller stores.
    pub(crate) fn note_range_delete(&mut self, range: &RangeDelete, c: &Counters) {
        assert!(!self.sealed, "insert into a frozen memtable");
        let bytes = range.lo.len() + range.hi.as_ref().map_or(0, |hi| hi.len());
        // Counts a copy in the tail and one in a set, which stores the ends a second time as the
        // boundaries of fragments (`ranges.rs`).
        self.range_delete_bytes += 3 * bytes + 3 * size_of::<RangeDelete>();
        add(&c.data_bytes, bytes as u64);
        add(&c.range_deletes, 1);
        note_seqs(c, SeqSpan { min: range.seq, max: range.seq });
    }

    pub(crate) fn tombstone_run_bounds(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        self.tombstone_run.bounds()
    }

    pub(crate) fn seal(&mut self, c: &Counters) {
        self.sealed = true;
        self.slots = Vec::new();
        self.tiers.stop_merging();
        self.tier_bytes = self.tiers.bytes();
        self.charge(c);
    }

    /// Sorts by key, newest first within a key. A batch that is already sorted costs one pass.
    fn sort_slots(&mut self) {
        let chunks = &self.chunks;
        self.slots.sort_by(|&a, &b| {
            chunks.compare(a, b).then_with(|| Reverse(chunks.seq(a)).cmp(&Reverse(chunks.seq(b))))
        });
    }

    fn follow_tombstone_run(&mut self) {
        for &slot in &self.slots {
            let message = self.chunks.get(slot);
            if message.kind == MessageKind::Delete {
                self.tombstone_run.delete(message.key);
            } else {
                self.tombstone_run.put(message.key);
            }
        }
    }

    fn insert_into_tail(&mut self, shared: &RwLock<Shared>, new_chunks: bool) {
        let state = new_chunks.then(|| self.state());
        let merged = (self.slots.len() > INSERT_SINGLY_MAX).then(|| self.merged_with_tail(shared));
        let retired = {
            let mut shared = shared.write();
            let tail = match merged {
                Some(merged) => std::mem::replace(&mut shared.tail, merged),
                None => {
                    self.insert_singly(&mut shared.tail);
                    Vec::new()
                }
            };
            self.tail_len = shared.tail.len();
            self.tail_capacity = shared.tail.capacity();
            (tail, state.and_then(|state| shared.state.replace(state)))
        };
        // Frees the old tail and arrays outside the lock.
        drop(retired);
    }

    fn insert_singly(&self, tail: &mut Vec<Slot>) {
        // Begins with the oldest messages: each message is inserted before the older ones of its
        // key.
        for &slot in self.slots.iter().rev() {
            let probe = self.chunks.probe(self.chunks.key(slot));
            let at = rank_below(tail, &self.chunks, &probe);
            tail.insert(at, slot);
        }
    }

    /// Returns the batch and the tail, merged; the batch is newer.
    fn merged_with_tail(&self, shared: &RwLock<Shared>) -> Vec<Slot> {
        let shared = shared.read();
        let mut merged = Vec::with_capacity(self.slots.len() + shared.tail.len());
        merged.extend_from_slice(&self.slots);
        merged.extend_from_slice(&shared.tail);
        if !shared.tail.is_empty() {
            sort_stable(&mut merged, &self.chunks);
        }
        merged
    }

    /// Makes an array of the batch and the tail.
    fn spill(&mut self, shared: &RwLock<Shared>, c: &Counters) {
        let mut slots = self.merged_with_tail(shared);
        if self.tiers.arrays().is_empty() {
            self.choose_order(&mut slots);
        }
        let inserted = slots.len();
        self.tiers.push(slots, self.tail_seqs, &self.chunks);
        self.tiers.advance(inserted, c.probes.take(), &self.chunks);
        self.tier_bytes = self.tiers.bytes();
        self.tail_len = 0;
        self.tail_seqs = SeqSpan::EMPTY;
        let state = self.state();
        let retired = {
            let mut shared = shared.write();
            shared.tail.clear();
            shared.state.replace(state)
        };
        drop(retired);
    }

    /// Chooses the order before the first array is made, while `slots` are all messages of the
    /// memtable, so that the order may still change.
    fn choose_order(&mut self, slots: &mut [Slot]) {
        let (Some(&first), Some(&last)) = (slots.first(), slots.last()) else { return };
        let order = KeyOrder::between(self.chunks.key(first), self.chunks.key(last));
        if let Some(order) = order {
            self.arena.reorder(order, slots);
            self.chunks = self.arena.chunks();
        }
    }

    fn state(&self) -> Arc<Published> {
        let (chunks, arrays) = (self.chunks.clone(), self.tiers.arrays().to_vec());
        Arc::new(Published { chunks, arrays, probes: Arc::clone(&self.probes) })
    }

    /// Updates the memory reservation and its counter.
    pub(crate) fn charge(&mut self, c: &Counters) {
        let bytes = size_of::<Self>()
            + (self.tail_capacity + self.slots.capacity()) * size_of::<Slot>()
            + self.range_delete_bytes
            + self.arena.bytes()
            + self.tier_bytes;
        if bytes as u64 != self.reservation.bytes() {
            c.bytes.store(bytes as u64, Relaxed);
            self.reservation.resize(bytes as u64);
        }
    }
}

/// Adds to a counter that only the writer changes.
fn add(counter: &frondb_core::sync::atomic::AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

fn note_seqs(c: &Counters, SeqSpan { min, max }: SeqSpan) {
    c.max_seq.store(c.max_seq.load(Relaxed).max(max.get()), Relaxed);
    c.min_seq.store(c.min_seq.load(Relaxed).min(min.get()), Relaxed);
}
