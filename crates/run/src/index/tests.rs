//! The block index against a plain list of its blocks, whole and in parts.

use frondb_block::{BlockKind, FRAME_HEADER_BYTES, Place, decode_frame};
use frondb_core::prng::Prng;

use super::*;
use crate::format::RunMeta;

fn build(blocks: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = IndexBuilder::new(INDEX_PART_BLOCKS);
    let mut last = None;
    for (i, (first, end)) in blocks.iter().enumerate() {
        builder.begin_block(last, first.as_bytes());
        builder.end_block(10 + i as u64, 2);
        last = Some(end.as_bytes());
    }
    assert_eq!(builder.count() as usize, blocks.len());
    builder.only_payload(&[])
}

/// Returns metadata of a run with this many blocks and without a filter.
fn meta(blocks: u32, blocks_bytes: u64) -> RunMeta {
    let (filter_bytes, filter_parts) = (0, 0);
    RunMeta { blocks, blocks_bytes, filter_bytes, filter_parts, ..crate::fuzz::meta() }
}

fn bytes_of(blocks: usize) -> u64 {
    (0..blocks as u64).map(|i| 10 + i).sum()
}

const PICTURE: [(&str, &str); 4] = [("a", "elm"), ("fig", "kiwi"), ("kiwi", "l"), ("mango", "z")];

#[test]
fn a_block_index_has_these_bytes() {
    let expected = b"\x04\
        \x00\x00\x14\x02\
        \x00\x01f\x16\x02\
        \x00\x04kiwi\x19\x02\
        \x00\x01m\x1a\x02";
    assert_eq!(build(&PICTURE), expected);
    // Only the bytes that a separator does not share with its predecessor are stored.
    let expected = b"\x03\x00\x00\x14\x02\x00\x03abd\x16\x02\x03\x01d\x18\x02";
    assert_eq!(build(&[("abc", "abcz"), ("abd", "abdc"), ("abddef", "b")]), expected);
}

#[test]
fn a_search_finds_the_first_block_that_can_hold_the_key() {
    let index = BlockIndex::decode(&build(&PICTURE), &meta(4, bytes_of(4))).unwrap();
    for (key, block) in [("", 0), ("a", 0), ("eno", 0), ("f", 1), ("kiw", 1), ("kiwi", 1)] {
        assert_eq!(index.find(key.as_bytes()), block, "{key}");
    }
    for (key, block) in [("kiwi\0", 2), ("lz", 2), ("m", 3), ("zz", 3)] {
        assert_eq!(index.find(key.as_bytes()), block, "{key}");
    }
    assert!(index.continues(2) && !index.continues(1) && !index.continues(4));
    assert_eq!((index.extent(2), index.rank(2), index.rank(4)), ((21, 12), 4, 8));
    // A key that fills several blocks is found at its newest version.
    let index = build(&[("a", "k"), ("k", "k"), ("k", "k"), ("k", "n")]);
    let index = BlockIndex::decode(&index, &meta(4, bytes_of(4))).unwrap();
    assert_eq!([index.find(b"k"), index.find(b"k\0"), index.find(b"j")], [0, 3, 0]);
}

/// Returns the blocks of a random run: first and last key, bytes, entries.
fn random_blocks(prng: &mut Prng) -> Vec<(Vec<u8>, Vec<u8>, u64, u64)> {
    let longest = 1 + prng.index(20);
    let mut key = || {
        let len = prng.index(longest + 1);
        let bytes: Vec<u8> = (0..len).map(|_| [0, b'a', b'b', 0xff][prng.index(4)]).collect();
        [&b"common"[..prng.index(7)], &bytes].concat()
    };
    let mut keys: Vec<_> = (0..200).map(|_| key()).collect();
    keys.sort();
    let mut blocks = Vec::new();
    while !keys.is_empty() && blocks.len() < 100 {
        let mut rest = keys.split_off(1 + prng.index(keys.len().min(4)));
        std::mem::swap(&mut keys, &mut rest);
        let (first, last) = (rest[0].clone(), rest[rest.len() - 1].clone());
        blocks.push((first, last, 1 + prng.below(1 << 20), 1 + prng.below(300)));
    }
    blocks
}

