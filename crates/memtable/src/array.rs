//! A sorted, immutable array of slots: the building block of the memtable.
//!
//! A search begins in the samples, the key bits of every 32nd slot. The samples are few enough to
//! stay in the processor's cache, and the part that remains to be searched is half a kilobyte.
//!
//! Where rows are overwritten often, most messages are soon obsolete. A snapshot that sees all of
//! an array needs only the newest message of each key and, if that message is an update, also the
//! older messages to which the update applies. So an array with many obsolete messages carries a
//! second, thinned array without them.
//!
//! Invariants: slots ascend by key; within a key the newest is first; no two arrays of
//! a memtable have a SeqNo in common.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use frondb_core::mem::Buf;
use frondb_core::sync::Arc;
use frondb_core::{Direction, SeqNo};

use crate::arena::{Chunks, Probe, Slot};
use crate::filter::Filter;

/// An array with fewer obsolete slots than this, or than half of its slots, gets no thinned copy:
/// the array is small, or a copy would hardly be faster to read.
const OBSOLETE_MIN: usize = 64;
/// Distance between samples, in slots.
const SAMPLE_SLOTS: usize = 32;

/// The lower and the upper bound of a cursor.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

pub(crate) struct SortedArray {
    /// The slots, as bytes in mapped memory, because arrays are large and short-lived.
    memory: Buf,
    len: usize,
    samples: Vec<u64>,
    filter: Filter,
    seqs: SeqSpan,
    /// The thinned array without obsolete slots; `None` if the array has few of them.
    newest: Option<Box<Self>>,
}

/// The smallest and the largest SeqNo of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeqSpan {
    /// A reader whose snapshot is older than this SeqNo skips the array.
    pub(crate) min: SeqNo,
    /// A reader whose snapshot is at least this new need not compare the SeqNos of messages.
    pub(crate) max: SeqNo,
}

impl SeqSpan {
    /// The span of an empty set of messages.
    pub(crate) const EMPTY: Self = Self { min: SeqNo::MAX, max: SeqNo::MIN };

    /// Returns the smallest span that covers both.
    pub(crate) fn joined(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

/// Builds an array by appending slots in order.
pub(crate) struct ArrayBuilder {
    array: SortedArray,
    obsolete: usize,
    /// Whether older messages of the last slot's key are obsolete.
    older_obsolete: bool,
    /// The thinned array under construction.
    thinned: Option<Thinned>,
}

/// The slots that are not obsolete, among the first `examined` slots.
struct Thinned {
    newest: Box<SortedArray>,
    examined: usize,
    older_obsolete: bool,
}

impl ArrayBuilder {
    /// Creates an empty array with room for exactly `slots` slots.
    pub(crate) fn new(slots: usize, seqs: SeqSpan) -> Self {
        let array = SortedArray::with_room(slots, seqs);
        Self { array, obsolete: 0, older_obsolete: false, thinned: None }
    }

    /// Appends slots that sort after all slots in the array.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn extend(&mut self, slots: &[Slot], chunks: &Chunks) {
        let mut last = self.array.slots().last().copied();
        for &slot in slots {
            self.obsolete += usize::from(follows(last, slot, &mut self.older_obsolete, chunks));
            last = Some(slot);
        }
        self.array.append(slots);
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let thinned = self.thinned.as_ref().map_or(0, |thinned| thinned.newest.bytes());
        self.array.bytes() + thinned
    }

    /// Returns the number of slots still to be examined for the thinned array; 0 if the array needs
    /// none.
    pub(crate) fn left_to_thin(&self) -> usize {
        let len = self.array.len;
        let examined = self.thinned.as_ref().map_or(0, |thinned| thinned.examined);
        if self.obsolete < OBSOLETE_MIN.max(len / 2) { 0 } else { len - examined }
    }

    /// Examines the next slots for the thinned array, at most `slots`.
    pub(crate) fn thin(&mut self, slots: usize, chunks: &Chunks) {
        let next = self.left_to_thin().min(slots);
        if next == 0 {
            return;
        }
        let Self { array, obsolete, thinned, .. } = self;
        let thinned = thinned.get_or_insert_with(|| Thinned {
            newest: Box::new(SortedArray::with_room(array.len - *obsolete, array.seqs)),
            examined: 0,
            older_obsolete: false,
        });
        let (before, rest) = array.slots().split_at(thinned.examined);
        let mut last = before.last().copied();
        for &slot in &rest[..next] {
            if !follows(last, slot, &mut thinned.older_obsolete, chunks) {
                thinned.newest.append(&[slot]);
            }
            last = Some(slot);
        }
        thinned.examined += next;
    }

    /// Returns the finished array. First completes the thinning that is [left](Self::left_to_thin).
    pub(crate) fn finish(mut self, chunks: &Chunks) -> Arc<SortedArray> {
        self.thin(usize::MAX, chunks);
        self.array.newest = self.thinned.map(|thinned| thinned.newest);
        Arc::new(self.array)
    }
}

/// Returns whether `slot`, which follows `last`, is obsolete. `older_obsolete` says whether
/// messages of the same key that are older than `last` are obsolete; the call updates it for
/// `slot`.
#[inline]
fn follows(last: Option<Slot>, slot: Slot, older_obsolete: &mut bool, chunks: &Chunks) -> bool {
    if !last.is_some_and(|last| chunks.same_key(last, slot)) {
        *older_obsolete = false;
    }
    std::mem::replace(older_obsolete, *older_obsolete || !slot.is_update())
}

impl SortedArray {
    fn with_room(slots: usize, seqs: SeqSpan) -> Self {
        Self {
            memory: Buf::packed(slots.max(1) * size_of::<Slot>()),
            len: 0,
            samples: Vec::with_capacity(slots.div_ceil(SAMPLE_SLOTS)),
            filter: Filter::with_capacity(slots),
            seqs,
            newest: None,
        }
    }

