//! Returns space to the file system by punching holes and truncating files.
//!
//! Under load, free space is soon used again. Punching it and allocating it again would waste two
//! journal commits of the file system, so some slack stays allocated. When the engine becomes idle
//! or closes, everything but the reserve is returned: then the files take as much disk space as the
//! extents and the reserve need.
//!
//! A punched hole frees disk space, but the file keeps its length, and a file with many holes
//! burdens the file system. When a file is much longer than its extents need,
//! [`Space::tail_move_wanted`] names the page above which the engine should move runs lower, so
//! that the end can be truncated.

use std::ops::Range;

use frondb_core::Result;
use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;

use crate::file_space::{Backing, FileSpace};
use crate::space::Space;
use crate::state::{SpaceState, extent};
use crate::{Extent, files::DataFile};

/// Maximum number of pages punched in one step (64 MiB), so that a step is short.
const STEP_PAGES: u32 = 16 * 1024;

/// Under load, an excess of allocated free space below this size is not worth a call (4 MiB).
const BUSY_PAGES_MIN: u64 = 1024;

/// Smallest slack, for a space with few extents (8 MiB), unless `slack_bytes` is smaller.
const SLACK_PAGES_MIN: u64 = 2048;

/// The amount of free space that stays allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reclaim {
    /// The slack for new extents, and the reserve: between jobs, under load.
    Busy,
    /// The reserve only: when idle and on close.
    Idle,
}

/// The extents that the engine must move so that a file can be truncated: every extent of `file`
/// that ends above page `limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TailMove {
    /// Number of the data file.
    pub file: u32,
    /// Page at which the file could end.
    pub limit: u32,
}

impl TailMove {
    /// Returns whether an extent must be moved.
    #[must_use]
    pub fn concerns(self, extent: Extent) -> bool {
        extent.file == self.file && extent.end() > self.limit
    }
}

/// The work of a step.
enum Step {
    /// Truncate the file by this free range.
    Cut(usize, Range<u32>),
    /// Punch this free range.
    Punch(usize, Range<u32>),
}

impl Space {
    /// Returns a bounded amount of free space to the file system by truncating a file or punching a
    /// hole. Returns whether it found any work; the caller repeats until there is none.
    ///
    /// # Errors
    /// Errors of the device; the space then stays free, and may still take disk space.
    pub fn reclaim_step(&self, mode: Reclaim) -> Result<bool> {
        let reserve = self.reserve_pages();
        match mode {
            Reclaim::Idle => self.return_range(reserve, true),
            Reclaim::Busy => {
                let keep = reserve + self.slack_pages();
                let unpunched = self.state.lock().unpunched_pages();
                if unpunched < keep + BUSY_PAGES_MIN {
                    Ok(false)
                } else {
                    self.return_range(keep, false)
                }
            }
        }
    }

    /// Returns all free space except the reserve to the file system, if the free space is more than
    /// the disk has left. (Work that failed may have released most of the disk.)
    ///
    /// # Errors
    /// Errors of the device.
    pub fn relieve_disk(&self) -> Result<()> {
        let excess = self.state.lock().unpunched_pages().saturating_sub(self.reserve_pages());
        if excess * PAGE_BYTES as u64 <= self.files.free_bytes()? {
            return Ok(());
        }
        while self.reclaim_step(Reclaim::Idle)? {}
        Ok(())
    }

