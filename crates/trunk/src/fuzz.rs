//! Fuzz entry for the decoder of this crate.

use frondb_core::codec::Reader;

use crate::NodeImage;

/// A node's image: decodes or refuses, and what decodes survives a round trip.
pub fn node_image(bytes: &[u8]) {
    if let Ok(image) = NodeImage::decode(&mut Reader::new(bytes)) {
        let mut out = Vec::new();
        image.encode(&mut out);
        assert_eq!(NodeImage::decode(&mut Reader::new(&out)).as_ref(), Ok(&image));
    }
}
