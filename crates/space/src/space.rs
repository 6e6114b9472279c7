//! [`Space`]: acquires and releases extents.

use std::ops::Range;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{SharedDevice, SharedFile};

use crate::file_space::{Backing, FileSpace};
use crate::files::{DataFiles, name_of};
use crate::group_sync::GroupSync;
use crate::{Class, Extent, SpaceOptions};

/// Files grow by multiples of this many pages (1 MiB).
const GROW_PAGES_MIN: u32 = 256;

/// The extents of one database.
///
/// # Life cycle of an extent
/// 1. *acquired*: [`acquire`](Self::acquire) took it from the free space for one owner.
///    [`shrink`](Self::shrink) returns the part that a builder does not fill.
/// 2. *written* once, by [`write`](Self::write), and made durable by [`sync`](Self::sync).
/// 3. *durable*: a manifest edit that names it is durable. Only from here on does it survive a
///    crash; an extent that was merely acquired is free again after a crash.
/// 4. *dead*: an edit that drops it is durable. Readers that pinned an older version still read it.
/// 5. *released*: no version pins it, and no superblock that recovery could fall back to reaches it
///    (rule 7, for which the caller is responsible); [`release`](Self::release) makes it free.
/// 6. *reused* by an acquisition, or *punched* by [`reclaim_step`](Self::reclaim_step), or cut off
///    with the end of the file.
///
/// # Full disk
/// Growing fails with `NoSpace` and changes nothing; the next acquisition tries again, so writing
/// resumes by itself. Free pages are handed out only after the file system has reserved space for
/// them, so a full disk is noticed here and not in the middle of a merge. The reserve is a number
/// of backed free pages, not a place: [`acquire`](Self::acquire) leaves that many,
/// [`acquire_reserved`](Self::acquire_reserved) does not, and released space refills the reserve
/// first.
///
/// # Threads
/// Everything may be called from any thread. Reads and writes take only the shared lock of the file
/// table. `growth` is taken before `state`; I/O happens under `growth` only.
pub struct Space {
    pub(crate) options: SpaceOptions,
    pub(crate) files: DataFiles,
    /// Held by the thread that changes the length of a file, so that `state` is free during the
    /// system call.
    pub(crate) growth: Mutex<()>,
    pub(crate) state: Mutex<SpaceState>,
    syncs: GroupSync,
}

/// The state behind the lock.
#[derive(Default)]
pub(crate) struct SpaceState {
    /// By number of the file.
    pub(crate) files: Vec<FileSpace>,
    /// Counts changes of file lengths, so that a thread that waited to grow a file sees that
    /// another thread did.
    pub(crate) growths: u64,
    pub(crate) grown_pages: u64,
    pub(crate) punched_pages: u64,
    pub(crate) truncated_pages: u64,
}

/// Statistics of the space. Bytes, unless the name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Data files, a count.
    pub files: u64,
    /// Lengths of the data files.
    pub file_bytes: u64,
    /// Bytes in extents.
    pub used_bytes: u64,
    /// Bytes not in extents.
    pub free_bytes: u64,
    /// Lengths minus punched bytes: disk space taken, as far as this crate knows.
    pub allocated_bytes: u64,
    /// Free bytes with reserved disk space.
    pub backed_bytes: u64,
    /// Free ranges, a count.
    pub free_ranges: u64,
    /// Bytes by which files grew since the space was opened.
    pub grown_bytes: u64,
    /// Bytes punched since the space was opened.
    pub punched_bytes: u64,
    /// Bytes truncated since the space was opened.
    pub truncated_bytes: u64,
    /// Group syncs since the space was opened, a count.
    pub syncs: u64,
}

/// A range taken from the free space, and the parts of it without reserved disk space.
struct Taken {
    extent: Extent,
    unbacked: Vec<Range<u32>>,
}