/// Extends a random filter by a block. The filter's parts end where the parts of the index end, and
/// at further blocks.
fn random_filter(prng: &mut Prng, builder: &mut IndexBuilder, filters: &mut Vec<(u32, u32)>) {
    match filters.last_mut() {
        Some((blocks, 0)) => *blocks += 1,
        _ => filters.push((1, 0)),
    }
    if prng.chance(1, 5) || builder.is_overdue() {
        filters.last_mut().unwrap().1 = 1 + prng.below(1000) as u32;
    }
}

/// Returns the parts of an index, decoded, with the top index if there is one.
fn decode(frames: &IndexFrames, meta: &RunMeta) -> (Option<TopIndex>, Vec<BlockIndex>) {
    let place = Place { file: "", offset: 0 };
    let payload = |frame: &[u8]| decode_frame(frame, BlockKind::Index, &place).unwrap();
    let Some(top) = &frames.top else {
        return (None, vec![BlockIndex::decode(&payload(&frames.parts[0]), meta).unwrap()]);
    };
    let top = TopIndex::decode(&payload(top), meta).unwrap();
    let part = |(part, frame): (usize, &frondb_core::mem::Array<u8>)| {
        let mut offset = 0;
        frames.parts[..part].iter().for_each(|frame| offset += frame.len());
        let place = top.place(part);
        assert_eq!((place.frame as usize, place.frame_bytes as usize), (offset, frame.len()));
        BlockIndex::decode_part(&payload(frame), &place).unwrap()
    };
    let parts = frames.parts.iter().enumerate().map(part).collect();
    (Some(top), parts)
}

