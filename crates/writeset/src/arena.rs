//! [`Arena`]: the memory for the keys and values of a sort buffer, in pieces of equal size.
//!
//! The arena grows by one piece at a time, and a full piece never moves. Pieces are memory of
//! [`frondb_core::mem`] and not of malloc. A single vector that grew by a quarter left copies of
//! itself in malloc's free lists: a load with 50 MiB for sorting held 150 MiB more for a second.
//!
//! ```text
//!   place   piece (14 bits) | offset in it (18 bits)
//!   pieces  [ k v k v .. ] [ k v .. (rest unused) ] [ k v ..        ]
//! ```

use frondb_core::limits::{KEY_BYTES_MAX, VALUE_INLINE_BYTES_MAX};
use frondb_core::mem::Array;

const PIECE_BITS: u32 = 18;
/// Bytes of a piece. A key and its value are in one piece.
const PIECE_BYTES: usize = 1 << PIECE_BITS;
const _: () = assert!(KEY_BYTES_MAX + VALUE_INLINE_BYTES_MAX <= PIECE_BYTES / 2);

/// Pairs of keys and values, addressed by their places (piece and offset). One thread at a time may
/// use it.
#[derive(Default)]
pub(crate) struct Arena {
    /// The first `used` pieces are in use; the others are kept for later.
    pieces: Vec<Array<u8>>,
    used: usize,
    /// Bytes of all pairs.
    bytes: usize,
}

impl Arena {
    /// Adds a pair and returns its place, which is above the place of every earlier pair.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> u32 {
        // An empty pair takes one byte, because the next pair would otherwise have the same place.
        let pad = usize::from(key.is_empty() && value.is_empty());
        let more = key.len() + value.len() + pad;
        let has_room = |piece: &Array<u8>| PIECE_BYTES - piece.len() >= more;
        if !self.last().is_some_and(has_room) {
            self.begin_piece();
        }
        let number = self.used - 1;
        let piece = &mut self.pieces[number];
        let offset = piece.len();
        piece.extend_from_slice(key);
        piece.extend_from_slice(value);
        piece.extend_from_slice(&[0][..pad]);
        self.bytes += more - pad;
        (number << PIECE_BITS | offset) as u32
    }

    fn last(&self) -> Option<&Array<u8>> {
        self.pieces[..self.used].last()
    }

    fn begin_piece(&mut self) {
        if self.used == self.pieces.len() {
            // The first piece grows as it is filled, because there may be many trees with few
            // entries.
            let first = self.pieces.is_empty();
            let piece = if first { Array::new() } else { Array::with_capacity(PIECE_BYTES) };
            self.pieces.push(piece);
        }
        self.used += 1;
    }

    /// Returns the `len` bytes that start at `place`, all of one pair.
    #[inline]
    pub(crate) fn get(&self, place: u32, len: usize) -> &[u8] {
        let (piece, offset) = (place >> PIECE_BITS, place as usize & (PIECE_BYTES - 1));
        &self.pieces[piece as usize][offset..offset + len]
    }

    /// Returns the byte at `place + further`; `None` beyond the end of the piece.
    #[inline]
    pub(crate) fn byte(&self, place: u32, further: usize) -> Option<u8> {
        let (piece, offset) = (place >> PIECE_BITS, place as usize & (PIECE_BYTES - 1));
        self.pieces[piece as usize].get(offset + further).copied()
    }

    /// Returns the total length of all keys and values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the bytes that the pairs take, including unused ends of pieces, which were too short
    /// for a pair.
    pub(crate) fn used_bytes(&self) -> usize {
        self.last().map_or(0, |last| (self.used - 1) * PIECE_BYTES + last.len())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.pieces.iter().map(Array::allocated).sum()
    }

    /// Removes all pairs and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.pieces.iter_mut().for_each(Array::clear);
        (self.used, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_at_their_places_before_and_after_a_clear() {
        let mut arena = Arena::default();
        for round in 0..2 {
            let mut places = Vec::new();
            // Many lengths, including the largest, over several pieces.
            for i in 0..400 {
                let key = vec![i as u8; (i * 83 + round) % 700];
                let value = vec![!(i as u8); (i * 6151) % VALUE_INLINE_BYTES_MAX];
                places.push((arena.push(&key, &value), key, value));
            }
            let longest = (vec![1; KEY_BYTES_MAX], vec![2; VALUE_INLINE_BYTES_MAX]);
            places.push((arena.push(&longest.0, &longest.1), longest.0, longest.1));
            let bytes: usize = places.iter().map(|(_, key, value)| key.len() + value.len()).sum();
            assert_eq!(arena.bytes(), bytes);
            assert!(arena.used > 40 && arena.used_bytes() >= bytes);
            assert!(arena.used_bytes() < bytes + arena.used * VALUE_INLINE_BYTES_MAX);
            assert!(arena.memory_bytes() >= arena.used_bytes());
            for (place, key, value) in &places {
                let pair = [&key[..], value].concat();
                assert_eq!(arena.get(*place, pair.len()), pair);
                // Beyond the pair's end lies the next pair, or the end of the piece.
                if let Some(&second) = pair.get(1) {
                    assert_eq!(arena.byte(*place, 1), Some(second));
                }
            }
            let memory = arena.memory_bytes();
            arena.clear();
            assert_eq!((arena.bytes(), arena.used_bytes()), (0, 0));
            assert_eq!(arena.memory_bytes(), memory);
        }
    }

    #[test]
    fn an_empty_pair_has_its_own_place_even_after_a_full_piece() {
        let mut arena = Arena::default();
        let pair = [7; 16];
        let before: Vec<u32> = (0..PIECE_BYTES / 16).map(|_| arena.push(&pair, b"")).collect();
        let (first, second) = (arena.push(b"", b""), arena.push(b"", b""));
        let next = arena.push(b"", b"x");
        assert!(before.last() < Some(&first) && first < second && second < next);
        assert_eq!((arena.get(first, 0), arena.get(next, 1)), (&[][..], &b"x"[..]));
        assert_eq!(arena.bytes(), PIECE_BYTES + 1);
    }

    #[test]
    fn few_entries_take_little_memory() {
        let mut arena = Arena::default();
        assert_eq!(arena.memory_bytes(), 0);
        (0..10).for_each(|_| _ = arena.push(b"key", b"value"));
        assert!(arena.memory_bytes() < 1024, "{}", arena.memory_bytes());
    }
}
