//! [`RangeDeletes`]: sets of range deletes, which say which messages are hidden.
//!
//! A range delete with SeqNo `d` hides every message with a smaller SeqNo whose key is in its range
//! (rule 14). A reader at snapshot `s` sees only range deletes with `d <= s`. Ranges may overlap,
//! so a set is cut into disjoint, sorted fragments. Each fragment has the SeqNos of the deletes
//! that cover it:
//!
//! ```text
//!   deletes     [b .......... m) 5
//!                     [f ............. s) 9
//!   points      b     f       m        s
//!   fragments   [5]   [9 5]   [9]      []         before b: none
//! ```
//!
//! A lookup is a binary search among the points, the start keys of the fragments (or, in a merge, a
//! step of a [`RangeDeleteCursor`]), and then a search in a short descending list. A reader of
//! several sets searches each of them, because to merge the sets it would have to sort all deletes,
//! perhaps for a few keys.
//!
//! A fragment lists only its newest 16 SeqNos. So thousands of deletes of a growing range (each day
//! everything before a date) take memory in proportion to their number. For a snapshot older than
//! all 16, a lookup searches the deletes themselves. A set is immutable and cheap to clone, and any
//! thread may read it.

mod cursor;

use std::collections::BTreeSet;

use crate::sync::Arc;
use crate::{RangeDelete, SeqNo};

pub use cursor::RangeDeleteCursor;

/// An immutable set of range deletes. The set omits empty and inverted ranges, which hide nothing.
#[derive(Clone, Default)]
pub struct RangeDeletes(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    /// The deletes, sorted by `lo`, then newest first; without duplicates.
    deletes: Vec<RangeDelete>,
    /// Start keys of the fragments, ascending. A fragment ends at the next start key, the last one
    /// at the end of the tree.
    points: Vec<Box<[u8]>>,
    /// Positions in `seqs`: the SeqNos of fragment `i` are `seqs[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    /// The SeqNos of all fragments, descending within a fragment; at most [`LISTED_MAX`] for one.
    seqs: Vec<SeqNo>,
    /// Positions in `deletes`, sorted from the newest delete to the oldest; empty if every fragment
    /// lists all its SeqNos.
    by_age: Vec<u32>,
}

/// Most SeqNos that a fragment lists.
const LISTED_MAX: usize = 16;

impl RangeDeletes {
    /// Returns the empty set.
    #[must_use]
    pub const fn empty() -> Self {
        Self(None)
    }

    /// Creates the set of `deletes`, which may be in any order.
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

    /// Returns the number of deletes.
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

    /// Returns the deletes, sorted by their first key.
    pub fn iter(&self) -> std::slice::Iter<'_, RangeDelete> {
        self.0.as_ref().map_or(&[][..], |inner| &inner.deletes).iter()
    }

    /// Returns the SeqNo of the newest delete that covers `key` and is visible at `snapshot`; 0 if
    /// there is none.
    #[must_use]
    pub fn newest_covering(&self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let Some(inner) = &self.0 else { return SeqNo(0) };
        inner.newest(inner.fragment_of(key), snapshot)
    }

    /// Whether a message of `key` with SeqNo `seq` is hidden from a reader at `snapshot`.
    #[must_use]
    pub fn hides(&self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
        seq < self.newest_covering(key, snapshot)
    }

    /// Returns the SeqNo below which all messages in `[lo, hi)` are hidden from a reader at
    /// `snapshot`. `None` if the visible deletes do not cover the whole range, and for an empty
    /// range.
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

    /// Returns the end of the hidden keys from `key` on, for messages with SeqNo `seq` and a reader
    /// at `snapshot`: the first key above `key` at which such messages are not hidden, or
    /// `Some(None)` for the end of the tree. `None` if they are not hidden at `key`.
    #[must_use]
    pub fn hidden_until(&self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> Option<Option<&[u8]>> {
        let inner = self.0.as_ref()?;
        let first = inner.fragment_of(key)?;
        let shown = |&i: &usize| inner.newest(Some(i), snapshot) <= seq;
        let end = (first..inner.points.len()).find(shown);
        (end != Some(first)).then(|| end.map(|end| &*inner.points[end]))
    }

    /// Returns the first key from which on all keys below `hi` are hidden, for messages with SeqNo
    /// `seq` and a reader at `snapshot`. Without `hi`, all keys up to the end of the tree are
    /// hidden from there on. `None` if such messages with keys just below `hi` are not hidden.
    #[must_use]
    pub fn hidden_from(&self, hi: Option<&[u8]>, seq: SeqNo, snapshot: SeqNo) -> Option<&[u8]> {
        let inner = self.0.as_ref()?;
        let below = |hi: &[u8]| inner.points.partition_point(|point| **point < *hi);
        let end = hi.map_or(inner.points.len(), below);
        let hidden = |&i: &usize| inner.newest(Some(i), snapshot) > seq;
        let first = (0..end).rev().take_while(hidden).last()?;
        Some(&inner.points[first])
    }

    /// Returns the set of the deletes, each clipped to `[lo, hi)`.
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

    /// Returns the set of the deletes of both sets.
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

/// Whether the upper bound `a` is at most the upper bound `b`; `None` is the end of the tree.
fn upper_not_above(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a <= b,
    }
}

impl Inner {
    /// Cuts the sorted deletes into fragments: goes through all bounds in ascending order, and
    /// records for each bound the SeqNos of the newest deletes that cover it.
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

    /// Returns the fragment that contains `key`; `None` if `key` lies before the first.
    fn fragment_of(&self, key: &[u8]) -> Option<usize> {
        self.points.partition_point(|point| **point <= *key).checked_sub(1)
    }

    /// Returns the SeqNo of the newest delete that is visible at `snapshot` and covers the keys of
    /// `fragment`; 0 if there is none.
    #[inline]
    fn newest(&self, fragment: Option<usize>, snapshot: SeqNo) -> SeqNo {
        let Some(fragment) = fragment else { return SeqNo(0) };
        let seqs = &self.seqs[self.starts[fragment]..self.starts[fragment + 1]];
        // In nearly all lookups, no delete covers the fragment, or the newest one is visible.
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
