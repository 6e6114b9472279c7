//! A set of page numbers, stored as disjoint ranges that do not touch: adjacent ranges are joined.
//!
//! ```text
//!   insert 4..6:   0..4     6..9    ->   0..9
//!   remove 2..7:   0..9             ->   0..2  7..9
//! ```
//!
//! Every call costs O(log n) per range that it touches.

use std::collections::BTreeMap;
use std::ops::Range;

/// See the module documentation.
#[derive(Clone, Default, Debug)]
pub(crate) struct RangeSet {
    /// End of each range by its start.
    ends: BTreeMap<u32, u32>,
    pages: u64,
}

impl RangeSet {
    /// Returns the number of pages in the set.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the ranges in ascending order.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u32>> + '_ {
        self.ends.iter().map(|(&start, &end)| start..end)
    }

    /// Returns the range that holds `page`.
    pub(crate) fn range_of(&self, page: u32) -> Option<Range<u32>> {
        let (&start, &end) = self.ends.range(..=page).next_back()?;
        (page < end).then_some(start..end)
    }

    pub(crate) fn last(&self) -> Option<Range<u32>> {
        self.ends.last_key_value().map(|(&start, &end)| start..end)
    }

    /// Returns the number of pages of `range` that are in the set.
    pub(crate) fn overlap(&self, range: &Range<u32>) -> u32 {
        self.parts_in(range).map(|part| part.end - part.start).sum()
    }

    /// Returns the parts of `range` that are in the set.
    pub(crate) fn parts_in(&self, range: &Range<u32>) -> impl Iterator<Item = Range<u32>> + '_ {
        let (lo, hi) = (range.start, range.end);
        let before = self.ends.range(..lo).next_back();
        before
            .into_iter()
            .chain(self.ends.range(lo..hi))
            .map(move |(&start, &end)| start.max(lo)..end.min(hi))
            .filter(|part| part.start < part.end)
    }

    /// Adds a range, of which no page is in the set. Returns the range that it became part of, and
    /// the neighbours that it was joined with.
    ///
    /// # Panics
    /// If the range is empty or one of its pages is in the set.
    pub(crate) fn insert(&mut self, range: Range<u32>) -> (Range<u32>, [Option<Range<u32>>; 2]) {
        assert!(range.start < range.end, "cannot add an empty range");
        assert_eq!(self.overlap(&range), 0, "pages {range:?} are in the set already");
        self.pages += u64::from(range.end - range.start);
        let mut whole = range.clone();
        let before = self.ends.range(..range.start).next_back();
        let before = before.map(|(&start, &end)| start..end).filter(|b| b.end == range.start);
        let after = self.ends.get(&range.end).map(|&end| range.end..end);
        if let Some(before) = &before {
            whole.start = before.start;
        }
        if let Some(after) = &after {
            whole.end = after.end;
            self.ends.remove(&after.start);
        }
        self.ends.insert(whole.start, whole.end);
        (whole, [before, after])
    }

    /// Removes the pages of `range` from the set. Returns how many pages were in it.
    pub(crate) fn cut(&mut self, range: &Range<u32>) -> u32 {
        let parts: Vec<Range<u32>> = self.parts_in(range).collect();
        for part in &parts {
            self.remove(part);
        }
        parts.iter().map(|part| part.end - part.start).sum()
    }

    /// Removes a range, whose pages are all in the set. Returns the range that contained it, and
    /// the parts of that range that remain on either side.
    ///
    /// # Panics
    /// If a page of it is not in the set.
    pub(crate) fn remove(&mut self, range: &Range<u32>) -> (Range<u32>, [Option<Range<u32>>; 2]) {
        let whole = self.range_of(range.start).filter(|whole| range.end <= whole.end);
        let Some(whole) = whole else { panic!("pages {range:?} are not in the set") };
        self.pages -= u64::from(range.end - range.start);
        let before = (whole.start < range.start).then_some(whole.start..range.start);
        let after = (range.end < whole.end).then_some(range.end..whole.end);
        self.ends.remove(&whole.start);
        for rest in [&before, &after].into_iter().flatten() {
            self.ends.insert(rest.start, rest.end);
        }
        (whole, [before, after])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[Range<u32>]) -> RangeSet {
        let mut set = RangeSet::default();
        for range in ranges {
            set.insert(range.clone());
        }
        set
    }

    fn listed(set: &RangeSet) -> Vec<Range<u32>> {
        set.iter().collect()
    }

    #[test]
    fn neighbours_become_one_range() {
        let mut set = set(&[0..4, 6..9, 20..30]);
        let (whole, swallowed) = set.insert(4..6);
        assert_eq!((whole, swallowed), (0..9, [Some(0..4), Some(6..9)]));
        assert_eq!(listed(&set), [0..9, 20..30]);
        assert_eq!(set.pages(), 19);
        assert_eq!(set.insert(30..31), (20..31, [Some(20..30), None]));
        assert_eq!(set.insert(15..20), (15..31, [None, Some(20..31)]));
    }

    #[test]
    fn removing_keeps_both_sides() {
        let mut set = set(&[0..5, 5..9]);
        assert_eq!(set.remove(&(2..7)), (0..9, [Some(0..2), Some(7..9)]));
        assert_eq!(set.remove(&(0..2)), (0..2, [None, None]));
        assert_eq!(set.last(), Some(7..9));
        assert_eq!(set.len(), 1);
        assert_eq!(set.pages(), 2);
    }

    #[test]
    fn cuts_and_overlaps_span_ranges() {
        let mut set = set(&[0..4, 6..9, 20..30]);
        assert_eq!(set.overlap(&(2..25)), 2 + 3 + 5);
        assert_eq!(set.overlap(&(9..20)), 0);
        assert_eq!(set.cut(&(2..25)), 10);
        assert_eq!(listed(&set), [0..2, 25..30]);
        assert_eq!(set.range_of(26), Some(25..30));
        assert_eq!(set.range_of(30), None);
        assert_eq!(set.range_of(2), None);
    }

    #[test]
    #[should_panic(expected = "in the set already")]
    fn a_page_cannot_be_added_twice() {
        set(&[0..4, 8..9]).insert(3..5);
    }

    #[test]
    #[should_panic(expected = "not in the set")]
    fn a_page_that_is_not_there_cannot_be_removed() {
        set(&[0..4, 8..9]).remove(&(3..5));
    }
}
