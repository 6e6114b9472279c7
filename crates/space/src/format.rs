//! The encoding of an extent in a manifest edit or a reference to a large value.
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

    /// Decodes an extent written by [`encode`](Self::encode).
    ///
    /// # Errors
    /// [`Truncated`] if the bytes end early, or if the extent has no page or ends beyond the
    /// largest file.
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
}
