//! Repairs a single damaged byte of a record, and collects the findings of a salvage in a file of
//! records.
//!
//! A record's checksum has 64 bits. If the checksum matches after a change of one byte, the change
//! has undone the damage, except for a chance of one in 2^64 per attempt. So a repair is not a
//! guess. Other damage is not repaired.

use frondb_core::Error;

use super::{HEADER_BYTES, RecordPlace, peek, verify};

/// Shorter records are repaired by trying every value of every byte: at most about a second of
/// hashing.
const BYTES_MAX: usize = 4096;
/// Records up to this length are repaired by trying to flip every bit.
const BITS_MAX: usize = 64 * 1024;

/// Findings of a salvage in the manifest and in the log.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// One error for each repaired byte, with its place.
    pub repaired: Vec<Error>,
    /// One error for each loss, with the place where it begins.
    pub lost: Vec<Error>,
}

impl Findings {
    /// Records a repaired byte.
    pub fn repaired(&mut self, file: &str, offset: u64, what: &'static str) {
        let message = "repaired one damaged byte: the checksum matches again";
        self.repaired.push(Error::corruption(file, offset, what, message));
    }

    /// Records a loss of data that begins at `offset`.
    pub fn lost(
        &mut self,
        file: &str,
        offset: u64,
        what: &'static str,
        message: impl Into<String>,
    ) {
        self.lost.push(Error::corruption(file, offset, what, message.into()));
    }
}

/// Finds the one damaged byte whose repair makes the bytes a valid record of this place. Returns
/// its index and its right value, or `None` if no single change makes the record valid. After the
/// header, not every change is tried: in records of 4 KiB or more only flipped bits, and above 64
/// KiB none.
#[must_use]
pub fn one_byte(bytes: &[u8], place: RecordPlace) -> Option<(usize, u8)> {
    if bytes.len() < HEADER_BYTES {
        return None;
    }
    let mut head = [0; HEADER_BYTES];
    head.copy_from_slice(&bytes[..HEADER_BYTES]);
    let own = peek(&head, place).ok().map(|header| header.frame_bytes());
    let mut copy = bytes[..own.unwrap_or(0).max(HEADER_BYTES).min(bytes.len())].to_vec();
    // These bytes include the checksum, which may be damaged itself. Changes of other bytes may
    // change the length of the record.
    for at in 0..HEADER_BYTES {
        for value in 0..=u8::MAX {
            let mut head = head;
            head[at] = value;
            let Ok(header) = peek(&head, place) else { continue };
            let Some(frame) = bytes.get(..header.frame_bytes()) else { continue };
            if frame.len() != copy.len() {
                copy.clear();
                copy.extend_from_slice(frame);
            }
            copy[..HEADER_BYTES].copy_from_slice(&head);
            if value != bytes[at] && verify(&copy, place) {
                return Some((at, value));
            }
        }
    }
    let frame_bytes = own.filter(|&frame_bytes| frame_bytes <= bytes.len())?;
    let mut copy = bytes[..frame_bytes].to_vec();
    for at in HEADER_BYTES..frame_bytes {
        let right = copy[at];
        for change in changes(frame_bytes) {
            copy[at] = right ^ change;
            if verify(&copy, place) {
                return Some((at, copy[at]));
            }
        }
        copy[at] = right;
    }
    None
}

/// Returns the values to XOR into each byte after the header, for a record of this length.
fn changes(frame_bytes: usize) -> impl Iterator<Item = u8> {
    let bits =
        (0..8).map(|bit| 1 << bit).filter(move |_| (BYTES_MAX..=BITS_MAX).contains(&frame_bytes));
    let bytes = (1..=u8::MAX).filter(move |_| frame_bytes < BYTES_MAX);
    bits.chain(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use crate::frame::{Body, append, decode};

    const PLACE: RecordPlace = RecordPlace { generation: 3, position: 1000 };

    #[test]
    fn any_one_byte_is_repaired() {
        for len in [0, 1, 40, 300] {
            let mut frame = Vec::new();
            let payload: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            append(&mut frame, PLACE, 1, Some(900), Body::Raw(&[&payload])).unwrap();
            for at in 0..frame.len() {
                for change in [1, 0x80, 0xff, 0x55] {
                    let mut bytes = frame.clone();
                    bytes[at] ^= change;
                    bytes.extend_from_slice(&[7; 50]);
                    assert_eq!(one_byte(&bytes, PLACE), Some((at, frame[at])), "{len} at {at}");
                }
            }
        }
    }

    #[test]
    fn one_bit_of_a_long_record_is_repaired() {
        let mut frame = Vec::new();
        append(&mut frame, PLACE, 1, None, Body::Raw(&[&[9; 6000]])).unwrap();
        let mut bytes = frame.clone();
        bytes[100] ^= 4;
        assert_eq!(one_byte(&bytes, PLACE), Some((100, 9)));
    }

    #[test]
    fn two_bytes_zeros_and_records_of_another_place_are_not_repaired() {
        let mut frame = Vec::new();
        append(&mut frame, PLACE, 1, None, Body::Raw(&[b"some bytes"])).unwrap();
        assert_eq!(one_byte(&frame, RecordPlace { position: 1001, ..PLACE }), None);
        assert_eq!(one_byte(&[0; 64], PLACE), None);
        assert_eq!(one_byte(&frame[..10], PLACE), None);
        frame[17] ^= 1;
        frame[20] ^= 1;
        assert_eq!(one_byte(&frame, PLACE), None);
        assert!(decode(&frame, PLACE, &mut Vec::new()).is_err());
    }
}
