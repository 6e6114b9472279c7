//! Byte codec for formats: little-endian fixed integers, LEB128 varints, length-prefixed bytes.
//! Reading never panics; a reader that runs out of bytes returns [`Truncated`].

use std::fmt;

/// The input ended before the value did, or a varint is longer than its type.
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

/// Appends an optional byte string: length + 1, or 0 for `None`.
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
    /// Reads from the beginning of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes were read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (head, rest) = self.rest.split_at_checked(n).ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        Ok(u16::from_le_bytes(*self.array()?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        Ok(u32::from_le_bytes(*self.array()?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, Truncated> {
        Ok(u64::from_le_bytes(*self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], Truncated> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    /// A LEB128 varint of at most 64 bits.
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

    /// A varint that must fit 32 bits.
    pub fn varint_u32(&mut self) -> Result<u32, Truncated> {
        u32::try_from(self.varint()?).map_err(|_| Truncated)
    }

    /// A varint length and that many bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8], Truncated> {
        let n = usize::try_from(self.varint()?).map_err(|_| Truncated)?;
        self.take(n)
    }

    /// An optional byte string written by [`put_bytes_opt`].
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
