//! The list of arrays and the policy of merging them: the writer's list, newest array first.
//!
//! Each array has a level, first chosen by its size. When [`FAN_IN`] adjacent arrays have the same
//! level, they are merged into one array of the next level. So a slot is moved once per level, and
//! a reader merges a few arrays of each level. Merges are amortised: each inserted slot advances
//! every merge in progress by [`STEPS_PER_SLOT`] slots, so no commit waits for a large merge. A
//! merge of n slots ends after n/8 inserted slots, long before its level is full again. It ends
//! after n/4 inserted slots if it also makes a *thinned* array: a copy of the output without
//! obsolete messages.
//!
//! Reads cause merges, too. If readers probe the arrays more often than new arrays are made, the
//! newest arrays are merged before their level is full. Such a merge begins if it would have saved
//! more work for the readers since the last new array than it costs; it takes the number of arrays
//! that saves most. So a memtable that is read as much as it is written has about half as many
//! arrays, and a memtable that is only written merges none early. If nothing is being written, the
//! next cursor to be opened does a step of the merge: a table that is filled and read soon after
//! ends with one array.
//!
//! ```text
//!   newest                                                        oldest
//!   [1000] [1000]   [4000] {4000 4000 4000 4000} [16000]   [64000] [64000]
//!                          a merge in steps: readers still see its inputs
//! ```
//!
//! Invariants: all SeqNos of an array are larger than the SeqNos of the arrays after it; only
//! neighbours are merged; an array is an input of at most one merge.

use std::ops::Range;

use frondb_core::sync::Arc;

use crate::arena::{Chunks, Slot};
use crate::array::{ArrayBuilder, SeqSpan, SortedArray};
use crate::gather::{Rests, sort_stable, take_first};

/// Number of arrays of a level that become one array of the next.
const FAN_IN: usize = 4;
/// Slots by which each inserted slot advances a merge.
const STEPS_PER_SLOT: usize = 8;
/// Slots merged per step. With fewer slots the searches for pivots would show in profiles; with
/// more, the slots and the sort's scratch memory would not fit into the processor's cache.
const STEP_SLOTS: usize = 4096;
/// Largest array, in slots, that a merge may produce: while a merge runs, its slots exist twice.
const MERGED_SLOTS_MAX: usize = 1 << 20;
/// Arrays of fewer than `FAN_IN` times this many slots begin at level 0.
const LEVEL_SLOTS_MIN: usize = 256;

/// One array less saves each probe as much time as merging this many slots takes, measured for
/// cursors over a few hundred keys: with 48, a mix of scans, counts and updates takes 0.80 to 0.83
/// times as long as without these merges; 96 is no better.
const SLOTS_PER_PROBE: usize = 48;
/// Maximum number of slots merged for readers in one call, about a millisecond of work. The call is
/// made by a thread that opens a cursor, or by a commit that turns the tail into an array.
const READERS_SLOTS_MAX: usize = 1 << 16;

pub(crate) struct Tiers {
    /// Newest first.
    arrays: Vec<Arc<SortedArray>>,
    /// The level of each array; `None` while it is in a merge.
    levels: Vec<Option<u32>>,
    merges: Vec<Merge>,
    /// Buffer for the slots of one merge step.
    scratch: Vec<Slot>,
}

struct Merge {
    /// Neighbouring arrays, newest first.
    inputs: Vec<Arc<SortedArray>>,
    /// Number of slots of each input that are merged already.
    done: Vec<usize>,
    /// Slots still to be merged.
    left: usize,
    /// Level of the output.
    level: u32,
    output: ArrayBuilder,
    /// Slots of work granted by inserts and probes and not yet spent on merging or thinning.
    credit: usize,
}

impl Tiers {
    pub(crate) fn new() -> Self {
        Self { arrays: Vec::new(), levels: Vec::new(), merges: Vec::new(), scratch: Vec::new() }
    }

    /// Returns the arrays that readers see, newest first.
    pub(crate) fn arrays(&self) -> &[Arc<SortedArray>] {
        &self.arrays
    }

