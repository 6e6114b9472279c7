//! The bytes of blocks. Databases contain them, so a change here is a change of the format.

use std::fmt::Write;

use crate::shapes::{Message, decode, encode};
use frondb_block::{BlockOptions, Codec};
use frondb_core::{Chunk, MessageKind, SeqNo};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap())
        .collect()
}

fn message(key: &[u8], seq: u64, kind: MessageKind, value: &[u8]) -> Message {
    (key.to_vec(), SeqNo(seq), kind, value.to_vec())
}

fn transposed() -> Vec<Message> {
    vec![
        message(&[0, 7, 0x1a], 900, MessageKind::Put, b"one"),
        message(&[0, 7, 0x5c], 1_200, MessageKind::Put, b"two"),
        message(&[0, 8, 0x03], 901, MessageKind::Put, b"six"),
    ]
}

fn rows() -> Vec<Message> {
    vec![
        message(b"apple", 7, MessageKind::Put, b"red"),
        message(b"apple", 5, MessageKind::Delete, b""),
        message(b"applet", 6, MessageKind::Update, b"+1"),
        message(b"b", 3, MessageKind::PutRef, b"extent"),
    ]
}

/// 200 rows that every codec shrinks, with transposed columns of all modes.
fn many() -> Vec<Message> {
    let mut many: Vec<Message> = (0..200u32)
        .map(|i| {
            let mut key = (i / 7).to_be_bytes().to_vec();
            key.extend_from_slice(
                &frondb_core::checksum::xxh3(&i.to_le_bytes()).to_be_bytes()[..3],
            );
            let mut value = [b'v'; 20];
            value[..4].copy_from_slice(&(i * 3).to_be_bytes());
            message(&key, u64::from(i) + 1, MessageKind::Put, &value)
        })
        .collect();
    many.sort_by(|a, b| a.0.cmp(&b.0));
    many
}

#[test]
fn stored_blocks_have_these_bytes() {
    let stored =
        BlockOptions { codec: Codec::None, restart_interval: 2, ..BlockOptions::default() };
    let (frame, _) = encode(&transposed(), stored);
    assert_eq!(hex(&frame), TRANSPOSED);
    let (frame, _) = encode(&rows(), stored);
    assert_eq!(hex(&frame), ROWS);
    let (frame, _) = encode(&rows()[..1], BlockOptions { per_entry_seqs: false, ..stored });
    assert_eq!(hex(&frame), ONE_WITHOUT_SEQ);
}

#[test]
fn compressed_blocks_of_version_one_are_read() {
    let mut chunk = Chunk::new();
    let many = many();
    for line in COMPRESSED.lines() {
        let (codec, text) = line.split_once(' ').unwrap();
        decode(&unhex(text)).fill(0..many.len(), SeqNo(1), &mut chunk);
        for (i, (key, seq, kind, value)) in many.iter().enumerate() {
            assert_eq!((chunk.key(i), chunk.seqs[i]), (&key[..], *seq), "{codec}");
            assert_eq!((chunk.kinds[i], chunk.value(i)), (*kind, &value[..]), "{codec}");
        }
    }
}

#[test]
fn a_block_whose_values_have_an_end_byte_is_read() {
    let mut chunk = Chunk::new();
    decode(&unhex(ENDED)).fill(0..4, SeqNo(1), &mut chunk);
    let values: Vec<&[u8]> = (0..4).map(|i| chunk.value(i)).collect();
    assert_eq!(values, [&b"red"[..], b"", b"+1", b"extent"]);
}

const TRANSPOSED: &str = concat!(
    "075dc51ff4a310d30101000000000000410000004100000000000000010600000002000103000000",
    "030000000a000000030000000900000000000000840300000000000000002c010100000101000707",
    "081a5c036f6e6574776f736978",
);
const ROWS: &str = concat!(
    "d2d4e7681d4e2f790101000000000000530000005300000000000000000102010101000104000000",
    "000000000c000000000000000b000000000000000300000000000000000500000500060100010203",
    "04020300030002066170706c656170706c6574627265642b31657874656e74",
);
const ONE_WITHOUT_SEQ: &str = concat!(
    "f32d714bb23f75b60101000000000000350000003500000000000000010600000000000001000000",
    "050000000a000000030000000300000000000000000000000000000000000000006170706c657265",
    "64",
);
/// A frame of [`rows`] with zstd:1.
const ENDED: &str = concat!(
    "82dc866c4480c72701010200000000004e000000530000000000000028b52ffd00002d0200a40300",
    "2102010001000104000c000f0003000500000500060100010203040203006170706c656170706c65",
    "746272656400002b3100657874656e7400041000190f3cf08004",
);
/// Each line has a codec and a frame of [`many`].
const COMPRESSED: &str = include_str!("../testdata/compressed.txt");