    fn append(&mut self, slots: &[Slot]) {
        let to_sample = self.len.next_multiple_of(SAMPLE_SLOTS) - self.len;
        let sampled = slots.iter().skip(to_sample).step_by(SAMPLE_SLOTS);
        self.samples.extend(sampled.map(|slot| slot.bits()));
        self.filter.add(slots);
        let all: &mut [Slot] = bytemuck::cast_slice_mut(&mut self.memory);
        all[self.len..self.len + slots.len()].copy_from_slice(slots);
        self.len += slots.len();
    }

    #[inline]
    pub(crate) fn slots(&self) -> &[Slot] {
        &bytemuck::cast_slice(&self.memory)[..self.len]
    }

    #[inline]
    pub(crate) fn seqs(&self) -> SeqSpan {
        self.seqs
    }

    /// Returns whether `snapshot` sees all messages of the array.
    #[inline]
    pub(crate) fn is_visible(&self, snapshot: SeqNo) -> bool {
        self.seqs.max <= snapshot
    }

    /// Returns the array to read at `snapshot`: the thinned one if the snapshot sees all messages.
    #[inline]
    pub(crate) fn seen_by(&self, snapshot: SeqNo) -> &Self {
        self.newest.as_deref().filter(|_| self.is_visible(snapshot)).unwrap_or(self)
    }

    /// Returns whether the array surely lacks the key, so that a search is unnecessary.
    #[inline]
    pub(crate) fn excludes(&self, probe: &Probe<'_>, hash: u64) -> bool {
        let (Some(first), Some(last)) = (self.slots().first(), self.slots().last()) else {
            return true;
        };
        probe.digest.bits < first.bits()
            || probe.digest.bits > last.bits()
            || !self.filter.may_hold(hash)
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.memory.footprint()
            + self.samples.capacity() * size_of::<u64>()
            + self.filter.bytes()
            + self.newest.as_ref().map_or(0, |newest| newest.bytes())
    }

    /// Returns the number of slots with a smaller key.
    pub(crate) fn rank_below(&self, chunks: &Chunks, probe: &Probe<'_>) -> usize {
        let near = self.near(probe.digest.bits);
        near.start + rank_below(&self.slots()[near], chunks, probe)
    }

    /// Returns the slots between two edges.
    pub(crate) fn between(&self, chunks: &Chunks, edges: &Edges<'_>) -> Range<usize> {
        let start = edges.start.as_ref().map_or(0, |edge| self.rank(chunks, edge));
        let Some(edge) = &edges.end else { return start..self.len };
        // The end of a short range is near its start, and already in the processor's cache.
        let near = &self.slots()[start..self.len.min(start + SAMPLE_SLOTS)];
        let end = match near.last() {
            Some(&last) if edge.is_behind(last, chunks) => self.rank(chunks, edge).max(start),
            _ => start + edge.rank(near, chunks),
        };
        start..end
    }

    fn rank(&self, chunks: &Chunks, edge: &Edge<'_>) -> usize {
        let near = self.near(edge.probe.digest.bits);
        near.start + edge.rank(&self.slots()[near], chunks)
    }

    /// Returns the number of slots before the newest message of the key that `snapshot` may see.
    pub(crate) fn rank_visible(
        &self,
        chunks: &Chunks,
        probe: &Probe<'_>,
        snapshot: SeqNo,
    ) -> usize {
        let near = self.near(probe.digest.bits);
        let slots = &self.slots()[near.clone()];
        near.start
            + match self.is_visible(snapshot) {
                true => rank_below(slots, chunks, probe),
                false => rank_visible(slots, chunks, probe, snapshot),
            }
    }

