//! Reserves disk space: for free pages that a request takes, and by extending files or creating
//! new ones.

use std::ops::Range;

use frondb_core::limits::PAGE_BYTES;
use frondb_core::{ErrorKind, Result};

use crate::Extent;
use crate::file_space::{Backing, FileSpace};
use crate::space::{Space, missing_file};
use crate::state::{Taken, extent};

/// Files grow by multiples of this many pages (1 MiB).
const GROW_PAGES_MIN: u32 = 256;

impl Space {
    /// Reserves disk space for a taken range; if that fails, frees the whole range again.
    pub(crate) fn reserve_disk(&self, taken: Taken) -> Result<Extent> {
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

    /// Extends a file or creates the next one, so that `pages` pages can be taken and `leave`
    /// backed pages remain. Does nothing if `growths` is no longer `seen`: another thread has grown
    /// or truncated a file.
    ///
    /// The step follows the size of the file, so that a database of a few pages stays small and the
    /// file system does not cut a large one into thousands of pieces. On a full disk, the call
    /// tries exactly the needed size before it fails.
    pub(crate) fn grow(&self, pages: u32, leave: u64, seen: u64) -> Result<()> {
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

    /// Creates the next file, empty. If extending it then fails, the file stays, and a later call
    /// extends it.
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
            // An incomplete allocation takes space that is not accounted for, so cut it off. If
            // that fails too, the next open counts the new pages as free.
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
}

/// Returns the number of whole pages in `bytes`, the value of an option. No option exceeds the size
/// of the largest file, so the number fits in `u32`.
fn page_count(bytes: u64) -> u32 {
    u32::try_from(bytes / PAGE_BYTES as u64).unwrap_or(u32::MAX)
}
