//! The format of the superblocks and of a manifest file.
//!
//! # SUPER
//! Two slots of 4,096 bytes; a superblock is written to the slot that does not hold the one in
//! force.
//! ```text
//!  offset size field
//!       0    8 magic         "FronSUPR"; never changes
//!       8    4 version       8; of the whole database
//!      12    4 zero
//!      16   16 database id
//!      32    8 generation    of this superblock and of the manifest file it names
//!      40    8 durable       bytes of that file that were durable before this was written
//!      48    8 update        number of earlier superblocks of this generation
//!      56    2 note length   at most 4,030; 0 in superblocks of builds that wrote none
//!      58    . note          bytes of the engine: what the database has written (wear)
//!       .    . zero
//!    4088    8 checksum      XXH3-64 of bytes 0 .. 4088; at this offset in every version
//! ```
//!
//! # MANIFEST-NNNNNN
//! ```text
//!       0    8 magic         "FronMANF"; never changes
//!       8    4 version       8
//!      12    4 zero
//!      16   16 database id
//!      32    8 generation    the number in the file's name
//!      40   16 zero
//!      56    8 checksum      XXH3-64 of bytes 0 .. 56
//!      64    . records       frondb_block::frame, whose position is the file offset
//! ```
//! The kinds of records, in the order in which they appear:
//!
//! | kind | record | payload |
//! |---|---|---|
//! | 1 | part of the snapshot, any number | bytes |
//! | 2 | end of the snapshot | u64: bytes of the whole snapshot |
//! | 4 | edits made while the snapshot was written, any number | bytes |
//! | 3 | confirmed: the superblock of this generation is durable | empty |
//! | 4 | edits, any number | bytes |
//!
//! All integers are little-endian.

use std::ops::Range;

use frondb_core::checksum::xxh3;
use frondb_core::codec::Reader;

/// Version of the database format that this build writes, and the newest it reads.
///
/// 1: the first version. 2: filters of runs in several parts. 3: block indexes in several parts.
/// 4: runs with their codec and a dictionary. 5: values of blocks that have an end byte in place of
/// lengths. 6: edits that change a tree's codec and size of blocks, and dictionaries with the block
/// size that suits them. 7: bases with the size of blocks in the options of their tree. 8: options
/// of trees by tag.
pub const FORMAT_VERSION: u32 = 8;

/// The file with the superblocks.
pub const SUPER_FILE: &str = "SUPER";
/// The same file while a database is created.
pub(crate) const SUPER_FILE_NEW: &str = "SUPER.new";
/// Position of the version in a superblock and in the header of a manifest file.
pub(crate) const VERSION_BYTES: Range<usize> = 8..12;
/// Offset of a superblock's note: its length, then its bytes.
const NOTE_AT: usize = 56;
/// Maximum length of a superblock's note, in bytes.
pub const NOTE_BYTES_MAX: usize = SLOT_BYTES - CHECKSUM_BYTES - NOTE_AT - 2;
/// Bytes of one superblock.
pub const SLOT_BYTES: usize = 4096;
/// Bytes before the first record of a manifest file.
pub const HEADER_BYTES: u64 = 64;

/// The kinds of records. The numbers are part of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum RecordKind {
    Snapshot = 1,
    SnapshotEnd = 2,
    Confirmed = 3,
    Edit = 4,
}

impl RecordKind {
    /// Returns the kind with this number in a record; `None` for an unknown one.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Snapshot, Self::SnapshotEnd, Self::Confirmed, Self::Edit]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

pub(crate) const WHAT_SUPERBLOCK: &str = "superblock";
pub(crate) const WHAT_HEADER: &str = "manifest header";
pub(crate) const WHAT_RECORD: &str = "manifest record";
pub(crate) const WHAT_FILE: &str = "manifest";

const MAGIC_SUPER: &[u8; 8] = b"FronSUPR";
const MAGIC_MANIFEST: &[u8; 8] = b"FronMANF";
const CHECKSUM_BYTES: usize = 8;

/// The reason why bytes cannot be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DecodeFault {
    /// The magic is wrong.
    Foreign,
    /// The magic is correct, but the checksum is not.
    Damaged,
    /// The bytes are valid, but were written by a newer version: this one.
    Newer(u32),
}

