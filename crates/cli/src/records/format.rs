//! The bytes of a binary dump: every key and value of a tree, in key order, with checksums.
//!
//! ```text
//!  offset  size  header
//!       0     8  magic "FRONDUMP"
//!       8     4  version, 1
//!      12     4  zero
//!  then frames, and at the end one with a length of zero
//!       0     4  length of the payload in bytes
//!       4     4  number of entries
//!       8     8  XXH3-64 of the payload; in the last frame the number of entries of the whole file
//!      16        payload: entries
//!  entry
//!       0     4  length of the key
//!       4     4  length of the value
//!       8        key, value
//! ```
//! All numbers are little-endian. A file without the last frame was truncated; `load` refuses it.
//! Worked example, one entry `a` = `bc`:
//! `FRONDUMP 01000000 00000000 | 0b000000 01000000 <xxh3> | 01000000 02000000 61 6263 |
//! 00000000 00000000 0100000000000000`.
//! Users have files in this format: do not change it.

use crate::failure::Failure;

/// First bytes of a dump.
pub(super) const MAGIC: &[u8; 8] = b"FRONDUMP";
/// The version of the format. There is no other yet.
pub(super) const VERSION: u32 = 1;
/// Bytes of the header.
pub(super) const HEADER_BYTES: usize = 16;
/// Bytes of a frame's head.
pub(super) const FRAME_HEAD_BYTES: usize = 16;
/// Bytes of an entry before its key.
pub(super) const ENTRY_HEAD_BYTES: usize = 8;
/// A frame is closed when its payload has this many bytes; a large entry may exceed this size.
pub(super) const FRAME_BYTES: usize = 256 * 1024;
/// The largest payload that the reader accepts: more than a full frame and the largest entry, whose
/// value has 64 MiB.
pub(super) const PAYLOAD_BYTES_MAX: usize = FRAME_BYTES + 128 * 1024 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FrameHead {
    /// Bytes of the payload; zero in the last frame.
    pub(super) bytes: u32,
    /// Number of entries in the payload; zero in the last frame.
    pub(super) count: u32,
    /// Checksum of the payload; in the last frame the number of all entries.
    pub(super) check: u64,
}

/// Returns the header of a file.
pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header
}

/// Fails if the header is not the header of a dump that this program can read.
pub(super) fn check_header(header: &[u8; HEADER_BYTES]) -> Result<(), Failure> {
    if !header.starts_with(MAGIC) {
        return Err(Failure::input("the file is not a binary dump of frondb"));
    }
    match (word(header, 8), word(header, 12)) {
        (VERSION, 0) => Ok(()),
        (version, _) if version > VERSION => Err(Failure::unsupported(format!(
            "the dump has version {version}, and this program reads version {VERSION}"
        ))
        .with_hint("load it with the newer version of frondb that wrote it")),
        (_, _) => Err(Failure::input("the header of the dump is invalid")),
    }
}

impl FrameHead {
    /// Returns the bytes of the head.
    pub(super) fn encode(self) -> [u8; FRAME_HEAD_BYTES] {
        let mut out = [0; FRAME_HEAD_BYTES];
        out[..4].copy_from_slice(&self.bytes.to_le_bytes());
        out[4..8].copy_from_slice(&self.count.to_le_bytes());
        out[8..].copy_from_slice(&self.check.to_le_bytes());
        out
    }

    /// Decodes a head.
    pub(super) fn decode(head: &[u8; FRAME_HEAD_BYTES]) -> Self {
        let check = u64::from(word(head, 8)) | u64::from(word(head, 12)) << 32;
        Self { bytes: word(head, 0), count: word(head, 4), check }
    }
}

/// Appends an entry; `None` if a length does not fit its field.
pub(super) fn put_entry(out: &mut Vec<u8>, key: &[u8], value: &[u8]) -> Option<()> {
    out.extend_from_slice(&u32::try_from(key.len()).ok()?.to_le_bytes());
    out.extend_from_slice(&u32::try_from(value.len()).ok()?.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    Some(())
}

/// Takes an entry from the front of `payload`; `None` if the payload ends within the entry.
pub(super) fn take_entry<'a>(payload: &mut &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (head, rest) = payload.split_first_chunk::<ENTRY_HEAD_BYTES>()?;
    let (key, rest) = rest.split_at_checked(word(head, 0) as usize)?;
    let (value, rest) = rest.split_at_checked(word(head, 4) as usize)?;
    *payload = rest;
    Some((key, value))
}

/// Returns the little-endian number at `at`.
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
