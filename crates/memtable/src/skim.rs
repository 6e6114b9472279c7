//! What a reader may see of each key, found without a look at the rest.
//!
//! A row that is written over and over has as many messages in the memtable; for one snapshot only the
//! newest visible put or delete of a key counts, with the updates above it. So the next key is searched
//! for in every array by galloping, and of its messages the newest are looked at until one settles it.
//! That is slower than merging whole pieces (`gather.rs`) where keys have one message each, and a cursor
//! goes from one way to the other by what it meets.

use frondb_core::SeqNo;
use smallvec::SmallVec;

use crate::arena::{Chunks, Slot};
use crate::gather::Rests;

pub(crate) struct Skim<'a> {
    pub(crate) snapshot: SeqNo,
    /// Of each array whether the snapshot sees all of it.
    pub(crate) visible: SmallVec<[bool; 24]>,
    pub(crate) chunks: &'a Chunks,
}

impl Skim<'_> {
    /// Moves what the snapshot may see of the next `keys` keys to the end of `out`, in order. Returns
    /// over how many slots it went.
    pub(crate) fn first(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let mut passed = 0;
        for _ in 0..keys {
            let firsts = rests.iter().filter_map(|rest| rest.first().copied());
            let Some(key) = firsts.min_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut settled = false;
            for (rest, &visible) in rests.iter_mut().zip(&self.visible) {
                let n = self.count_first(rest, key);
                let (same, left) = rest.split_at(n);
                settled = settled || self.take_visible(same, visible, |slot| out.push(slot));
                *rest = left;
                passed += n;
            }
        }
        passed
    }

    /// The same from the end: the last `keys` keys, which ascend in `out`.
    pub(crate) fn last(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let (begin, mut passed) = (out.len(), 0);
        let mut seen: SmallVec<[Slot; 8]> = SmallVec::new();
        for _ in 0..keys {
            let lasts = rests.iter().filter_map(|rest| rest.last().copied());
            let Some(key) = lasts.max_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut settled = false;
            seen.clear();
            for (rest, &visible) in rests.iter_mut().zip(&self.visible) {
                let n = self.count_last(rest, key);
                let (left, same) = rest.split_at(rest.len() - n);
                settled = settled || self.take_visible(same, visible, |slot| seen.push(slot));
                *rest = left;
                passed += n;
            }
            // All is turned round at the end.
            out.extend(seen.iter().rev());
        }
        out[begin..].reverse();
        passed
    }

    /// Hands out messages of one key, newest first, up to the one that settles what the key has;
    /// whether there was one.
    fn take_visible(&self, same: &[Slot], all: bool, mut take: impl FnMut(Slot)) -> bool {
        let newer = |&slot: &Slot| self.chunks.seq(slot) > self.snapshot;
        let first = if all { 0 } else { same.partition_point(newer) };
        for &slot in &same[first..] {
            take(slot);
            if !slot.is_update() {
                return true;
            }
        }
        false
    }

    /// How many slots at the beginning have the key of `key`.
    fn count_first(&self, slots: &[Slot], key: Slot) -> usize {
        let same = |&slot: &Slot| self.chunks.same_key(slot, key);
        let mut end = 1;
        while end <= slots.len() && same(&slots[end - 1]) {
            end *= 2;
        }
        let (known, end) = (end / 2, end.min(slots.len()));
        known + slots[known..end].partition_point(same)
    }

    /// How many slots at the end have it.
    fn count_last(&self, slots: &[Slot], key: Slot) -> usize {
        let other = |&slot: &Slot| !self.chunks.same_key(slot, key);
        let len = slots.len();
        let mut n = 1;
        while n <= len && !other(&slots[len - n]) {
            n *= 2;
        }
        let begin = len - n.min(len);
        len - begin - slots[begin..len - n / 2].partition_point(other)
    }
}
