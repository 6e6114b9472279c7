//! Which arrays there are and when they are merged: the writer's list, newest array first.
//!
//! Arrays of about the same size form a tier; when one holds [`FAN_IN`] arrays they are merged
//! into one of the next tier, so a slot is moved once a tier and a reader meets at most about
//! `FAN_IN` arrays a tier. A merge is not done at once but in steps paid by the inserts that
//! follow, so no commit waits for a large one: each insert pays [`STEPS_PER_SLOT`] slots for each
//! of its own in every merge that is going on. A merge of n slots is therefore done when n / 2
//! more have come, before its tier is full again.
//!
//! ```text
//!   newest                                                        oldest
//!   [1000] [1000] [1000]   [8000] [8000]{8000 8000 8000 ...}   [64000] [64000]
//!                                       a merge in steps: readers still see its inputs
//! ```
//!
//! Invariants: SeqNos of an array are all larger than those of the arrays behind it; only
//! neighbours are merged; an array belongs to one merge at most.

use std::ops::Range;

use frondb_core::SeqNo;
use frondb_core::sync::Arc;

use crate::arena::{Chunks, Slot};
use crate::array::SortedArray;
use crate::gather::{Part, left, sort_stable, take_first};

/// Arrays of a tier that become one of the next.
const FAN_IN: usize = 8;
/// Slots of a merge that one inserted slot pays for.
const STEPS_PER_SLOT: usize = 2;
/// Smallest step: below it the searches for pivots would cost more than the merging.
const STEP_SLOTS_MIN: usize = 4096;
/// Arrays are not merged beyond this size: while a merge runs its slots are there twice.
const MERGED_SLOTS_MAX: usize = 1 << 20;
/// The size that tier 0 begins with.
const TIER_SLOTS_MIN: usize = 256;

pub(crate) struct Tiers {
    arrays: Vec<Arc<SortedArray>>,
    merges: Vec<Merge>,
}

struct Merge {
    inputs: Vec<Arc<SortedArray>>,
    parts: Vec<Part>,
    output: Vec<Slot>,
    /// Slots paid for and not merged yet.
    credit: usize,
}

impl Tiers {
    pub(crate) fn new() -> Self {
        Self { arrays: Vec::new(), merges: Vec::new() }
    }

    /// The arrays that readers are to see, newest first.
    pub(crate) fn arrays(&self) -> &[Arc<SortedArray>] {
        &self.arrays
    }

    /// Memory of arrays and of merges under way, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let arrays: usize = self.arrays.iter().map(|array| array.bytes()).sum();
        let merges: usize =
            self.merges.iter().map(|merge| merge.output.capacity() * size_of::<Slot>()).sum();
        arrays + merges
    }

    /// Adds the newest slots, sorted. `min_seq` is their smallest SeqNo.
    ///
    /// Arrays of lower tiers that stand before a larger new one would never meet their like
    /// again, so they go into it at once; together they are hardly larger than it.
    pub(crate) fn push(&mut self, mut slots: Vec<Slot>, mut min_seq: SeqNo, chunks: &Chunks) {
        let tier = tier_of(slots.len());
        let absorbed = self
            .arrays
            .iter()
            .take_while(|array| tier_of(array.slots().len()) < tier && !self.is_merging(array))
            .count();
        if absorbed > 0 {
            for array in self.arrays.drain(..absorbed) {
                slots.extend_from_slice(array.slots());
                min_seq = min_seq.min(array.min_seq());
            }
            sort_stable(&mut slots, chunks);
        }
        self.arrays.insert(0, Arc::new(SortedArray::new(slots, min_seq)));
    }

    /// Pays for `inserted` new slots: moves the merges on, and begins new ones where due.
    pub(crate) fn advance(&mut self, inserted: usize, chunks: &Chunks) {
        for merge in &mut self.merges {
            merge.step(inserted.saturating_mul(STEPS_PER_SLOT), chunks);
        }
        while let Some(done) = self.merges.iter().position(Merge::is_done) {
            let merge = self.merges.swap_remove(done);
            self.install(merge);
        }
        while let Some(inputs) = self.due() {
            self.merges.push(Merge::new(&self.arrays[inputs]));
        }
    }

    /// Puts the output of a finished merge in the place of its inputs.
    fn install(&mut self, merge: Merge) {
        let Some(first) = merge.inputs.first() else { return };
        let Some(start) = self.arrays.iter().position(|array| Arc::ptr_eq(array, first)) else {
            unreachable!("the inputs of a merge stay in the list until it is done");
        };
        let end = start + merge.inputs.len();
        // SeqNos ascend towards the front of the list, so the last input has the smallest.
        let min_seq = self.arrays[end - 1].min_seq();
        let output = Arc::new(SortedArray::new(merge.output, min_seq));
        self.arrays.splice(start..end, [output]);
    }

    /// The neighbours to be merged next, smallest tier first.
    fn due(&self) -> Option<Range<usize>> {
        let tiers: Vec<Option<u32>> = self
            .arrays
            .iter()
            .map(|array| (!self.is_merging(array)).then(|| tier_of(array.slots().len())))
            .collect();
        let highest = tiers.iter().flatten().max().copied()?;
        (0..=highest).find_map(|tier| self.window(&tiers, tier))
    }

    /// The first stretch of neighbours, none above `tier` and none in a merge, that is long
    /// enough; a stretch whose sum would be too large is not merged.
    fn window(&self, tiers: &[Option<u32>], tier: u32) -> Option<Range<usize>> {
        let mut start = 0;
        for end in 0..=tiers.len() {
            let fits = tiers.get(end).is_some_and(|&t| t.is_some_and(|t| t <= tier));
            if fits {
                continue;
            }
            let slots: usize = self.arrays[start..end].iter().map(|a| a.slots().len()).sum();
            if end - start >= FAN_IN && slots <= MERGED_SLOTS_MAX {
                return Some(start..end);
            }
            start = end + 1;
        }
        None
    }

    fn is_merging(&self, array: &Arc<SortedArray>) -> bool {
        self.merges.iter().any(|merge| merge.inputs.iter().any(|input| Arc::ptr_eq(input, array)))
    }
}

impl Merge {
    fn new(inputs: &[Arc<SortedArray>]) -> Self {
        let parts: Vec<Part> = inputs.iter().map(Part::whole).collect();
        let output = Vec::with_capacity(left(&parts));
        Self { inputs: inputs.to_vec(), parts, output, credit: 0 }
    }

    fn is_done(&self) -> bool {
        left(&self.parts) == 0
    }

    fn step(&mut self, paid: usize, chunks: &Chunks) {
        self.credit = self.credit.saturating_add(paid);
        if self.credit < STEP_SLOTS_MIN.min(left(&self.parts)) {
            return;
        }
        let before = self.output.len();
        take_first(&mut self.parts, self.credit, chunks, &mut self.output);
        self.credit = self.credit.saturating_sub(self.output.len() - before);
    }
}

/// The tier of an array with this many slots.
fn tier_of(slots: usize) -> u32 {
    (slots / TIER_SLOTS_MIN).max(1).ilog(FAN_IN)
}
