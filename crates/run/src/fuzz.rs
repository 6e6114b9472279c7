//! Fuzz entries for the decoders of this crate.

use frondb_core::codec::Reader;
use frondb_core::mem::Bytes;
use frondb_core::{Chunk, SeqNo};

use crate::{BlockIndex, RunMeta};

/// Decodes run metadata. Metadata that decodes must survive a round trip.
pub fn run_meta(bytes: &[u8]) {
    if let Ok(meta) = RunMeta::decode(&mut Reader::new(bytes)) {
        let mut out = Vec::new();
        meta.encode(&mut out);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)).as_ref(), Ok(&meta));
    }
}

/// Decodes a block index. A search in an index that decodes must stay inside it.
pub fn block_index(bytes: &[u8]) {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else { return };
    let blocks = u32::from_le_bytes([head[0], head[1], 0, 0]);
    let blocks_bytes = u64::from_le_bytes(*head) >> 16 & 0xff_ffff;
    if let Ok(index) = BlockIndex::decode(payload, blocks, blocks_bytes) {
        assert!(index.find(payload) < index.len());
        assert!(index.find(b"") < index.len());
    }
}

/// Decodes a reference to a large value. A reference that decodes must survive a round trip.
pub fn value_ref(bytes: &[u8]) {
    if let Ok(value) = crate::format::ValueRef::decode(bytes) {
        let mut out = Vec::new();
        value.encode(&mut out);
        assert_eq!(crate::format::ValueRef::decode(&out).as_ref(), Ok(&value));
    }
}

/// Decodes the frame of a spool. Every entry of a frame that decodes must lie inside the frame.
pub fn spool_frame(bytes: &[u8]) {
    let (payload, mut chunk) = (Bytes::copy_from(bytes), Chunk::new());
    if crate::spool::decode(&payload, SeqNo(1), &mut chunk).is_some() {
        let sum = |len: fn(&Chunk, usize) -> usize| -> usize {
            (0..chunk.len()).map(|i| len(&chunk, i)).sum()
        };
        let entries = sum(|chunk, i| chunk.key(i).len() + chunk.value(i).len());
        assert!(!chunk.is_empty() && entries <= bytes.len());
        assert_eq!([chunk.kinds.len(), chunk.seqs.len()], [chunk.len(); 2]);
    }
}
