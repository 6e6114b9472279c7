//! Damaged blocks are detected, and hostile blocks are refused or can be read.

use crate::shapes::{KEYS, Keys, PLACE, VALUES, Values, encode, messages};
use frondb_block::{Block, BlockKind, BlockOptions, Codec, encode_frame, fuzz};
use frondb_core::ErrorKind;
use frondb_core::prng::Prng;

const CODECS: [Codec; 5] =
    [Codec::None, Codec::Lz4, Codec::Zstd(1), Codec::Zlib(6), Codec::Lzma(1)];

#[test]
fn every_flipped_bit_is_a_corruption() {
    let mut prng = Prng::new(31);
    for codec in CODECS {
        let messages = messages(&mut prng, 40, Keys::Fixed(12), Values::Varied(10));
        let options = BlockOptions { codec, ..BlockOptions::default() };
        let (mut frame, _) = encode(&messages, options);
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            assert!(Block::decode_columns(&frame, None, &PLACE).is_err(), "{codec} bit {bit}");
            let error = Block::decode(&frame, &PLACE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{codec} bit {bit}");
            let place = error.place().unwrap();
            assert_eq!((&place.file[..], place.offset, place.what), ("data/7", 4096, "data block"));
            frame[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Changes a few bytes, most of them in the headers, which contain the lengths.
fn mutate(bytes: &mut Vec<u8>, prng: &mut Prng) {
    for _ in 0..1 + prng.below(3) {
        let reach = if prng.chance(2, 3) { bytes.len().min(100) } else { bytes.len() };
        let at = prng.index(reach);
        bytes[at] = match prng.below(4) {
            0 => 0,
            1 => 0xff,
            2 => bytes[at].wrapping_add(1),
            _ => prng.next_u32() as u8,
        };
    }
    if prng.chance(1, 8) {
        bytes.truncate(prng.index(bytes.len()) + 1);
    }
}

#[test]
fn mutated_frames_and_payloads_are_read_or_refused() {
    let mut prng = Prng::new(32);
    // Numbers of refused and of read inputs.
    let (mut frames, mut payloads) = ([0; 2], [0; 2]);
    for round in 0..400 {
        let keys = KEYS[round % KEYS.len()];
        let values = VALUES[round % 5];
        let messages = messages(&mut prng, 1 + round % 60, keys, values);
        let options = BlockOptions {
            codec: CODECS[prng.index(CODECS.len())],
            restart_interval: [1, 3, 16][prng.index(3)],
            per_entry_seqs: true,
            ..BlockOptions::default()
        };
        let (frame, _) = encode(&messages, options);
        assert!(fuzz::frame(&frame));
        for _ in 0..10 {
            let mut frame = frame.clone();
            mutate(&mut frame, &mut prng);
            frames[usize::from(fuzz::frame(&frame))] += 1;
            fuzz::passing(&in_pieces(&frame, &mut prng));
        }
        // The body of an uncompressed frame is the payload.
        let (frame, _) = encode(&messages, BlockOptions { codec: Codec::None, ..options });
        for _ in 0..40 {
            let mut payload = frame[frondb_block::FRAME_HEADER_BYTES..].to_vec();
            mutate(&mut payload, &mut prng);
            payloads[usize::from(fuzz::payload(&payload))] += 1;
        }
    }
    for _ in 0..2_000 {
        let mut noise = vec![0; prng.index(200)];
        prng.fill(&mut noise);
        assert!(!fuzz::frame(&noise) && !fuzz::payload(&noise));
        fuzz::passing(&noise);
    }
    for [refused, read] in [frames, payloads] {
        assert!(refused > 0 && read > 0, "{refused} refused, {read} read");
    }
}

/// Returns an input of `fuzz::passing`: the total length, the length of a piece, the frame twice.
fn in_pieces(frame: &[u8], prng: &mut Prng) -> Vec<u8> {
    let length = u16::try_from(2 * frame.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&length, &[prng.index(256) as u8][..], frame, frame].concat()
}

/// Found by libFuzzer: the product of the number of entries and their length overflowed 64 bits and
/// so passed the check of the size limit.
#[test]
fn a_payload_whose_size_overflows_is_refused() {
    let mut payload = vec![0, 0, 0x26, 2, 1, 0, 0, 0, 0, 0, 0xf2, 0xff, 0, 0x38];
    payload.extend([0xf2; 15]);
    payload.extend([0x25, 0xf2, 0xf2, 0xf2, 0xf2, 0xf2, 0x72, 0xf2, 0xf2, 0xf2]);
    payload.extend([0xff; 8]);
    payload.extend([0xf2, 0xff, 0x82]);
    assert!(!fuzz::payload(&payload));
    let mut frame = Vec::new();
    encode_frame(BlockKind::Data, Codec::None, &payload, &mut frame).unwrap();
    assert_eq!(Block::decode(&frame, &PLACE).unwrap_err().kind(), ErrorKind::Corruption);
    assert!(Block::decode_columns(&frame, None, &PLACE).is_err());
}
