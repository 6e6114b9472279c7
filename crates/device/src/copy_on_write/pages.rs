//! The written pages of a copy-on-write device: the first ones in memory, the rest in a temporary
//! file.

use frondb_core::limits::PAGE_BYTES;
use frondb_core::sync::Mutex;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Error, Result};

use crate::device::{SharedDevice, SharedFile};

pub(super) const PAGE: u64 = PAGE_BYTES as u64;

/// Number of written pages that stay in memory; further pages go to a temporary file, if the device
/// below provides one.
const MEMORY_PAGES: u64 = 256;

#[derive(Debug)]
pub(super) enum Page {
    Memory(Box<[u8; PAGE_BYTES]>),
    /// In the temporary file, at this offset.
    Temporary(u64),
}

/// Stores pages, the first ones in memory and the rest in the temporary file.
#[derive(Debug, Default)]
pub(super) struct PageStore {
    /// The device that provides the temporary file.
    below: Option<SharedDevice>,
    /// Number of pages stored so far; the first [`MEMORY_PAGES`] stay in memory.
    in_memory: AtomicU64,
    file: Mutex<TemporaryFile>,
}

#[derive(Debug, Default)]
struct TemporaryFile {
    /// `None` until it is needed; `Some(None)` if the device provides none.
    file: Option<Option<SharedFile>>,
    end: u64,
}

impl PageStore {
    /// Creates an empty store, for which `below` provides the temporary file.
    pub(super) fn over(below: &SharedDevice) -> Self {
        Self { below: Some(SharedDevice::clone(below)), ..Self::default() }
    }

    /// Stores a new page.
    pub(super) fn keep(&self, page: Box<[u8; PAGE_BYTES]>) -> Result<Page> {
        if self.in_memory.fetch_add(1, Ordering::Relaxed) < MEMORY_PAGES {
            return Ok(Page::Memory(page));
        }
        let mut temporary = self.file.lock();
        if temporary.file.is_none() {
            temporary.file = Some(self.below.as_ref().map_or(Ok(None), |below| below.scratch())?);
        }
        let Some(Some(file)) = &temporary.file else { return Ok(Page::Memory(page)) };
        let at = temporary.end;
        file.write_at(at, &page[..])?;
        temporary.end += PAGE;
        Ok(Page::Temporary(at))
    }

    pub(super) fn file(&self) -> Result<SharedFile> {
        let missing = || Error::internal("a page refers to a temporary file that was not created");
        self.file.lock().file.clone().flatten().ok_or_else(missing)
    }
}
