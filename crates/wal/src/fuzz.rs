//! Fuzz entry points: each takes any bytes, and must neither panic nor allocate memory without
//! bound.

use frondb_block::frame::scan::{ScanRange, Scanner, Step};
use frondb_block::frame::{RecordPlace, repair};
use frondb_core::checksum::xxh3;

use crate::format::{DurableMark, HEADER_BYTES, MARK_BYTES, SegmentHeader};

/// Decodes a segment's header.
pub fn segment_header(bytes: &[u8]) {
    if let Ok(header) = SegmentHeader::decode("fuzz", bytes) {
        let again = SegmentHeader::decode("fuzz", &header.encode());
        assert_eq!(again.ok(), Some(header), "decoded bytes encode to the same bytes");
    }
}

/// Decodes a slot of the mark, as it is and with a correct checksum.
pub fn mark(bytes: &[u8]) {
    let check = |bytes: &[u8]| {
        if let Ok(Some(mark)) = DurableMark::decode("fuzz", bytes) {
            let again = DurableMark::decode("fuzz", &mark.encode());
            assert_eq!(again.ok().flatten(), Some(mark), "decoded bytes encode to the same bytes");
        }
    };
    check(bytes);
    let mut sealed = bytes.to_vec();
    if let Some((checked, checksum)) =
        sealed.get_mut(..MARK_BYTES).map(|slot| slot.split_at_mut(MARK_BYTES - 8))
    {
        checksum.copy_from_slice(&xxh3(checked).to_le_bytes());
        check(&sealed);
    }
}

/// Repairs one byte of a record; the result must be a valid record.
pub fn repair(bytes: &[u8]) {
    let place = RecordPlace { generation: 1, position: 0 };
    if let Some((at, value)) = repair::one_byte(bytes, place) {
        assert_ne!(bytes[at], value);
        let mut right = bytes.to_vec();
        right[at] = value;
        assert!(frondb_block::frame::peek(&right, place).is_ok());
    }
}

/// Decodes a record of a log.
pub fn record(bytes: &[u8]) {
    frondb_block::frame::fuzz(bytes);
}

/// Reads the file of a segment. Reads the records also if the header is bad.
pub fn segment(bytes: &[u8]) {
    let header = SegmentHeader::decode("fuzz", bytes).ok();
    let range = ScanRange {
        generation: header.map_or(1, |header| header.generation),
        offset: HEADER_BYTES,
        position: header.map_or(0, |header| header.first.get()),
        end: bytes.len() as u64,
    };
    let mut scanner = Scanner::new(bytes, range);
    let mut offset = HEADER_BYTES;
    loop {
        match scanner.step() {
            Ok(Step::Record(record)) => {
                assert_eq!(record.offset, offset);
                offset += record.frame_bytes as u64;
            }
            Ok(Step::Stop(stop)) => return assert_eq!(stop.offset, offset),
            Err(error) => panic!("reading memory failed: {error}"),
        }
    }
}
