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
//! [`RangeDeleteCursor`]) and a search in a short descending list. A reader of several sets asks
//! each of them: merging them into one set would sort all of them for a reader of a few keys. Only
//! the newest 16 SeqNos of a fragment are listed, so that thousands of deletes of a growing range
//! (each day everything before a date) take memory in proportion to their number; a snapshot older
//! than all 16 searches the deletes themselves. A set is immutable, cheap to clone and readable by
//! any thread.

use std::collections::BTreeSet;

use crate::sync::Arc;
use crate::{RangeDelete, SeqNo};

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

    /// Whether a delete visible at `snapshot` covers a part of `[lo, hi)`, which is not empty.
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
    /// `seq` of the keys just below `hi` are hidden from a reader at `snapshot`, the first key from
    /// which on they are.
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
        // Nearly always the fragment has none, or its newest is visible.
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

/// Walks sets along with a merge: ascending or descending keys cost one comparison per set and an
/// occasional step. Keys in any other order are answered too, in as many steps as fragments lie
/// between.
#[derive(Clone, Debug, Default)]
pub struct RangeDeleteCursor {
    positions: Vec<SetPosition>,
}

/// A position in one set that is not empty.
#[derive(Clone, Debug)]
struct SetPosition {
    set: RangeDeletes,
    /// Number of fragments that begin at or before the last key; `None` before the first lookup.
    passed: Option<usize>,
}

impl RangeDeleteCursor {
    /// A cursor over the deletes of all `sets`.
    #[must_use]
    pub fn new(sets: impl IntoIterator<Item = RangeDeletes>) -> Self {
        let sets = sets.into_iter().filter(|set| !set.is_empty());
        Self { positions: sets.map(|set| SetPosition { set, passed: None }).collect() }
    }

    /// Whether no set has a delete, so that lookups are unnecessary.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Forgets the position: the next key may be far from the last one.
    pub fn leave(&mut self) {
        for position in &mut self.positions {
            position.passed = None;
        }
    }

    /// The newest delete that covers `key` and is visible at `snapshot`; 0 if there is none.
    #[inline]
    pub fn newest_covering(&mut self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let newest =
            self.positions.iter_mut().map(|position| position.newest_covering(key, snapshot));
        newest.max().unwrap_or(SeqNo(0))
    }

    /// Whether a message of `key` at `seq` is hidden from a reader at `snapshot`.
    #[inline]
    pub fn hides(&mut self, key: &[u8], seq: SeqNo, snapshot: SeqNo) -> bool {
        seq < self.newest_covering(key, snapshot)
    }
}

impl SetPosition {
    #[inline]
    fn newest_covering(&mut self, key: &[u8], snapshot: SeqNo) -> SeqNo {
        let Some(inner) = &self.set.0 else { return SeqNo(0) };
        let mut passed = match self.passed {
            Some(passed) => passed,
            // A merge may begin anywhere, so its first fragment is found by a search.
            None => inner.fragment_of(key).map_or(0, |fragment| fragment + 1),
        };
        while inner.points.get(passed).is_some_and(|point| **point <= *key) {
            passed += 1;
        }
        while passed > 0 && *inner.points[passed - 1] > *key {
            passed -= 1;
        }
        self.passed = Some(passed);
        inner.newest(passed.checked_sub(1), snapshot)
    }
}

/// A range delete hides what is older than itself, and nothing else (rule 14).
#[cfg(test)]
mod tests {
    use super::*;
    use crate::prng::Prng;

    fn delete(lo: &str, hi: Option<&str>, seq: u64) -> RangeDelete {
        RangeDelete {
            lo: lo.as_bytes().into(),
            hi: hi.map(|hi| hi.as_bytes().into()),
            seq: SeqNo(seq),
        }
    }

    fn random_set(prng: &mut Prng) -> Vec<RangeDelete> {
        let count = if prng.chance(1, 8) { 40 } else { prng.below(9) };
        (0..count)
            .map(|_| {
                let mut key = || vec![b'a' + prng.below(9) as u8];
                let (lo, hi) = (key(), key());
                let lo = if prng.chance(1, 6) { Vec::new() } else { lo };
                let hi = prng.chance(5, 6).then(|| hi.into());
                RangeDelete { lo: lo.into(), hi, seq: SeqNo(prng.range(1..61)) }
            })
            .collect()
    }

    fn model(deletes: &[RangeDelete], key: &[u8], snapshot: SeqNo) -> SeqNo {
        let visible = deletes.iter().filter(|delete| delete.covers(key) && delete.seq <= snapshot);
        visible.map(|delete| delete.seq).max().unwrap_or(SeqNo(0))
    }

    #[test]
    fn the_example_of_the_module_head() {
        let set = RangeDeletes::new([delete("f", Some("s"), 9), delete("b", Some("m"), 5)]);
        let newest = |key: &str, at| set.newest_covering(key.as_bytes(), SeqNo(at)).get();
        assert_eq!([newest("a", 9), newest("b", 9), newest("ezz", 9)], [0, 5, 5]);
        assert_eq!([newest("f", 9), newest("f", 8), newest("f", 4)], [9, 5, 0]);
        assert_eq!([newest("m", 9), newest("m", 8), newest("s", 9)], [9, 0, 0]);
        assert!(set.hides(b"f", SeqNo(8), SeqNo(9)) && !set.hides(b"f", SeqNo(9), SeqNo(9)));
    }

