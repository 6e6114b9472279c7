//! Where the values of a block are in its value area.
//!
//! ```text
//!   one length   f o o b a r      length 3
//!   lengths      h e l l o f o o  05 03
//!   ended        h e l l o 0 f o o 0    end byte 0
//! ```
//!
//! In text, an end byte can replace the length of a value. With a codec a length costs 1.5 to 2.6
//! bytes a row: web log lines and JSON events take 4 to 9 % less space without lengths. An end byte
//! is mostly part of a match, so it costs next to nothing.

use std::ops::Range;

use memchr::memchr_iter;

use crate::format::{FLAG_VALUES_ENDED, FLAG_VALUES_FIXED, PayloadHeader};
use crate::rows::read_uint;

/// If values have lengths, the position of one value in this many is kept in memory.
const LENGTHS_MARKED: usize = 16;
/// The same for values with an end byte; smaller, because skipping such a value takes longer.
const ENDED_MARKED: usize = 4;

/// Candidates for the end byte, in the order in which they are tried: bytes that text does not
/// contain, and the end of a line.
const END_BYTES: [u8; 4] = [0, 0xff, 1, b'\n'];

/// Most bytes that values with their end bytes may take; larger values have lengths. Skipping a
/// huge value takes longer than decoding its length, and a scan has to copy values with an end
/// byte.
pub(crate) const ENDED_BYTES_MAX: usize = 4 << 20;

/// Returns one of [`END_BYTES`] that none of `count` values contains. `values` are the values one
/// after the other. `None` if each candidate is in a value, or if the values are too long.
pub(crate) fn end_byte(values: &[u8], count: usize) -> Option<u8> {
    let is_free = |byte: &u8| !values.contains(byte);
    let fits = values.len() + count <= ENDED_BYTES_MAX;
    fits.then(|| END_BYTES.into_iter().find(is_free)).flatten()
}

/// The data for finding the values of a block. `marks` are the positions that are kept in memory.
#[derive(Clone, Debug)]
pub(crate) enum ValuePlaces {
    /// All values have this length, or are columns.
    Fixed(usize),
    /// An array has the length of each value, in `width` bytes.
    Lengths { width: usize, marks: Box<[u32]> },
    /// Each value is followed by an end byte, which no value contains.
    Ended { end_byte: u8, marks: Box<[u32]> },
}

impl ValuePlaces {
    /// Checks that the lengths, or the end bytes in `values`, match the value area, and keeps the
    /// position of every 16th (lengths) or 4th (end byte) value. The error says what is wrong.
    pub(crate) fn new(
        header: &PayloadHeader,
        lengths: &[u8],
        values: &[u8],
    ) -> Result<Self, &'static str> {
        let count = header.count as usize;
        if header.flags & FLAG_VALUES_FIXED != 0 {
            Ok(Self::Fixed(header.value_len as usize))
        } else if header.flags & FLAG_VALUES_ENDED != 0 {
            let end_byte = u8::try_from(header.value_len).map_err(|_| "value layout")?;
            let marks = mark_ended(end_byte, values, count).ok_or("ends of values")?;
            Ok(Self::Ended { end_byte, marks })
        } else {
            let width = usize::from(header.value_width);
            let marks = mark_lengths(width, lengths, values, count).ok_or("value lengths")?;
            Ok(Self::Lengths { width, marks })
        }
    }

    #[inline]
    pub(crate) fn range(&self, lengths: &[u8], values: &[u8], index: usize) -> Range<usize> {
        match self {
            Self::Fixed(len) => index * len..(index + 1) * len,
            Self::Lengths { width, marks } => {
                let first = index / LENGTHS_MARKED * LENGTHS_MARKED;
                let len = |index| read_uint(lengths, *width, index) as usize;
                let before: usize = (first..index).map(len).sum();
                let start = marks[index / LENGTHS_MARKED] as usize + before;
                start..start + len(index)
            }
            Self::Ended { end_byte, marks } => {
                let mark = marks[index / ENDED_MARKED] as usize;
                ended_range(*end_byte, values, mark, index % ENDED_MARKED)
            }
        }
    }

    /// Bytes of memory that the object takes, besides itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Fixed(_) => 0,
            Self::Lengths { marks, .. } | Self::Ended { marks, .. } => size_of_val(&**marks),
        }
    }
}