/// The decoded superblock, which names the manifest file of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub(crate) db_id: u128,
    pub(crate) generation: u64,
    pub(crate) durable_bytes: u64,
    /// Distinguishes superblocks of one generation: the greater one is newer.
    pub(crate) update: u64,
}

impl Superblock {
    /// Returns the sort key: of the superblocks of one database, the one with the greatest key is
    /// in force.
    pub(crate) fn age(&self) -> (u64, u64) {
        (self.generation, self.update)
    }

    /// Encodes the bytes of a slot. A note that does not fit is omitted: nothing depends on notes.
    pub(crate) fn encode(&self, note: &[u8]) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        put_common(&mut bytes, MAGIC_SUPER, self.db_id, self.generation);
        bytes[40..48].copy_from_slice(&self.durable_bytes.to_le_bytes());
        bytes[48..NOTE_AT].copy_from_slice(&self.update.to_le_bytes());
        if let (Ok(len), ..=NOTE_BYTES_MAX) = (u16::try_from(note.len()), note.len()) {
            let start = NOTE_AT + 2;
            bytes[NOTE_AT..start].copy_from_slice(&len.to_le_bytes());
            bytes[start..start + note.len()].copy_from_slice(note);
        }
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeFault> {
        let mut reader = checked(bytes, SLOT_BYTES, MAGIC_SUPER)?;
        let (db_id, generation) = common(&mut reader)?;
        let mut next = || reader.u64().map_err(|_| DecodeFault::Damaged);
        let (durable_bytes, update) = (next()?, next()?);
        Ok(Self { db_id, generation, durable_bytes, update })
    }
}

/// Returns the note in the bytes of a slot that was decoded; empty if there is none.
pub(crate) fn note_of(slot: &[u8]) -> &[u8] {
    let read = || {
        let (note, _checksum) =
            slot.get(NOTE_AT..SLOT_BYTES)?.split_last_chunk::<CHECKSUM_BYTES>()?;
        let (len, note) = note.split_first_chunk()?;
        note.get(..usize::from(u16::from_le_bytes(*len)))
    };
    read().unwrap_or_default()
}

/// The header of a manifest file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileHeader {
    pub(crate) db_id: u128,
    pub(crate) generation: u64,
}

impl FileHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        put_common(&mut bytes, MAGIC_MANIFEST, self.db_id, self.generation);
        seal(&mut bytes);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeFault> {
        let mut reader = checked(bytes, HEADER_BYTES as usize, MAGIC_MANIFEST)?;
        let (db_id, generation) = common(&mut reader)?;
        Ok(Self { db_id, generation })
    }
}

/// Returns the name of a manifest file.
pub(crate) fn file_name(generation: u64) -> String {
    format!("MANIFEST-{generation:06}")
}

/// Returns the generation in the name of a manifest file; `None` for other files.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("MANIFEST-")?;
    if digits.len() < 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn put_common(bytes: &mut [u8], magic: &[u8; 8], db_id: u128, generation: u64) {
    bytes[..8].copy_from_slice(magic);
    bytes[VERSION_BYTES].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[16..32].copy_from_slice(&db_id.to_le_bytes());
    bytes[32..40].copy_from_slice(&generation.to_le_bytes());
}

fn seal(bytes: &mut [u8]) {
    let at = bytes.len() - CHECKSUM_BYTES;
    let checksum = xxh3(&bytes[..at]);
    bytes[at..].copy_from_slice(&checksum.to_le_bytes());
}

