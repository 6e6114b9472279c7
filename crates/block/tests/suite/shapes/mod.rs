//! Random sorted messages of many shapes, for the tests of blocks.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "a part of tests")]

use frondb_block::{Block, BlockBuilder, BlockOptions, BlockSummary, Place};
use frondb_core::prng::Prng;
use frondb_core::{MessageKind, SeqNo};

pub const PLACE: Place<'static> = Place { file: "data/7", offset: 4096 };

pub type Message = (Vec<u8>, SeqNo, MessageKind, Vec<u8>);

/// The form of the keys.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    /// All of one length, with bytes from a small alphabet.
    Fixed(usize),
    /// Lengths from 0 up to a limit, with long common prefixes.
    Varied(usize),
}

/// The form of the values.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    Empty,
    Fixed(usize),
    Varied(usize),
    /// Words, truncated to one length.
    Text(usize),
    /// Words, in lines of all lengths up to a limit; in some blocks a value contains a possible end
    /// byte.
    Lines(usize),
}

pub const KEYS: [Keys; 9] = [
    Keys::Fixed(1),
    Keys::Fixed(7),
    Keys::Fixed(8),
    Keys::Fixed(24),
    Keys::Fixed(33),
    Keys::Fixed(64),
    Keys::Fixed(65),
    Keys::Varied(20),
    Keys::Varied(700),
];
pub const VALUES: [Values; 7] = [
    Values::Empty,
    Values::Fixed(1),
    Values::Fixed(88),
    Values::Varied(40),
    Values::Lines(300),
    Values::Text(90),
    Values::Varied(70_000),
];

fn key(prng: &mut Prng, keys: Keys) -> Vec<u8> {
    let len = match keys {
        Keys::Fixed(len) => len,
        Keys::Varied(max) => prng.index(max + 1),
    };
    // The first bytes have few values, so that keys share prefixes; the last bytes have more.
    (0..len)
        .map(
            |i| {
                if i + 3 < len { 0x40 + u8::from(prng.chance(1, 8)) } else { prng.below(256) as u8 }
            },
        )
        .collect()
}

fn value(prng: &mut Prng, values: Values) -> Vec<u8> {
    let len = match values {
        Values::Empty => 0,
        Values::Fixed(len) | Values::Text(len) => len,
        Values::Varied(max) | Values::Lines(max) => prng.index(max + 1),
    };
    if let Values::Text(_) | Values::Lines(_) = values {
        let words = ["leaf ", "of a tree ", "with ", "messages, "];
        let text: String = (0..len).map(|_| words[prng.index(4)]).collect();
        let mut text = text.into_bytes()[..len].to_vec();
        if matches!(values, Values::Lines(_)) && len > 0 && prng.chance(1, 100) {
            text[len / 2] = [0, 0xff, b'\n'][prng.index(3)];
        }
        return text;
    }
    (0..len).map(|i| if i % 3 == 0 { prng.next_u32() as u8 } else { 7 }).collect()
}

/// Sorted messages: up to `count` keys, some with several versions.
pub fn messages(prng: &mut Prng, count: usize, keys: Keys, values: Values) -> Vec<Message> {
    let mut sorted: Vec<Vec<u8>> = (0..count).map(|_| key(prng, keys)).collect();
    sorted.sort();
    sorted.dedup();
    let one_kind = prng.chance(1, 2);
    let mut messages = Vec::new();
    for key in sorted {
        let bits = prng.below(50);
        let mut seq = prng.range(1..2 << bits);
        loop {
            let kind = match prng.below(5) {
                1 if !one_kind => MessageKind::Delete,
                2 if !one_kind => MessageKind::Update,
                3 if !one_kind => MessageKind::PutRef,
                _ => MessageKind::Put,
            };
            messages.push((key.clone(), SeqNo(seq), kind, value(prng, values)));
            if seq == 0 || !prng.chance(1, 6) {
                break;
            }
            seq = prng.below(seq);
        }
    }
    messages
}

/// Encodes the messages as one frame.
pub fn encode(messages: &[Message], options: BlockOptions) -> (Vec<u8>, BlockSummary) {
    let mut builder = BlockBuilder::new(options);
    for (key, seq, kind, value) in messages {
        builder.add(key, *seq, *kind, value);
    }
    assert_eq!(builder.len(), messages.len());
    assert_eq!(builder.first_key(), messages[0].0);
    assert_eq!(builder.last_key(), messages[messages.len() - 1].0);
    let mut out = vec![0xdd; 3];
    let summary = builder.finish(&mut out).unwrap();
    assert!(builder.is_empty() && builder.raw_bytes() == 0);
    let frame = out.split_off(3);
    assert_eq!(summary.bytes, frame.len());
    assert_eq!(summary.count, messages.len());
    (frame, summary)
}

pub fn decode(frame: &[u8]) -> Block {
    Block::decode(frame, &PLACE).unwrap()
}

pub fn decode_columns(frame: &[u8]) -> Block {
    Block::decode_columns(frame, None, &PLACE).unwrap()
}
