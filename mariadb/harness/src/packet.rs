//! Packets of the client protocol: framing, and the integers and strings in them.
//!
//! ```text
//!   3 bytes length, 1 byte sequence number, then so many bytes. After length 0xFFFFFF the message
//!   continues in the next packet.
//! ```

use std::io::{self, Read, Write};

/// Longest packet, bytes. A longer message continues in the next packet.
const LONGEST: usize = 0xFF_FFFF;

/// Reads one message of any number of packets; returns it with the number of its last packet.
pub(crate) fn read(from: &mut impl Read) -> io::Result<(Vec<u8>, u8)> {
    let mut message = Vec::new();
    loop {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let [a, b, c, number] = head;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let start = message.len();
        message.resize(start + length, 0);
        from.read_exact(&mut message[start..])?;
        if length < LONGEST {
            return Ok((message, number));
        }
    }
}

/// Writes one message; `number` is the number of its first packet.
pub(crate) fn write(to: &mut impl Write, message: &[u8], mut number: u8) -> io::Result<()> {
    let mut rest = message;
    loop {
        let length = rest.len().min(LONGEST);
        let [a, b, c, _] = (length as u32).to_le_bytes();
        to.write_all(&[a, b, c, number])?;
        to.write_all(&rest[..length])?;
        rest = &rest[length..];
        number = number.wrapping_add(1);
        if length < LONGEST {
            return to.flush();
        }
    }
}

/// Reads the fields of a message from the front. A missing field is an error of kind `InvalidData`.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    /// Reads `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Reads a little-endian integer of `width` bytes.
    pub(crate) fn integer(&mut self, width: usize) -> io::Result<u64> {
        Ok(self.bytes(width)?.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
    }

    /// Reads an integer whose first byte is its value or gives its width; none for NULL.
    pub(crate) fn length(&mut self) -> io::Result<Option<u64>> {
        match self.integer(1)? {
            0xFB => Ok(None),
            0xFC => self.integer(2).map(Some),
            0xFD => self.integer(3).map(Some),
            0xFE => self.integer(8).map(Some),
            small => Ok(Some(small)),
        }
    }

    /// Reads a byte string with its length in front; none for NULL.
    pub(crate) fn text(&mut self) -> io::Result<Option<&'a [u8]>> {
        match self.length()? {
            Some(length) => self.bytes(usize::try_from(length).map_err(|_| malformed())?).map(Some),
            None => Ok(None),
        }
    }
}

/// The error for a message that breaks the protocol.
pub(crate) fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed packet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_every_length_come_back() {
        for length in [0, 1, LONGEST - 1, LONGEST, LONGEST + 1, 2 * LONGEST] {
            let message: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let mut wire = Vec::new();
            write(&mut wire, &message, 0).unwrap();
            let (back, number) = read(&mut wire.as_slice()).unwrap();
            assert_eq!(back.len(), length);
            assert!(back == message);
            assert_eq!(number as usize, length / LONGEST);
        }
    }

    #[test]
    fn fields_are_read_and_short_ones_refused() {
        let mut fields = Fields(&[7, 0xFB, 0xFC, 1, 2, 2, b'a', b'b', 9]);
        assert_eq!(fields.length().unwrap(), Some(7));
        assert_eq!(fields.text().unwrap(), None);
        assert_eq!(fields.length().unwrap(), Some(0x201));
        assert_eq!(fields.text().unwrap(), Some(&b"ab"[..]));
        assert!(fields.text().is_err());
        assert!(Fields(&[0xFD, 1]).length().is_err());
    }
}
