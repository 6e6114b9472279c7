//! [`Slab`]: up to 64 blocks of one size in one mapping, with a bit for each free block.
//!
//! ```text
//!   mapping   | block 0 | block 1 | block 2 | ... | block n-1 | rest |
//!   free         0         1         1              0               1 = not allocated
//!   touched      1         1         0              1               1 = may be resident
//! ```
//!
//! `touched` distinguishes a free block that takes memory from a free block that was never used, or
//! whose memory was returned to the kernel.
//!
//! Threads: a slab is used only under the lock of its class.

use std::ptr::NonNull;

use super::class::{class_bytes, slab_blocks};
use super::pages::Pages;

/// A slab; see the head of the module.
pub(super) struct Slab {
    pages: Pages,
    block_bytes: usize,
    /// The bits of all blocks that the slab has.
    all: u64,
    free: u64,
    touched: u64,
}

/// An allocated block.
pub(super) struct Taken {
    /// Number of the block in its slab.
    pub(super) block: u8,
    pub(super) start: NonNull<u8>,
    /// Whether the block did not count as resident before.
    pub(super) fresh: bool,
}

impl Slab {
    /// Maps a slab of `class` with all blocks free and untouched.
    pub(super) fn map(class: usize) -> Self {
        let blocks = slab_blocks(class);
        let block_bytes = class_bytes(class);
        let all = u64::MAX >> (64 - blocks);
        Self { pages: Pages::map(blocks * block_bytes), block_bytes, all, free: all, touched: 0 }
    }

    pub(super) fn mapped_bytes(&self) -> usize {
        self.pages.bytes()
    }

    /// Whether every block is allocated.
    pub(super) fn is_full(&self) -> bool {
        self.free == 0
    }

    /// Whether no block is allocated.
    pub(super) fn is_empty(&self) -> bool {
        self.free == self.all
    }

    /// Returns the bytes of free blocks that may be resident.
    pub(super) fn idle_bytes(&self) -> usize {
        (self.free & self.touched).count_ones() as usize * self.block_bytes
    }

    /// Allocates a free block, preferably a resident one.
    ///
    /// # Panics
    /// If the slab is full.
    pub(super) fn take(&mut self) -> Taken {
        assert!(self.free != 0, "a full slab has no block to allocate");
        let warm = self.free & self.touched;
        let block = if warm != 0 { warm } else { self.free }.trailing_zeros();
        let bit = 1u64 << block;
        let fresh = self.touched & bit == 0;
        self.free &= !bit;
        self.touched |= bit;
        let offset = block as usize * self.block_bytes;
        // SAFETY: the bit was set in `free`, so the block is one of those the mapping holds.
        let start = unsafe { self.pages.start().add(offset) };
        Taken { block: block as u8, start, fresh }
    }

    /// Frees a block. REQUIRES: its owner has dropped every reference to the block.
    ///
    /// # Panics
    /// If the block is free already, because it would be allocated twice.
    pub(super) fn put_back(&mut self, block: u8) {
        let bit = 1u64 << block;
        assert!(bit & self.all & !self.free != 0, "a block is freed twice");
        self.free |= bit;
    }

    /// Returns the memory of idle blocks to the kernel. The result is the bytes of the blocks that
    /// do not count as resident any more.
    pub(super) fn discard_idle(&mut self) -> usize {
        let before = self.idle_bytes();
        let mut rest = self.free;
        while rest != 0 {
            // Discard neighbours together, also those that were discarded before: a page that two
            // blocks share stays resident until both are discarded at once.
            let first = rest.trailing_zeros();
            let run = (rest >> first).trailing_ones();
            let bits = (u64::MAX >> (64 - run)) << first;
            rest &= !bits;
            if bits & self.touched == 0 {
                continue;
            }
            let start = first as usize * self.block_bytes;
            let end = start + run as usize * self.block_bytes;
            // SAFETY: the blocks are free, and this slab is borrowed exclusively, so there is no
            // reference into them.
            if unsafe { self.pages.discard(start..end) } {
                self.touched &= !bits;
            }
        }
        before - self.idle_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::class::class_for;
    use super::*;
    use crate::limits::PAGE_BYTES;

    #[test]
    fn each_block_is_allocated_once_and_resident_ones_first() {
        let class = class_for(100_000, false);
        let mut slab = Slab::map(class);
        let mut starts = Vec::new();
        while !slab.is_full() {
            let taken = slab.take();
            assert!(taken.fresh);
            starts.push((taken.start, taken.block));
        }
        assert_eq!(starts.len(), slab_blocks(class));
        starts.sort_unstable();
        assert!(
            starts.windows(2).all(|pair| {
                pair[1].0.addr().get() - pair[0].0.addr().get() == class_bytes(class)
            })
        );
        slab.put_back(3);
        slab.put_back(5);
        assert_eq!(slab.idle_bytes(), 2 * class_bytes(class));
        assert_eq!(slab.discard_idle(), 2 * class_bytes(class));
        let cold = slab.take();
        assert!(cold.fresh && cold.block == 3);
        slab.put_back(3);
        assert_eq!(slab.take().block, 3, "the resident block is taken first");
    }

    #[test]
    fn a_page_that_two_idle_blocks_share_is_returned_with_the_second() {
        let class = class_for(6000, false);
        let bytes = class_bytes(class);
        assert_ne!(bytes % PAGE_BYTES, 0);
        let mut slab = Slab::map(class);
        let [first, second] = [(); 2].map(|()| slab.take());
        // SAFETY: the two blocks are neighbours, and nothing else refers to them.
        unsafe { first.start.write_bytes(1, 2 * bytes) };
        for block in [first.block, second.block] {
            slab.put_back(block);
            assert_eq!(slab.discard_idle(), bytes);
        }
        let whole = 2 * bytes / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the slab is mapped, and nothing else refers to its blocks.
        let left = unsafe { std::slice::from_raw_parts(first.start.as_ptr(), whole) };
        assert!(left.iter().all(|&byte| byte == 0));
    }

    #[test]
    #[should_panic(expected = "freed twice")]
    fn a_double_free_panics() {
        let mut slab = Slab::map(class_for(5000, false));
        let taken = slab.take();
        slab.put_back(taken.block);
        slab.put_back(taken.block);
    }
}