#[test]
fn an_index_answers_as_a_list_of_its_blocks() {
    let mut prng = Prng::new(7);
    let mut with_parts = 0;
    for round in 0..600 {
        let blocks = random_blocks(&mut prng);
        let part_blocks = [1, 2, 3, 20, INDEX_PART_BLOCKS][prng.index(5)];
        let (mut builder, mut last) = (IndexBuilder::new(part_blocks), None::<&[u8]>);
        let (mut filters, has_filter, is_dropped) = (vec![], prng.chance(2, 3), prng.chance(1, 4));
        let mut ends = vec![];
        for (i, (first, end, bytes, entries)) in blocks.iter().enumerate() {
            let is_between = filters.last().is_none_or(|(_, bytes)| *bytes > 0);
            if builder.is_full() && is_between {
                builder.end_part(&filters).unwrap();
                ends.push(i);
            }
            builder.begin_block(last, first);
            builder.end_block(*bytes, *entries);
            if has_filter {
                random_filter(&mut prng, &mut builder, &mut filters);
            }
            last = Some(end);
        }
        ends.push(blocks.len());
        if let Some((_, bytes @ 0)) = filters.last_mut() {
            *bytes = 77;
        }
        if is_dropped {
            filters.clear();
        }
        let frames = builder.finish(&filters).unwrap();
        let meta = RunMeta {
            entries: blocks.iter().map(|block| block.3).sum(),
            filter_parts: filters.len() as u32,
            filter_bytes: filters.iter().map(|(_, bytes)| bytes).sum(),
            index_parts: frames.parts.len() as u32,
            index_bytes: frames.frames().map(|frame| frame.len() as u32).sum(),
            top_index_bytes: frames.top.as_ref().map_or(0, |top| top.len() as u32),
            ..meta(blocks.len() as u32, blocks.iter().map(|block| block.2).sum())
        };
        let (top, parts) = decode(&frames, &meta);
        with_parts += usize::from(top.is_some());
        assert_eq!(parts.iter().map(|part| part.blocks().end).collect::<Vec<_>>(), ends);

        let part_of = |block: usize| parts.iter().find(|part| part.blocks().end > block).unwrap();
        let (mut offset, mut rank) = (0, 0);
        for (i, (first, _, bytes, entries)) in blocks.iter().enumerate() {
            let index = part_of(i);
            assert_eq!(index.extent(i), (offset, *bytes as usize), "round {round}");
            assert_eq!(index.rank(i), rank);
            let continues = i > 0 && blocks[i - 1].1 == *first;
            assert_eq!(index.continues(i), continues);
            let separator = index.separator(i);
            assert!(separator <= **first && separator == *separator.to_vec());
            assert!(i == 0 || continues || separator > *blocks[i - 1].1);
            if i > 0 {
                // The fields of a part that describe the block after it.
                let before = part_of(i - 1);
                assert_eq!((before.rank(i), before.continues(i)), (rank, continues));
                let after = before.separator_after(i - 1).map(Separator::to_vec);
                assert_eq!(after, Some(separator.to_vec()));
            }
            if let Some(top) = &top {
                assert_eq!(top.place(top.part_of(i)).first, index.blocks().start);
                for entries in [rank + 1, rank + entries] {
                    let part = &parts[top.part_behind(entries)];
                    assert!(part.rank(part.blocks().start) < entries);
                    assert!(part.rank(part.blocks().end) >= entries);
                }
            }
            (offset, rank) = (offset + bytes, rank + entries);
        }
        let (mut block, mut end) = (0, 0);
        for (part, (blocks, bytes)) in (0..).zip(&filters) {
            let expected = Some(FilterPart { part, offset: end, bytes: *bytes });
            for number in [block, block + *blocks as usize - 1] {
                assert_eq!(part_of(number).filter_part(number), expected, "round {round}");
            }
            (block, end) = (block + *blocks as usize, end + bytes);
        }
        let end = parts.last().unwrap();
        assert!(end.is_last() && end.separator_after(blocks.len() - 1).is_none());
        assert_eq!((end.blocks().end, end.rank(blocks.len())), (blocks.len(), rank));
        let separators: Vec<_> = (0..blocks.len()).map(|i| part_of(i).separator(i)).collect();
        for (first, end, ..) in &blocks {
            let prefix = first[..prng.index(first.len() + 1)].to_vec();
            for key in [first.clone(), end.clone(), [end, &[0][..]].concat(), prefix] {
                // The last block whose separator is not above the key; if the key fills several
                // blocks, the first of them.
                let mut at = (0..blocks.len()).rev().find(|i| separators[*i] <= *key).unwrap();
                while at > 0 && part_of(at).continues(at) && separators[at] == *key {
                    at -= 1;
                }
                let found = top.as_ref().map_or(0, |top| top.find(&key));
                assert!(parts[found].blocks().contains(&at), "round {round}, {key:?}");
                let holding = (0..parts.len()).filter(|part| parts[*part].holds(&key));
                assert_eq!(holding.collect::<Vec<_>>(), [found], "round {round}, {key:?}");
                assert_eq!(parts[found].find(&key), at, "round {round}, {key:?}");
                let before = separators.iter().filter(|separator| **separator < *key).count();
                assert_eq!(parts[found].end_before(&key), before);
                if let Some(top) = &top {
                    let bound = top.end_before(&key);
                    assert!(bound >= before && bound <= parts[found].blocks().end);
                }
                let filter = parts[found].filter_part_for(&key);
                assert_eq!(filter.is_some(), !filters.is_empty());
                // Some block that has the key is covered by that part.
                let has_key = |i: &usize| blocks[*i].0 <= key && key <= blocks[*i].1;
                let mut with_key = (0..blocks.len()).filter(has_key).peekable();
                let is_right = with_key.peek().is_none()
                    || with_key.any(|block| part_of(block).filter_part(block) == filter);
                assert!(is_right, "round {round}, {key:?}");
            }
        }
        let joined = BlockIndex::join(
            &parts.into_iter().map(frondb_core::sync::Arc::new).collect::<Vec<_>>(),
        );
        let joined = joined.unwrap();
        assert_eq!((joined.len(), joined.rank(joined.len())), (blocks.len(), rank));
    }
    assert!(with_parts > 300, "{with_parts} rounds with parts");
}

#[test]
fn a_packed_index_of_a_large_leaf_takes_eight_bytes_a_block() {
    let (mut builder, mut last, blocks) =
        (IndexBuilder::new(INDEX_PART_BLOCKS), None::<Vec<u8>>, 16 << 10);
    for i in 0..blocks {
        let key = |n: u64| [&[3, 7][..], &(n * 0x9e37_79b9).to_be_bytes()[..]].concat();
        builder.begin_block(last.as_deref(), &key(2 * i));
        builder.end_block(4000 + i % 900, 180 + i % 60);
        last = Some(key(2 * i + 1));
    }
    let all = builder.blocks_bytes();
    let index = BlockIndex::decode(&builder.only_payload(&[]), &meta(blocks as u32, all)).unwrap();
    let bytes = index.memory_bytes() as u64 / blocks;
    assert!((6..=8).contains(&bytes), "{bytes} bytes a block");
}