    /// Returns the memory of arrays and of merges in progress, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let arrays: usize = self.arrays.iter().map(|array| array.bytes()).sum();
        let merges: usize = self.merges.iter().map(|merge| merge.output.bytes()).sum();
        arrays + merges + self.scratch.capacity() * size_of::<Slot>()
    }

    /// Adds the newest slots, which are sorted and have the SeqNos `seqs`.
    ///
    /// A new array of a higher level would separate older arrays of lower levels from later arrays
    /// of these levels, so that they would never be merged. So the new array absorbs these older
    /// arrays immediately; all of them together are hardly larger than the new array.
    pub(crate) fn push(&mut self, mut slots: Vec<Slot>, mut seqs: SeqSpan, chunks: &Chunks) {
        let level = level_of(slots.len());
        let lower = |l: &&Option<u32>| l.is_some_and(|l| l < level);
        let absorbed = self.levels.iter().take_while(lower).count();
        if absorbed > 0 {
            for array in self.arrays.drain(..absorbed) {
                slots.extend_from_slice(array.slots());
                seqs = seqs.joined(array.seqs());
            }
            self.levels.drain(..absorbed);
            sort_stable(&mut slots, chunks);
        }
        let mut array = ArrayBuilder::new(slots.len(), seqs);
        array.extend(&slots, chunks);
        self.arrays.insert(0, array.finish(chunks));
        self.levels.insert(0, Some(level));
    }

    /// Returns whether `probes` probes justify the next step of a merge in progress, or a new
    /// merge.
    pub(crate) fn pays(&self, probes: usize) -> bool {
        let worth = probes.saturating_mul(SLOTS_PER_PROBE);
        match self.merges.is_empty() {
            true => self.worth_merging(worth).is_some(),
            false => worth >= STEP_SLOTS,
        }
    }

    /// Advances the merges by the work that `inserted` new slots and `probes` probes of readers
    /// since the last call pay for. Begins a merge where a level is full. Also begins a merge that
    /// would have saved more work in these probes than it costs.
    pub(crate) fn advance(&mut self, inserted: usize, probes: usize, chunks: &Chunks) {
        let worth = probes.saturating_mul(SLOTS_PER_PROBE);
        if let Some((inputs, level)) = self.worth_merging(worth) {
            self.begin(inputs, level);
        }
        let mut extra = worth.min(READERS_SLOTS_MAX);
        for merge in self.merges.iter_mut().rev() {
            let paid = inserted.saturating_mul(STEPS_PER_SLOT).saturating_add(extra);
            let spent = merge.step(paid, chunks, &mut self.scratch);
            extra = extra.saturating_sub(spent);
        }
        while let Some(done) = self.merges.iter().position(Merge::is_done) {
            let merge = self.merges.swap_remove(done);
            self.install(merge, chunks);
        }
        while let Some((inputs, level)) = self.due() {
            self.begin(inputs, level + 1);
        }
    }

    fn begin(&mut self, inputs: Range<usize>, level: u32) {
        self.levels[inputs.clone()].fill(None);
        self.merges.push(Merge::new(&self.arrays[inputs], level));
    }

    /// Returns the newest arrays whose merge gains most, and the level of the output; `None` if no
    /// merge pays off. Each array less saves readers as much work as merging `worth` slots costs.
    fn worth_merging(&self, worth: usize) -> Option<(Range<usize>, u32)> {
        let (mut slots, mut level, mut most, mut best) = (0, 0, 0, None);
        for (i, (array, of_array)) in self.arrays.iter().zip(&self.levels).enumerate() {
            slots += array.slots().len();
            let Some(of_array) = of_array.filter(|_| slots <= MERGED_SLOTS_MAX) else { break };
            level = of_array.max(level).max(level_of(slots));
            let gain = worth.saturating_mul(i).saturating_sub(slots);
            if gain > most {
                (most, best) = (gain, Some((0..i + 1, level)));
            }
        }
        best
    }

    /// Drops the unfinished merges; their inputs stay as they are.
    pub(crate) fn stop_merging(&mut self) {
        self.merges = Vec::new();
        self.scratch = Vec::new();
    }

    /// Replaces the inputs of a finished merge by its output.
    fn install(&mut self, merge: Merge, chunks: &Chunks) {
        let first = |array: &Arc<SortedArray>| Arc::ptr_eq(array, &merge.inputs[0]);
        let Some(start) = self.arrays.iter().position(first) else {
            unreachable!("the inputs of a merge stay in the list until it is done");
        };
        let inputs = start..start + merge.inputs.len();
        self.arrays.splice(inputs.clone(), [merge.output.finish(chunks)]);
        self.levels.splice(inputs, [Some(merge.level)]);
    }

    /// Returns the neighbouring arrays to be merged next, and their level. Lower levels come first.
    fn due(&self) -> Option<(Range<usize>, u32)> {
        let highest = self.levels.iter().flatten().max().copied()?;
        (0..=highest).find_map(|level| Some((self.due_at(level)?, level)))
    }

    /// Returns the first group of neighbouring arrays with at least [`FAN_IN`] arrays of `level`,
    /// none of a higher level and none in a merge. The group includes an array of a lower level if
    /// a large batch arrived while a merge produced that array. Newer arrays of lower levels before
    /// the group are left out.
    fn due_at(&self, level: u32) -> Option<Range<usize>> {
        let mut next = 0;
        while let Some(start) = self.levels[next..].iter().position(|&l| l == Some(level)) {
            let start = next + start;
            let fits = |l: &&Option<u32>| l.is_some_and(|l| l <= level);
            let end = start + self.levels[start..].iter().take_while(fits).count();
            let full = self.levels[start..end].iter().filter(|&&l| l == Some(level)).count();
            let slots: usize = self.arrays[start..end].iter().map(|a| a.slots().len()).sum();
            if full >= FAN_IN && slots <= MERGED_SLOTS_MAX {
                return Some(start..end);
            }
            next = end;
        }
        None
    }
}

