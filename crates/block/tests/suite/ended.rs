//! Values with an end byte: every choice of that byte, and damaged payloads and dictionaries.

use crate::shapes::{Message, PLACE};
use frondb_block::{
    Block, BlockBuilder, BlockKind, BlockOptions, Codec, Dictionary, DictionaryEncoder,
    decode_frame, decode_frame_with_dictionary, encode_frame, fuzz,
};
use frondb_core::mem::Bytes;
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{Chunk, ErrorKind, MessageKind, SeqNo};

const CODECS: [Codec; 3] = [Codec::Zstd(1), Codec::Zlib(6), Codec::Lzma(1)];

/// Returns messages whose values are random bytes without the excluded ones; some values are empty.
fn rows(prng: &mut Prng, count: usize, longest: usize, excluded: &[u8]) -> Vec<Message> {
    let alphabet: Vec<u8> = (0..=255).filter(|byte| !excluded.contains(byte)).collect();
    let few = 1 + prng.index(alphabet.len());
    let varied_keys = prng.chance(1, 2);
    let mut row = |i: usize| {
        let len = if prng.chance(1, 4) { 0 } else { prng.index(longest + 1) };
        let value = (0..len).map(|_| alphabet[alphabet.len() - 1 - prng.index(few)]).collect();
        let mut key = (i as u32).to_be_bytes().to_vec();
        key.resize(4 + if varied_keys { i % 3 } else { 0 }, 7);
        (key, SeqNo(1 + prng.below(1 << 20)), MessageKind::Put, value)
    };
    (0..count).map(&mut row).collect()
}

fn frame_of(mut builder: BlockBuilder, rows: &[Message]) -> Vec<u8> {
    for (key, seq, kind, value) in rows {
        builder.add(key, *seq, *kind, value);
    }
    let mut out = Vec::new();
    builder.finish(&mut out).unwrap();
    out
}

fn frame(codec: Codec, rows: &[Message]) -> Vec<u8> {
    let options = BlockOptions { codec, ..BlockOptions::default() };
    frame_of(BlockBuilder::new(options), rows)
}

fn check(frame: &[u8], dictionary: Option<&Dictionary>, rows: &[Message], what: &str) {
    let (mut chunk, mut gathered, mut key) = (Chunk::new(), Vec::new(), Vec::new());
    let block = Block::decode_with(frame, dictionary, &PLACE).unwrap();
    let columns = Block::decode_columns(frame, dictionary, &PLACE).unwrap();
    for block in [&block, &columns, &columns.to_rows()] {
        block.fill(0..rows.len(), SeqNo(3), &mut chunk);
        assert_eq!(block.len(), rows.len(), "{what}");
        for (i, row) in rows.iter().enumerate() {
            assert_eq!((chunk.key(i), chunk.value(i)), (&row.0[..], &row.3[..]), "{what}, row {i}");
            assert_eq!(block.value(i, &mut gathered), &row.3[..], "{what}, row {i}");
            block.key_into(i, &mut key);
            assert_eq!((&key, block.seq(i, SeqNo(3))), (&row.0, row.1), "{what}, row {i}");
        }
    }
}

/// Returns the end byte of the values of a payload; `None` if they have none.
fn end_of(payload: &[u8]) -> Option<u8> {
    (payload[1] & 32 != 0).then(|| payload[20])
}

#[test]
fn the_first_byte_that_no_value_contains_ends_values() {
    let tried = [0, 0xff, 1, b'\n'];
    for seed in 0..60 {
        let mut prng = Prng::new(seed);
        let excluded: Vec<u8> = tried.into_iter().filter(|_| prng.chance(1, 3)).collect();
        let count = [1, 2, 3, 16, 17, 100, 700][prng.index(7)];
        let longest = [1, 2, 30, 255, 256, 300, 70_000][prng.index(7)].min(2_000_000 / count);
        let rows = rows(&mut prng, count, longest, &excluded);
        let what = format!("seed {seed}");
        for codec in CODECS {
            let frame = frame(codec, &rows);
            check(&frame, None, &rows, &what);
            let payload = decode_frame(&frame, BlockKind::Data, &PLACE).unwrap();
            let free = |byte: &u8| !rows.iter().any(|row| row.3.contains(byte));
            let has_one_length = rows.iter().all(|row| row.3.len() == rows[0].3.len());
            let expected = tried.into_iter().find(free).filter(|_| !has_one_length);
            assert_eq!(end_of(&payload), expected, "{what} {codec}");
        }
    }
}

