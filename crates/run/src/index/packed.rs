//! The packed bytes of a group of blocks: the encoding of single fields, and iterators over them.

use std::cmp::Ordering;

use frondb_core::codec::{Reader, put_varint};

use super::separator::shared_bytes;

/// Head of a packed block whose two lengths do not fit into four bits each or are both 15, or which
/// continues a key: the lengths follow as varints, the first shifted left by one, with bit 0 for
/// *continues*.
const LONG_HEAD: u8 = 0xff;

/// The head of a packed block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PackedHead {
    /// Bytes that the separator shares with the first non-empty separator of its group.
    pub(super) shared: usize,
    /// Length of the rest of the separator in bytes.
    pub(super) rest: usize,
    /// Whether the block begins with the last key of its predecessor.
    pub(super) continues: bool,
}

impl PackedHead {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let Self { shared, rest, continues } = self;
        if shared < 16 && rest < 16 && shared + rest < 30 && !continues {
            out.push((shared << 4 | rest) as u8);
            return;
        }
        out.push(LONG_HEAD);
        put_varint(out, (shared as u64) << 1 | u64::from(continues));
        put_varint(out, rest as u64);
    }

    #[inline]
    pub(super) fn decode(input: &mut &[u8]) -> Option<Self> {
        let (&head, rest) = input.split_first()?;
        *input = rest;
        if head != LONG_HEAD {
            let (shared, rest) = (usize::from(head >> 4), usize::from(head & 15));
            return Some(Self { shared, rest, continues: false });
        }
        let (shared, rest) = (take_varint(input)?, take_varint(input)? as usize);
        Some(Self { shared: (shared >> 1) as usize, rest, continues: shared & 1 == 1 })
    }
}

/// Takes the varint at the front, which usually has one or two bytes.
#[inline]
pub(super) fn take_varint(input: &mut &[u8]) -> Option<u64> {
    let (number, rest) = match **input {
        [a, ref rest @ ..] if a < 0x80 => (u64::from(a), rest),
        [a, b, ref rest @ ..] if b < 0x80 => (u64::from(a & 0x7f) | u64::from(b) << 7, rest),
        _ => {
            let mut reader = Reader::new(input);
            (reader.varint().ok()?, reader.rest())
        }
    };
    *input = rest;
    Some(number)
}

/// Returns the zigzag encoding of the difference to `base`: small if `number` is near `base`.
pub(super) fn fold(base: u64, number: u64) -> u64 {
    let difference = number.wrapping_sub(base) as i64;
    (difference << 1 ^ difference >> 63) as u64
}

/// Inverts [`fold`].
#[inline]
pub(super) fn unfold(base: u64, folded: u64) -> u64 {
    base.wrapping_add(folded >> 1 ^ (folded & 1).wrapping_neg())
}

/// The separators of a group: the head and the rest of each. [`IndexPacker`](super::IndexPacker)
/// wrote the packed bytes, so decoding can fail only at their end.
pub(super) struct PackedSeparators<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for PackedSeparators<'a> {
    type Item = (PackedHead, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let head = PackedHead::decode(&mut self.0)?;
        let (tail, rest) = self.0.split_at_checked(head.rest)?;
        self.0 = rest;
        Some((head, tail))
    }
}

impl PackedSeparators<'_> {
    /// Returns the number of the group's last block whose separator is not above `key`, or 0, and
    /// whether that block continues the key.
    #[inline]
    pub(super) fn last_not_above(self, key: &[u8]) -> (usize, bool) {
        let (mut found, mut continues) = (0, false);
        // Number of bytes that the key shares with the group's first non-empty separator, once the
        // loop has read it. A later separator that shares more bytes with the first one is below
        // the key, and a separator that shares fewer bytes is above the key.
        let (mut shared, mut is_first) = (0, true);
        for (number, (head, tail)) in self.enumerate() {
            let order = if is_first {
                (shared, is_first) = (shared_bytes(tail, key), tail.is_empty());
                tail.cmp(key)
            } else {
                match head.shared.cmp(&shared) {
                    Ordering::Greater => Ordering::Less,
                    Ordering::Less => Ordering::Greater,
                    Ordering::Equal => compare(tail, &key[shared..]),
                }
            };
            if order == Ordering::Greater {
                break;
            }
            (found, continues) = (number, order == Ordering::Equal && head.continues);
        }
        (found, continues)
    }
}

/// Compares two strings that usually differ in their first byte.
#[inline]
fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (a.first(), b.first()) {
        (Some(a), Some(b)) if a != b => a.cmp(b),
        _ => a.cmp(b),
    }
}

/// The sizes of a group: bytes and entries of each block.
pub(super) struct PackedSizes<'a> {
    rest: &'a [u8],
    /// Offset and rank of the group's first block within the part.
    pub(super) offset: u64,
    pub(super) rank: u64,
    /// Bytes and entries of the group's first block.
    bytes: u64,
    entries: u64,
}

impl<'a> PackedSizes<'a> {
    #[inline]
    pub(super) fn new(mut rest: &'a [u8]) -> Self {
        let mut start = || take_varint(&mut rest).unwrap_or(0);
        let (offset, rank, bytes, entries) = (start(), start(), start(), start());
        Self { rest, offset, rank, bytes, entries }
    }
}

impl Iterator for PackedSizes<'_> {
    type Item = (u64, u64);

    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        let (bytes, entries) = (take_varint(&mut self.rest)?, take_varint(&mut self.rest)?);
        Some((unfold(self.bytes, bytes), unfold(self.entries, entries)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_packed_blocks_round_trip() {
        let lengths = [0, 1, 7, 14, 15, 16, 17, 127, 128, 300, 4000];
        for (shared, rest) in lengths.iter().flat_map(|a| lengths.map(|b| (*a, b))) {
            for continues in [false, true] {
                let head = PackedHead { shared, rest, continues };
                let mut out = Vec::new();
                head.encode(&mut out);
                let is_short = shared < 16 && rest < 16 && shared + rest < 30 && !continues;
                assert_eq!(out.len() == 1, is_short, "{head:?}");
                assert_eq!(PackedHead::decode(&mut &out[..]), Some(head));
            }
        }
    }

    #[test]
    fn varints_are_taken_off_the_front() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 40, u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, number);
            let end = out.len();
            out.push(9);
            let mut rest = &out[..];
            assert_eq!((take_varint(&mut rest), rest), (Some(number), &[9][..]));
            assert_eq!(take_varint(&mut &out[..end - 1]), None);
        }
    }

    #[test]
    fn near_numbers_are_folded_to_small_ones() {
        let numbers = [0, 1, 63, 64, 200, 1 << 40, u64::MAX - 1, u64::MAX];
        for (base, number) in numbers.iter().flat_map(|a| numbers.map(|b| (*a, b))) {
            assert_eq!(unfold(base, fold(base, number)), number);
        }
        assert_eq!([fold(100, 100), fold(100, 99), fold(100, 164)], [0, 1, 128]);
    }
}
