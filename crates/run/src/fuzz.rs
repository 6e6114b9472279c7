//! Fuzz entries for the decoders of this crate. Each returns whether the bytes decode.

use frondb_core::codec::Reader;
use frondb_core::mem::Bytes;
use frondb_core::{Chunk, RunId, SeqNo, TreeId};
use frondb_space::Extent;

use crate::index::{FilterPart, FilterSpan, PartPlace};
use crate::{BlockIndex, RunMeta, TopIndex};

/// Decodes run metadata. Metadata that decodes must survive a round trip.
pub fn run_meta(bytes: &[u8]) -> bool {
    let Ok(meta) = RunMeta::decode(&mut Reader::new(bytes)) else { return false };
    let mut out = Vec::new();
    meta.encode(&mut out);
    assert_eq!(RunMeta::decode(&mut Reader::new(&out)).as_ref(), Ok(&meta));
    true
}

/// Decodes a block index. The first eight bytes give the metadata: 2 bytes blocks, 3 bytes
/// blocks_bytes, 1 byte filter_parts, 2 bytes filter_bytes. A search in an index that decodes must
/// stay inside the index, and a part of the filter inside the filter.
pub fn block_index(bytes: &[u8]) -> bool {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else { return false };
    let meta = RunMeta {
        blocks: u32::from_le_bytes([head[0], head[1], 0, 0]),
        blocks_bytes: u64::from_le_bytes(*head) >> 16 & 0xff_ffff,
        filter_parts: u32::from(head[5]),
        filter_bytes: u32::from_le_bytes([head[6], head[7], 0, 0]),
        ..meta()
    };
    let decoded = BlockIndex::decode(payload, &meta);
    if let Ok(index) = &decoded {
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
    decoded.is_ok()
}

/// Decodes a top index. The first eight bytes give the metadata: 2 bytes blocks, 2 bytes
/// blocks_bytes, 1 byte index_parts, 1 byte entries minus blocks, 1 byte filter_parts, 1 byte
/// filter_bytes; the frames of the parts have 64 KiB. Searches in a top index that decodes must
/// stay inside the index, and its parts must follow each other.
pub fn top_index(bytes: &[u8]) -> bool {
    let Some((head, payload)) = bytes.split_first_chunk::<8>() else { return false };
    let blocks = u32::from(u16::from_le_bytes([head[0], head[1]]));
    let meta = RunMeta {
        blocks,
        blocks_bytes: u64::from(u16::from_le_bytes([head[2], head[3]])),
        index_parts: u32::from(head[4]),
        top_index_bytes: 100,
        index_bytes: 100 + (64 << 10),
        entries: u64::from(blocks) + u64::from(head[5]),
        filter_parts: u32::from(head[6]),
        filter_bytes: u32::from(head[7]),
        ..meta()
    };
    let Ok(top) = TopIndex::decode(payload, &meta) else { return false };
    let (mut block, mut offset, mut rank, mut frame, mut filters) = (0, 0, 0, 0, 0);
    for part in 0..top.len() {
        let place = top.place(part);
        assert_eq!((place.first, place.offset, place.rank), (block, offset, rank));
        assert_eq!((place.frame, top.find(place.separator) <= part), (frame, true));
        assert_eq!(top.part_of(block), part);
        let filter = place.filters.unwrap_or_default();
        assert!(place.filters.is_none() || filter.first == filters && filter.parts > 0);
        block += place.blocks as usize;
        offset += place.bytes;
        rank += place.entries;
        frame += place.frame_bytes;
        filters += filter.parts;
        assert_eq!(top.part_behind(rank), part);
    }
    assert_eq!((block as u32, offset, rank), (meta.blocks, meta.blocks_bytes, meta.entries));
    assert_eq!((frame, filters), (64 << 10, meta.filter_parts));
    assert!(top.find(payload) < top.len() && top.part_of(usize::MAX) + 1 == top.len());
    assert!(top.end_before(payload) <= block);
    true
}

/// Decodes a part of a block index. The first bytes give its place in the top index: 2 bytes
/// blocks, 2 bytes bytes, 2 bytes entries, 1 byte filter parts (0: the run has no filter); then the
/// separators of this part and of the next part. A byte in front of each has its length, and bit 7
/// if the block continues a key; 255 for the second means that there is no next part.
pub fn index_part(bytes: &[u8]) -> bool {
    let mut input = Reader::new(bytes);
    let Some(place) = part_place(&mut input) else { return false };
    let Ok(index) = BlockIndex::decode_part(input.rest(), &place) else { return false };
    assert_eq!(index.blocks(), place.first..place.first + place.blocks as usize);
    let (mut offset, mut entries) = (place.offset, place.rank);
    for block in index.blocks() {
        assert_eq!((index.extent(block).0, index.rank(block)), (offset, entries));
        offset += index.extent(block).1 as u64;
        entries = index.rank(block + 1);
        let part = index.filter_part(block);
        assert_eq!(part.is_some(), place.filters.is_some());
        let within = |part: FilterPart| part.offset >= 9 && part.offset + part.bytes <= 9 + 5000;
        assert!(part.is_none_or(within));
    }
    assert_eq!((offset, entries), (place.offset + place.bytes, place.rank + place.entries));
    assert_eq!(index.is_last(), place.next.is_none());
    if index.holds(bytes) {
        assert!(index.blocks().contains(&index.find(bytes)));
        assert!(index.end_before(bytes) <= index.blocks().end);
    }
    true
}

fn part_place<'a>(input: &mut Reader<'a>) -> Option<PartPlace<'a>> {
    let mut number = || input.u16().ok();
    let (blocks, bytes, entries) = (number()?, number()?, number()?);
    let parts = u32::from(input.u8().ok()?);
    let filters = FilterSpan { first: 3, offset: 9, parts, bytes: 5000 };
    let mut separator = || {
        let length = input.u8().ok()?;
        Some((length, input.take(usize::from(length & 127) % 127).ok()?))
    };
    let ((first, separator_0), (next, separator_1)) = (separator()?, separator()?);
    Some(PartPlace {
        frame: 7,
        frame_bytes: 100,
        first: 1000,
        offset: 1 << 40,
        rank: 1 << 41,
        blocks: u32::from(blocks),
        bytes: u64::from(bytes),
        entries: u64::from(entries),
        separator: separator_0,
        continues: first & 128 != 0,
        next: (next != 255).then_some((separator_1, next & 128 != 0)),
        filters: (parts > 0).then_some(filters),
    })
}