#[test]
fn each_block_belongs_to_one_part_of_the_filter() {
    let parts =
        |filter_parts, filter_bytes| RunMeta { filter_parts, filter_bytes, ..meta(4, bytes_of(4)) };
    let part = |part, offset, bytes| Some(FilterPart { part, offset, bytes });
    let with = |filters: &[(u32, u32)]| {
        let mut builder = IndexBuilder::new(INDEX_PART_BLOCKS);
        let mut last = None;
        for (i, (first, end)) in PICTURE.iter().enumerate() {
            builder.begin_block(last, first.as_bytes());
            builder.end_block(10 + i as u64, 2);
            last = Some(end.as_bytes());
        }
        builder.only_payload(filters)
    };
    let index = BlockIndex::decode(&build(&PICTURE), &parts(0, 0)).unwrap();
    assert_eq!(index.filter_part(0), None);
    // A single part is not listed, as in earlier versions, whose filters always had one part.
    assert_eq!(with(&[(4, 500)]), build(&PICTURE));
    let index = BlockIndex::decode(&with(&[(4, 500)]), &parts(1, 500)).unwrap();
    assert_eq!([0, 3].map(|block| index.filter_part(block)), [part(0, 0, 500); 2]);
    let two = with(&[(3, 300), (1, 200)]);
    assert_eq!(two[build(&PICTURE).len()..], *b"\x03\xac\x02\x01\xc8\x01");
    let index = BlockIndex::decode(&two, &parts(2, 500)).unwrap();
    let found = [0, 2, 3].map(|block| index.filter_part(block));
    assert_eq!(found, [part(0, 0, 300), part(0, 0, 300), part(1, 300, 200)]);
    for (filters, count, bytes) in [
        (&[(3, 300), (1, 200)][..], 1, 500),
        (&[(3, 300), (1, 200)], 3, 500),
        (&[(3, 300), (1, 200)], 2, 501),
        (&[(3, 300), (2, 200)], 2, 500),
        (&[(4, 300), (0, 200)], 2, 500),
        (&[(3, 500), (1, 0)], 2, 500),
    ] {
        let refused = BlockIndex::decode(&with(filters), &parts(count, bytes));
        assert!(refused.is_err(), "{filters:?}, {count}, {bytes}");
    }
}

#[test]
fn an_index_that_contradicts_itself_or_the_metadata_is_refused() {
    let right = build(&PICTURE);
    assert!(BlockIndex::decode(&right, &meta(3, bytes_of(4))).is_err());
    assert!(BlockIndex::decode(&right, &meta(4, bytes_of(4) + 1)).is_err());
    assert!(BlockIndex::decode(&right[..right.len() - 1], &meta(4, bytes_of(4))).is_err());
    let longer = [&right[..], &[0]].concat();
    assert!(BlockIndex::decode(&longer, &meta(4, bytes_of(4))).is_err());
    for (at, byte, what) in [
        (2, 1, "the first separator is not empty"),
        (3, 0x15, "the first block continues nothing"),
        (7, b'l', "separators do not ascend"),
        (4, 0, "a block without messages"),
        (3, 0, "a block without bytes"),
    ] {
        let mut wrong = right.clone();
        wrong[at] = byte;
        assert!(BlockIndex::decode(&wrong, &meta(4, bytes_of(4))).is_err(), "{what}");
    }
}

/// Returns the index of `PICTURE` in two parts of two blocks each: the payloads of the parts and of
/// the top index, and the metadata that agrees with these payloads.
fn two_parts(filters: &[(u32, u32)]) -> ([Vec<u8>; 3], RunMeta) {
    let mut builder = IndexBuilder::new(2);
    let mut last = None;
    for (i, (first, end)) in PICTURE.iter().enumerate() {
        if i == 2 {
            assert!(builder.is_full() && builder.is_overdue());
            builder.end_part(&filters[..filters.len().min(1)]).unwrap();
        }
        builder.begin_block(last, first.as_bytes());
        builder.end_block(10 + i as u64, 2);
        last = Some(end.as_bytes());
    }
    let frames = builder.finish(filters).unwrap();
    let place = Place { file: "", offset: 0 };
    let payloads: Vec<_> = frames
        .frames()
        .map(|frame| decode_frame(frame, BlockKind::Index, &place).unwrap().to_vec())
        .collect();
    let lengths: Vec<_> = frames.frames().map(|frame| frame.len() as u32).collect();
    let meta = RunMeta {
        entries: 8,
        filter_parts: filters.len() as u32,
        filter_bytes: filters.iter().map(|(_, bytes)| bytes).sum(),
        index_parts: 2,
        index_bytes: lengths.iter().sum(),
        top_index_bytes: lengths[2],
        ..meta(4, bytes_of(4))
    };
    (payloads.try_into().unwrap(), meta)
}

