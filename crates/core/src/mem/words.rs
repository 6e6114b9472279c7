//! [`Words`]: numbers in a block of fixed size, for arrays that are large and short-lived.
//!
//! From the ordinary heap they would come as a vector that doubles. glibc maps such a vector at first, and
//! from the first time that one is freed on takes those of its size from its arenas, where they stay: a
//! process with a budget of 16 MiB was seen to keep 30 MiB of them.

use std::ops::{Deref, DerefMut};

use super::Buf;

/// A buffer of `u64`s that never grows. See the module's head.
#[derive(Debug)]
pub struct Words {
    buf: Buf,
    len: usize,
}

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

impl Words {
    /// Room for `words`, at least one.
    #[must_use]
    pub fn with_capacity(words: usize) -> Self {
        // Not of no bytes: that has no address of its own, so none that is aligned.
        Self { buf: Buf::packed(words.max(1) * WORD), len: 0 }
    }

    /// Whether there is no room left.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.buf.len() / WORD
    }

    /// Appends a word.
    ///
    /// # Panics
    /// If it [is full](Self::is_full).
    #[inline]
    pub fn push(&mut self, word: u64) {
        assert!(!self.is_full(), "there is room");
        let at = self.len;
        self.len += 1;
        self[at] = word;
    }

    /// Appends several.
    ///
    /// # Panics
    /// If there is no room for all of them.
    pub fn extend(&mut self, words: &Self) {
        let (at, bytes) = (self.len * WORD, words.len * WORD);
        self.buf[at..at + bytes].copy_from_slice(&words.buf[..bytes]);
        self.len += words.len;
    }

    /// Leaves out each word that equals the one before it.
    pub fn dedup(&mut self) {
        let words = &mut **self;
        let mut kept = words.len().min(1);
        for i in 1..words.len() {
            if words[i] != words[kept - 1] {
                words[kept] = words[i];
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// Bytes of memory it holds.
    #[must_use]
    pub fn footprint(&self) -> usize {
        self.buf.footprint()
    }
}

impl Deref for Words {
    type Target = [u64];

    #[inline]
    fn deref(&self) -> &[u64] {
        let start = self.buf.as_ptr().cast::<u64>();
        // SAFETY: the block has bytes, so it is aligned to 16, and room for `len` words; all its bytes are
        // initialised, and any are a number. `&self` keeps writers away.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

impl DerefMut for Words {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u64] {
        let start = self.buf.as_mut_ptr().cast::<u64>();
        // SAFETY: as above, and `&mut self` keeps everyone else away.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_pushed_up_to_its_room() {
        for room in [1, 7, 512, 100_000, 600_000] {
            let mut words = Words::with_capacity(room);
            assert!(words.is_empty());
            (0..room as u64).for_each(|i| words.push(i * i / 3));
            assert!(words.is_full() && words.footprint() >= room * WORD);
            let mut both = Words::with_capacity(2 * room);
            both.extend(&words);
            both.extend(&words);
            assert!(both.is_full());
            both.sort_unstable();
            both.dedup();
            words.dedup();
            assert_eq!(*both, *words);
            assert!((0..room as u64).all(|i| words.binary_search(&(i * i / 3)).is_ok()));
        }
        let mut empty = Words::with_capacity(0);
        empty.dedup();
        assert!(empty.is_empty() && !empty.is_full());
    }
}