    /// Returns the slots whose bits may equal `bits`: slots before the range have smaller bits,
    /// slots after it larger ones.
    #[inline]
    fn near(&self, bits: u64) -> Range<usize> {
        let smaller = self.samples.partition_point(|&sample| sample < bits);
        let rest = &self.samples[smaller..];
        // Usually no sample equals `bits`; all samples do if all keys share their first bytes.
        let same = match rest.first() {
            Some(&sample) if sample == bits => rest.partition_point(|&sample| sample == bits),
            _ => 0,
        };
        let start = smaller.saturating_sub(1) * SAMPLE_SLOTS;
        let end = ((smaller + same) * SAMPLE_SLOTS).min(self.len);
        start..end
    }
}

/// Returns the number of slots with a smaller key.
#[inline]
pub(crate) fn rank_below(slots: &[Slot], chunks: &Chunks, probe: &Probe<'_>) -> usize {
    slots.partition_point(|&slot| chunks.compare_key(slot, probe) == Ordering::Less)
}

/// As [`rank_below`], faster if the answer is near the beginning: the steps double until they pass
/// the answer, so the compared slots lie close together.
#[inline]
fn rank_below_near(slots: &[Slot], chunks: &Chunks, probe: &Probe<'_>) -> usize {
    let is_below = |slot: &Slot| chunks.compare_key(*slot, probe) == Ordering::Less;
    let mut step = 1;
    while slots.get(step - 1).is_some_and(is_below) {
        step *= 2;
    }
    let known = step / 2;
    known + rank_below(&slots[known..slots.len().min(step)], chunks, probe)
}

/// As [`rank_below`], faster if the answer is near the end.
#[inline]
fn rank_below_near_end(slots: &[Slot], chunks: &Chunks, probe: &Probe<'_>) -> usize {
    let (len, mut step) = (slots.len(), 1);
    while step <= len && chunks.compare_key(slots[len - step], probe) != Ordering::Less {
        step *= 2;
    }
    let begin = len - len.min(step);
    begin + rank_below(&slots[begin..len - step / 2], chunks, probe)
}

/// As [`rank_below`], faster if the answer is near the end at which a cursor in `direction` starts.
#[inline]
pub(crate) fn rank_ahead(
    slots: &[Slot],
    chunks: &Chunks,
    probe: &Probe<'_>,
    direction: Direction,
) -> usize {
    match direction {
        Direction::Forward => rank_below_near(slots, chunks, probe),
        Direction::Backward => rank_below_near_end(slots, chunks, probe),
    }
}

/// The edges of a range; `None` means the first or the last slot.
pub(crate) struct Edges<'a> {
    start: Option<Edge<'a>>,
    end: Option<Edge<'a>>,
}

impl<'a> Edges<'a> {
    pub(crate) fn of((start, end): Bounds<'a>, chunks: &Chunks) -> Self {
        let edge = |key, through| Some(Edge { probe: chunks.probe(key), through });
        let start = match start {
            Bound::Included(key) => edge(key, false),
            Bound::Excluded(key) => edge(key, true),
            Bound::Unbounded => None,
        };
        let end = match end {
            Bound::Included(key) => edge(key, true),
            Bound::Excluded(key) => edge(key, false),
            Bound::Unbounded => None,
        };
        Self { start, end }
    }

    /// Returns the slots between the edges.
    pub(crate) fn within(&self, slots: &[Slot], chunks: &Chunks) -> Range<usize> {
        let start = self.start.as_ref().map_or(0, |edge| edge.rank(slots, chunks));
        let end = self.end.as_ref().map_or(slots.len(), |edge| edge.rank(slots, chunks));
        start..end.max(start)
    }
}

/// A boundary between slots: before or after all slots of a key.
struct Edge<'a> {
    probe: Probe<'a>,
    through: bool,
}

impl Edge<'_> {
    /// Returns whether the slot lies before the edge.
    #[inline]
    fn is_behind(&self, slot: Slot, chunks: &Chunks) -> bool {
        let order = chunks.compare_key(slot, &self.probe);
        order.is_lt() || self.through && order.is_eq()
    }

    /// Returns the number of slots before the edge.
    #[inline]
    fn rank(&self, slots: &[Slot], chunks: &Chunks) -> usize {
        slots.partition_point(|&slot| self.is_behind(slot, chunks))
    }
}

/// Returns the number of slots before the newest message of the key that `snapshot` may see.
#[inline]
pub(crate) fn rank_visible(
    slots: &[Slot],
    chunks: &Chunks,
    probe: &Probe<'_>,
    snapshot: SeqNo,
) -> usize {
    slots.partition_point(|&slot| match chunks.compare_key(slot, probe) {
        Ordering::Less => true,
        Ordering::Equal => chunks.seq(slot) > snapshot,
        Ordering::Greater => false,
    })
}
