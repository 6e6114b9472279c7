//! Giving space back to the file system: punching holes and cutting ends off.
//!
//! Under load, free space is about to be used again, and punching it only to have it allocated
//! again would cost two journal commits of the file system for nothing. So a slack stays. When the
//! engine falls idle or closes, everything but the reserve goes back: what the files take on disk
//! is then what the extents need.
//!
//! A punched hole frees disk space, but the file keeps its length, and a file of many holes is a
//! burden to the file system. When most of a file is holes, [`Space::tail_move_wanted`] says from
//! which page on the engine should rewrite runs lower down, so that the end can be cut off.

use std::ops::Range;

use frondb_core::Result;
use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Arc;

use crate::file_space::{Backing, FileSpace};
use crate::space::{Space, State, extent};
use crate::{Extent, files::DataFile};

/// One step punches at most this many pages (64 MiB), so that it is over soon.
const STEP_PAGES: u32 = 16 * 1024;

/// Under load, less than this is not worth a call (4 MiB).
const BUSY_PAGES_MIN: u64 = 1024;

/// How much free space stays allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reclaim {
    /// The slack for the extents to come, and the reserve: between jobs, under load.
    Busy,
    /// The reserve only: when idle and at close.
    Idle,
}

/// What the engine must move so that a file can be cut: every extent of `file` that ends behind
/// page `limit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TailMove {
    /// Number of the data file.
    pub file: u32,
    /// Page where the file could end.
    pub limit: u32,
}

impl TailMove {
    /// Whether an extent is in the way.
    #[must_use]
    pub fn concerns(self, extent: Extent) -> bool {
        extent.file == self.file && extent.end() > self.limit
    }
}

/// What a step does.
enum Step {
    /// Cut this free range off the end of the file.
    Cut(usize, Range<u32>),
    /// Punch this free range.
    Punch(usize, Range<u32>),
}

impl Space {
    /// Gives a bounded amount of free space back to the file system: cuts a file's end off, or
    /// punches a hole. Returns whether there was something to do; the caller repeats until there
    /// is not.
    ///
    /// # Errors
    /// What the device reports; the space stays free then.
    pub fn reclaim_step(&self, mode: Reclaim) -> Result<bool> {
        let reserve = self.reserve_pages();
        match mode {
            Reclaim::Idle => self.give_back(reserve, true),
            Reclaim::Busy => {
                let keep = reserve + self.slack_pages();
                let warm = self.state.lock().warm_pages();
                if warm < keep + BUSY_PAGES_MIN { Ok(false) } else { self.give_back(keep, false) }
            }
        }
    }

    /// Gives up to `bytes` of the reserve to the file system, for a WAL or manifest that must grow
    /// on a full disk. The reserve fills up again from space that is released, or at the next
    /// acquisition that finds room on the disk.
    ///
    /// # Errors
    /// What the device reports.
    pub fn lend_reserve(&self, bytes: u64) -> Result<()> {
        let backed = self.state.lock().backed_pages();
        let keep = backed.saturating_sub(Extent::pages_for(bytes));
        while self.give_back(keep, false)? {}
        Ok(())
    }

    /// Which extents the engine should rewrite elsewhere, with [`acquire_below`]
    /// (Self::acquire_below), so that a file that is mostly free can be cut; `None` if that is not
    /// worth the writing.
    #[must_use]
    pub fn tail_move_wanted(&self) -> Option<TailMove> {
        let slack = self.options.slack_bytes / PAGE_BYTES as u64;
        let state = self.state.lock();
        state.files.iter().enumerate().find_map(|(number, file)| {
            let end = file.tail().map_or(file.pages(), |tail| tail.start);
            let used = u64::from(file.pages()) - file.free_pages();
            // An eighth more than is needed: gaps do not fit exactly.
            let limit = used + used / 8;
            (u64::from(end) > used + used / 2 + slack)
                .then_some(TailMove { file: number as u32, limit: limit as u32 })
        })
    }

    /// Room for `pages` pages in front of the limit, or `None`: then there is no such gap, and the
    /// move is not worth going on with.
    ///
    /// # Errors
    /// What the device reports.
    pub fn acquire_below(&self, pages: u32, tail: TailMove) -> Result<Option<Extent>> {
        self.acquire_low(pages, tail.file, tail.limit)
    }

    fn slack_pages(&self) -> u64 {
        let state = self.state.lock();
        let used = |file: &FileSpace| u64::from(file.pages()) - file.free_pages();
        let used: u64 = state.files.iter().map(used).sum();
        (self.options.slack_bytes / PAGE_BYTES as u64).max(used / 20)
    }

    /// One step towards `keep` free pages that take disk space. `growth` is held, so the lengths
    /// of the files are ours; the range is taken meanwhile, so no one acquires it.
    fn give_back(&self, keep: u64, cut_holes: bool) -> Result<bool> {
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
                // The new length must be as durable as what is written next.
                file.note_written();
                state.growths += 1;
                state.truncated_pages += u64::from(range.end - range.start);
                state.files[*number].set_pages(range.start);
            }
            (Step::Punch(number, range), Ok(())) => {
                state.punched_pages += u64::from(range.end - range.start);
                state.files[*number].give(range.clone(), Backing::Hole);
            }
            (Step::Cut(number, range) | Step::Punch(number, range), Err(_)) => {
                state.files[*number].give(range.clone(), Backing::Unknown);
            }
        }
        result
    }
}

impl State {
    /// Free pages that may take disk space.
    fn warm_pages(&self) -> u64 {
        self.files.iter().map(FileSpace::warm_pages).sum()
    }

    /// The next thing to give back, taken out of the free space: from the last file and its end
    /// on, because the low pages are used again first.
    fn next_step(&mut self, keep: u64, cut_holes: bool) -> Option<Step> {
        let excess = self.warm_pages().saturating_sub(keep);
        let excess = u32::try_from(excess).unwrap_or(u32::MAX);
        for (number, file) in self.files.iter_mut().enumerate().rev() {
            let Some(tail) = file.tail() else { continue };
            let whole = file.warm_in(&tail) <= excess;
            let cut = if whole { tail } else { tail.end - excess..tail.end };
            if !cut.is_empty() && (file.warm_in(&cut) > 0 || cut_holes) {
                file.take(&cut);
                return Some(Step::Cut(number, cut));
            }
        }
        for (number, file) in self.files.iter_mut().enumerate().rev() {
            if excess > 0
                && let Some(warm) = file.last_warm_range(excess.min(STEP_PAGES))
            {
                file.take(&warm);
                return Some(Step::Punch(number, warm));
            }
        }
        None
    }
}