#[test]
fn a_block_of_many_bytes_keeps_lengths() {
    const MOST: usize = 4 << 20;
    let row = |i: u8, len: usize| (vec![i], SeqNo(1), MessageKind::Put, vec![b'a'; len]);
    for (over, ends) in [(0, Some(0)), (1, None)] {
        let rows = [row(1, 0), row(2, MOST - 3 + over), row(3, 0)];
        let frame = frame(Codec::Zstd(1), &rows);
        check(&frame, None, &rows, "large");
        let payload = decode_frame(&frame, BlockKind::Data, &PLACE).unwrap();
        assert_eq!(end_of(&payload), ends);
    }
    // When the values become rows, a length of four bytes replaces each of a million end bytes.
    let mut many: Vec<Message> = (0..1_000_000u32)
        .map(|i| (i.to_be_bytes().to_vec(), SeqNo(1), MessageKind::Put, Vec::new()))
        .collect();
    many[77].3 = vec![b'a'; 100_000];
    let frame = frame(Codec::Zstd(1), &many);
    check(&frame, None, &many, "many");
}

/// Payloads with end bytes, decompressed.
fn payloads() -> Vec<Bytes> {
    let mut prng = Prng::new(5);
    [(2, 3), (3, 300), (17, 20), (40, 9)]
        .map(|(count, longest)| {
            let mut rows = rows(&mut prng, count, longest, &[0]);
            rows[0].3 = vec![b'x'; 2];
            rows[1].3 = Vec::new();
            let frame = frame(Codec::Zstd(1), &rows);
            let payload = decode_frame(&frame, BlockKind::Data, &PLACE).unwrap();
            assert_eq!(end_of(&payload), Some(0));
            payload
        })
        .into()
}

#[test]
fn hostile_payloads_with_end_bytes_are_read_or_refused() {
    let (mut refused, mut read) = (0, 0);
    let mut try_payload =
        |bytes: &[u8]| *if fuzz::payload(bytes) { &mut read } else { &mut refused } += 1;
    for payload in payloads() {
        assert!(fuzz::payload(&payload));
        for at in 0..payload.len() {
            for byte in [0, 1, 2, 4, 8, 16, 32, 64, 127, 128, 254, 255, payload[at] ^ 1] {
                let mut damaged = payload.to_vec();
                damaged[at] = byte;
                try_payload(&damaged);
            }
            try_payload(&payload[..at]);
        }
        // Damage two to four bytes at once, most of them in the header.
        for seed in 0..4_000 {
            let mut prng = Prng::new(seed);
            let mut damaged = payload.to_vec();
            for _ in 0..2 + prng.below(3) {
                let reach = if prng.chance(7, 8) { 40 } else { damaged.len() };
                let at = prng.index(reach);
                damaged[at] = match prng.below(5) {
                    0 => 0,
                    1 => 0xff,
                    2 => damaged[at].wrapping_add(1),
                    3 => damaged[at].wrapping_sub(1),
                    _ => prng.next_u32() as u8,
                };
            }
            try_payload(&damaged);
        }
    }
    assert!(refused > 0 && read > 0, "{refused} refused, {read} read");
}

/// Words that repeat from block to block.
fn text(prng: &mut Prng, bytes: usize) -> Vec<u8> {
    let mut words = Prng::new(7);
    let words: Vec<String> = (0..2_000).map(|_| format!("{:x}", words.below(1 << 40))).collect();
    let mut text = Vec::new();
    while text.len() < bytes {
        text.extend_from_slice(words[prng.index(2_000)].as_bytes());
        text.push(b' ');
    }
    text.truncate(bytes);
    text
}

fn lines(prng: &mut Prng, count: usize) -> Vec<Message> {
    let mut line = |i: usize| {
        let len = prng.index(120);
        ((i as u32).to_be_bytes().to_vec(), SeqNo(9), MessageKind::Put, text(prng, len))
    };
    (0..count).map(&mut line).collect()
}

fn with_dictionary(dictionary: &Arc<Dictionary>, rows: &[Message]) -> Vec<u8> {
    let options = BlockOptions { codec: Codec::ZstdDictionary(5), ..BlockOptions::default() };
    let encoder = DictionaryEncoder::new(dictionary, 5);
    frame_of(BlockBuilder::new(options).with_dictionary(encoder), rows)
}