impl Space {
    /// Opens the data files of a device. `used` lists every extent that the manifest names; all
    /// other pages are free. Nothing is written.
    ///
    /// # Errors
    /// `Corruption` if two extents overlap or one lies outside its file; errors of the device.
    pub fn open(
        device: SharedDevice,
        options: SpaceOptions,
        used: impl IntoIterator<Item = Extent>,
    ) -> Result<Arc<Self>> {
        let options = options.clamped();
        let files = DataFiles::open(device, options.direct)?;
        let mut spaces = Vec::new();
        for number in 0..files.count() as u32 {
            let pages = files.get(number).map_or(Ok(0), |file| file.pages())?;
            spaces.push(FileSpace::with_pages(pages));
        }
        let mut used: Vec<Extent> = used.into_iter().collect();
        used.sort_unstable();
        free_what_is_not_used(&mut spaces, &used)?;
        let state = Mutex::new(SpaceState { files: spaces, ..SpaceState::default() });
        let growth = Mutex::new(());
        Ok(Arc::new(Self { options, files, growth, state, syncs: GroupSync::default() }))
    }

    /// Takes an extent of `pages` pages, or of fewer if no free range is that long: the caller then
    /// calls again for the rest.
    ///
    /// # Errors
    /// `NoSpace` if the disk is full except for the reserve; nothing has changed then. `Poisoned`
    /// after a failed sync. Errors of the device.
    ///
    /// # Panics
    /// If `pages` is 0.
    pub fn acquire(&self, pages: u32, class: Class) -> Result<Extent> {
        self.acquire_leaving(pages, class, self.reserve_pages())
    }

    /// As [`acquire`](Self::acquire), but may use the reserve: for operations that free space in
    /// the end, such as a delete, a drop or the merge after it (rule 25).
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    ///
    /// # Panics
    /// If `pages` is 0.
    pub fn acquire_reserved(&self, pages: u32, class: Class) -> Result<Extent> {
        self.acquire_leaving(pages, class, 0)
    }

    /// Frees the unused tail of an extent; returns the part that is kept.
    ///
    /// # Panics
    /// Unless `keep_pages` is between 1 and the extent's pages.
    pub fn shrink(&self, extent: Extent, keep_pages: u32) -> Extent {
        assert!((1..=extent.pages).contains(&keep_pages), "{extent} shrinks to {keep_pages}");
        let kept = Extent { pages: keep_pages, ..extent };
        if kept.pages < extent.pages {
            self.free_range(extent.file, kept.end()..extent.end());
        }
        kept
    }

    /// Frees an extent. From here on it may be overwritten at any time: see the life cycle above
    /// for what must have happened before.
    ///
    /// # Panics
    /// If a part of it is free already.
    pub fn release(&self, extent: Extent) {
        self.free_range(extent.file, extent.page..extent.end());
    }

    /// Reads `buf.len()` bytes from `byte_offset` on within an extent. With direct I/O, offset,
    /// length and memory are multiples of a page.
    ///
    /// # Errors
    /// `Corruption` if the range lies outside the extent or the file ends before it; errors of the
    /// device.
    pub fn read(&self, extent: Extent, byte_offset: u64, buf: &mut [u8]) -> Result<()> {
        let place = self.files.locate(extent, byte_offset, buf.len())?;
        place.file.handle.read_exact_at(place.offset, buf)
    }

    /// Writes whole pages from `byte_offset` on within an extent.
    ///
    /// # Errors
    /// Errors of the device; `Poisoned` after a failed sync.
    ///
    /// # Panics
    /// If offset or length are not multiples of a page or reach outside the extent: an extent to be
    /// written was acquired, not read from disk.
    pub fn write(&self, extent: Extent, byte_offset: u64, bytes: &[u8]) -> Result<()> {
        self.write_vectored(extent, byte_offset, &[bytes])
    }

