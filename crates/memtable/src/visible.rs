//! [`VisibleGatherer`]: gathers only the messages that a snapshot may see, key by key.
//!
//! A row that is overwritten many times has as many messages in the memtable. For one snapshot only
//! the newest visible put or delete of a key counts, with the newer updates. So this module
//! searches every array for the next key by galloping, and takes that key's messages, newest first,
//! up to the first put or delete. Where each key has one message, this is slower than merging whole
//! pieces (`gather.rs`), so a cursor switches between the two methods as it finds more or fewer
//! messages per key.

use frondb_core::SeqNo;
use smallvec::SmallVec;

use crate::arena::{Chunks, Slot};
use crate::gather::Rests;

/// Gathers the visible messages of sorted arrays; see the module documentation.
pub(crate) struct VisibleGatherer<'a> {
    pub(crate) snapshot: SeqNo,
    /// For each array, whether the snapshot sees all of its messages.
    pub(crate) visible: SmallVec<[bool; 24]>,
    pub(crate) chunks: &'a Chunks,
}

/// For each array, [`Slot::bits`] of its next slot; an exhausted array has `u64::MAX` in a forward
/// cursor and 0 in a backward one.
type Heads = SmallVec<[u64; 24]>;

fn bits(slot: Option<&Slot>, none: u64) -> u64 {
    slot.map_or(none, |slot| slot.bits())
}

impl VisibleGatherer<'_> {
    /// Appends the visible messages of the next `keys` keys to `out`, in order. Returns the number
    /// of slots that were consumed, visible or not.
    pub(crate) fn first(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let mut passed = 0;
        let mut heads: Heads = rests.iter().map(|rest| bits(rest.first(), u64::MAX)).collect();
        for _ in 0..keys {
            let Some(&least) = heads.iter().min() else { break };
            let firsts = rests.iter().zip(&heads).filter(|(_, head)| **head == least);
            let firsts = firsts.filter_map(|(rest, _)| rest.first().copied());
            let Some(key) = firsts.min_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut decided = false;
            for (i, head) in heads.iter_mut().enumerate().filter(|(_, head)| **head == least) {
                let n = self.count_first(rests[i], key);
                let (same, left) = rests[i].split_at(n);
                decided =
                    decided || self.take_visible(same, self.visible[i], |slot| out.push(slot));
                rests[i] = left;
                *head = bits(left.first(), u64::MAX);
                passed += n;
            }
        }
        passed
    }

    /// As [`first`](Self::first), from the end: the last `keys` keys, ascending in `out`.
    pub(crate) fn last(&self, rests: &mut Rests<'_>, keys: usize, out: &mut Vec<Slot>) -> usize {
        let (begin, mut passed) = (out.len(), 0);
        let mut heads: Heads = rests.iter().map(|rest| bits(rest.last(), 0)).collect();
        let mut seen: SmallVec<[Slot; 8]> = SmallVec::new();
        for _ in 0..keys {
            let Some(&most) = heads.iter().max() else { break };
            let lasts = rests.iter().zip(&heads).filter(|(_, head)| **head == most);
            let lasts = lasts.filter_map(|(rest, _)| rest.last().copied());
            let Some(key) = lasts.max_by(|&a, &b| self.chunks.compare(a, b)) else { break };
            let mut decided = false;
            seen.clear();
            for (i, head) in heads.iter_mut().enumerate().filter(|(_, head)| **head == most) {
                let n = self.count_last(rests[i], key);
                let (left, same) = rests[i].split_at(rests[i].len() - n);
                decided =
                    decided || self.take_visible(same, self.visible[i], |slot| seen.push(slot));
                rests[i] = left;
                *head = bits(left.last(), 0);
                passed += n;
            }
            // Each key's messages are reversed here because the whole output is reversed below.
            out.extend(seen.iter().rev());
        }
        out[begin..].reverse();
        passed
    }

    /// Passes the visible messages of one key to `take`, newest first, up to the first put or
    /// delete. Returns whether there was a put or delete.
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

    /// Returns the number of slots at the beginning that have the key of `key`.
    fn count_first(&self, slots: &[Slot], key: Slot) -> usize {
        let same = |&slot: &Slot| self.chunks.same_key(slot, key);
        let mut end = 1;
        while end <= slots.len() && same(&slots[end - 1]) {
            end *= 2;
        }
        let (known, end) = (end / 2, end.min(slots.len()));
        known + slots[known..end].partition_point(same)
    }

    /// Returns the number of slots at the end that have the key of `key`.
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