/// Returns metadata of a run with one message.
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
        index_parts: 1,
        top_index_bytes: 0,
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
        codec: None,
        dictionary: None,
        tree_block_bytes: 0,
    }
}

/// Decodes a reference to a large value. A reference that decodes must survive a round trip.
pub fn value_ref(bytes: &[u8]) -> bool {
    let Ok(value) = crate::format::ValueRef::decode(bytes) else { return false };
    let mut out = Vec::new();
    value.encode(&mut out);
    assert_eq!(crate::format::ValueRef::decode(&out).as_ref(), Ok(&value));
    true
}

/// Decodes the frame of a spool. Every entry of a frame that decodes must lie inside the frame.
pub fn spool_frame(bytes: &[u8]) -> bool {
    let (payload, mut chunk) = (Bytes::copy_from(bytes), Chunk::new());
    let is_frame = crate::spool::decode(&payload, SeqNo(1), &mut chunk).is_some();
    if is_frame {
        let sum = |len: fn(&Chunk, usize) -> usize| -> usize {
            (0..chunk.len()).map(|i| len(&chunk, i)).sum()
        };
        let entries = sum(|chunk, i| chunk.key(i).len() + chunk.value(i).len());
        assert!(!chunk.is_empty() && entries <= bytes.len());
        assert_eq!([chunk.kinds.len(), chunk.seqs.len()], [chunk.len(); 2]);
    }
    is_frame
}
