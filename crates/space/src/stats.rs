//! Statistics of the space.

use frondb_core::limits::PAGE_BYTES;

use crate::file_space::FileSpace;
use crate::space::Space;

/// Statistics of the space. Bytes, unless the name says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Data files, a count.
    pub files: u64,
    /// Lengths of the data files.
    pub file_bytes: u64,
    /// Bytes in extents, including released extents that a backup retains.
    pub used_bytes: u64,
    /// Bytes not in extents.
    pub free_bytes: u64,
    /// Lengths minus the present holes: disk space taken, as far as this crate knows.
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
    /// Successful group syncs since the space was opened, a count.
    pub syncs: u64,
}

impl Space {
    /// Returns the current statistics.
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
}
