//! [`Array`]: a vector of plain values, with memory of the engine's allocator.
//!
//! The engine constantly allocates and frees memory of some kibibytes (chunks, indexes of blocks,
//! hashes). With malloc, this memory would leave holes in the arenas, of which each thread may have
//! one. A measured process with a budget of 16 MiB kept 12 MiB in six arenas, with less than 1 MiB
//! in use.

use std::fmt;
use std::iter::Copied;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::slice::{Iter, from_raw_parts, from_raw_parts_mut};

use super::allocator::{BLOCK_ALIGN, Block};

/// Initial capacity of an array that grows, in bytes.
const FIRST_BYTES: usize = 64;

/// A growable array of plain values, like a [`Vec`], with memory from the block allocator.
///
/// As with a vector, a capacity beyond the address space causes a panic. So callers check a length
/// that was read from a file against the file's size first. Threads may share an array for reading.
pub struct Array<T> {
    block: Block,
    /// The elements are at the beginning of the block.
    len: usize,
    elements: std::marker::PhantomData<T>,
}

impl<T: Copy> Array<T> {
    /// Creates an empty array, without memory.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= BLOCK_ALIGN) };
        Self { block: Block::empty(), len: 0, elements: std::marker::PhantomData }
    }

    /// Creates an empty array with room for at least `elements` elements.
    #[must_use]
    pub fn with_capacity(elements: usize) -> Self {
        let mut array = Self::new();
        array.reserve_exact(elements);
        array
    }

    /// Returns the number of elements for which the array has memory.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.block.bytes() / size_of::<T>()
    }

    /// Returns the bytes of memory of the array.
    #[inline]
    #[must_use]
    pub fn allocated(&self) -> usize {
        self.block.bytes()
    }

    /// Whether the next element needs more memory.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.capacity()
    }

    /// Reserves room for `more` elements. If the elements must move for that, the new room is for
    /// at least twice the current number of elements.
    #[inline]
    pub fn reserve(&mut self, more: usize) {
        if self.capacity() - self.len < more {
            self.grow(more);
        }
    }

    /// Reserves room for `more` elements, with little additional room.
    pub fn reserve_exact(&mut self, more: usize) {
        if self.capacity() - self.len < more {
            self.move_to(self.len.saturating_add(more));
        }
    }

    /// Appends an element.
    #[inline]
    pub fn push(&mut self, element: T) {
        if self.is_full() {
            self.grow(1);
        }
        // SAFETY: the block has room for one more after the first `len`.
        unsafe { self.start().add(self.len).write(element) };
        self.len += 1;
    }

    /// Appends copies of `elements`.
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        self.reserve(elements.len());
        // SAFETY: the block has room for the elements after the first `len`, and the block has no
        // other owner whose slice could overlap them.
        unsafe {
            let end = self.start().add(self.len);
            end.copy_from_nonoverlapping(NonNull::from(elements).cast(), elements.len());
        }
        self.len += elements.len();
    }

    /// Appends copies of the elements in `range`.
    ///
    /// # Panics
    /// If the range ends beyond the elements.
    #[inline]
    pub fn extend_from_within(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "range out of bounds");
        let count = range.end - range.start;
        self.reserve(count);
        // SAFETY: the range lies within the first `len` elements, and there is room for as many
        // after them.
        unsafe {
            let from = self.start().add(range.start);
            self.start().add(self.len).copy_from_nonoverlapping(from, count);
        }
        self.len += count;
    }

    /// Appends `element` `times` times, and returns the appended elements.
    #[inline]
    pub fn append(&mut self, times: usize, element: T) -> &mut [T] {
        let before = self.len;
        self.resize(before + times, element);
        &mut self[before..]
    }

    /// Truncates the array to `len` elements, or extends it to `len` with copies of `element`.
    #[inline]
    pub fn resize(&mut self, len: usize, element: T) {
        if let Some(more) = len.checked_sub(self.len) {
            self.reserve(more);
            // Load the address once. In the loop, the compiler would load it for each element,
            // because for all it knows a written byte may change the address.
            let start = self.start();
            for i in self.len..len {
                // SAFETY: there is room for `len` elements.
                unsafe { start.add(i).write(element) };
            }
        }
        self.len = len;
    }

    /// Truncates the array to at most `len` elements, and keeps the memory.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes all elements, and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    fn start(&self) -> NonNull<T> {
        self.block.start().cast()
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let least = FIRST_BYTES / size_of::<T>();
        self.move_to(self.len.saturating_add(more.max(self.len).max(least)));
    }

    /// Moves the elements to a block with room for `elements` elements. REQUIRES: `elements` is at
    /// least the current length.
    fn move_to(&mut self, elements: usize) {
        let Some(bytes) = elements.checked_mul(size_of::<T>()) else {
            panic!("capacity overflow");
        };
        let block = Block::alloc(bytes, false);
        let old = std::mem::replace(&mut self.block, block);
        // SAFETY: both blocks have room for `len` elements, and a new block has no other owner.
        unsafe { self.start().copy_from_nonoverlapping(old.start().cast(), self.len) };
    }
}

