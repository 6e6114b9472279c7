//! Fuzz entries for the decoders of this crate.

use frondb_core::codec::Reader;
use frondb_core::mem::Bytes;
use frondb_core::{Chunk, SeqNo};

use crate::{BlockIndex, RunMeta};

/// Run metadata: decodes or refuses; what decodes encodes to the same bytes' meaning.
pub fn run_meta(bytes: &[u8]) {
    if let Ok(meta) = RunMeta::decode(&mut Reader::new(bytes)) {
        let mut out = Vec::new();
        meta.encode(&mut out);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)).as_ref(), Ok(&meta));
    }
}

/// Block index: decodes or refuses, and searching what decoded stays inside.
pub fn block_index(bytes: &[u8]) {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else { return };
    let blocks = u32::from_le_bytes([head[0], head[1], 0, 0]);
    let blocks_bytes = u64::from_le_bytes(*head) >> 16 & 0xff_ffff;
    if let Ok(index) = BlockIndex::decode(payload, blocks, blocks_bytes) {
        assert!(index.find(payload) < index.len());
        assert!(index.find(b"") < index.len());
    }
}

/// Reference to a value: decodes or refuses, and what decodes survives a round trip.
pub fn value_ref(bytes: &[u8]) {
    if let Ok(value) = crate::format::ValueRef::decode(bytes) {
        let mut out = Vec::new();
        value.encode(&mut out);
        assert_eq!(crate::format::ValueRef::decode(&out).as_ref(), Ok(&value));
    }
}

/// Frame of a spool: decodes or refuses, and every entry of what decodes lies inside.
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
