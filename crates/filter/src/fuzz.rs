//! Entry point for fuzzers: accepts arbitrary bytes and must not panic.

use frondb_core::mem::Bytes;

use crate::FilterReader;

/// Opens the bytes as a filter and queries it. Returns whether the bytes are a filter.
pub fn filter(data: &[u8]) -> bool {
    let opened = FilterReader::open(Bytes::copy_from(data));
    if let Ok(filter) = &opened {
        let mut hash = data.len() as u64;
        for _ in 0..64 {
            let _ = filter.may_contain(hash);
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        }
        let _ = (filter.may_contain(0), filter.may_contain(u64::MAX), filter.memory_bytes());
    }
    opened.is_ok()
}
