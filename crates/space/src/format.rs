//! How an extent is written into a manifest edit or a reference to a large value.
//!
//! ```text
//!   field   size          meaning
//!   file    varint        number of the data file
//!   page    varint        first page
//!   pages   varint        number of pages, 1..; page + pages <= 2^32 - 1
//! ```

use frondb_core::codec::{Reader, Truncated, put_varint};

use crate::Extent;

impl Extent {
    /// Appends the encoding.
    pub fn encode(self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.file));
        put_varint(out, u64::from(self.page));
        put_varint(out, u64::from(self.pages));
    }

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// [`Truncated`] if the bytes end before or are not an extent: it has no page, or ends beyond
    /// what a file can hold.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, Truncated> {
        let file = reader.varint_u32()?;
        let page = reader.varint_u32()?;
        let pages = reader.varint_u32()?;
        if pages == 0 || page.checked_add(pages).is_none() {
            return Err(Truncated);
        }
        Ok(Self { file, page, pages })
    }
}

/// Decodes anything; what is an extent must survive a round trip.
#[doc(hidden)]
pub fn fuzz_extent(bytes: &[u8]) {
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
    fn extents_round_trip_and_impossible_ones_are_refused() {
        for extent in [
            Extent { file: 0, page: 0, pages: 1 },
            Extent { file: 7, page: 300, pages: 70_000 },
            Extent { file: u32::MAX, page: u32::MAX - 1, pages: 1 },
        ] {
            let mut out = Vec::new();
            extent.encode(&mut out);
            assert_eq!(Extent::decode(&mut Reader::new(&out)), Ok(extent));
            assert_eq!(Extent::decode(&mut Reader::new(&out[..out.len() - 1])), Err(Truncated));
        }
        for (page, pages) in [(5, 0), (u32::MAX, 1), (1, u32::MAX)] {
            let mut out = Vec::new();
            for value in [0, page, pages] {
                put_varint(&mut out, u64::from(value));
            }
            assert_eq!(Extent::decode(&mut Reader::new(&out)), Err(Truncated));
        }
    }

    #[test]
    fn smoke_of_the_fuzz_target() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..2000usize {
            let bytes: Vec<u8> = (0..round % 40)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Short varints mostly, so that whole extents come up.
                    (state >> 56) as u8 & if state & 1 == 0 { 0x7f } else { 0xff }
                })
                .collect();
            fuzz_extent(&bytes);
        }
    }
}
