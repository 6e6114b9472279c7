//! [`Space`]: acquires and releases extents.

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::wear::{WriteCause, WriteCounters};
use frondb_core::{Error, ErrorKind, Result};
use frondb_device::{SharedDevice, SharedFile};

use crate::file_space::FileSpace;
use crate::files::{DataFiles, name_of};
use crate::group_sync::GroupSync;
use crate::state::{SpaceState, free_unused_pages, take};
use crate::{Class, Extent, SpaceOptions};

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
/// them, so a full disk is noticed here, and a write into acquired space never fails for lack of
/// space. The reserve is a number of backed free pages, not a particular range of pages:
/// [`acquire`](Self::acquire) leaves that many, [`acquire_reserved`](Self::acquire_reserved) does
/// not, and released space refills the reserve first.
///
/// # Threads
/// Any thread may call any method. Reads and writes take only the shared lock of the file table.
/// `growth` is taken before `state`; no thread does I/O while it holds `state`.
pub struct Space {
    pub(crate) options: SpaceOptions,
    pub(crate) files: DataFiles,
    /// Held by the thread that changes the length of a file, so that `state` is free during the
    /// system call.
    pub(crate) growth: Mutex<()>,
    pub(crate) state: Mutex<SpaceState>,
    pub(crate) syncs: GroupSync,
    writes: Arc<WriteCounters>,
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
        Self::open_counting(device, options, used, Arc::default())
    }

    /// As [`open`](Self::open); writes are counted in `writes`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_counting(
        device: SharedDevice,
        options: SpaceOptions,
        used: impl IntoIterator<Item = Extent>,
        writes: Arc<WriteCounters>,
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
        free_unused_pages(&mut spaces, &used)?;
        let state = Mutex::new(SpaceState { files: spaces, ..SpaceState::default() });
        let growth = Mutex::new(());
        Ok(Arc::new(Self { options, files, growth, state, syncs: GroupSync::default(), writes }))
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
        assert!(
            (1..=extent.pages).contains(&keep_pages),
            "cannot shrink {extent} to {keep_pages} pages"
        );
        let kept = Extent { pages: keep_pages, ..extent };
        if kept.pages < extent.pages {
            let (page, pages) = (kept.end(), extent.end() - kept.end());
            self.state.lock().free(Extent { page, pages, ..extent });
        }
        kept
    }

    /// Frees an extent, as soon as no backup reads it ([`retain`](Self::retain)). From then on it
    /// may be overwritten at any time; the life cycle above says what must have happened before.
    ///
    /// # Panics
    /// If a part of it is free already.
    pub fn release(&self, extent: Extent) {
        self.state.lock().release(extent);
    }

    /// Reads `buf.len()` bytes from `byte_offset` on within an extent. With direct I/O, the offset,
    /// the length and the address of `buf` must be multiples of a page.
    ///
    /// # Errors
    /// `Corruption` if the range does not lie inside the extent or reaches beyond the end of the
    /// file, or if the file is missing; errors of the device, `Io` with the place.
    pub fn read(&self, extent: Extent, byte_offset: u64, buf: &mut [u8]) -> Result<()> {
        let place = self.files.locate(extent, byte_offset, buf.len())?;
        let read = place.file.handle.read_exact_at(place.offset, buf);
        read.map_err(|error| place.name_unreadable(error))
    }

    /// Writes whole pages from `byte_offset` on within an extent. The write is counted under
    /// `cause`.
    ///
    /// # Errors
    /// Errors of the device; `Poisoned` after a failed sync.
    ///
    /// # Panics
    /// If offset or length are not multiples of a page or reach outside the extent: the caller
    /// acquired the extent and did not read it from disk, so this is a bug and not corruption.
    pub fn write(
        &self,
        cause: WriteCause,
        extent: Extent,
        byte_offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        self.write_vectored(cause, extent, byte_offset, &[bytes])
    }

    /// Writes several buffers one after the other; otherwise as [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    ///
    /// # Panics
    /// As [`write`](Self::write).
    pub fn write_vectored(
        &self,
        cause: WriteCause,
        extent: Extent,
        byte_offset: u64,
        bufs: &[&[u8]],
    ) -> Result<()> {
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        assert!(byte_offset.is_multiple_of(PAGE_BYTES as u64), "unaligned write at {byte_offset}");
        assert!(
            bufs.iter().all(|buf| buf.len().is_multiple_of(PAGE_BYTES)),
            "the length is not a multiple of a page"
        );
        assert!(byte_offset + len as u64 <= extent.bytes(), "write outside {extent}");
        self.syncs.check()?;
        let place = self.files.locate(extent, byte_offset, len)?;
        self.writes.add(cause, len as u64);
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

    /// Returns the open data file with this number, for readers that submit several reads together.
    ///
    /// # Errors
    /// `Corruption` if there is no such file.
    pub fn file(&self, number: u32) -> Result<SharedFile> {
        match self.files.get(number) {
            Some(file) => Ok(Arc::clone(&file.handle)),
            None => Err(missing_file(number)),
        }
    }

    /// Returns all free ranges, so that a test can check that used and free pages make up the
    /// files.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn free_extents(&self) -> Vec<Extent> {
        let state = self.state.lock();
        let mut free = Vec::new();
        for (number, file) in state.files.iter().enumerate() {
            free.extend(
                file.free().ranges().iter().map(|range| crate::state::extent(number, &range)),
            );
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
        assert!(pages > 0, "an extent has at least one page");
        self.syncs.check()?;
        self.make_way(pages);
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
                    let mut state = self.state.lock();
                    match state.take_backed(pages, leave) {
                        None if state.give_up_retention() => {}
                        taken => return taken.ok_or(error),
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}

pub(crate) fn missing_file(number: u32) -> Error {
    Error::corruption(name_of(number), 0, "data file", "the file is missing")
}
