//! The Bloom filter of one sorted array: whether a key may be in the array.
//!
//! A point read finds about twenty arrays and its key lies in one or none, so the filter saves
//! nearly all binary searches. All bits of a key lie in one 64-bit word: a probe is one load. With
//! 8 bits per key, of which 4 are set, about 1 probe in 30 is a false positive.

use crate::arena::Slot;

const BITS_PER_KEY: usize = 8;

/// Immutable once the array is published.
pub(crate) struct Filter {
    words: Box<[u64]>,
}

impl Filter {
    /// Creates an empty filter with room for `keys` keys.
    pub(crate) fn with_capacity(keys: usize) -> Self {
        Self { words: vec![0; (keys * BITS_PER_KEY).div_ceil(64)].into_boxed_slice() }
    }

    /// Adds the keys of `slots`.
    pub(crate) fn add(&mut self, slots: &[Slot]) {
        let count = self.words.len() as u64;
        for slot in slots {
            let (word, bits) = place(slot.hash(), count);
            self.words[word] |= bits;
        }
    }

    /// Returns whether a key with this hash may be in the array. `false` is certain.
    #[inline]
    pub(crate) fn may_hold(&self, hash: u64) -> bool {
        let (word, bits) = place(hash, self.words.len() as u64);
        self.words.get(word).is_some_and(|w| w & bits == bits)
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }
}

/// Returns the index of a key's word, and the key's bits in that word. The upper half of the hash
/// chooses the word, the lower half the bits.
#[inline]
fn place(hash: u64, count: u64) -> (usize, u64) {
    let word = ((hash >> 32) * count) >> 32;
    let bits =
        1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63) | 1 << (hash >> 18 & 63);
    (word as usize, bits)
}
