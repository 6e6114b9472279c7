//! Fuzz entry point for the decoder of node images.

use frondb_core::codec::Reader;

use crate::NodeImage;

/// Decodes a node image. Bytes that decode must survive a round trip.
pub fn node_image(bytes: &[u8]) {
    if let Ok(image) = NodeImage::decode(&mut Reader::new(bytes)) {
        let mut out = Vec::new();
        image.encode(&mut out);
        assert_eq!(NodeImage::decode(&mut Reader::new(&out)).as_ref(), Ok(&image));
    }
}