#[test]
fn golden_bytes_of_parts_and_of_the_top_index() {
    let ([first, second, top], meta) = two_parts(&[]);
    assert_eq!(first, b"\x02\x00\x00\x14\x02\x00\x01f\x16\x02\x00");
    assert_eq!(second, b"\x02\x00\x04kiwi\x19\x02\x00\x01m\x1a\x02\x00");
    let of = |payload: &[u8]| (payload.len() + FRAME_HEADER_BYTES) as u8;
    let frames = u32::from(of(&first) + of(&second));
    assert_eq!(frames, meta.index_bytes - meta.top_index_bytes);
    let head = [&b"\x02\x00\x00\x02\x2a\x04"[..], &[of(&first)]].concat();
    assert_eq!(top, [&head[..], b"\x00\x04kiwi\x02\x33\x04", &[of(&second)]].concat());
    let ([first, second, top], _) = two_parts(&[(2, 300), (1, 200), (1, 7)]);
    assert!(first.ends_with(b"\x16\x02\x01\x02\xac\x02"));
    assert!(second.ends_with(b"\x1a\x02\x02\x01\xc8\x01\x01\x07"));
    assert!(top.ends_with(&[of(&second), 2, 0xcf, 1]));
}

#[test]
fn parts_that_contradict_themselves_or_the_top_index_are_refused() {
    let filters = [(2, 300), (1, 200), (1, 7)];
    let ([first, second, top], meta) = two_parts(&filters);
    let decoded = TopIndex::decode(&top, &meta).unwrap();
    assert!(BlockIndex::decode_part(&first, &decoded.place(0)).is_ok());
    for (payload, part) in [(&first, 1), (&second, 0)] {
        assert!(BlockIndex::decode_part(payload, &decoded.place(part)).is_err());
    }
    for cut in 0..second.len() {
        assert!(BlockIndex::decode_part(&second[..cut], &decoded.place(1)).is_err());
    }
    let longer = [&second[..], &[0]].concat();
    assert!(BlockIndex::decode_part(&longer, &decoded.place(1)).is_err());
    let changes: [fn(&mut PartPlace<'_>); 10] = [
        |place| place.blocks = 1,
        |place| place.bytes += 1,
        |place| place.entries -= 1,
        |place| place.separator = b"kiw",
        |place| place.continues = false,
        |place| place.next = Some((b"m", false)),
        |place| place.next = Some((b"l", false)),
        |place| place.filters = None,
        |place| place.filters.as_mut().unwrap().parts = 1,
        |place| place.filters.as_mut().unwrap().bytes = 206,
    ];
    for change in changes {
        let mut place = decoded.place(1);
        change(&mut place);
        // An index part may list the parts of a filter that was dropped.
        let is_dropped = place.filters.is_none();
        assert_eq!(BlockIndex::decode_part(&second, &place).is_ok(), is_dropped, "{place:?}");
    }
    for cut in 0..top.len() {
        assert!(TopIndex::decode(&top[..cut], &meta).is_err());
    }
    assert!(TopIndex::decode(&[&top[..], &[0]].concat(), &meta).is_err());
    let changes: [fn(&mut RunMeta); 8] = [
        |meta| meta.index_parts = 3,
        |meta| meta.blocks = 5,
        |meta| meta.blocks_bytes += 1,
        |meta| meta.entries += 1,
        |meta| meta.index_bytes += 1,
        |meta| meta.filter_parts -= 1,
        |meta| meta.filter_bytes -= 1,
        |meta| (meta.filter_parts, meta.filter_bytes) = (0, 0),
    ];
    for change in changes {
        let mut meta = meta.clone();
        change(&mut meta);
        assert!(TopIndex::decode(&top, &meta).is_err(), "{meta:?}");
    }
    for at in 0..top.len() {
        for byte in 0..=255 {
            let mut wrong = top.clone();
            wrong[at] = byte;
            // The top index does not notice a changed separator, or a changed flag that the second
            // part's first block continues a key. A part then contradicts the top index.
            if let Ok(decoded) = TopIndex::decode(&wrong, &meta)
                && wrong != top
            {
                let parts = [&first[..], &second];
                let is_read = |part| BlockIndex::decode_part(parts[part], &decoded.place(part));
                assert!((0..2).any(|part| is_read(part).is_err()), "byte {at}: {byte}");
            }
        }
    }
}
