//! The output of a codec decodes to its input, in every order of blocks: encoders are pooled, so an
//! encoder has encoded other blocks before, of any size and contents.
//!
//! `FRONDB_SEED` replays a seed, `FRONDB_TIMES` multiplies the number of blocks (at most by 50 in
//! the test of blocks that did not shrink).

use frondb_block::{
    Block, BlockBuilder, BlockKind, BlockOptions, Codec, Dictionary, DictionaryEncoder, Place,
    decode_frame, encode_frame, fuzz, miscoded_blocks,
};
use frondb_core::prng::Prng;
use frondb_core::sync::Arc;
use frondb_core::{MessageKind, SeqNo};
use frondb_testkit::seed::from_env;

const PLACE: Place<'static> = Place { file: "data/1", offset: 0 };

/// Every codec that needs no dictionary, at every level.
fn codecs() -> impl Iterator<Item = Codec> {
    Codec::all().filter(|codec| !matches!(codec, Codec::ZstdDictionary(_)))
}

/// Random numbers for a test, from the environment's seed if there is one.
fn prng(default: u64) -> Prng {
    let seed = from_env("FRONDB_SEED", default);
    println!("seed {seed}");
    Prng::new(seed)
}

/// The factor by which the environment multiplies the rounds of a test.
fn times() -> usize {
    from_env("FRONDB_TIMES", 1)
}

/// Bytes that no codec makes smaller.
fn noise(prng: &mut Prng, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        (0..len.div_ceil(8)).flat_map(|_| prng.next_u64().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

/// Rows that have much in common.
fn rows(prng: &mut Prng, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 64);
    while bytes.len() < len {
        let row = format!("row {:08} of kind {};", prng.below(1 << 20), prng.below(50));
        bytes.extend_from_slice(row.as_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Rows with noise among them, as in a block with long random values.
fn mixed(prng: &mut Prng, len: usize) -> Vec<u8> {
    let first = prng.index(len + 1);
    let second = prng.index(len - first + 1);
    let mut bytes = rows(prng, first);
    bytes.extend(noise(prng, second));
    bytes.extend(rows(prng, len - first - second));
    bytes
}

fn check(codec: Codec, raw: &[u8], what: &str) {
    let mut frame = Vec::new();
    encode_frame(BlockKind::Data, codec, raw, &mut frame).unwrap();
    match decode_frame(&frame, BlockKind::Data, &PLACE) {
        Ok(back) => assert!(*back == *raw, "{codec}: {what} of {} bytes is another one", raw.len()),
        Err(error) => panic!("{codec}: {what} of {} bytes: {error}", raw.len()),
    }
    // Debug builds verify all codecs, and would store a block uncompressed that does not decode.
    assert_eq!(miscoded_blocks(), 0, "{codec}: {what} of {} bytes", raw.len());
}

#[test]
fn a_block_after_one_that_did_not_shrink_decodes() {
    // zlib-rs 0.6.8 keeps a block open in an encoder whose output buffer was full.
    let mut prng = prng(51);
    let ordinary = rows(&mut prng, 16 << 10);
    for codec in codecs() {
        let step = if codec == Codec::Zlib(1) { 50 } else { 2_500 } / times().min(50);
        for len in (61_000..=66_000).step_by(step) {
            check(codec, &noise(&mut prng, len), "noise");
            check(codec, &ordinary, "a block after noise");
        }
    }
}

/// Sizes next to those of the buffers and windows of the codecs.
fn sizes() -> Vec<usize> {
    let near = |n: usize| [n - 1, n, n + 1];
    let mut sizes = vec![1, 2, 3, 13, 100];
    sizes.extend((8..=18).flat_map(|bits| near(1 << bits)));
    // Two windows of zlib less its lookahead; the longest input of lz4's table of 16-bit offsets.
    sizes.extend([65_536 - 262, 65_536 - 261, 65_535 - 1, 96 << 10, (128 << 10) + 2]);
    sizes
}

#[test]
fn blocks_of_every_size_decode_in_a_random_order() {
    let mut prng = prng(0xC0DEC);
    let sizes = sizes();
    for codec in codecs() {
        let rounds = if codec.is_slow() { 12 } else { 60 };
        for _ in 0..rounds * times() {
            let len = match prng.below(3) {
                0 => prng.index(200_000),
                _ => sizes[prng.index(sizes.len())],
            };
            let (raw, what) = match prng.below(3) {
                0 => (noise(&mut prng, len), "noise"),
                1 => (rows(&mut prng, len), "rows"),
                _ => (mixed(&mut prng, len), "rows and noise"),
            };
            check(codec, &raw, what);
        }
    }
}

#[test]
fn blocks_with_a_dictionary_decode_after_ones_that_did_not_shrink() {
    let mut prng = prng(52);
    let trained = Dictionary::train(&rows(&mut prng, 1 << 20), 16 << 10, 0).unwrap().unwrap();
    let dictionary = Arc::new(trained);
    for level in 1..=19 {
        let codec = Codec::ZstdDictionary(level);
        let options = BlockOptions { codec, ..BlockOptions::default() };
        let encoder = DictionaryEncoder::new(&dictionary, level);
        let mut builder = BlockBuilder::new(options).with_dictionary(encoder);
        for round in 0..6 * times() {
            let len = sizes()[prng.index(sizes().len())];
            let value = if round % 2 == 0 { noise(&mut prng, len) } else { rows(&mut prng, len) };
            builder.add(b"key", SeqNo(1), MessageKind::Put, &value);
            let mut frame = Vec::new();
            builder.finish(&mut frame).unwrap();
            let block = Block::decode_with(&frame, Some(&dictionary), &PLACE).unwrap();
            assert_eq!(block.value(0, &mut Vec::new()), value, "{codec}: {len} bytes");
        }
    }
    assert_eq!(miscoded_blocks(), 0);
}

#[test]
fn sequences_chosen_by_bytes_decode() {
    let mut prng = prng(0xF0);
    for _ in 0..300 * times() {
        let mut data = vec![0; 2 + 3 * prng.index(9)];
        prng.fill(&mut data);
        // Keep the blocks below 8 KiB; the tests above have larger ones.
        data[2..].iter_mut().skip(1).step_by(3).for_each(|high| *high &= 7);
        fuzz::codec_sequence(&data);
    }
}
