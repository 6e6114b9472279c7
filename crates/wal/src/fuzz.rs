//! Entries for fuzzers: each takes any bytes and must neither panic nor take memory without bound.

use frondb_block::frame::scan::{Extent, Scanner, Step};

use crate::format::{HEADER_BYTES, SegmentHeader};

/// A segment's header.
pub fn segment_header(bytes: &[u8]) {
    if let Ok(header) = SegmentHeader::decode("fuzz", bytes) {
        let again = SegmentHeader::decode("fuzz", &header.encode());
        assert_eq!(again.ok(), Some(header), "what decodes encodes the same");
    }
}

/// A record of a log.
pub fn record(bytes: &[u8]) {
    frondb_block::frame::fuzz(bytes);
}

/// A segment's file; one with a bad header is read as if it had a good one.
pub fn segment(bytes: &[u8]) {
    let header = SegmentHeader::decode("fuzz", bytes).ok();
    let extent = Extent {
        generation: header.map_or(1, |header| header.generation),
        offset: HEADER_BYTES,
        position: header.map_or(0, |header| header.first.get()),
        end: bytes.len() as u64,
    };
    let mut scanner = Scanner::new(bytes, extent);
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