impl Merge {
    /// Creates a merge of `inputs`, which are not empty.
    fn new(inputs: &[Arc<SortedArray>], level: u32) -> Self {
        let left = inputs.iter().map(|array| array.slots().len()).sum();
        let seqs = inputs.iter().map(|array| array.seqs()).fold(SeqSpan::EMPTY, SeqSpan::joined);
        Self {
            inputs: inputs.to_vec(),
            done: vec![0; inputs.len()],
            left,
            level,
            output: ArrayBuilder::new(left, seqs),
            credit: 0,
        }
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.output.left_to_thin() == 0
    }

    /// Merges, and then thins, as many slots as the credit and `paid` allow. Returns their number.
    fn step(&mut self, paid: usize, chunks: &Chunks, scratch: &mut Vec<Slot>) -> usize {
        self.credit = self.credit.saturating_add(paid);
        let mut spent = 0;
        while self.left > 0 && self.credit >= STEP_SLOTS.min(self.left) {
            scratch.clear();
            let progress = self.inputs.iter().zip(&self.done);
            let mut rests: Rests<'_> =
                progress.map(|(array, &done)| &array.slots()[done..]).collect();
            take_first(&mut rests, STEP_SLOTS, chunks, scratch);
            for ((array, done), rest) in self.inputs.iter().zip(&mut self.done).zip(rests) {
                *done = array.slots().len() - rest.len();
            }
            self.output.extend(scratch, chunks);
            self.left -= scratch.len();
            self.credit = self.credit.saturating_sub(scratch.len());
            spent += scratch.len();
        }
        if self.left == 0 {
            let slots = self.output.left_to_thin().min(self.credit);
            self.output.thin(slots, chunks);
            self.credit -= slots;
            spent += slots;
        }
        spent
    }
}

/// Returns the level at which an array with this many slots begins.
fn level_of(slots: usize) -> u32 {
    (slots / LEVEL_SLOTS_MIN).max(1).ilog(FAN_IN)
}

#[cfg(test)]
mod tests {
    use frondb_core::{MessageKind, SeqNo};

    use super::*;
    use crate::arena::Arena;

    const ROWS: u64 = 10_000;

    /// Pushes an array with one message per row.
    fn write_all(arena: &mut Arena, tiers: &mut Tiers, from: u64) {
        let slot =
            |row: u64| arena.append(&row.to_be_bytes(), SeqNo(from + row), MessageKind::Put, b"");
        let slots = (0..ROWS).map(slot).collect();
        let seqs = SeqSpan { min: SeqNo(from), max: SeqNo(from + ROWS - 1) };
        tiers.push(slots, seqs, &arena.chunks());
    }

    /// Where rows are overwritten, building the thinned array, which has the newest messages only,
    /// takes as many steps as merging the inputs, and is limited to the same number of slots per
    /// insert.
    #[test]
    fn no_insert_does_more_work_than_it_pays_for() {
        let (mut arena, mut tiers) = (Arena::new(SeqNo(1)), Tiers::new());
        for i in 0..FAN_IN as u64 {
            write_all(&mut arena, &mut tiers, 1 + i * ROWS);
        }
        let (slots, inserted) = (FAN_IN * ROWS as usize, 100);
        tiers.advance(0, 0, &arena.chunks());
        assert_eq!(tiers.merges.len(), 1);
        let mut paid = 0;
        while !tiers.merges.is_empty() {
            let to_do = |merge: &Merge| merge.left + merge.output.left_to_thin();
            let before = to_do(&tiers.merges[0]);
            tiers.advance(inserted, 0, &arena.chunks());
            paid += inserted * STEPS_PER_SLOT;
            let after = tiers.merges.first().map_or(0, to_do);
            assert!(before.saturating_sub(after) <= STEP_SLOTS + inserted * STEPS_PER_SLOT);
        }
        assert!((2 * slots..2 * slots + STEP_SLOTS).contains(&paid), "{paid} for {slots}");
        let [merged] = tiers.arrays() else { panic!("{} arrays", tiers.arrays().len()) };
        assert_eq!(merged.slots().len(), slots);
        let newest = merged.seen_by(SeqNo::MAX).slots();
        assert_eq!(newest.len(), ROWS as usize);
        let chunks = arena.chunks();
        let oldest_of_newest = newest.iter().map(|slot| chunks.seq(*slot)).min();
        assert_eq!(oldest_of_newest, Some(SeqNo(1 + (FAN_IN as u64 - 1) * ROWS)));
    }
}