impl<T: Copy + PartialEq> Array<T> {
    /// Removes each element that equals its predecessor.
    pub fn dedup(&mut self) {
        let mut kept = self.len.min(1);
        for i in 1..self.len {
            if self[i] != self[kept - 1] {
                self[kept] = self[i];
                kept += 1;
            }
        }
        self.len = kept;
    }
}

impl<T: Copy> Deref for Array<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the block is aligned to `BLOCK_ALIGN`, its first `len` elements were written, and
        // `&self` excludes writers.
        unsafe { from_raw_parts(self.start().as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for Array<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `&mut self` excludes all other access.
        unsafe { from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }
}

impl<T: Copy> Default for Array<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self::from(&self[..])
    }
}

impl<T: Copy> From<&[T]> for Array<T> {
    fn from(elements: &[T]) -> Self {
        let mut array = Self::with_capacity(elements.len());
        array.extend_from_slice(elements);
        array
    }
}

impl<T: Copy> Extend<T> for Array<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        let elements = elements.into_iter();
        self.reserve(elements.size_hint().0);
        elements.for_each(|element| self.push(element));
    }
}

impl<T: Copy> FromIterator<T> for Array<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut array = Self::new();
        array.extend(elements);
        array
    }
}

impl<'a, T: Copy> IntoIterator for &'a Array<T> {
    type Item = T;
    type IntoIter = Copied<Iter<'a, T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().copied()
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_equals_a_vector() {
        let (mut array, mut vec) = (Array::new(), Vec::new());
        for i in 0..100_000u32 {
            match i % 7 {
                0 => {
                    let len = vec.len() * 2 / 3 % 9001;
                    array.resize(len, i);
                    vec.resize(len, i);
                }
                1 => {
                    array.append(5, i).fill(i + 1);
                    vec.resize(vec.len() + 5, i + 1);
                }
                2 => {
                    let some = [i, i, i / 2];
                    array.extend_from_slice(&some);
                    vec.extend_from_slice(&some);
                }
                3 if i % 35 == 3 => {
                    array.truncate(3000);
                    vec.truncate(3000);
                }
                3 => {
                    array.extend_from_within(0..vec.len().min(3));
                    vec.extend_from_within(0..vec.len().min(3));
                }
                4 => {
                    array.extend(i..i + 4);
                    vec.extend(i..i + 4);
                }
                _ => {
                    array.push(i);
                    vec.push(i);
                }
            }
            assert_eq!(array.last(), vec.last());
        }
        assert_eq!(*array, *vec);
        assert_eq!(*array.clone(), *vec);
        array.dedup();
        vec.dedup();
        assert_eq!(*array, *vec);
        array.clear();
        assert!(array.is_empty() && array.capacity() > 0);
    }

    #[test]
    fn reserving_provides_the_requested_capacity() {
        for room in [0, 1, 7, 512, 100_000, 600_000] {
            let mut array = Array::<u64>::with_capacity(room);
            assert!(array.capacity() >= room && array.allocated() >= 8 * room);
            let before = array.as_ptr();
            array.extend(0..room as u64);
            assert_eq!(array.as_ptr(), before);
            assert!((0..room as u64).all(|i| array.binary_search(&i).is_ok()));
        }
        let empty = Array::<u64>::new();
        assert!(empty.is_empty() && empty.is_full() && empty.allocated() == 0);
    }

    #[test]
    fn elements_are_aligned() {
        for len in [1, 3, 100, 2000, 1_000_000] {
            let array: Array<u128> = (0..len).collect();
            assert_eq!(array.as_ptr().addr() % align_of::<u128>(), 0);
            assert_eq!(array.last(), Some(&(len - 1)));
        }
    }
}
