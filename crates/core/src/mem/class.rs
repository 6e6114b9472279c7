//! The table of block sizes: eight sizes per doubling from 1 KiB to 4 MiB. So rounding up wastes at
//! most a ninth of a block, and half of that on average.
//!
//! ```text
//!   1024 1152 1280 .. 1920 | 2048 2304 .. | 4096 4608 .. | .. | 2 MiB .. 3.75 MiB | 4 MiB
//!   index 0    1    2    7 |  8    9      |  16   17     |    |  88         95    |  96
//! ```
//!
//! Direct I/O needs addresses and sizes in whole pages. Every doubling from 4 KiB on has classes of
//! whole pages; from 32 KiB on, every class consists of whole pages. [`class_for`] chooses such a
//! class for a caller that needs whole pages.

use crate::limits::PAGE_BYTES;

/// Requests smaller than this go to the ordinary heap, unless they need whole pages.
pub(super) const CLASS_BYTES_MIN: usize = 1 << CLASS_BITS_MIN;
/// Requests larger than this get a mapping of their own.
pub(super) const CLASS_BYTES_MAX: usize = 1 << CLASS_BITS_MAX;
pub(super) const CLASSES: usize = ((CLASS_BITS_MAX - CLASS_BITS_MIN) << STEP_BITS) as usize + 1;

const CLASS_BITS_MIN: u32 = 10;
const CLASS_BITS_MAX: u32 = 22;
/// Binary logarithm of the number of sizes per doubling.
const STEP_BITS: u32 = 3;

/// Approximate bytes of a slab: large enough that one system call serves many blocks, and so small
/// that an empty slab costs little.
const SLAB_BYTES: usize = 1 << 20;
/// Most blocks of a slab: each block has one bit in a word.
const SLAB_BLOCKS_MAX: usize = 64;

/// Returns the bytes of a block of `class`.
pub(super) const fn class_bytes(class: usize) -> usize {
    let doubling = CLASS_BITS_MIN + (class as u32 >> STEP_BITS);
    let step = class & ((1 << STEP_BITS) - 1);
    (1 << doubling) + (step << (doubling - STEP_BITS))
}

pub(super) const fn slab_blocks(class: usize) -> usize {
    let fit = SLAB_BYTES / class_bytes(class);
    if fit == 0 {
        1
    } else if fit > SLAB_BLOCKS_MAX {
        SLAB_BLOCKS_MAX
    } else {
        fit
    }
}

/// Returns the smallest class whose blocks have at least `len` bytes; with `paged`, the smallest
/// such class of whole pages. REQUIRES: `len` is at most [`CLASS_BYTES_MAX`].
#[inline]
pub(super) fn class_for(len: usize, paged: bool) -> usize {
    debug_assert!(len <= CLASS_BYTES_MAX);
    let len = len.max(CLASS_BYTES_MIN);
    // A length that is a power of two belongs to the doubling below it.
    let doubling = (len - 1).ilog2().max(CLASS_BITS_MIN - 1);
    let mut class = if doubling < CLASS_BITS_MIN {
        0
    } else {
        let step_bits = doubling - STEP_BITS;
        let step = (len - (1 << doubling)).div_ceil(1 << step_bits);
        (((doubling - CLASS_BITS_MIN) << STEP_BITS) as usize) + step
    };
    while paged && !class_bytes(class).is_multiple_of(PAGE_BYTES) {
        class += 1;
    }
    class
}

const _: () = assert!(class_bytes(CLASSES - 1) == CLASS_BYTES_MAX);
const _: () = assert!(CLASSES <= u8::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_gets_the_smallest_class_that_holds_it() {
        let mut expected = 0;
        for len in 1..=CLASS_BYTES_MAX {
            if len > class_bytes(expected) {
                expected += 1;
            }
            assert_eq!(class_for(len, false), expected, "length {len}");
        }
        assert_eq!(expected, CLASSES - 1);
    }

    #[test]
    fn paged_classes_are_whole_pages_and_waste_little() {
        for len in (1..=CLASS_BYTES_MAX).step_by(509) {
            let bytes = class_bytes(class_for(len, true));
            assert_eq!(bytes % PAGE_BYTES, 0);
            assert!(bytes >= len);
            assert!(bytes - len <= (len / 8).max(PAGE_BYTES), "length {len} gets {bytes}");
        }
    }

    #[test]
    fn slabs_hold_at_least_one_block_and_at_most_a_word_of_them() {
        for class in 0..CLASSES {
            assert!((1..=SLAB_BLOCKS_MAX).contains(&slab_blocks(class)));
        }
    }
}