#[test]
fn damage_to_a_dictionary_or_its_blocks_is_an_error() {
    let samples = text(&mut Prng::new(1), 1 << 20);
    let trained = Arc::new(Dictionary::train(&samples, 16 << 10, 3).unwrap().unwrap());
    let other = Dictionary::train(&samples[1000..], 17 << 10, 3).unwrap().unwrap();
    let rows = lines(&mut Prng::new(3), 60);
    let block = with_dictionary(&trained, &rows);
    check(&block, Some(&trained), &rows, "undamaged");
    let payload =
        decode_frame_with_dictionary(&block, BlockKind::Data, Some(&trained), &PLACE).unwrap();
    assert_eq!(end_of(&payload), Some(0));
    for wrong in [None, Some(&other)] {
        let error = Block::decode_with(&block, wrong, &PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
    let mut damaged = block.clone();
    for at in 0..block.len() {
        for bit in 0..8 {
            damaged[at] ^= 1 << bit;
            let error = Block::decode_with(&damaged, Some(&trained), &PLACE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}");
            damaged[at] ^= 1 << bit;
        }
        assert!(Block::decode_with(&block[..at], Some(&trained), &PLACE).is_err(), "{at} bytes");
    }
    let mut frame = trained.frame().to_vec();
    for at in 0..frame.len() {
        for mask in [1, 0x80, 0xff] {
            frame[at] ^= mask;
            let error = Dictionary::decode(&frame, &PLACE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}");
            frame[at] ^= mask;
        }
        let error = Dictionary::decode(&frame[..at], &PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{at} bytes");
    }
}

/// A dictionary with a valid checksum, but with other bytes than the one used for the blocks,
/// counts as another dictionary.
#[test]
fn a_forged_dictionary_gives_errors() {
    let samples = text(&mut Prng::new(1), 1 << 20);
    let trained = Arc::new(Dictionary::train(&samples, 16 << 10, 3).unwrap().unwrap());
    let block = with_dictionary(&trained, &lines(&mut Prng::new(3), 60));
    let payload = decode_frame(trained.frame(), BlockKind::Dictionary, &PLACE).unwrap();
    let try_payload = |payload: &[u8], what: &str| {
        let mut frame = Vec::new();
        encode_frame(BlockKind::Dictionary, Codec::None, payload, &mut frame).unwrap();
        match Dictionary::decode(&frame, &PLACE) {
            Ok(forged) if forged.hash() == trained.hash() => {
                assert!(Block::decode_with(&block, Some(&forged), &PLACE).is_ok());
            }
            Ok(forged) => {
                let error = Block::decode_with(&block, Some(&forged), &PLACE).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corruption, "{what}");
                // Blocks that were compressed with the forged dictionary can be read with it.
                let forged = Arc::new(forged);
                let rows = lines(&mut Prng::new(4), 20);
                check(&with_dictionary(&forged, &rows), Some(&forged), &rows, what);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}"),
        }
    };
    // The entropy tables are at the front of a dictionary.
    for at in (0..200).chain((200..payload.len()).step_by(501)) {
        for mask in [1, 0xff] {
            let mut damaged = payload.to_vec();
            damaged[at] ^= mask;
            try_payload(&damaged, &format!("byte {at} ^ {mask:x}"));
        }
    }
    for len in (0..payload.len()).step_by(97) {
        try_payload(&payload[..len], &format!("{len} bytes"));
    }
}

#[test]
fn samples_without_a_dictionary_are_no_error_and_text_gives_one() {
    let mut prng = Prng::new(11);
    let size = 20 << 10;
    let mut noise = vec![0; 400 << 10];
    prng.fill(&mut noise);
    let period = |n: usize| (0..400 << 10).map(|i: usize| (i % n) as u8).collect::<Vec<u8>>();
    let mut damaged = text(&mut prng, 400 << 10);
    for _ in 0..20_000 {
        let at = prng.index(damaged.len());
        damaged[at] = prng.next_u32() as u8;
    }
    let half = [&noise[..200 << 10], &vec![0; 200 << 10]].concat();
    let cases = [vec![0; 400 << 10], vec![0xff; 400 << 10], noise, half, damaged]
        .into_iter()
        .chain([2, 3, 7, 8, 9, 255, 256].map(period))
        .chain([65_535, 65_536, 65_537, 80_000].map(|len| text(&mut prng, len)));
    let mut trained = 0;
    for (i, samples) in cases.enumerate() {
        let Some(dictionary) = Dictionary::train(&samples, size, 1).unwrap() else { continue };
        trained += 1;
        let dictionary = Arc::new(dictionary);
        let rows = lines(&mut prng, 300);
        let frame = with_dictionary(&dictionary, &rows);
        check(&frame, Some(&dictionary), &rows, &format!("case {i}"));
    }
    assert!(trained > 0, "no samples gave a dictionary");
}