    #[test]
    fn all_keys_can_be_covered_and_empty_ranges_hide_nothing() {
        let set = RangeDeletes::new([
            delete("", None, 3),
            delete("x", Some("x"), 9),
            delete("z", Some("a"), 9),
        ]);
        assert_eq!(set.len(), 1);
        for key in ["", "a", "x", "y", "\u{7f}"] {
            assert_eq!(set.newest_covering(key.as_bytes(), SeqNo::MAX), SeqNo(3), "{key}");
        }
        assert_eq!(set.covers_wholly(b"", None, SeqNo::MAX), Some(SeqNo(3)));
        assert_eq!(set.covers_wholly(b"", None, SeqNo(2)), None);
        assert_eq!(set.covers_wholly(b"b", Some(b"b"), SeqNo::MAX), None);
    }

    #[test]
    fn many_deletes_of_a_growing_range_take_little_memory_and_keep_their_order() {
        let deletes: Vec<RangeDelete> = (1..=3_000u64)
            .map(|seq| RangeDelete {
                lo: Box::default(),
                hi: Some((seq as u32).to_be_bytes().into()),
                seq: SeqNo(seq),
            })
            .collect();
        let set = RangeDeletes::new(deletes.clone());
        assert!(set.0.as_ref().unwrap().seqs.len() <= LISTED_MAX * (set.len() + 1));
        for key in [0u32, 1, 1_500, 2_990, 2_999, 3_000] {
            for snapshot in [0, 1, 15, 16, 1_499, 1_501, 2_984, 2_985, 3_000].map(SeqNo) {
                let key = key.to_be_bytes();
                assert_eq!(set.newest_covering(&key, snapshot), model(&deletes, &key, snapshot));
            }
        }
    }

    /// The bounds reported around each key agree with the answers for the keys themselves.
    fn hidden_runs(set: &RangeDeletes, keys: &[Vec<u8>], snapshot: SeqNo, seq: SeqNo) {
        let hidden = |key: &[u8]| set.hides(key, seq, snapshot);
        for key in keys {
            match set.hidden_until(key, seq, snapshot) {
                None => assert!(!hidden(key)),
                Some(end) => {
                    let inside = |k: &&Vec<u8>| *k >= key && end.is_none_or(|end| ***k < *end);
                    assert!(keys.iter().filter(inside).all(|key| hidden(key)));
                    assert!(hidden(key) && end.is_none_or(|end| !hidden(end)));
                }
            }
            let last = keys.iter().rfind(|k| *k < key);
            match set.hidden_from(Some(key), seq, snapshot) {
                None => assert!(last.is_none_or(|last| !hidden(last))),
                Some(from) => {
                    assert!(hidden(from) && *from < **key);
                    let inside = |k: &&Vec<u8>| ***k >= *from && *k < key;
                    assert!(keys.iter().filter(inside).all(|k| hidden(k)));
                }
            }
        }
    }

    #[test]
    fn sets_agree_with_a_list_searched_naively() {
        let mut prng = Prng::new(61);
        let keys: Vec<Vec<u8>> = std::iter::once(vec![])
            .chain((b'a'..=b'k').flat_map(|b| [vec![b], vec![b, 1]]))
            .collect();
        for round in 0..400 {
            let (a, b) = (random_set(&mut prng), random_set(&mut prng));
            let both: Vec<RangeDelete> = a.iter().chain(&b).cloned().collect();
            let (a, b) = (RangeDeletes::new(a), RangeDeletes::new(b));
            let set = a.union(&b);
            let mut forward = RangeDeleteCursor::new([a.clone(), b.clone()]);
            let mut backward = RangeDeleteCursor::new([set.clone()]);
            for snapshot in [0, 3, 20, 40, 61].map(SeqNo) {
                for key in &keys {
                    let expected = model(&both, key, snapshot);
                    assert_eq!(set.newest_covering(key, snapshot), expected, "round {round}");
                    assert_eq!(forward.newest_covering(key, snapshot), expected, "round {round}");
                    for seq in [expected.get().saturating_sub(1), expected.get()].map(SeqNo) {
                        let hidden = seq < expected;
                        assert_eq!(set.hides(key, seq, snapshot), hidden, "round {round}");
                        assert_eq!(forward.hides(key, seq, snapshot), hidden, "round {round}");
                    }
                }
                for key in keys.iter().rev() {
                    let expected = model(&both, key, snapshot);
                    assert_eq!(backward.newest_covering(key, snapshot), expected, "round {round}");
                }
                let (lo, hi) = (&keys[1 + round % 9], &keys[1 + round % 9 + round % 11]);
                let clipped = set.clip(lo, Some(hi));
                let mut least = SeqNo::MAX;
                for key in &keys {
                    let inside = lo <= key && key < hi;
                    let expected = if inside { model(&both, key, snapshot) } else { SeqNo(0) };
                    assert_eq!(clipped.newest_covering(key, snapshot), expected);
                    if inside {
                        least = least.min(expected);
                    }
                }
                if lo < hi {
                    let inside = clipped.iter().any(|delete| delete.seq <= snapshot);
                    assert_eq!(set.touches(lo, Some(hi), snapshot), inside, "round {round}");
                }
                hidden_runs(&set, &keys, snapshot, SeqNo(prng.below(61)));
                let wholly = (lo < hi && least > SeqNo(0)).then_some(least);
                assert_eq!(set.covers_wholly(lo, Some(hi), snapshot), wholly, "round {round}");
            }
        }
    }
}
