//! Merging sorted arrays a piece at a time.
//!
//! A piece is the next few hundred or thousand slots of all arrays in key order. It is found by
//! choosing a pivot key such that the arrays hold about the wanted number of slots up to it; these
//! are put one array after the other and sorted. The standard library's stable sort recognises
//! the ascending stretches and merges them two by two without branches, which beats a loser tree
//! (docs/decisions/0002-memtable.md), and a piece ends anywhere, so a large merge can be done in
//! steps.
//!
//! ```text
//!  newest  [....|........]      pivot = smallest of the arrays' candidates
//!          [..|...]             taken = everything up to the pivot, newest array first;
//!  oldest  [.......|............]       the stable sort keeps that order within a key
//! ```

use std::cmp::Ordering;

use frondb_core::sync::Arc;

use crate::arena::{Chunks, Slot};
use crate::array::SortedArray;

/// What is left of one array.
pub(crate) struct Part {
    pub(crate) array: Arc<SortedArray>,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Part {
    /// All of `array`.
    pub(crate) fn whole(array: &Arc<SortedArray>) -> Self {
        Self { array: Arc::clone(array), start: 0, end: array.slots().len() }
    }

    #[inline]
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.array.slots()[self.start..self.end]
    }

    #[inline]
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Sorts by key; slots of one key keep their order.
#[inline]
pub(crate) fn sort_stable(slots: &mut [Slot], chunks: &Chunks) {
    slots.sort_by(|&a, &b| chunks.compare(a, b));
}

/// How many slots are left.
pub(crate) fn left(parts: &[Part]) -> usize {
    parts.iter().map(Part::len).sum()
}

/// This part's share of `want` among `total`, at least 1 and at most what it has.
#[inline]
fn share(len: usize, want: usize, total: usize) -> usize {
    debug_assert!(0 < len && len <= total);
    let share = len as u64 * want.min(total) as u64 / total as u64;
    (share as usize + 1).min(len)
}

/// Moves about `want` of the smallest slots of `parts` (newest array first) to the end of `out`,
/// in order. Moves at least one if there is one; all messages of a key move together.
pub(crate) fn take_first(parts: &mut Vec<Part>, want: usize, chunks: &Chunks, out: &mut Vec<Slot>) {
    parts.retain(|part| part.len() > 0);
    let total = left(parts);
    let pivot = parts
        .iter()
        .map(|part| part.slots()[share(part.len(), want, total) - 1])
        .min_by(|&a, &b| chunks.compare(a, b));
    let Some(pivot) = pivot else { return };
    let begin = out.len();
    let mut pieces = 0;
    for part in parts.iter_mut() {
        let n = if total <= want {
            part.len()
        } else {
            count_through(part.slots(), share(part.len(), want, total), pivot, chunks)
        };
        pieces += usize::from(n > 0);
        out.extend_from_slice(&part.slots()[..n]);
        part.start += n;
    }
    if pieces > 1 {
        sort_stable(&mut out[begin..], chunks);
    }
}

/// Moves about `want` of the largest slots of `parts` to the end of `out`, where they ascend.
/// Otherwise as [`take_first`].
pub(crate) fn take_last(parts: &mut Vec<Part>, want: usize, chunks: &Chunks, out: &mut Vec<Slot>) {
    parts.retain(|part| part.len() > 0);
    let total = left(parts);
    let pivot = parts
        .iter()
        .map(|part| part.slots()[part.len() - share(part.len(), want, total)])
        .max_by(|&a, &b| chunks.compare(a, b));
    let Some(pivot) = pivot else { return };
    let begin = out.len();
    for part in parts.iter_mut() {
        let n = if total <= want {
            part.len()
        } else {
            count_from(part.slots(), share(part.len(), want, total), pivot, chunks)
        };
        out.extend_from_slice(&part.slots()[part.len() - n..]);
        part.end -= n;
    }
    sort_stable(&mut out[begin..], chunks);
}

/// How many slots at the beginning of `slots` are not beyond `pivot`, of which there are about
/// `near`: at most that, unless the messages of the pivot's key go on.
fn count_through(slots: &[Slot], near: usize, pivot: Slot, chunks: &Chunks) -> usize {
    let n = slots[..near].partition_point(|&s| chunks.compare(s, pivot) != Ordering::Greater);
    if n < near { n } else { n + leading_through(&slots[n..], pivot, chunks) }
}

/// The same from the end: how many slots at the end are not before `pivot`.
fn count_from(slots: &[Slot], near: usize, pivot: Slot, chunks: &Chunks) -> usize {
    let tail = &slots[slots.len() - near..];
    let before = tail.partition_point(|&s| chunks.compare(s, pivot) == Ordering::Less);
    if before > 0 {
        return near - before;
    }
    let rest = &slots[..slots.len() - near];
    let more = rest.iter().rev().take_while(|&&s| chunks.compare(s, pivot) != Ordering::Less);
    near + more.count()
}

fn leading_through(slots: &[Slot], pivot: Slot, chunks: &Chunks) -> usize {
    slots.iter().take_while(|&&s| chunks.compare(s, pivot) != Ordering::Greater).count()
}
