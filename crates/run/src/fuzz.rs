//! Fuzz entries for the decoders of this crate.

use frondb_core::codec::Reader;
use frondb_core::mem::Bytes;
use frondb_core::{Chunk, RunId, SeqNo, TreeId};
use frondb_space::Extent;

use crate::{BlockIndex, RunMeta};

/// Decodes run metadata. Metadata that decodes must survive a round trip.
pub fn run_meta(bytes: &[u8]) {
    if let Ok(meta) = RunMeta::decode(&mut Reader::new(bytes)) {
        let mut out = Vec::new();
        meta.encode(&mut out);
        assert_eq!(RunMeta::decode(&mut Reader::new(&out)).as_ref(), Ok(&meta));
    }
}

/// Decodes a block index. The first eight bytes stand for the metadata: 2 bytes blocks, 3 bytes
/// blocks_bytes, 1 byte filter_parts, 2 bytes filter_bytes. A search in an index that decodes must
/// stay inside it, and a part of the filter inside the filter.
pub fn block_index(bytes: &[u8]) {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else { return };
    let meta = RunMeta {
        blocks: u32::from_le_bytes([head[0], head[1], 0, 0]),
        blocks_bytes: u64::from_le_bytes(*head) >> 16 & 0xff_ffff,
        filter_parts: u32::from(head[5]),
        filter_bytes: u32::from_le_bytes([head[6], head[7], 0, 0]),
        ..meta()
    };
    if let Ok(index) = BlockIndex::decode(payload, &meta) {
        assert!(index.find(payload) < index.len());
        assert!(index.find(b"") < index.len());
        let (mut offset, mut entries) = (0, 0);
        for block in 0..index.len() {
            assert_eq!((index.extent(block).0, index.rank(block)), (offset, entries));
            assert!(index.separator(block) <= *index.separator(block).to_vec());
            assert!(block > 0 || !index.continues(block));
            offset += index.extent(block).1 as u64;
            entries = index.rank(block + 1);
        }
        assert_eq!(offset, meta.blocks_bytes);
        assert_eq!(index.filter_part_for(payload).is_some(), meta.filter_parts > 0);
        for block in [0, index.len() - 1] {
            let part = index.filter_part(block);
            assert_eq!(part.is_some(), meta.filter_parts > 0);
            assert!(part.is_none_or(|part| part.offset + part.bytes <= meta.filter_bytes));
        }
    }
}

/// Metadata of a run with one message.
pub(crate) fn meta() -> RunMeta {
    RunMeta {
        id: RunId(1),
        tree: TreeId(1),
        extents: vec![Extent { file: 0, page: 0, pages: 1 }],
        blocks_bytes: 100,
        blocks: 1,
        index_bytes: 10,
        filter_bytes: 0,
        filter_parts: 0,
        entries: 1,
        deletes: 0,
        updates: 0,
        refs: 0,
        raw_bytes: 50,
        min_seq: SeqNo(1),
        max_seq: SeqNo(1),
        per_entry_seqs: false,
        unique_keys: true,
        seq_shift: 0,
        writes: 1,
        first_key: Box::from(*b"a"),
        last_key: Box::from(*b"a"),
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
