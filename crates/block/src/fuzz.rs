//! Entry points for fuzzers: each accepts arbitrary bytes and must not panic.

use frondb_core::checksum::xxh3;
use frondb_core::mem::Buf;
use frondb_core::prng::Prng;
use frondb_core::sync::OnceLock;
use frondb_core::{Chunk, SeqNo};

use crate::format::CHECKSUM_BYTES;
use crate::{
    Block, BlockKind, Codec, DamagedFrame, PassingFrames, Place, decode_frame, encode_frame,
    frame_len, frame_raw_len, miscoded_blocks,
};

const PLACE: Place<'static> = Place { file: "fuzz", offset: 0 };

/// Decodes the bytes as frames of several kinds, unchanged and with a corrected checksum. Returns
/// whether the corrected frame is a data block.
pub fn frame(data: &[u8]) -> bool {
    let _ = frame_len(data);
    let _ = frame_raw_len(data);
    for kind in [BlockKind::Data, BlockKind::Index, BlockKind::Filter] {
        let _ = decode_frame(data, kind, &PLACE);
    }
    if data.len() < CHECKSUM_BYTES {
        return false;
    }
    let mut sealed = data.to_vec();
    let checksum = xxh3(&sealed[CHECKSUM_BYTES..]);
    sealed[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    let _ = decode_frame(&sealed, BlockKind::Index, &PLACE);
    let decoded = Block::decode(&sealed, &PLACE);
    if let Ok(block) = &decoded {
        read_all(block);
    }
    if let Ok(block) = Block::decode_columns(&sealed, None, &PLACE) {
        read_all(&block);
    }
    decoded.is_ok()
}

/// Encodes and decodes up to 16 blocks with one codec: earlier outputs of an encoder must not
/// affect later ones. The first two bytes choose the codec. Then three bytes describe each block:
/// its length, and the share of noise in it. The rest of the block repeats the input.
pub fn codec_sequence(data: &[u8]) {
    let [algorithm, level, blocks @ ..] = data else { return };
    let codec = codec_of(*algorithm, *level);
    let before = miscoded_blocks();
    let mut prng = Prng::new(blocks.len() as u64);
    for (i, block) in blocks.chunks_exact(3).take(16).enumerate() {
        let len =
            usize::from(u16::from_le_bytes([block[0], block[1]])) * 4 + usize::from(block[2] & 3);
        let noisy = len * usize::from(block[2] >> 2) / 63;
        let mut raw = vec![0; noisy];
        prng.fill(&mut raw);
        raw.extend(blocks[3 * i..].iter().cycle().take(len - noisy));
        let mut frame = Vec::new();
        if encode_frame(BlockKind::Data, codec, &raw, &mut frame).is_ok() {
            let back = decode_frame(&frame, BlockKind::Data, &PLACE);
            assert!(back.is_ok_and(|back| *back == *raw), "{codec}: block {i} of {len} bytes");
        }
    }
    assert_eq!(miscoded_blocks(), before, "{codec} wrote a block that does not decode");
}

/// Returns the codec that two bytes choose, of all codecs at all levels.
fn codec_of(algorithm: u8, level: u8) -> Codec {
    static CODECS: OnceLock<Vec<Codec>> = OnceLock::new();
    let codecs = CODECS.get_or_init(|| Codec::all().collect());
    let algorithms: Vec<&[Codec]> =
        codecs.chunk_by(|a, b| a.to_bytes()[0] == b.to_bytes()[0]).collect();
    let levels = algorithms[usize::from(algorithm) % algorithms.len()];
    levels[usize::from(level) % levels.len()]
}

/// Passes the bytes after the first three to [`PassingFrames`]. The first three bytes give the
/// total length of the frames, and the length of the pieces in which the bytes arrive. The length
/// of the pieces must not change the result.
pub fn passing(data: &[u8]) {
    let [low, high, piece, bytes @ ..] = data else {
        return;
    };
    let expected = u64::from(u16::from_le_bytes([*low, *high]));
    let whole = pass(bytes, expected, bytes.len());
    assert_eq!(pass(bytes, expected, usize::from(*piece)), whole);
}

fn pass(bytes: &[u8], expected: u64, piece: usize) -> Result<bool, DamagedFrame> {
    let mut frames = PassingFrames::new(expected);
    for piece in bytes.chunks(piece.max(1)) {
        frames.take(piece)?;
    }
    Ok(frames.are_complete())
}

/// Validates the bytes as the payload of a data block. Returns whether they are a valid payload.
pub fn payload(data: &[u8]) -> bool {
    let block_of = |keeps_columns| {
        let mut payload = Buf::zeroed(data.len());
        payload.copy_from_slice(data);
        Block::from_payload(payload, keeps_columns)
    };
    let (rows, columns) = (block_of(false), block_of(true));
    let is_payload = rows.is_ok();
    assert_eq!(is_payload, columns.is_ok());
    if let (Ok(rows), Ok(columns)) = (rows, columns) {
        read_all(&rows);
        read_all(&columns);
        read_all(&columns.to_rows());
    }
    is_payload
}

fn read_all(block: &Block) {
    let n = block.len();
    let mut chunk = Chunk::new();
    let (mut key, mut gathered) = (Vec::new(), Vec::new());
    block.fill(0..n, SeqNo(7), &mut chunk);
    for i in [0, n / 3, n / 2, n - 1] {
        block.key_into(i, &mut key);
        assert_eq!(key, chunk.key(i));
        assert_eq!(block.value(i, &mut gathered), chunk.value(i));
        assert_eq!(block.seq(i, SeqNo(7)), chunk.seqs[i]);
        assert_eq!(block.kind(i), chunk.kinds[i]);
        let _ = block.lower_bound(&key);
        let _ = block.find(&key);
        let mut part = Chunk::new();
        block.fill(i..n, SeqNo(7), &mut part);
        assert_eq!(part.key(0), key);
    }
    let _ = block.lower_bound(b"");
    let _ = block.find(&[0xff; 40]);
    let _ = (block.first_key(), block.memory_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_bytes_choose_every_codec() {
        for codec in Codec::all() {
            let mut chosen = (0..8).flat_map(|a| (0..32).map(move |level| codec_of(a, level)));
            assert!(chosen.any(|chosen| chosen == codec), "{codec}");
        }
    }
}
