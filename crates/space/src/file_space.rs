//! The pages of one data file: which pages are free, and for which free pages the file system has
//! reserved disk space.
//!
//! ```text
//!   page      0          40     60        100      120        160 = pages (the file's length)
//!             | in use   | free | in use  | free   | in use   |
//!   unbacked               xx                xxxx                  a write may find the disk full
//!   holes                                    xxxx                  takes no disk space
//! ```
//!
//! A free page is *backed* (the file system has reserved space for it), a *hole* (punched), or of
//! unknown state, like all pages that were free when the database was opened. `unbacked` contains
//! the holes and the unknown pages, `holes` the holes; both lie within the free ranges.

use std::ops::Range;

use crate::free::FreeMap;
use crate::ranges::RangeSet;

/// Whether the file system has reserved disk space for pages that become free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Backing {
    /// The file system has reserved space.
    Backed,
    /// It is unknown whether space is reserved.
    Unknown,
    /// Not reserved: the pages were punched.
    Hole,
}

/// The pages of one data file; see the module documentation.
#[derive(Clone, Default, Debug)]
pub(crate) struct FileSpace {
    /// Pages of the file, up to its end.
    pages: u32,
    free: FreeMap,
    unbacked: RangeSet,
    holes: RangeSet,
}

impl FileSpace {
    /// Describes a file of `pages` pages, all of them in use.
    pub(crate) fn with_pages(pages: u32) -> Self {
        Self { pages, ..Self::default() }
    }

    /// Returns the number of pages up to the file's end.
    pub(crate) fn pages(&self) -> u32 {
        self.pages
    }

    pub(crate) fn free(&self) -> &FreeMap {
        &self.free
    }

    pub(crate) fn free_pages(&self) -> u64 {
        self.free.ranges().pages()
    }

    /// Returns the number of free pages with reserved disk space.
    pub(crate) fn backed_pages(&self) -> u64 {
        self.free_pages() - self.unbacked.pages()
    }

    /// Returns the number of free pages that may take disk space.
    pub(crate) fn unpunched_pages(&self) -> u64 {
        self.free_pages() - self.holes.pages()
    }

    /// Returns the number of pages known to take no disk space.
    pub(crate) fn hole_pages(&self) -> u64 {
        self.holes.pages()
    }

    /// Returns the number of pages of a free range that may take disk space.
    pub(crate) fn unpunched_in(&self, range: &Range<u32>) -> u32 {
        range.end - range.start - self.holes.overlap(range)
    }

    /// Returns the number of pages of a free range that are not backed.
    pub(crate) fn unbacked_in(&self, range: &Range<u32>) -> u32 {
        self.unbacked.overlap(range)
    }

    /// Returns the parts of a free range that are not backed.
    pub(crate) fn unbacked_parts(&self, range: &Range<u32>) -> Vec<Range<u32>> {
        self.unbacked.parts_in(range).collect()
    }

    pub(crate) fn take(&mut self, range: &Range<u32>) {
        self.free.remove(range);
        self.unbacked.cut(range);
        self.holes.cut(range);
    }

    /// Frees a range.
    ///
    /// # Panics
    /// If a page of it is free already or lies after the end of the file: the range was released
    /// twice, or was never acquired.
    pub(crate) fn free_range(&mut self, range: Range<u32>, backing: Backing) {
        assert!(
            range.end <= self.pages,
            "pages {range:?} lie beyond the end of the file at {}",
            self.pages
        );
        self.free.insert(range.clone());
        if backing != Backing::Backed {
            self.unbacked.insert(range.clone());
        }
        if backing == Backing::Hole {
            self.holes.insert(range);
        }
    }

    /// Moves the end of the file; new pages are in use until they are freed by
    /// [`free_range`](Self::free_range).
    ///
    /// # Panics
    /// If a page that is cut off is free.
    pub(crate) fn set_pages(&mut self, pages: u32) {
        let free_end = self.free.ranges().last().map_or(0, |last| last.end);
        assert!(free_end <= pages, "cannot truncate free pages");
        self.pages = pages;
    }

    /// Returns the free range at the end of the file.
    pub(crate) fn tail(&self) -> Option<Range<u32>> {
        self.free.ranges().last().filter(|last| last.end == self.pages)
    }

    /// Returns the longest backed free range, cut to at most `pages` pages.
    pub(crate) fn backed_range(&self, pages: u32) -> Option<Range<u32>> {
        let mut best: Option<Range<u32>> = None;
        for free in self.free.ranges().iter() {
            for backed in gaps(&free, self.unbacked.parts_in(&free)) {
                let backed = backed.start..backed.end.min(backed.start.saturating_add(pages));
                if best.as_ref().is_none_or(|best| backed.len() > best.len()) {
                    best = Some(backed);
                }
            }
            if best.as_ref().is_some_and(|best| best.len() as u64 == u64::from(pages)) {
                break;
            }
        }
        best
    }

    /// Returns the last free range that may take disk space, cut to its last `pages` pages.
    pub(crate) fn last_unpunched_range(&self, pages: u32) -> Option<Range<u32>> {
        for free in self.free.ranges().iter().rev() {
            if let Some(part) = gaps(&free, self.holes.parts_in(&free)).last() {
                return Some(part.start.max(part.end.saturating_sub(pages))..part.end);
            }
        }
        None
    }
}

/// Returns the gaps of `whole` between `parts`, which ascend and lie in `whole`.
fn gaps(
    whole: &Range<u32>,
    parts: impl Iterator<Item = Range<u32>>,
) -> impl Iterator<Item = Range<u32>> {
    let mut from = whole.start;
    let end = whole.end;
    parts
        .chain(std::iter::once(end..end))
        .map(move |part| std::mem::replace(&mut from, part.end)..part.start)
        .filter(|gap| gap.start < gap.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_free_pages_are_distinguished() {
        let mut file = FileSpace::with_pages(100);
        file.free_range(0..10, Backing::Backed);
        file.free_range(10..30, Backing::Hole);
        file.free_range(30..35, Backing::Unknown);
        file.free_range(90..100, Backing::Backed);
        assert_eq!(file.free_pages(), 45);
        assert_eq!(file.backed_pages(), 20);
        assert_eq!(file.unpunched_pages(), 25);
        assert_eq!(file.unbacked_in(&(5..32)), 22);
        assert_eq!(file.tail(), Some(90..100));
        assert_eq!(file.backed_range(8), Some(0..8));
        assert_eq!(file.backed_range(50), Some(0..10));
        assert_eq!(file.last_unpunched_range(100), Some(90..100));
        assert_eq!(file.last_unpunched_range(4), Some(96..100));
        file.take(&(90..100));
        assert_eq!(file.last_unpunched_range(100), Some(30..35));
        assert_eq!(file.tail(), None);
        file.take(&(8..33));
        assert_eq!((file.backed_pages(), file.unpunched_pages(), file.hole_pages()), (8, 10, 0));
    }
}