    /// Writes several buffers one after the other; otherwise as [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_vectored(&self, extent: Extent, byte_offset: u64, bufs: &[&[u8]]) -> Result<()> {
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        assert!(byte_offset.is_multiple_of(PAGE_BYTES as u64), "a write at {byte_offset}");
        assert!(bufs.iter().all(|buf| buf.len().is_multiple_of(PAGE_BYTES)), "a torn page");
        assert!(byte_offset + len as u64 <= extent.bytes(), "a write outside {extent}");
        self.syncs.check()?;
        let place = self.files.locate(extent, byte_offset, len)?;
        place.file.handle.write_vectored_at(place.offset, bufs)?;
        place.file.note_written();
        Ok(())
    }

    /// Makes all writes before the call durable. Concurrent callers share one sync.
    ///
    /// # Errors
    /// `Poisoned` if this sync or an earlier one failed: the state of the disk is unknown, and the
    /// database must be reopened.
    pub fn sync(&self) -> Result<()> {
        self.syncs.sync(|| self.files.sync_written())
    }

    /// The open data file with this number, for readers that issue several reads at once.
    ///
    /// # Errors
    /// `Corruption` if there is no such file.
    pub fn file(&self, number: u32) -> Result<SharedFile> {
        match self.files.get(number) {
            Some(file) => Ok(Arc::clone(&file.handle)),
            None => Err(missing_file(number)),
        }
    }

    /// The current statistics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let syncs = self.syncs.count();
        let state = self.state.lock();
        let bytes = |pages: u64| pages * PAGE_BYTES as u64;
        let sum = |count: fn(&FileSpace) -> u64| state.files.iter().map(count).sum::<u64>();
        let pages = sum(|file| u64::from(file.pages()));
        let free = sum(FileSpace::free_pages);
        Stats {
            files: state.files.len() as u64,
            file_bytes: bytes(pages),
            used_bytes: bytes(pages - free),
            free_bytes: bytes(free),
            allocated_bytes: bytes(pages - sum(FileSpace::hole_pages)),
            backed_bytes: bytes(sum(FileSpace::backed_pages)),
            free_ranges: sum(|file| file.free().ranges().len() as u64),
            grown_bytes: bytes(state.grown_pages),
            punched_bytes: bytes(state.punched_pages),
            truncated_bytes: bytes(state.truncated_pages),
            syncs,
        }
    }

    /// All free ranges, for tests and for verifying that used and free pages make up the files.
    #[must_use]
    pub fn free_extents(&self) -> Vec<Extent> {
        let state = self.state.lock();
        let mut free = Vec::new();
        for (number, file) in state.files.iter().enumerate() {
            free.extend(file.free().ranges().iter().map(|range| extent(number, &range)));
        }
        free
    }

    pub(crate) fn reserve_pages(&self) -> u64 {
        self.options.reserve_bytes / PAGE_BYTES as u64
    }

    /// Takes a range below `limit` in one file, if there is one.
    pub(crate) fn acquire_low(&self, pages: u32, file: u32, limit: u32) -> Result<Option<Extent>> {
        let mut state = self.state.lock();
        let Some(space) = state.files.get_mut(file as usize) else { return Ok(None) };
        let Some(range) = space.free().below(pages, limit) else { return Ok(None) };
        let taken = take(space, file as usize, &range);
        drop(state);
        self.reserve_disk(taken).map(Some)
    }

    fn acquire_leaving(&self, pages: u32, class: Class, leave: u64) -> Result<Extent> {
        assert!(pages > 0, "an extent of no pages");
        self.syncs.check()?;
        loop {
            let (taken, growths) = {
                let mut state = self.state.lock();
                (state.take(pages, class, leave), state.growths)
            };
            let attempt = match taken {
                Some(taken) => self.reserve_disk(taken).map(Some),
                None => self.grow(pages, leave, growths).map(|()| None),
            };
            match attempt {
                Ok(Some(extent)) => return Ok(extent),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    return self.state.lock().take_backed(pages, leave).ok_or(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reserves disk space for a taken range; if that fails, frees the whole range again.
    fn reserve_disk(&self, taken: Taken) -> Result<Extent> {
        let Taken { extent, unbacked } = taken;
        for (i, part) in unbacked.iter().enumerate() {
            let Err(error) = self.allocate(extent.file, part) else { continue };
            let mut state = self.state.lock();
            let space = &mut state.files[extent.file as usize];
            let mut from = extent.page;
            for part in &unbacked[i..] {
                if from < part.start {
                    space.free_range(from..part.start, Backing::Backed);
                }
                space.free_range(part.clone(), Backing::Unknown);
                from = part.end;
            }
            if from < extent.end() {
                space.free_range(from..extent.end(), Backing::Backed);
            }
            return Err(error);
        }
        Ok(extent)
    }

    fn allocate(&self, file: u32, range: &Range<u32>) -> Result<()> {
        let part = extent(file as usize, range);
        let Some(file) = self.files.get(file) else { return Err(missing_file(file)) };
        file.handle.allocate(part.offset(), part.bytes())
    }

    /// Extends a file or creates the next one, unless another thread did so since `seen`.
    ///
    /// The step follows the size of the file, so that a database of a few pages stays small and the
    /// file system does not cut a large one into thousands of pieces. On a full disk exactly the
    /// needed size is tried before the call fails.
    fn grow(&self, pages: u32, leave: u64, seen: u64) -> Result<()> {
        let _growing = self.growth.lock();
        let length_max = page_count(self.options.file_bytes_max);
        let (needed, room) = {
            let state = self.state.lock();
            if state.growths != seen {
                return Ok(());
            }
            let needed = u64::from(pages) + leave.saturating_sub(state.backed_pages());
            let needed = needed.next_multiple_of(u64::from(GROW_PAGES_MIN));
            let needed = needed.min(u64::from(length_max)) as u32;
            // Low files first: the last files may then become empty.
            let lengths = state.files.iter().map(FileSpace::pages).enumerate();
            let has_room = |&(number, length): &(usize, u32)| {
                needed <= length_max.saturating_sub(length) && self.files.has(number)
            };
            (needed, lengths.into_iter().find(has_room))
        };
        let Some((number, length)) = room else {
            return self.extend(self.add_file()?, 0, needed);
        };
        let step_max = page_count(self.options.grow_bytes);
        let step = (length / 16 / GROW_PAGES_MIN * GROW_PAGES_MIN).min(step_max).max(needed);
        let step = step.min(length_max - length);
        match self.extend(number, length, step) {
            Err(error) if error.kind() == ErrorKind::NoSpace && step > needed => {
                self.extend(number, length, needed)
            }
            result => result,
        }
    }

    /// Creates the next file, empty. If it cannot be extended afterwards, the next attempt will.
    fn add_file(&self) -> Result<usize> {
        self.files.create_next()?;
        let mut state = self.state.lock();
        state.files.push(FileSpace::default());
        Ok(state.files.len() - 1)
    }

    /// Extends a file by backed free pages. The caller holds `growth`.
    fn extend(&self, number: usize, length: u32, step: u32) -> Result<()> {
        let new = length..length + step;
        if let Err(error) = self.allocate(number as u32, &new) {
            // An incomplete allocation takes space that is not accounted for. If it cannot be
            // truncated either, the next opening finds it.
            if let Some(file) = self.files.get(number as u32) {
                let _ = file.handle.set_len(u64::from(length) * PAGE_BYTES as u64);
            }
            return Err(error);
        }
        let mut state = self.state.lock();
        state.growths += 1;
        state.grown_pages += u64::from(step);
        state.files[number].set_pages(new.end);
        state.files[number].free_range(new, Backing::Backed);
        Ok(())
    }

    fn free_range(&self, file: u32, range: Range<u32>) {
        let mut state = self.state.lock();
        let Some(space) = state.files.get_mut(file as usize) else {
            panic!("released an extent of data file {file}, which does not exist");
        };
        space.free_range(range, Backing::Backed);
    }
}

impl SpaceState {
    /// Free pages with reserved disk space.
    pub(crate) fn backed_pages(&self) -> u64 {
        self.files.iter().map(FileSpace::backed_pages).sum()
    }

    /// Takes a range for a request if a free range of suitable length exists and `leave` backed
    /// pages remain.
    fn take(&mut self, pages: u32, class: Class, leave: u64) -> Option<Taken> {
        let (number, range) = self.find(pages, class)?;
        let backed = self.backed_pages();
        let space = &mut self.files[number];
        let uses = u64::from(range.end - range.start - space.unbacked_in(&range));
        (backed >= leave + uses).then(|| take(space, number, &range))
    }

    /// A free range of `pages` pages, or of as many as the class allows.
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

    /// On a full disk: takes backed pages, in parts of any length.
    fn take_backed(&mut self, pages: u32, leave: u64) -> Option<Extent> {
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
fn take(space: &mut FileSpace, number: usize, range: &Range<u32>) -> Taken {
    let unbacked = space.unbacked_parts(range);
    space.take(range);
    Taken { extent: extent(number, range), unbacked }
}

pub(crate) fn extent(file: usize, range: &Range<u32>) -> Extent {
    Extent { file: file as u32, page: range.start, pages: range.end - range.start }
}

/// Number of whole pages in `bytes`, which an option limits to the size of a file.
fn page_count(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE_BYTES as u64).unwrap_or(u32::MAX)
}

fn missing_file(number: u32) -> Error {
    Error::corruption(name_of(number), 0, "data file", "the file is missing")
}

/// Frees all pages between the used extents, in unknown state. `used` ascends.
fn free_what_is_not_used(spaces: &mut [FileSpace], used: &[Extent]) -> Result<()> {
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
