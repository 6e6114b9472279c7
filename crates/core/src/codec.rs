//! Encoding and decoding of the values in file formats: little-endian integers of fixed width,
//! LEB128 varints, bytes with their length. Decoding never panics; at the end of its bytes, a
//! reader returns [`Truncated`].

use std::fmt;

/// The error of decoding: the input ends within a value, or a varint has more bits than its type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Truncated;

impl fmt::Display for Truncated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the encoded value is truncated or malformed")
    }
}

impl std::error::Error for Truncated {}

/// Appends `value` as LEB128.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a varint length and the bytes.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an optional byte string: its length + 1 as a varint, then the bytes; 0 for `None`.
pub fn put_bytes_opt(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => out.push(0),
        Some(bytes) => {
            put_varint(out, bytes.len() as u64 + 1);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads values from the front of a byte slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the beginning of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the bytes that were not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads one byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        Ok(u16::from_le_bytes(*self.array()?))
    }

    /// Reads four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_le_bytes(*self.array()?))
    }

    /// Reads eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        Ok(u64::from_le_bytes(*self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads a LEB128 varint of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let mut value = 0u64;
        for (i, &byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if i == 9 && bits > 1 {
                return Err(Truncated);
            }
            value |= bits << (7 * i);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[i + 1..];
                return Ok(value);
            }
        }
        Err(Truncated)
    }

    /// Reads a varint of at most 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32, Truncated> {
        u32::try_from(self.varint()?).map_err(|_| Truncated)
    }

    /// Reads a varint length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let n = usize::try_from(self.varint()?).map_err(|_| Truncated)?;
        self.take(n)
    }

    /// Reads an optional byte string that [`put_bytes_opt`] wrote.
    pub fn bytes_opt(&mut self) -> Result<Option<&'a [u8]>, Truncated> {
        match self.varint()? {
            0 => Ok(None),
            n => {
                let n = usize::try_from(n - 1).map_err(|_| Truncated)?;
                self.take(n).map(Some)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_never_read_past_the_end() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(Reader::new(&out).varint(), Ok(value));
            for cut in 0..out.len() {
                assert_eq!(Reader::new(&out[..cut]).varint(), Err(Truncated));
            }
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), Err(Truncated));
    }

    #[test]
    fn optional_bytes_round_trip() {
        for value in [None, Some(&b""[..]), Some(b"abc")] {
            let mut out = Vec::new();
            put_bytes_opt(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!(reader.bytes_opt(), Ok(value));
            assert!(reader.is_empty());
        }
    }
}
