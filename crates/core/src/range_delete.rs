//! Sets of range deletes, and what they hide.
//!
//! A range delete at SeqNo `d` hides every message with a smaller SeqNo whose key is in its range
//! (rule 14); a reader at snapshot `s` honours those with `d <= s`. Ranges overlap freely, so a set
//! is cut into fragments, disjoint and sorted, each with the SeqNos that cover it:
//!
//! ```text
//!   deletes     [b .......... m) 5
//!                     [f ............. s) 9
//!   points      b     f       m        s
//!   fragments   [5]   [9 5]   [9]      []         before b: none
//! ```
//!
//! A lookup is then one binary search among the points (or, for a merge, a step of a
//! [`RangeDeleteCursor`]) and a search in a short descending list. A reader of several sets
//! searches each of them: merging them into one set would sort all deletes for a reader of a few
//! keys. Only the newest 16 SeqNos of a fragment are listed, so that thousands of deletes of a
//! growing range (each day everything before a date) take memory in proportion to their number; for
//! a snapshot older than all 16, the deletes themselves are searched. A set is immutable, cheap to
//! clone and readable by any thread.

mod cursor;

use std::collections::BTreeSet;

use crate::sync::Arc;
use crate::{RangeDelete, SeqNo};

pub use cursor::RangeDeleteCursor;

/// An immutable set of range deletes. Empty and inverted ranges hide nothing and are omitted.
#[derive(Clone, Default)]
pub struct RangeDeletes(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The deletes, by `lo`, then newest first; without duplicates.
    deletes: Vec<RangeDelete>,
    /// Where fragments begin, ascending; each ends where the next begins, the last at the end of
    /// the tree.
    points: Vec<Box<[u8]>>,
    /// Fragment `i` has the SeqNos from `starts[i]` up to `starts[i + 1]`.
    starts: Vec<usize>,
    /// SeqNos of the fragments, descending within each; at most [`LISTED_MAX`] of one.
    seqs: Vec<SeqNo>,
    /// Indexes of `deletes`, newest first; empty if every fragment lists all its SeqNos.
    by_age: Vec<u32>,
}

/// SeqNos listed for one fragment.
const LISTED_MAX: usize = 16;

impl RangeDeletes {
    /// The empty set.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// The set of `deletes`, in any order.
    #[must_use]
    pub fn new(deletes: impl IntoIterator<Item = RangeDelete>) -> Self {
        let mut deletes: Vec<RangeDelete> = deletes
            .into_iter()
            .filter(|delete| delete.hi.as_ref().is_none_or(|hi| delete.lo < *hi))
            .collect();
        if deletes.is_empty() {
            return Self::empty();
        }
        deletes.sort_by(|a, b| (&a.lo, b.seq, &a.hi).cmp(&(&b.lo, a.seq, &b.hi)));
        deletes.dedup();
        Self(Some(Arc::new(Inner::fragment(deletes))))
    }

    /// Number of deletes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Whether the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The deletes, by their first key.
    pub fn iter(&self) -> std::slice::Iter<'_, RangeDelete> {
        self.0.as_ref().map_or(&[][..], |inner| &inner.deletes).iter()
    }

    /// The newest delete that covers `key` and is visible at `snapshot`; 0 if there is none.
    #[must_use]
    pub fn newest_covering(&self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let Some(inner) = &self.0 else { return SeqNo(0) };
        inner.newest(inner.fragment_of(key), snapshot)
    }

    /// Whether a message of `key` at `seq` is hidden from a reader at `snapshot`.
    #[must_use]
    pub fn hides(&self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
        seq < self.newest_covering(key, snapshot)
    }

    /// The SeqNo below which everything in `[lo, hi)` is hidden, if deletes visible at `snapshot`
    /// cover all of it. `None` for an empty range.
    #[must_use]
    pub fn covers_wholly(&self, lo: &[u8], hi: Option<&[u8]>, snapshot: SeqNo) -> Option<SeqNo> {
        let inner = self.0.as_ref()?;
        if hi.is_some_and(|hi| hi <= lo) {
            return None;
        }
        let mut least = SeqNo::MAX;
        let first = inner.fragment_of(lo)?;
        for fragment in first..inner.points.len() {
            if fragment > first && hi.is_some_and(|hi| hi <= &*inner.points[fragment]) {
                break;
            }
            least = least.min(inner.newest(Some(fragment), snapshot));
        }
        (least > SeqNo(0)).then_some(least)
    }

    /// Whether a delete visible at `snapshot` covers a part of `[lo, hi)`. REQUIRES: the range is
    /// not empty.
    #[must_use]
    pub fn touches(&self, lo: &[u8], hi: Option<&[u8]>, snapshot: SeqNo) -> bool {
        let Some(inner) = &self.0 else { return false };
        let first = inner.fragment_of(lo);
        let mut rest = first.map_or(0, |first| first + 1)..inner.points.len();
        inner.newest(first, snapshot) > SeqNo(0)
            || rest
                .by_ref()
                .take_while(|&i| hi.is_none_or(|hi| *inner.points[i] < *hi))
                .any(|i| inner.newest(Some(i), snapshot) > SeqNo(0))
    }

    /// The end of the hidden keys from `key` on: if messages of `key` at `seq` are hidden from a
    /// reader at `snapshot`, the first following key at which they are not; the inner `None` means
    /// the end of the tree.
    #[must_use]
    pub fn hidden_until(&self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> Option<Option<&[u8]>> {
        let inner = self.0.as_ref()?;
        let first = inner.fragment_of(key)?;
        let shown = |&i: &usize| inner.newest(Some(i), snapshot) <= seq;
        let end = (first..inner.points.len()).find(shown);
        (end != Some(first)).then(|| end.map(|end| &*inner.points[end]))
    }

    /// The beginning of the hidden keys below `hi` (`None`: the end of the tree): if messages at
    /// `seq` with keys just below `hi` are hidden from a reader at `snapshot`, returns the first
    /// key of the hidden keys that reach up to `hi`.
    #[must_use]
    pub fn hidden_from(&self, hi: Option<&[u8]>, seq: SeqNo, snapshot: SeqNo) -> Option<&[u8]> {
        let inner = self.0.as_ref()?;
        let below = |hi: &[u8]| inner.points.partition_point(|point| **point < *hi);
        let end = hi.map_or(inner.points.len(), below);
        let hidden = |&i: &usize| inner.newest(Some(i), snapshot) > seq;
        let first = (0..end).rev().take_while(hidden).last()?;
        Some(&inner.points[first])
    }

    /// The deletes, clipped to `[lo, hi)`.
    #[must_use]
    pub fn clip(&self, lo: &[u8], hi: Option<&[u8]>) -> Self {
        let inside =
            |delete: &RangeDelete| lo <= &*delete.lo && upper_not_above(delete.hi.as_deref(), hi);
        if self.iter().all(inside) {
            return self.clone();
        }
        Self::new(self.iter().map(|delete| {
            let hi =
                if upper_not_above(delete.hi.as_deref(), hi) { delete.hi.as_deref() } else { hi };
            RangeDelete {
                lo: (&*delete.lo).max(lo).into(),
                hi: hi.map(Into::into),
                seq: delete.seq,
            }
        }))
    }

    /// The deletes of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        Self::new(self.iter().chain(other.iter()).cloned())
    }
}

