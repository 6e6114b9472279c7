//! The format of the log's files: names and headers of segments, and `LOG.mark`. The records are
//! [`frondb_block::frame`]s whose position is their Lsn.
//!
//! ```text
//!  offset size field
//!       0    8 magic        "FronWAL\x01"; never changes
//!       8    4 version      1
//!      12    4 flags        1 = the file held another segment before
//!                           2 = the log's directory has a `LOG.mark`
//!      16   16 database id
//!      32    8 generation   the number in the file's name; no other segment ever has it
//!      40    8 first Lsn    of the first record
//!      48    8 end before   where the previous segment ended; below the first Lsn if records
//!                           between the two were abandoned
//!      56    8 checksum     XXH3-64 of bytes 0 .. 56; at this offset in every version
//!      64    . records; the Lsn of a record is first Lsn + (its offset - 64)
//! ```
//!
//! # LOG.mark
//! Two slots, at the offsets 0 and 4096; of the valid slots, the one with the greater (durable,
//! newest) counts.
//! ```text
//!       0    8 magic        "FronWALM"; never changes
//!       8    4 version      1
//!      12    4 zero
//!      16   16 database id
//!      32    8 newest       number of the newest segment; 0 if there is none
//!      40    8 durable      Lsn up to which the log was durable when this was written
//!      48    8 zero
//!      56    8 checksum     XXH3-64 of bytes 0 .. 56
//! ```
//!
//! All integers are little-endian.

use frondb_core::checksum::xxh3;
use frondb_core::codec::Reader;
use frondb_core::{Error, ErrorKind, Lsn, Result};

/// The object that a header's corruption error names.
pub(crate) const WHAT_HEADER: &str = "wal segment header";
/// The object that a record's corruption error names.
pub(crate) const WHAT_RECORD: &str = "wal record";

/// The version of the format that this build writes, and the newest version that it reads.
///
/// 1: the first version.
pub const FORMAT_VERSION: u32 = 1;

/// Bytes before the first record.
pub const HEADER_BYTES: u64 = 64;

const MAGIC: [u8; 8] = *b"FronWAL\x01";
const FLAG_USED_BEFORE: u32 = 1;
const FLAG_MARKED: u32 = 2;
const CHECKED_BYTES: usize = 56;

/// The kind of a record that carries a payload of the engine.
pub(crate) const KIND_PAYLOAD: u8 = 1;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SegmentHeader {
    pub(crate) db_id: u128,
    pub(crate) generation: u64,
    pub(crate) first: Lsn,
    pub(crate) end_before: Lsn,
    pub(crate) used_before: bool,
    /// Whether a durable `LOG.mark` existed when this header was written. Never cleared.
    pub(crate) marked: bool,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        let used_before = if self.used_before { FLAG_USED_BEFORE } else { 0 };
        let flags = used_before | if self.marked { FLAG_MARKED } else { 0 };
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&flags.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.db_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.generation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first.get().to_le_bytes());
        bytes[48..56].copy_from_slice(&self.end_before.get().to_le_bytes());
        let checksum = xxh3(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a segment header. `file` is the name of the file, for errors.
    ///
    /// # Errors
    /// `Corruption` if the bytes are not a header; `Unsupported` if a newer version wrote them.
    pub(crate) fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let corrupt = |message: &str| Error::corruption(file, 0, WHAT_HEADER, message.to_owned());
        let (Some(checked), Some(checksum)) =
            (bytes.get(..CHECKED_BYTES), bytes.get(CHECKED_BYTES..HEADER_BYTES as usize))
        else {
            return Err(corrupt("the file is shorter than its header"));
        };
        if checksum != xxh3(checked).to_le_bytes() {
            return Err(corrupt("the checksum of the header does not match"));
        }
        if !checked.starts_with(&MAGIC) {
            return Err(corrupt("this is not a segment of a FronDB log"));
        }
        let mut reader = Reader::new(&checked[MAGIC.len()..]);
        let short = |_| corrupt("the header is too short");
        let version = reader.u32().map_err(short)?;
        if version > FORMAT_VERSION {
            return Err(newer(&format!("log segment {file}"), version.into()));
        }
        let flags = reader.u32().map_err(short)?;
        let low = u128::from(reader.u64().map_err(short)?);
        let high = u128::from(reader.u64().map_err(short)?);
        let header = Self {
            db_id: high << 64 | low,
            generation: reader.u64().map_err(short)?,
            first: Lsn(reader.u64().map_err(short)?),
            end_before: Lsn(reader.u64().map_err(short)?),
            used_before: flags & FLAG_USED_BEFORE != 0,
            marked: flags & FLAG_MARKED != 0,
        };
        if header.end_before > header.first {
            return Err(corrupt("the previous segment ends after the first record"));
        }
        Ok(header)
    }
}

/// Size of a slot of the mark in bytes.
pub(crate) const MARK_BYTES: usize = 64;

const MAGIC_MARK: [u8; 8] = *b"FronWALM";