    /// Returns at least `bytes` of backed free space to the file system, if there is so much, even
    /// if it belongs to the reserve: for a WAL or manifest that must grow on a full disk. The
    /// reserve is refilled from released space, or by the next acquisition that finds room on the
    /// disk.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn lend_reserve(&self, bytes: u64) -> Result<()> {
        let backed = self.state.lock().backed_pages();
        let keep = backed.saturating_sub(Extent::pages_for(bytes));
        while self.return_range(keep, false)? {}
        Ok(())
    }

    /// As [`lend_reserve`](Self::lend_reserve), but returns only free space beyond the reserve, and
    /// only after the retention of a backup was given up, because only then has the retention made
    /// the data files longer than they need to be. Returns whether any space was returned.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn lend_given_up(&self, bytes: u64) -> Result<bool> {
        let backed = {
            let state = self.state.lock();
            if !state.gave_up {
                return Ok(false);
            }
            state.backed_pages()
        };
        let keep = backed.saturating_sub(Extent::pages_for(bytes)).max(self.reserve_pages());
        let mut any = false;
        while keep < backed && self.return_range(keep, false)? {
            any = true;
        }
        self.state.lock().gave_up = any;
        Ok(any)
    }

    /// Returns the extents that the engine should rewrite elsewhere with
    /// [`acquire_below`](Self::acquire_below), so that a file that is much longer than its extents
    /// need can be truncated; `None` if the rewriting does not pay off.
    #[must_use]
    pub fn tail_move_wanted(&self) -> Option<TailMove> {
        let slack = self.options.slack_bytes / PAGE_BYTES as u64;
        let state = self.state.lock();
        state.files.iter().enumerate().find_map(|(number, file)| {
            let end = file.tail().map_or(file.pages(), |tail| tail.start);
            let used = u64::from(file.pages()) - file.free_pages();
            // An eighth more than necessary, because gaps do not fit exactly.
            let limit = used + used / 8;
            (u64::from(end) > used + used / 2 + slack)
                .then_some(TailMove { file: number as u32, limit: limit as u32 })
        })
    }

    /// Returns an extent of `pages` pages below the limit; `None` if there is no such gap, in which
    /// case the move should stop.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn acquire_below(&self, pages: u32, tail: TailMove) -> Result<Option<Extent>> {
        self.acquire_low(pages, tail.file, tail.limit)
    }

    fn slack_pages(&self) -> u64 {
        let state = self.state.lock();
        let used = |file: &FileSpace| u64::from(file.pages()) - file.free_pages();
        let used: u64 = state.files.iter().map(used).sum();
        let most = self.options.slack_bytes / PAGE_BYTES as u64;
        most.min((used / 8).max(SLACK_PAGES_MIN)).max(used / 20)
    }

    /// Gives one range of free pages back to the file system, if more than `keep` free pages take
    /// disk space. With `cut_holes`, also cuts off a free end of a file that takes no disk space.
    /// Returns `false` if there is nothing to give back. Holds `growth`, so no other thread changes
    /// the lengths of files. The range does not count as free during the system call, so no other
    /// thread acquires it.
    fn return_range(&self, keep: u64, cut_holes: bool) -> Result<bool> {
        let _growing = self.growth.lock();
        let Some(step) = self.state.lock().next_step(keep, cut_holes) else { return Ok(false) };
        let (Step::Cut(number, range) | Step::Punch(number, range)) = &step;
        let Some(file) = self.files.get(*number as u32) else { return Ok(false) };
        let part = extent(*number, range);
        let result = match &step {
            Step::Cut(..) => file.handle.set_len(part.offset()),
            Step::Punch(..) => file.handle.punch(part.offset(), part.bytes()),
        };
        self.finish(&step, &file, result).map(|()| true)
    }

    fn finish(&self, step: &Step, file: &Arc<DataFile>, result: Result<()>) -> Result<()> {
        let mut state = self.state.lock();
        match (step, &result) {
            (Step::Cut(number, range), Ok(())) => {
                // The next sync must make the new length durable too.
                file.note_written();
                state.growths += 1;
                state.truncated_pages += u64::from(range.end - range.start);
                state.files[*number].set_pages(range.start);
            }
            (Step::Punch(number, range), Ok(())) => {
                state.punched_pages += u64::from(range.end - range.start);
                state.files[*number].free_range(range.clone(), Backing::Hole);
            }
            (Step::Cut(number, range) | Step::Punch(number, range), Err(_)) => {
                state.files[*number].free_range(range.clone(), Backing::Unknown);
            }
        }
        result
    }
}

impl SpaceState {
    /// Returns the number of free pages that may take disk space.
    fn unpunched_pages(&self) -> u64 {
        self.files.iter().map(FileSpace::unpunched_pages).sum()
    }

    /// Returns the next range to return to the file system, taken out of the free space: from the
    /// end of the last file downwards, because low pages are reused first.
    fn next_step(&mut self, keep: u64, cut_holes: bool) -> Option<Step> {
        let excess = self.unpunched_pages().saturating_sub(keep);
        let excess = u32::try_from(excess).unwrap_or(u32::MAX);
        for (number, file) in self.files.iter_mut().enumerate().rev() {
            let Some(tail) = file.tail() else { continue };
            let whole = file.unpunched_in(&tail) <= excess;
            let cut = if whole { tail } else { tail.end - excess..tail.end };
            if !cut.is_empty() && (file.unpunched_in(&cut) > 0 || cut_holes) {
                file.take(&cut);
                return Some(Step::Cut(number, cut));
            }
        }
        for (number, file) in self.files.iter_mut().enumerate().rev() {
            if excess > 0
                && let Some(range) = file.last_unpunched_range(excess.min(STEP_PAGES))
            {
                file.take(&range);
                return Some(Step::Punch(number, range));
            }
        }
        None
    }
}
