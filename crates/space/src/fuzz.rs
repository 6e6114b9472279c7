//! Entries for fuzzers: each accepts any bytes and must neither panic nor allocate without bound.

use frondb_core::codec::Reader;

use crate::Extent;

/// Decodes extents one after the other; a decoded extent must survive a round trip.
pub fn extent(bytes: &[u8]) {
    let mut reader = Reader::new(bytes);
    while let Ok(extent) = Extent::decode(&mut reader) {
        let mut again = Vec::new();
        extent.encode(&mut again);
        assert_eq!(Extent::decode(&mut Reader::new(&again)), Ok(extent));
        assert!(extent.pages > 0 && extent.end() > extent.page);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fuzz_entry_accepts_random_bytes() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..2000usize {
            let bytes: Vec<u8> = (0..round % 40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Mostly short varints, so that complete extents occur often.
                    (state >> 56) as u8 & if state & 1 == 0 { 0x7f } else { 0xff }
                })
                .collect();
            extent(&bytes);
        }
    }
}
