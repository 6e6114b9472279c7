//! [`Pages`]: whole pages from the kernel, which the drop returns.
//!
//! Miri does not support anonymous mappings. Under Miri the pages come from the ordinary allocator,
//! so that Miri can check the code that uses them.

use std::ops::Range;
use std::ptr::NonNull;

use crate::limits::PAGE_BYTES;

/// A zeroed, page-aligned, private region of memory. `Pages` owns the address range, not the
/// contents: the slab that allocates blocks of the region ensures that blocks do not overlap.
pub(super) struct Pages {
    start: NonNull<u8>,
    bytes: usize,
    #[cfg(not(miri))]
    map: memmap2::MmapRaw,
}

// SAFETY: the region is plain memory that is bound to no thread; all access goes through blocks,
// each of which has one owner.
unsafe impl Send for Pages {}

impl Pages {
    /// Maps `bytes`, rounded up to whole pages.
    ///
    /// If there is no memory, the process aborts, as with every allocation of the standard library:
    /// the engine would need memory to report the failure.
    ///
    /// # Panics
    /// If the address space cannot hold that many bytes.
    #[cfg(not(miri))]
    pub(super) fn map(bytes: usize) -> Self {
        let bytes = layout(bytes).size();
        let Ok(map) = memmap2::MmapMut::map_anon(bytes).map(memmap2::MmapRaw::from) else {
            std::alloc::handle_alloc_error(layout(bytes));
        };
        // With huge pages, one touched byte would make 2 MiB resident, and the counters would be
        // wrong. A kernel without huge pages refuses the advice and does not need it.
        let _ = map.advise(memmap2::Advice::NoHugePage);
        let Some(start) = NonNull::new(map.as_mut_ptr()) else {
            std::alloc::handle_alloc_error(layout(bytes));
        };
        Self { start, bytes, map }
    }

    #[cfg(miri)]
    pub(super) fn map(bytes: usize) -> Self {
        let bytes = layout(bytes).size();
        // SAFETY: callers map at least one byte, so the layout is not empty.
        let start = unsafe { std::alloc::alloc_zeroed(layout(bytes)) };
        let Some(start) = NonNull::new(start) else {
            std::alloc::handle_alloc_error(layout(bytes));
        };
        Self { start, bytes }
    }

    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size of the region, a multiple of the page size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the whole pages inside `range` to the kernel; they read as zeros afterwards. Returns
    /// `false` if there was no whole page, or if the kernel refused.
    ///
    /// # Safety
    /// No thread has a reference into `range`, and its contents are no longer needed.
    pub(super) unsafe fn discard(&self, range: Range<usize>) -> bool {
        let start = range.start.next_multiple_of(PAGE_BYTES);
        let end = range.end.min(self.bytes) / PAGE_BYTES * PAGE_BYTES;
        if start >= end {
            return false;
        }
        #[cfg(not(miri))]
        {
            let advice = memmap2::UncheckedAdvice::DontNeed;
            // SAFETY: the caller owns the range and does not need its contents.
            unsafe { self.map.unchecked_advise_range(advice, start, end - start) }.is_ok()
        }
        #[cfg(miri)]
        {
            // SAFETY: the range lies inside the region, and the caller owns it.
            unsafe { self.start.add(start).write_bytes(0, end - start) };
            true
        }
    }
}

#[cfg(miri)]
impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), layout(self.bytes)) };
    }
}

/// Returns the layout of the whole pages for `bytes`.
fn layout(bytes: usize) -> std::alloc::Layout {
    let layout = bytes
        .checked_next_multiple_of(PAGE_BYTES)
        .and_then(|bytes| std::alloc::Layout::from_size_align(bytes, PAGE_BYTES).ok());
    let Some(layout) = layout else {
        panic!("cannot allocate a buffer of {bytes} bytes: the size is too large")
    };
    layout
}