/// Whether upper bound `a` is not above upper bound `b`; `None` is the end of the tree.
fn upper_not_above(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a <= b,
    }
}

impl Inner {
    /// Sweeps over the sorted deletes and records, from each bound to the next, which of them are
    /// open.
    fn fragment(deletes: Vec<RangeDelete>) -> Self {
        let mut points: Vec<Box<[u8]>> = deletes
            .iter()
            .flat_map(|delete| std::iter::once(&delete.lo).chain(&delete.hi).cloned())
            .collect();
        points.sort();
        points.dedup();
        let mut ends: Vec<(&[u8], SeqNo, usize)> = deletes
            .iter()
            .enumerate()
            .filter_map(|(i, delete)| Some((delete.hi.as_deref()?, delete.seq, i)))
            .collect();
        ends.sort();
        let mut ends = ends.into_iter().peekable();
        let mut begins = deletes.iter().enumerate().peekable();
        let mut open = BTreeSet::new();
        let (mut starts, mut seqs, mut cut_short) = (vec![0], Vec::new(), false);
        for point in &points {
            while let Some((_, seq, i)) = ends.next_if(|(hi, ..)| *hi == &**point) {
                open.remove(&(seq, i));
            }
            while let Some((i, delete)) = begins.next_if(|(_, delete)| delete.lo == *point) {
                open.insert((delete.seq, i));
            }
            cut_short |= open.len() > LISTED_MAX;
            seqs.extend(open.iter().rev().take(LISTED_MAX).map(|&(seq, _)| seq));
            starts.push(seqs.len());
        }
        let mut by_age: Vec<u32> = Vec::new();
        if cut_short {
            by_age.extend(0..deletes.len() as u32);
            by_age.sort_by_key(|&i| std::cmp::Reverse(deletes[i as usize].seq));
        }
        Self { deletes, points, starts, seqs, by_age }
    }

    /// The fragment that holds `key`; `None` before the first.
    fn fragment_of(&self, key: &[u8]) -> Option<usize> {
        self.points.partition_point(|point| **point <= *key).checked_sub(1)
    }

    /// The newest delete visible at `snapshot` that covers the keys of `fragment`; 0 if there is
    /// none.
    #[inline]
    fn newest(&self, fragment: Option<usize>, snapshot: SeqNo) -> SeqNo {
        let Some(fragment) = fragment else { return SeqNo(0) };
        let seqs = &self.seqs[self.starts[fragment]..self.starts[fragment + 1]];
        // Nearly always no delete covers the fragment, or the newest one is visible.
        match seqs.first() {
            None => SeqNo(0),
            Some(&first) if first <= snapshot => first,
            Some(_) => self.newest_of_many(fragment, seqs, snapshot),
        }
    }

    #[inline(never)]
    fn newest_of_many(&self, fragment: usize, seqs: &[SeqNo], snapshot: SeqNo) -> SeqNo {
        let at = seqs.partition_point(|&seq| seq > snapshot);
        if let Some(&seq) = seqs.get(at) {
            return seq;
        }
        if seqs.len() < LISTED_MAX {
            return SeqNo(0);
        }
        let covering = self
            .by_age
            .iter()
            .map(|&i| &self.deletes[i as usize])
            .find(|delete| delete.seq <= snapshot && delete.covers(&self.points[fragment]));
        covering.map_or(SeqNo(0), |delete| delete.seq)
    }
}

impl std::fmt::Debug for RangeDeletes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<RangeDelete> for RangeDeletes {
    fn from_iter<I: IntoIterator<Item = RangeDelete>>(deletes: I) -> Self {
        Self::new(deletes)
    }
}

#[cfg(test)]
mod tests;
