//! Entry points for fuzzers: each accepts any bytes and must neither panic nor allocate without
//! bound.

use frondb_core::codec::Reader;

use crate::Extent;

/// Decodes extents one after the other; a decoded extent must survive a round trip. Returns
/// whether any extent was decoded.
pub fn extent(bytes: &[u8]) -> bool {
    let (mut reader, mut decoded) = (Reader::new(bytes), false);
    while let Ok(extent) = Extent::decode(&mut reader) {
        let mut again = Vec::new();
        extent.encode(&mut again);
        assert_eq!(Extent::decode(&mut Reader::new(&again)), Ok(extent));
        assert!(extent.pages > 0 && extent.end() > extent.page);
        decoded = true;
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_extents_or_refused() {
        let (mut decoded, mut refused) = (0, 0);
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..2000usize {
            let bytes: Vec<u8> = (0..round % 40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Mostly short varints, so that complete extents occur often.
                    (state >> 56) as u8 & if state & 1 == 0 { 0x7f } else { 0xff }
                })
                .collect();
            *if extent(&bytes) { &mut decoded } else { &mut refused } += 1;
        }
        assert!(decoded > 0 && refused > 0, "{decoded} decoded, {refused} refused");
    }
}
