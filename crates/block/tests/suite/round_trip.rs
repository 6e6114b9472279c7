//! A block returns the messages that were written into it, by every way of reading.

use crate::shapes::{
    KEYS, Keys, Message, VALUES, Values, decode, decode_columns, encode, messages,
};
use frondb_block::{Block, BlockBuilder, BlockOptions, Codec};
use frondb_core::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use frondb_core::prng::Prng;
use frondb_core::{Chunk, MessageKind, SeqNo};

const RUN_SEQ: SeqNo = SeqNo(77);
const CODECS: [Codec; 5] =
    [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zlib(6), Codec::Lzma(1)];

/// Checks every way of reading a block of `messages`.
fn check(messages: &[Message], options: BlockOptions, prng: &mut Prng) {
    let (frame, summary) = encode(messages, options);
    let raw: usize = messages.iter().map(|(key, _, _, value)| key.len() + value.len()).sum();
    assert_eq!(summary.raw_bytes, raw);
    let (rows, columns) = (decode(&frame), decode_columns(&frame));
    assert!(!rows.has_columns() && !columns.to_rows().has_columns());
    assert!(columns.has_columns() || columns.memory_bytes() == rows.memory_bytes());
    assert_eq!(columns.to_rows().memory_bytes(), rows.memory_bytes());
    for block in [&rows, &columns, &columns.to_rows()] {
        check_block(block, messages, options, prng);
    }
}

/// Checks every way of reading a block.
fn check_block(block: &Block, messages: &[Message], options: BlockOptions, prng: &mut Prng) {
    let count = messages.len();
    assert_eq!((block.len(), block.first_key()), (count, &messages[0].0[..]));
    if !block.has_columns() {
        let values: usize = messages.iter().map(|message| message.3.len()).sum();
        assert!(block.memory_bytes() >= values + count);
    }
    let mut chunk = Chunk::new();
    for round in 0..6 {
        let start = if round == 0 { 0 } else { prng.index(count + 1) };
        let end = if round < 2 { count } else { start + prng.index(count + 1 - start) };
        block.fill(start..end, RUN_SEQ, &mut chunk);
        assert_eq!(chunk.len(), end - start);
        for (i, (key, seq, kind, value)) in messages[start..end].iter().enumerate() {
            assert_eq!(chunk.key(i), key);
            assert_eq!(chunk.prefixes[i], frondb_core::chunk::key_prefix(key));
            assert_eq!(chunk.seqs[i], if options.per_entry_seqs { *seq } else { RUN_SEQ });
            assert_eq!(chunk.kinds[i], *kind);
            assert_eq!(chunk.value(i), value);
        }
    }
    let (mut buffer, mut gathered) = (Vec::new(), vec![1]);
    for _ in 0..20 {
        let i = prng.index(count);
        let (key, seq, kind, value) = &messages[i];
        block.key_into(i, &mut buffer);
        assert_eq!((&buffer, block.kind(i)), (key, *kind));
        assert_eq!(block.value(i, &mut gathered), &value[..]);
        assert_eq!(block.seq(i, RUN_SEQ), if options.per_entry_seqs { *seq } else { RUN_SEQ });
        for sought in neighbours(key, prng) {
            let start = messages.partition_point(|message| message.0 < sought);
            let end = messages.partition_point(|message| message.0 <= sought);
            assert_eq!(block.lower_bound(&sought), start, "{sought:02x?}");
            let found = block.find(&sought);
            assert_eq!(found, start..end.max(start), "{sought:02x?}");
        }
    }
}

/// A key, and keys that differ from it in several ways.
fn neighbours(key: &[u8], prng: &mut Prng) -> Vec<Vec<u8>> {
    let mut longer = key.to_vec();
    longer.push(prng.below(3) as u8);
    let shorter = key[..prng.index(key.len() + 1)].to_vec();
    let mut other = key.to_vec();
    if !other.is_empty() {
        let at = prng.index(other.len());
        other[at] = other[at].wrapping_add(1 + prng.below(255) as u8);
    }
    vec![key.to_vec(), longer, shorter, other]
}

#[test]
fn all_shapes_round_trip() {
    let mut prng = Prng::new(20_240);
    for keys in KEYS {
        for values in VALUES {
            for size in [1, 2, 17, 300] {
                let big = matches!(values, Values::Varied(70_000));
                let messages =
                    messages(&mut prng, if big { size.min(30) } else { size }, keys, values);
                let options = BlockOptions {
                    codec: CODECS[prng.index(CODECS.len())],
                    restart_interval: [1, 2, 16, 255][prng.index(4)],
                    ..BlockOptions::default()
                };
                check(&messages, options, &mut prng);
            }
        }
    }
}

#[test]
fn every_codec_round_trips_without_seqs_too() {
    let mut prng = Prng::new(20_241);
    for codec in CODECS {
        for keys in [Keys::Fixed(24), Keys::Varied(20)] {
            let mut messages = messages(&mut prng, 500, keys, Values::Varied(40));
            messages.dedup_by(|b, a| a.0 == b.0);
            let options = BlockOptions { codec, per_entry_seqs: false, ..BlockOptions::default() };
            check(&messages, options, &mut prng);
        }
    }
}

#[test]
fn the_longest_key_and_value_fit_a_block_of_their_own() {
    let key = vec![0xab; KEY_BYTES_MAX];
    let value = vec![0xcd; VALUE_BYTES_MAX];
    let messages = [(key, SeqNo(5), MessageKind::Put, value)];
    let options = BlockOptions { codec: Codec::Lz4, ..BlockOptions::default() };
    check(&messages, options, &mut Prng::new(1));
}

#[test]
fn a_builder_is_reused_for_many_blocks() {
    let mut prng = Prng::new(20_242);
    let mut builder = BlockBuilder::new(BlockOptions::default());
    let mut chunk = Chunk::new();
    for round in 0..40 {
        let shape = (KEYS[round % KEYS.len()], VALUES[round % 5]);
        let messages = messages(&mut prng, 1 + round * 7, shape.0, shape.1);
        for (key, seq, kind, value) in &messages {
            builder.add(key, *seq, *kind, value);
        }
        let mut frame = Vec::new();
        builder.finish(&mut frame).unwrap();
        decode(&frame).fill(0..messages.len(), RUN_SEQ, &mut chunk);
        for (i, (key, seq, kind, value)) in messages.iter().enumerate() {
            assert_eq!((chunk.key(i), chunk.seqs[i]), (&key[..], *seq));
            assert_eq!((chunk.kinds[i], chunk.value(i)), (*kind, &value[..]));
        }
    }
}
