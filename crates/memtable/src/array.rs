//! A sorted array of slots, immutable: what the memtable is made of.
//!
//! Invariants: slots ascend by key; within a key the newest is first; the array's SeqNos are
//! disjoint from those of every other array of the memtable.

use std::cmp::Ordering;

use frondb_core::SeqNo;

use crate::arena::{Chunks, Probe, Slot};
use crate::filter::Filter;

pub(crate) struct SortedArray {
    slots: Vec<Slot>,
    filter: Option<Filter>,
    /// Smallest SeqNo: a reader with an older snapshot passes the array by.
    min_seq: SeqNo,
}

impl SortedArray {
    /// An array of `slots` for publishing. `filter` knows their keys.
    pub(crate) fn new(slots: Vec<Slot>, filter: Filter, min_seq: SeqNo) -> Self {
        Self { slots, filter: Some(filter), min_seq }
    }

    /// An array without a filter, for one cursor.
    pub(crate) fn unfiltered(slots: Vec<Slot>, min_seq: SeqNo) -> Self {
        Self { slots, filter: None, min_seq }
    }

    #[inline]
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    #[inline]
    pub(crate) fn min_seq(&self) -> SeqNo {
        self.min_seq
    }

    /// Whether a search for the key can be spared.
    #[inline]
    pub(crate) fn excludes(&self, probe: &Probe<'_>, hash: u64) -> bool {
        let (Some(first), Some(last)) = (self.slots.first(), self.slots.last()) else {
            return true;
        };
        probe.prefix < first.prefix()
            || probe.prefix > last.prefix()
            || self.filter.as_ref().is_some_and(|filter| !filter.may_hold(hash))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.slots.capacity() * size_of::<Slot>()
            + self.filter.as_ref().map_or(0, Filter::bytes)
    }
}

/// How many slots have a smaller key.
#[inline]
pub(crate) fn rank_below(slots: &[Slot], chunks: &Chunks, probe: &Probe<'_>) -> usize {
    slots.partition_point(|&slot| chunks.compare_key(slot, probe) == Ordering::Less)
}

/// How many slots have a smaller key or the same one.
#[inline]
pub(crate) fn rank_through(slots: &[Slot], chunks: &Chunks, probe: &Probe<'_>) -> usize {
    slots.partition_point(|&slot| chunks.compare_key(slot, probe) != Ordering::Greater)
}

/// How many slots lie before the newest message of the key that `snapshot` may see.
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