/// Verifies checksum, magic and version. Returns a reader of the bytes after the version.
fn checked<'a>(bytes: &'a [u8], len: usize, magic: &[u8; 8]) -> Result<Reader<'a>, DecodeFault> {
    let bad = if bytes.starts_with(magic) { DecodeFault::Damaged } else { DecodeFault::Foreign };
    let bytes = bytes.get(..len).ok_or(bad)?;
    let (checked, checksum) = bytes.split_at_checked(len - CHECKSUM_BYTES).ok_or(bad)?;
    if checksum != xxh3(checked).to_le_bytes() || bad == DecodeFault::Foreign {
        return Err(bad);
    }
    let mut reader = Reader::new(&checked[magic.len()..]);
    match reader.u32() {
        Ok(version) if version > FORMAT_VERSION => Err(DecodeFault::Newer(version)),
        Ok(_) => Ok(reader),
        Err(_) => Err(DecodeFault::Damaged),
    }
}

fn common(reader: &mut Reader<'_>) -> Result<(u128, u64), DecodeFault> {
    let _zero = reader.u32().map_err(|_| DecodeFault::Damaged)?;
    let mut next = || reader.u64().map_err(|_| DecodeFault::Damaged);
    let (low, high, generation) = (next()?, next()?, next()?);
    Ok((u128::from(high) << 64 | u128::from(low), generation))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPERBLOCK: Superblock = Superblock {
        db_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        generation: 7,
        durable_bytes: 300,
        update: 5,
    };

    #[test]
    fn a_superblock_is_these_bytes() {
        let bytes = SUPERBLOCK.encode(b"");
        let hex: String = bytes[..56].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46726f6e535550520800000000000000100f0e0d0c0b0a090807060504030201\
             07000000000000002c010000000000000500000000000000"
        );
        assert_eq!(Superblock::decode(&bytes), Ok(SUPERBLOCK));
    }

    #[test]
    fn a_superblock_carries_a_note() {
        for len in [0, 1, 300, NOTE_BYTES_MAX] {
            let note: Vec<u8> = (1..=len).map(|i| i as u8).collect();
            let bytes = SUPERBLOCK.encode(&note);
            assert_eq!(Superblock::decode(&bytes), Ok(SUPERBLOCK));
            assert_eq!(note_of(&bytes), note);
            assert_eq!(usize::from(u16::from_le_bytes([bytes[56], bytes[57]])), len);
        }
        assert_eq!(note_of(&SUPERBLOCK.encode(&[7; NOTE_BYTES_MAX + 1])), b"");
        assert_eq!(note_of(&[0xff; SLOT_BYTES]), b"");
    }

    #[test]
    fn a_header_is_these_bytes() {
        let header = FileHeader { db_id: 0x10, generation: 2 };
        let bytes = header.encode();
        let hex: String = bytes[..40].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46726f6e4d414e460800000000000000100000000000000000000000000000000200000000000000"
        );
        assert_eq!(FileHeader::decode(&bytes), Ok(header));
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = SUPERBLOCK.encode(b"note");
            bytes[bit / 8] ^= 1 << (bit % 8);
            let bad = if bit < 64 { DecodeFault::Foreign } else { DecodeFault::Damaged };
            assert_eq!(Superblock::decode(&bytes), Err(bad), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_distinguished_from_damage() {
        let mut bytes = SUPERBLOCK.encode(b"note");
        bytes[8] = 9;
        seal(&mut bytes);
        assert_eq!(Superblock::decode(&bytes), Err(DecodeFault::Newer(9)));
    }

    #[test]
    fn names_round_trip() {
        for generation in [1, 999_999, 1_000_000, u64::MAX] {
            assert_eq!(parse_file_name(&file_name(generation)), Some(generation));
        }
        for name in ["MANIFEST-", "MANIFEST-1", "MANIFEST-00000x", "SUPER", "manifest-000001"] {
            assert_eq!(parse_file_name(name), None);
        }
    }
}
