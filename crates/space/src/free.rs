//! Free ranges of one file, by start (to join neighbours) and by size (to find room).
//!
//! By size, the ranges are sorted into bins: bin k has the starts of the ranges of 2^k to 2^(k+1) -
//! 1 pages, in ascending order. Every range of a bin above the request's bin is large enough, so a
//! search takes O(log n) and finds a range low in the file. Only ranges of the request's own bin
//! may be too short; a bounded number of them is tried.
//!
//! ```text
//!   bin        0      1      2       3      ...
//!   pages      1     2-3    4-7    8-15
//!   starts    {12}  {7,40}  {}    {100}          a request of 5 pages searches bins 2, 3, ...
//! ```

use std::collections::BTreeSet;
use std::ops::Range;

use crate::ranges::RangeSet;

/// Number of ranges tried in a request's own bin before the next bin is used.
const OWN_BIN_TRIES: usize = 16;

/// The free ranges of one file; see the module documentation.
#[derive(Clone, Default, Debug)]
pub(crate) struct FreeMap {
    ranges: RangeSet,
    bins: [BTreeSet<u32>; 32],
}

impl FreeMap {
    /// Returns the ranges by start.
    pub(crate) fn ranges(&self) -> &RangeSet {
        &self.ranges
    }

    /// Frees a range.
    ///
    /// # Panics
    /// If a page of it is free already.
    pub(crate) fn insert(&mut self, range: Range<u32>) {
        let (whole, swallowed) = self.ranges.insert(range);
        for neighbour in swallowed.into_iter().flatten() {
            self.bins[bin_of(&neighbour)].remove(&neighbour.start);
        }
        self.bins[bin_of(&whole)].insert(whole.start);
    }

    /// Takes a free range.
    ///
    /// # Panics
    /// If a page of it is not free.
    pub(crate) fn remove(&mut self, range: &Range<u32>) {
        let (whole, rests) = self.ranges.remove(range);
        self.bins[bin_of(&whole)].remove(&whole.start);
        for rest in rests.into_iter().flatten() {
            self.bins[bin_of(&rest)].insert(rest.start);
        }
    }

    /// Returns `pages` pages from the lowest bin with a range that is long enough, low in the file.
    pub(crate) fn best_fit(&self, pages: u32) -> Option<Range<u32>> {
        let start = self
            .in_own_bin(pages, u32::MAX)
            .or_else(|| self.sufficient_bins(pages).find_map(|bin| bin.first().copied()))?;
        Some(start..start + pages)
    }

    /// Returns `pages` pages of a range in the highest bin, so that the next request can be
    /// adjacent.
    pub(crate) fn worst_fit(&self, pages: u32) -> Option<Range<u32>> {
        let sure = self.sufficient_bins(pages).rev().find_map(|bin| bin.first().copied());
        let start = sure.or_else(|| self.in_own_bin(pages, u32::MAX))?;
        Some(start..start + pages)
    }

    /// Returns a range of `pages` pages that ends at or before `limit`, as low as a quick search
    /// can find.
    pub(crate) fn below(&self, pages: u32, limit: u32) -> Option<Range<u32>> {
        let sure = self.sufficient_bins(pages).filter_map(|bin| bin.first().copied()).min();
        let own = self.in_own_bin(pages, limit);
        let start = sure.into_iter().chain(own).min()?;
        (u64::from(start) + u64::from(pages) <= u64::from(limit)).then(|| start..start + pages)
    }

    /// Returns a free range at least half as long as the longest one.
    pub(crate) fn long_range(&self) -> Option<Range<u32>> {
        let start = *self.bins.iter().rev().find_map(BTreeSet::first)?;
        self.ranges.range_of(start)
    }

    /// Returns the start of a range in the request's own bin that is large enough, and whose first
    /// `pages` pages end at or before `limit`.
    fn in_own_bin(&self, pages: u32, limit: u32) -> Option<u32> {
        if pages.is_power_of_two() {
            return None; // Then `sufficient_bins` includes this bin.
        }
        let fits = |start: u32| {
            let end = self.ranges.range_of(start).map_or(start, |range| range.end);
            end - start >= pages && u64::from(start) + u64::from(pages) <= u64::from(limit)
        };
        let bin = &self.bins[pages.ilog2() as usize];
        bin.iter().copied().take(OWN_BIN_TRIES).find(|&start| fits(start))
    }

    /// Returns the bins in which every range holds `pages`, small ones first.
    fn sufficient_bins(&self, pages: u32) -> impl DoubleEndedIterator<Item = &BTreeSet<u32>> {
        let first = (u64::from(pages.max(1))).next_power_of_two().ilog2() as usize;
        self.bins.iter().skip(first)
    }
}

fn bin_of(range: &Range<u32>) -> usize {
    (range.end - range.start).ilog2() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(ranges: &[Range<u32>]) -> FreeMap {
        let mut map = FreeMap::default();
        for range in ranges {
            map.insert(range.clone());
        }
        map
    }

    #[test]
    fn best_fit_takes_the_smallest_gap_and_worst_fit_the_largest_range() {
        let map = map(&[0..3, 10..16, 20..27, 100..200, 300..500]);
        assert_eq!(map.best_fit(3), Some(0..3));
        assert_eq!(map.best_fit(6), Some(10..16));
        assert_eq!(map.best_fit(7), Some(20..27));
        assert_eq!(map.best_fit(8), Some(100..108));
        assert_eq!(map.best_fit(150), Some(300..450));
        assert_eq!(map.best_fit(201), None);
        assert_eq!(map.worst_fit(1), Some(300..301));
        assert_eq!(map.worst_fit(7), Some(300..307));
        assert_eq!(map.long_range(), Some(300..500));
    }

    #[test]
    fn below_stays_below_the_limit() {
        let map = map(&[5..9, 100..200, 300..500]);
        assert_eq!(map.below(4, 50), Some(5..9));
        assert_eq!(map.below(4, 8), None);
        assert_eq!(map.below(5, 105), Some(100..105));
        assert_eq!(map.below(150, 450), Some(300..450));
        assert_eq!(map.below(150, 449), None);
    }

    #[test]
    fn bins_follow_joins_and_cuts() {
        let mut map = map(&[0..4, 6..9]);
        map.insert(4..6);
        assert_eq!(map.best_fit(9), Some(0..9));
        map.remove(&(3..5));
        assert_eq!(map.best_fit(5), None);
        assert_eq!(map.best_fit(4), Some(5..9));
        assert_eq!(map.ranges().pages(), 7);
        assert_eq!(map.long_range(), Some(5..9));
    }
}