/// The content of a slot of the mark: the position up to which the log was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DurableMark {
    pub(crate) db_id: u128,
    /// Number of the newest segment.
    pub(crate) newest: u64,
    pub(crate) durable: Lsn,
}

impl DurableMark {
    /// Whether `other` is newer.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        (self.durable, self.newest) < (other.durable, other.newest)
    }

    pub(crate) fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[..8].copy_from_slice(&MAGIC_MARK);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.db_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.newest.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.durable.get().to_le_bytes());
        let checksum = xxh3(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes a slot of `file`; `None` if the bytes are not a valid slot.
    ///
    /// # Errors
    /// `Unsupported` if a newer version wrote the bytes.
    pub(crate) fn decode(file: &str, bytes: &[u8]) -> Result<Option<Self>> {
        let (Some(checked), Some(checksum)) =
            (bytes.get(..CHECKED_BYTES), bytes.get(CHECKED_BYTES..MARK_BYTES))
        else {
            return Ok(None);
        };
        if checksum != xxh3(checked).to_le_bytes() || !checked.starts_with(&MAGIC_MARK) {
            return Ok(None);
        }
        let u64_at = |at: usize| Reader::new(checked.get(at..).unwrap_or_default()).u64();
        let fields = [8, 16, 24, 32, 40].map(|at| u64_at(at).unwrap_or_default());
        let [version, low, high, newest, durable] = fields;
        let version = version & u64::from(u32::MAX);
        if version > u64::from(FORMAT_VERSION) {
            return Err(newer(&format!("the mark of the log, {file},"), version));
        }
        let db_id = u128::from(high) << 64 | u128::from(low);
        Ok(Some(Self { db_id, newest, durable: Lsn(durable) }))
    }
}

fn newer(what: &str, version: u64) -> Error {
    let message = format!(
        "{what} has format version {version}; this build reads up to {FORMAT_VERSION}: use a newer \
         FronDB"
    );
    Error::new(ErrorKind::Unsupported, message)
}

/// The kind of a file in the log's directory, derived from its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FileName {
    /// `NNNNNNNNNNNN.wal`: a segment, whose header is durable.
    Segment(u64),
    /// `NNNNNNNNNNNN.spare`: a former segment, to be reused.
    Spare(u64),
    /// `NNNNNNNNNNNN.new`: a segment that was never finished.
    Unfinished(u64),
}

impl FileName {
    /// Returns the kind of the file `name`; `None` if it is not a file of the log.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let (digits, suffix) = name.split_once('.')?;
        if digits.len() != 12 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        match suffix {
            "wal" => Some(Self::Segment(number)),
            "spare" => Some(Self::Spare(number)),
            "new" => Some(Self::Unfinished(number)),
            _ => None,
        }
    }
}

impl std::fmt::Display for FileName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Segment(number) => write!(f, "{number:012}.wal"),
            Self::Spare(number) => write!(f, "{number:012}.spare"),
            Self::Unfinished(number) => write!(f, "{number:012}.new"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        db_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
        generation: 7,
        first: Lsn(1000),
        end_before: Lsn(990),
        used_before: true,
        marked: true,
    };

    #[test]
    fn a_header_is_these_bytes() {
        let bytes = HEADER.encode();
        let hex: String = bytes[..56].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46726f6e57414c010100000003000000100f0e0d0c0b0a090807060504030201\
             0700000000000000e803000000000000de03000000000000"
        );
        assert_eq!(SegmentHeader::decode("f", &bytes).unwrap(), HEADER);
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_seen() {
        let good = HEADER.encode();
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let error = SegmentHeader::decode("f", &bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_version_is_unsupported() {
        let mut bytes = HEADER.encode();
        bytes[8] = 2;
        let checksum = xxh3(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        let error = SegmentHeader::decode("f", &bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_mark_is_these_bytes_and_every_flipped_bit_is_seen() {
        let mark = DurableMark { db_id: HEADER.db_id, newest: 7, durable: Lsn(1000) };
        let bytes = mark.encode();
        let hex: String = bytes[..56].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "46726f6e57414c4d0100000000000000100f0e0d0c0b0a090807060504030201\
             0700000000000000e8030000000000000000000000000000"
        );
        assert_eq!(DurableMark::decode("f", &bytes).unwrap(), Some(mark));
        for bit in 0..MARK_BYTES * 8 {
            let mut bytes = bytes;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(DurableMark::decode("f", &bytes).unwrap(), None, "bit {bit}");
        }
        let mut bytes = bytes;
        bytes[8] = 2;
        let checksum = xxh3(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        let error = DurableMark::decode("f", &bytes).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn log_file_names_round_trip_and_others_are_ignored() {
        for name in
            [FileName::Segment(1), FileName::Spare(999_999_999_999), FileName::Unfinished(0)]
        {
            assert_eq!(FileName::parse(&name.to_string()), Some(name));
        }
        for name in ["", "LOCK", "1.wal", "00000000000a.wal", "000000000001.walx", "000000000001"] {
            assert_eq!(FileName::parse(name), None);
        }
    }
}
