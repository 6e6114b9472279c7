//! Frames whose payload is compressed with a dictionary.

use frondb_core::Result;
use frondb_core::mem::{Buf, Bytes};

use crate::codec::{self, CODEC_ZSTD, Check};
use crate::dictionary::{Dictionary, DictionaryEncoder};
use crate::envelope::{Coding, Place, decode_by, encode_by, other_dictionary, undecodable};
use crate::format::BlockKind;

/// As [`encode_frame_with_tail`](crate::envelope::encode_frame_with_tail), with a dictionary. The
/// frame is always verified.
pub(crate) fn encode_frame_with_dictionary(
    kind: BlockKind,
    encoder: &mut DictionaryEncoder,
    raw: &[u8],
    tail: usize,
    out: &mut Vec<u8>,
    back: Option<&mut [u8]>,
) -> Result<()> {
    let coding = Coding { codec: CODEC_ZSTD, dictionary: encoder.dictionary().tag().get() };
    encode_by(kind, coding, raw, tail, out, back, |head, out, back| {
        encoder.compress(head, out, back.map_or(Check::Decode, Check::Into))
    })
}

/// As [`decode_frame`](crate::decode_frame), for a frame that may have been compressed with
/// `dictionary`.
///
/// # Errors
/// As `decode_frame`; Corruption also if the frame was compressed with another dictionary.
pub fn decode_frame_with_dictionary(
    frame: &[u8],
    kind: BlockKind,
    dictionary: Option<&Dictionary>,
    place: &Place<'_>,
) -> Result<Bytes> {
    decode_to_buf(frame, kind, dictionary, place).map(Buf::freeze)
}

/// As [`decode_frame_with_dictionary`], into a buffer that the caller may change.
pub(crate) fn decode_to_buf(
    frame: &[u8],
    kind: BlockKind,
    dictionary: Option<&Dictionary>,
    place: &Place<'_>,
) -> Result<Buf> {
    decode_by(frame, kind, place, |tag, compressed, out| match dictionary {
        Some(dictionary) if dictionary.tag().get() == tag => {
            codec::decompress_with(dictionary.decoder(), compressed, out).map_err(undecodable)
        }
        Some(other) => Err(other_dictionary(tag, &format!("{:08x}", other.tag()))),
        None => Err(other_dictionary(tag, "none")),
    })
}
