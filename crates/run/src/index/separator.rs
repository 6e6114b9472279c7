//! [`Separator`]: a string between the keys of two neighbouring blocks.
//!
//! ```text
//!  block       0            1            2            3
//!  separator   ""           "f"          "kiwi" (c)   "m"
//!  keys        [a .. elm]   [f .. kiwi]  [kiwi .. l]  [m .. z]
//! ```
//!
//! (c) marks a block that *continues* the last key of its predecessor: versions of one key may fill
//! several blocks, and the separator is then that key itself. Every other separator lies above the
//! last key of the previous block. So the keys of block `i` are in `[separator(i), separator(i +
//! 1))`, including the end if block `i + 1` continues.

use std::cmp::Ordering;

/// The separator of a block, in two pieces.
#[derive(Clone, Copy, Debug)]
pub struct Separator<'a> {
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
}

impl<'a> Separator<'a> {
    /// Creates a separator stored in one piece.
    pub(super) fn whole(tail: &'a [u8]) -> Self {
        Self { head: &[], tail }
    }

    /// Returns the separator in one piece.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        [self.head, self.tail].concat()
    }

    #[inline]
    fn compare(&self, key: &[u8]) -> Ordering {
        let (head, tail) = key.split_at(self.head.len().min(key.len()));
        self.head.cmp(head).then_with(|| self.tail.cmp(tail))
    }
}

impl PartialEq<[u8]> for Separator<'_> {
    #[inline]
    fn eq(&self, key: &[u8]) -> bool {
        self.compare(key) == Ordering::Equal
    }
}

impl PartialOrd<[u8]> for Separator<'_> {
    #[inline]
    fn partial_cmp(&self, key: &[u8]) -> Option<Ordering> {
        Some(self.compare(key))
    }
}

/// Returns the length of the common prefix of two strings.
#[inline]
pub(super) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns whether a separator may follow the previous one: separators ascend, and two are equal
/// only if the block continues a key.
#[inline]
pub(super) fn may_follow(previous: &[u8], separator: &[u8], continues: bool) -> bool {
    match previous.cmp(separator) {
        Ordering::Less => true,
        Ordering::Equal => continues,
        Ordering::Greater => false,
    }
}
