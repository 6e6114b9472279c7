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

/// The bits of each array's next slot, side by side; of none those that come last.
type Heads = SmallVec<[u64; 24]>;

fn bits(slot: Option<&Slot>, none: u64) -> u64 {
    slot.map_or(none, |slot| slot.bits())
}

impl Skim<'_> {
    /// Moves what the snapshot may see of the next `keys` keys to the end of `out`, in order. Returns
    /// over how many slots it went.
    pub(crate) fn first(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let mut passed = 0;
        let mut heads: Heads = rests.iter().map(|rest| bits(rest.first(), u64::MAX)).collect();
        for _ in 0..keys {
            let Some(&least) = heads.iter().min() else { break };
            let firsts = rests.iter().zip(&heads).filter(|(_, head)| **head == least);
            let firsts = firsts.filter_map(|(rest, _)| rest.first().copied());
            let Some(key) = firsts.min_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut settled = false;
            for (i, head) in heads.iter_mut().enumerate().filter(|(_, head)| **head == least) {
                let n = self.count_first(rests[i], key);
                let (same, left) = rests[i].split_at(n);
                settled =
                    settled || self.take_visible(same, self.visible[i], |slot| out.push(slot));
                rests[i] = left;
                *head = bits(left.first(), u64::MAX);
                passed += n;
            }
        }
        passed
    }

    /// The same from the end: the last `keys` keys, which ascend in `out`.
    pub(crate) fn last(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let (begin, mut passed) = (out.len(), 0);
        let mut heads: Heads = rests.iter().map(|rest| bits(rest.last(), 0)).collect();
        let mut seen: SmallVec<[Slot; 8]> = SmallVec::new();
        for _ in 0..keys {
            let Some(&most) = heads.iter().max() else { break };
            let lasts = rests.iter().zip(&heads).filter(|(_, head)| **head == most);
            let lasts = lasts.filter_map(|(rest, _)| rest.last().copied());
            let Some(key) = lasts.max_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut settled = false;
            seen.clear();
            for (i, head) in heads.iter_mut().enumerate().filter(|(_, head)| **head == most) {
                let n = self.count_last(rests[i], key);
                let (left, same) = rests[i].split_at(rests[i].len() - n);
                settled =
                    settled || self.take_visible(same, self.visible[i], |slot| seen.push(slot));
                rests[i] = left;
                *head = bits(left.last(), 0);
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
