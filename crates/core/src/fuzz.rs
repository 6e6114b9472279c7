//! Entry points for fuzzers. Each accepts any bytes, and must neither panic nor allocate unlimited
//! memory.

use crate::codec::{Reader, put_bytes, put_bytes_opt, put_varint};
use crate::tuple;

/// Decodes the bytes as a tuple, and checks that a decoded tuple is encoded to the same bytes. Also
/// checks that `prefix_end` lies above every key with the prefix. Returns whether the bytes are a
/// tuple.
pub fn tuple(bytes: &[u8]) -> bool {
    let decoded = tuple::decode(bytes);
    if let Ok(parts) = &decoded {
        assert_eq!(tuple::encode(parts), bytes);
    }
    if let Some(end) = tuple::prefix_end(bytes) {
        assert!(*end > *bytes && !end.starts_with(bytes));
    }
    decoded.is_ok()
}

/// Decodes the bytes as fields, the parts of all record formats of the engine; a byte before each
/// field selects its type. Checks that each field consumes input, and that a varint or bytes are
/// the same after they were encoded and decoded again.
pub fn fields(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(which) = reader.u8() {
        let mut again = Vec::new();
        let before = reader.rest().len();
        let same = match which % 4 {
            0 => reader.varint().map(|value| {
                put_varint(&mut again, value);
                Reader::new(&again).varint() == Ok(value)
            }),
            1 => reader.bytes().map(|value| {
                put_bytes(&mut again, value);
                Reader::new(&again).bytes() == Ok(value)
            }),
            2 => reader.bytes_opt().map(|value| {
                put_bytes_opt(&mut again, value);
                Reader::new(&again).bytes_opt() == Ok(value)
            }),
            _ => reader.u64().map(|value| value.to_le_bytes().len() == 8),
        };
        match same {
            Ok(same) => assert!(same && reader.rest().len() < before),
            Err(_) => return,
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use crate::prng::Prng;

    /// Does not use the helper of the other fuzz targets, `frondb_testkit::fuzz::smoke`, because
    /// `frondb_testkit` depends on this crate. The smoke test of `tuple` is in `tuple/tests.rs`.
    #[test]
    fn the_field_reader_never_panics() {
        for seed in 0..5_000 {
            let mut prng = Prng::new(seed);
            let mut bytes = vec![0; prng.index(60)];
            prng.fill(&mut bytes);
            // Small numbers, so that complete fields occur often.
            for byte in &mut bytes {
                *byte &= if prng.chance(3, 4) { 7 } else { 0xff };
            }
            fields(&bytes);
        }
    }
}
