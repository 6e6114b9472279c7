//! Entries for fuzzers: each takes any bytes and must neither panic nor take memory without bound.

use crate::format::SegmentHeader;

/// A segment's header.
pub fn segment_header(bytes: &[u8]) {
    if let Ok(header) = SegmentHeader::decode("fuzz", bytes) {
        assert_eq!(header.encode().as_slice(), &bytes[..64], "what decodes encodes the same");
    }
}
