//! The free space of all data files, and the search for a range that serves a request.

use std::ops::Range;

use crate::file_space::{Backing, FileSpace};
use crate::files::name_of;
use crate::retained::Retained;
use crate::{Class, Extent};
use frondb_core::{Error, Result};

/// The free space of every data file, under the lock of [`Space`](crate::Space).
#[derive(Default)]
pub(crate) struct SpaceState {
    /// Indexed by file number.
    pub(crate) files: Vec<FileSpace>,
    /// Counts changes of file lengths, so that a thread that waited to grow a file sees that
    /// another thread has grown or truncated one.
    pub(crate) growths: u64,
    pub(crate) grown_pages: u64,
    pub(crate) punched_pages: u64,
    pub(crate) truncated_pages: u64,
    /// The extents that a backup retains; `None` without a backup.
    pub(crate) retained: Option<Retained>,
    /// Whether a retention was given up, and its extents may still be free.
    pub(crate) gave_up: bool,
    /// Number of retentions so far.
    pub(crate) retentions: u64,
}

/// A range taken from the free space, and the parts of it without reserved disk space.
pub(crate) struct Taken {
    pub(crate) extent: Extent,
    pub(crate) unbacked: Vec<Range<u32>>,
}

impl SpaceState {
    /// Frees an extent.
    ///
    /// # Panics
    /// If there is no such file, or a part of the extent is free already.
    pub(crate) fn free(&mut self, extent: Extent) {
        let Some(space) = self.files.get_mut(extent.file as usize) else {
            panic!("released an extent of data file {}, which does not exist", extent.file);
        };
        space.free_range(extent.page..extent.end(), Backing::Backed);
    }

    /// Returns the number of free pages with reserved disk space.
    pub(crate) fn backed_pages(&self) -> u64 {
        self.files.iter().map(FileSpace::backed_pages).sum()
    }

    /// Takes a range for a request if a free range of suitable length exists and `leave` backed
    /// pages remain.
    pub(crate) fn take(&mut self, pages: u32, class: Class, leave: u64) -> Option<Taken> {
        let (number, range) = self.find(pages, class)?;
        let backed = self.backed_pages();
        let space = &mut self.files[number];
        let uses = u64::from(range.end - range.start - space.unbacked_in(&range));
        (backed >= leave + uses).then(|| take(space, number, &range))
    }

    /// Returns a free range of `pages` pages. If none is that long, returns a shorter one that is
    /// not below the minimum of the class.
    fn find(&self, pages: u32, class: Class) -> Option<(usize, Range<u32>)> {
        let whole = self.files.iter().enumerate().find_map(|(number, file)| {
            let free = file.free();
            let range =
                if class.is_short_lived() { free.worst_fit(pages) } else { free.best_fit(pages) };
            Some((number, range?))
        });
        if whole.is_some() {
            return whole;
        }
        let part_min = class.part_pages_min().min(pages);
        self.files.iter().enumerate().find_map(|(number, file)| {
            let large = file.free().long_range()?;
            let range = large.start..large.end.min(large.start.saturating_add(pages));
            (range.end - range.start >= part_min).then_some((number, range))
        })
    }

    /// Takes one range of at most `pages` backed pages on a full disk, however short it is. `leave`
    /// backed pages remain.
    pub(crate) fn take_backed(&mut self, pages: u32, leave: u64) -> Option<Extent> {
        let spare = self.backed_pages().saturating_sub(leave);
        let pages = pages.min(u32::try_from(spare).unwrap_or(u32::MAX));
        if pages == 0 {
            return None;
        }
        let ranges = self.files.iter().enumerate();
        let ranges = ranges.filter_map(|(n, file)| Some((n, file.backed_range(pages)?)));
        let (number, range) = ranges.max_by_key(|(_, range)| range.len())?;
        self.files[number].take(&range);
        Some(extent(number, &range))
    }
}

/// Takes a range and records which parts of it need reserved disk space.
pub(crate) fn take(space: &mut FileSpace, number: usize, range: &Range<u32>) -> Taken {
    let unbacked = space.unbacked_parts(range);
    space.take(range);
    Taken { extent: extent(number, range), unbacked }
}

pub(crate) fn extent(file: usize, range: &Range<u32>) -> Extent {
    Extent { file: file as u32, page: range.start, pages: range.end - range.start }
}

/// Frees all pages outside of the used extents, in unknown state. `used` ascends. Fails with
/// `Corruption` if two extents overlap or one lies outside its file.
pub(crate) fn free_unused_pages(spaces: &mut [FileSpace], used: &[Extent]) -> Result<()> {
    for pair in used.windows(2) {
        if pair[0].file == pair[1].file && pair[1].page < pair[0].end() {
            let message = format!("extents {} and {} overlap", pair[0], pair[1]);
            let (name, offset) = (name_of(pair[1].file), pair[1].offset());
            return Err(Error::corruption(name, offset, "extent", message));
        }
    }
    for extent in used {
        let pages = spaces.get(extent.file as usize).map_or(0, FileSpace::pages);
        let end = u64::from(extent.page) + u64::from(extent.pages);
        if extent.pages == 0 || end > u64::from(pages) {
            let lost = if pages == 0 { ": the file was removed or emptied" } else { "" };
            let message = format!("extent {extent} lies outside the file of {pages} pages{lost}");
            let name = name_of(extent.file);
            return Err(Error::corruption(name, extent.offset(), "extent", message));
        }
    }
    for (number, space) in spaces.iter_mut().enumerate() {
        let mut from = 0;
        for extent in used.iter().filter(|extent| extent.file as usize == number) {
            if from < extent.page {
                space.free_range(from..extent.page, Backing::Unknown);
            }
            from = extent.end();
        }
        if from < space.pages() {
            space.free_range(from..space.pages(), Backing::Unknown);
        }
    }
    Ok(())
}

impl SpaceState {
    /// Frees an extent, unless a backup still reads it.
    pub(crate) fn release(&mut self, extent: Extent) {
        if let Some(retained) = &mut self.retained
            && retained.wanted.as_ref().is_none_or(|wanted| wanted.contains(&extent))
        {
            assert!(retained.released.insert(extent), "{extent} is released twice");
        } else {
            self.free(extent);
        }
    }

    /// Gives up the retention on a full disk if that frees anything. Returns whether it did.
    pub(crate) fn give_up_retention(&mut self) -> bool {
        let Some(retained) = self.retained.take_if(|retained| !retained.released.is_empty()) else {
            return false;
        };
        retained.released.into_iter().for_each(|extent| self.free(extent));
        self.gave_up = true;
        true
    }
}