/// Returns the range of the value that comes `after` values after the one that begins at `mark`.
/// Cold and not inlined: a block that the cache keeps for many reads stores lengths instead of end
/// bytes (see [`columns`](crate::columns)).
#[cold]
#[inline(never)]
fn ended_range(end_byte: u8, values: &[u8], mark: usize, after: usize) -> Range<usize> {
    let mut ends = memchr_iter(end_byte, &values[mark..]).map(|end| mark + end);
    let start = match after.checked_sub(1) {
        None => mark,
        Some(before) => ends.nth(before).map_or(values.len(), |end| end + 1),
    };
    start..ends.next().unwrap_or(values.len())
}

/// Checks that `values` has `count` end bytes, the last one as its last byte. Returns the marks.
fn mark_ended(end_byte: u8, values: &[u8], count: usize) -> Option<Box<[u32]>> {
    let mut marks = Vec::with_capacity(count.min(values.len()).div_ceil(ENDED_MARKED));
    let (mut start, mut found) = (0, 0);
    for end in memchr_iter(end_byte, values) {
        if found % ENDED_MARKED == 0 {
            marks.push(u32::try_from(start).ok()?);
        }
        found += 1;
        start = end + 1;
    }
    (found == count && start == values.len()).then(|| marks.into_boxed_slice())
}

/// Checks that the lengths add up to the bytes of `values`. Returns the marks.
fn mark_lengths(width: usize, lengths: &[u8], values: &[u8], count: usize) -> Option<Box<[u32]>> {
    let mut marks = Vec::with_capacity(count.div_ceil(LENGTHS_MARKED));
    let mut at = 0u64;
    for index in 0..count {
        if index % LENGTHS_MARKED == 0 {
            marks.push(u32::try_from(at).ok()?);
        }
        at += read_uint(lengths, width, index);
    }
    (at == values.len() as u64).then(|| marks.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(end_byte: u8, values: &[u8], count: u32) -> Result<ValuePlaces, &'static str> {
        let header = PayloadHeader {
            flags: FLAG_VALUES_ENDED,
            count,
            value_len: u32::from(end_byte),
            ..PayloadHeader::default()
        };
        ValuePlaces::new(&header, &[], values)
    }

    #[test]
    fn values_are_found_by_their_ends() {
        let values = b"hello\0\0foo\0a\0bc\0\0\0x\0";
        let expected = ["hello", "", "foo", "a", "bc", "", "", "x"];
        let places = ended(0, values, 8).unwrap();
        for (index, value) in expected.into_iter().enumerate() {
            assert_eq!(&values[places.range(&[], values, index)], value.as_bytes());
        }
        assert_eq!(places.memory_bytes(), 8);
    }

    #[test]
    fn malformed_ends_are_errors() {
        for (values, count) in
            [(&b"hello\0foo"[..], 2), (b"hello\0foo\0", 3), (b"", 1), (b"a\0b\0", 1)]
        {
            assert_eq!(ended(0, values, count).err(), Some("ends of values"));
        }
        let header = PayloadHeader {
            flags: FLAG_VALUES_ENDED,
            count: 1,
            value_len: 256,
            ..PayloadHeader::default()
        };
        assert!(ValuePlaces::new(&header, &[], b"\0").is_err());
    }

    #[test]
    fn an_end_byte_is_in_no_value() {
        assert_eq!(end_byte(b"text\n", 1), Some(0));
        assert_eq!(end_byte(b"\0\xff\x01", 1), Some(b'\n'));
        assert_eq!(end_byte(b"\0\xff\x01\n", 1), None);
        assert_eq!(end_byte(&vec![b'a'; ENDED_BYTES_MAX], 1), None);
    }
}
