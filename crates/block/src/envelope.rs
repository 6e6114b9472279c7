//! The frame around a block on disk: header, codec, checksum.
//!
//! A frame describes itself: kind, codec and lengths are in the header. One checksum covers header
//! and compressed bytes, so that a damaged length is noticed before it is used. The checksum comes
//! first, so that the bytes that it covers are contiguous and hashed with one call. Any thread may
//! call the functions: they share only the pooled codec contexts and the count of
//! [`miscoded_blocks`](crate::miscoded_blocks).

use frondb_core::checksum::xxh3;
use frondb_core::limits::BLOCK_RAW_BYTES_MAX;
use frondb_core::mem::{Buf, Bytes};
use frondb_core::{Error, ErrorKind, Result};

use crate::codec::{self, CODEC_BYTE_MAX, CODEC_NONE, CODEC_ZSTD, Check, Codec, name_of};
use crate::format::{BlockKind, CHECKSUM_BYTES, FRAME_HEADER_BYTES, VERSION};
use crate::miscoded;

/// The place of a block, for error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place<'a> {
    /// File, relative to the database directory.
    pub file: &'a str,
    /// Byte offset of the frame in that file.
    pub offset: u64,
}

impl Place<'_> {
    /// Returns a corruption error for a block of `kind` at this place.
    pub(crate) fn corruption(&self, kind: BlockKind, message: impl Into<String>) -> Error {
        Error::corruption(self.file, self.offset, kind.name(), message)
    }
}

/// Which frames are decoded and compared with their input when they are written. A frame may hold
/// the only copy of its bytes, so it must be certain that the codec's output decodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Frames of codecs that [are not fast](Codec::is_fast); in debug builds all frames.
    #[default]
    Slow,
    /// All frames.
    All,
}

impl Verify {
    /// Whether frames of the codec are verified.
    #[must_use]
    pub fn includes(self, codec: Codec) -> bool {
        self == Self::All || !codec.is_fast() || is_debugged()
    }
}

/// Whether this is a debug build and no test asks for the behaviour of a release.
fn is_debugged() -> bool {
    #[cfg(any(test, feature = "testing"))]
    if crate::faulty::is_on() {
        return false;
    }
    cfg!(debug_assertions)
}

/// Appends one frame that holds `raw`. Compresses `raw` with `codec` if that makes it smaller, and
/// always checks that the output decodes to `raw` again; if not, stores `raw` uncompressed.
///
/// # Errors
/// Invalid if `raw` is longer than [`BLOCK_RAW_BYTES_MAX`]. `out` is unchanged then.
pub fn encode_frame(kind: BlockKind, codec: Codec, raw: &[u8], out: &mut Vec<u8>) -> Result<()> {
    encode_frame_with_tail(kind, codec, Verify::All, raw, 0, out, None)
}

/// As [`encode_frame`], for the bytes that `fill` appends to `out`; with [`Codec::None`] these
/// bytes are not copied. Returns the number of these bytes. `verify` says whether the frame is
/// verified.
///
/// # Errors
/// As `encode_frame`.
pub fn encode_frame_with(
    kind: BlockKind,
    codec: Codec,
    verify: Verify,
    out: &mut Vec<u8>,
    fill: impl FnOnce(&mut Vec<u8>),
) -> Result<usize> {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    let body = out.len();
    fill(out);
    let len = out.len() - body;
    if codec != Codec::None || len > BLOCK_RAW_BYTES_MAX {
        let raw = out.split_off(body);
        out.truncate(start);
        encode_frame_with_tail(kind, codec, verify, &raw, 0, out, None)?;
    } else {
        seal(&mut out[start..], kind, Coding::STORED, len, 0);
    }
    Ok(len)
}

/// Completes a frame whose payload is stored uncompressed. `frame` has [`FRAME_HEADER_BYTES`]
/// bytes, which this function fills in, and then the raw bytes.
///
/// # Errors
/// As [`encode_frame`].
///
/// # Panics
/// If `frame` is shorter than a header.
pub fn seal_frame(kind: BlockKind, frame: &mut [u8]) -> Result<()> {
    let raw_len = frame.len() - FRAME_HEADER_BYTES;
    check_len(kind, raw_len)?;
    seal(frame, kind, Coding::STORED, raw_len, 0);
    Ok(())
}

fn check_len(kind: BlockKind, raw_len: usize) -> Result<()> {
    if raw_len <= BLOCK_RAW_BYTES_MAX {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a {} of {raw_len} bytes exceeds the limit of {BLOCK_RAW_BYTES_MAX} bytes",
        kind.name()
    )))
}

/// As [`encode_frame`], but stores the last `tail` bytes of `raw` uncompressed. If `back` is given,
/// it has the length of `raw` and receives the bytes that readers will decode, and the frame is
/// always verified. Without `back`, `verify` says whether the frame is verified.
pub(crate) fn encode_frame_with_tail(
    kind: BlockKind,
    codec: Codec,
    verify: Verify,
    raw: &[u8],
    tail: usize,
    out: &mut Vec<u8>,
    back: Option<&mut [u8]>,
) -> Result<()> {
    let coding = Coding { codec: codec.byte(), dictionary: 0 };
    let check = if verify.includes(codec) { Check::Decode } else { Check::No };
    encode_by(kind, coding, raw, tail, out, back, |head, out, back| {
        codec::compress(codec, head, out, back.map_or(check, Check::Into))
    })
}

/// Appends one frame. `compress` appends the payload without its tail, compressed as `coding`
/// states. If `compress` returns `false` or fails, stores the payload uncompressed: it may be the
/// last copy of its data, so a faulty codec must not lose it. If `back` is given, `compress`
/// decodes its output into the first part of `back`.
pub(crate) fn encode_by(
    kind: BlockKind,
    coding: Coding,
    raw: &[u8],
    tail: usize,
    out: &mut Vec<u8>,
    mut back: Option<&mut [u8]>,
    compress: impl FnOnce(&[u8], &mut Vec<u8>, Option<&mut [u8]>) -> Result<bool, String>,
) -> Result<()> {
    check_len(kind, raw.len())?;
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
    let (head, stored) = raw.split_at(raw.len() - tail);
    let back_head = back.as_deref_mut().map(|back| &mut back[..head.len()]);
    let is_compressed = compress(head, out, back_head).unwrap_or_else(|fault| {
        miscoded::note(kind.name(), name_of(coding.codec), head.len(), &fault);
        out.truncate(start + FRAME_HEADER_BYTES);
        false
    });
    if is_compressed {
        out.extend_from_slice(stored);
        if let Some(back) = back {
            back[head.len()..].copy_from_slice(stored);
        }
        seal(&mut out[start..], kind, coding, raw.len(), tail);
    } else {
        out.extend_from_slice(raw);
        if let Some(back) = back {
            back.copy_from_slice(raw);
        }
        seal(&mut out[start..], kind, Coding::STORED, raw.len(), 0);
    }
    Ok(())
}

/// The compression of a payload, as stated in its frame's header.
#[derive(Clone, Copy)]
pub(crate) struct Coding {
    pub(crate) codec: u8,
    /// Tag of the dictionary; 0 if there is none.
    pub(crate) dictionary: u32,
}

impl Coding {
    const STORED: Self = Self { codec: CODEC_NONE, dictionary: 0 };
}

/// Fills in the header of a frame whose body, compressed or not, is in place.
fn seal(frame: &mut [u8], kind: BlockKind, coding: Coding, raw_len: usize, tail: usize) {
    let body_len = frame.len() - FRAME_HEADER_BYTES;
    frame[8..12].copy_from_slice(&[VERSION, kind as u8, coding.codec, 0]);
    frame[12..16].copy_from_slice(&coding.dictionary.to_le_bytes());
    frame[16..20].copy_from_slice(&(body_len as u32).to_le_bytes());
    frame[20..24].copy_from_slice(&(raw_len as u32).to_le_bytes());
    frame[24..28].copy_from_slice(&(tail as u32).to_le_bytes());
    let checksum = xxh3(&frame[CHECKSUM_BYTES..]);
    frame[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Returns the checksum of a frame, or 0 if the frame is cut short. A caller that keeps the
/// checksum of each frame elsewhere, as a spool does, can detect an older valid frame at the same
/// place.
#[must_use]
pub fn frame_checksum(frame: &[u8]) -> u64 {
    frame.first_chunk::<CHECKSUM_BYTES>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A frame with a verified header and checksum.
struct Opened<'a> {
    coding: Coding,
    compressed: &'a [u8],
    tail: &'a [u8],
    raw_len: usize,
}

/// Verifies a frame that must fill `frame` exactly and hold a block of `kind`.
fn open<'a>(frame: &'a [u8], kind: BlockKind, place: &Place<'_>) -> Result<Opened<'a>> {
    let Some((header, body)) = frame.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        let message = format!("{} bytes are too short for a block", frame.len());
        return Err(place.corruption(kind, message));
    };
    let expected = frame_checksum(frame);
    let found = xxh3(&frame[CHECKSUM_BYTES..]);
    if expected != found {
        let message = format!("checksum {expected:016x} expected, {found:016x} found");
        return Err(place.corruption(kind, message));
    }
    let u32_at = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    let [version, kind_byte, codec, flags] = [header[8], header[9], header[10], header[11]];
    let coding = Coding { codec, dictionary: u32_at(12) };
    let is_known = codec <= CODEC_BYTE_MAX && (coding.dictionary == 0 || codec == CODEC_ZSTD);
    if version != VERSION || flags != 0 || !is_known {
        let message = format!(
            "{} at offset {} of {} has version {version}, codec {codec}, flags {flags}, \
             dictionary {:08x}: written by a newer version",
            kind.name(),
            place.offset,
            place.file,
            coding.dictionary
        );
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    if kind_byte != kind as u8 {
        let found = BlockKind::from_u8(kind_byte).map_or("block of unknown kind", BlockKind::name);
        return Err(place.corruption(kind, format!("found a {found} instead")));
    }
    let [body_len, raw_len, tail] = [16, 20, 24].map(|at| u32_at(at) as usize);
    if body_len != body.len() || raw_len > BLOCK_RAW_BYTES_MAX || tail > body_len.min(raw_len) {
        let message = format!(
            "the header claims a body of {body_len} bytes for {raw_len} raw ones, {tail} of them \
             stored; {} bytes are there",
            body.len()
        );
        return Err(place.corruption(kind, message));
    }
    let (compressed, tail) = body.split_at(body.len() - tail);
    Ok(Opened { coding, compressed, tail, raw_len })
}

/// Verifies and decompresses one frame that must fill `frame` exactly and hold a block of `kind`.
///
/// # Errors
/// Corruption with `place` if a byte differs from the bytes written; Unsupported if a newer version
/// wrote the frame.
pub fn decode_frame(frame: &[u8], kind: BlockKind, place: &Place<'_>) -> Result<Bytes> {
    decode_by(frame, kind, place, |tag, _, _| Err(other_dictionary(tag, "none"))).map(Buf::freeze)
}

/// As [`decode_frame`], into a buffer that the caller may change. `with_dictionary` decompresses a
/// payload; its first argument is the tag of the dictionary with which the payload was compressed.
pub(crate) fn decode_by(
    frame: &[u8],
    kind: BlockKind,
    place: &Place<'_>,
    with_dictionary: impl FnOnce(u32, &[u8], &mut [u8]) -> Result<(), String>,
) -> Result<Buf> {
    let Opened { coding, compressed, tail, raw_len } = open(frame, kind, place)?;
    let mut raw = Buf::packed(raw_len);
    let (head, stored) = raw.split_at_mut(raw_len - tail.len());
    stored.copy_from_slice(tail);
    let decompressed = match coding.dictionary {
        0 => codec::decompress(coding.codec, compressed, head).map_err(undecodable),
        tag => with_dictionary(tag, compressed, head),
    };
    decompressed.map_err(|message| place.corruption(kind, message))?;
    Ok(raw)
}

/// Returns the message for a payload that its codec cannot decode.
pub(crate) fn undecodable(message: String) -> String {
    format!("cannot decompress: {message}")
}

/// Returns the message for a payload that was compressed with the dictionary `tag`, while the run
/// has the dictionary `other`.
pub(crate) fn other_dictionary(tag: u32, other: &str) -> String {
    format!("compressed with dictionary {tag:08x}; the run has {other}")
}

/// Returns the length of the frame that begins with `header`, for readers of consecutive frames.
/// Verifies nothing. `None` if the header is cut short.
#[must_use]
pub fn frame_len(header: &[u8]) -> Option<usize> {
    let header: &[u8; FRAME_HEADER_BYTES] = header.first_chunk()?;
    let body = u32::from_le_bytes([header[16], header[17], header[18], header[19]]);
    Some(FRAME_HEADER_BYTES + body as usize)
}

/// Whether `header` may begin the frame of a data block: a cheap test for a search for frames.
/// Verifies nothing. `false` if the header is cut short.
#[must_use]
pub fn may_be_data_frame(header: &[u8]) -> bool {
    header.first_chunk::<FRAME_HEADER_BYTES>().is_some_and(|header| {
        header[8..10] == [VERSION, BlockKind::Data as u8]
            && header[10] <= CODEC_BYTE_MAX
            && header[11] == 0
            && (header[10] == CODEC_ZSTD || header[12..16] == [0; 4])
    })
}

/// Returns the decompressed length of the frame that begins with `header`. Verifies nothing. `None`
/// if the header is cut short.
#[must_use]
pub fn frame_raw_len(header: &[u8]) -> Option<usize> {
    let header: &[u8; FRAME_HEADER_BYTES] = header.first_chunk()?;
    Some(u32::from_le_bytes([header[20], header[21], header[22], header[23]]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'static> = Place { file: "data/1", offset: 4096 };

    #[test]
    fn blocks_that_do_not_decode_are_stored_uncompressed_and_counted() {
        let raw: Vec<u8> = (0..20_000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        let codecs = [Codec::Lz4, Codec::Zstd(1), Codec::Zstd(9), Codec::Zlib(1), Codec::Lzma(1)];
        for codec in codecs {
            let (before, mut frame) = (miscoded::miscoded_blocks(), Vec::new());
            crate::faulty::with_faulty_encoders(|| {
                encode_frame(BlockKind::Data, codec, &raw, &mut frame).unwrap();
            });
            assert_eq!(*decode_frame(&frame, BlockKind::Data, &PLACE).unwrap(), *raw, "{codec}");
            assert_eq!(frame.len(), FRAME_HEADER_BYTES + raw.len(), "{codec}");
            assert!(miscoded::miscoded_blocks() > before);
            // The encoders are no longer faulty: the next block is compressed.
            frame.clear();
            encode_frame(BlockKind::Data, codec, &raw, &mut frame).unwrap();
            assert!(frame.len() < raw.len());
            assert_eq!(*decode_frame(&frame, BlockKind::Data, &PLACE).unwrap(), *raw, "{codec}");
        }
    }

    #[test]
    fn any_flipped_bit_is_a_corruption_with_its_place() {
        let raw: Vec<u8> = (0..600u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        let mut frame = Vec::new();
        encode_frame(BlockKind::Index, Codec::Zstd(1), &raw, &mut frame).unwrap();
        assert_eq!(frame_len(&frame), Some(frame.len()));
        assert_eq!(frame_raw_len(&frame), Some(raw.len()));
        assert_eq!(frame_raw_len(&frame[..FRAME_HEADER_BYTES - 1]), None);
        assert!(!may_be_data_frame(&frame));
        let mut data = Vec::new();
        encode_frame(BlockKind::Data, Codec::Zstd(1), &raw, &mut data).unwrap();
        assert!(may_be_data_frame(&data) && !may_be_data_frame(&data[..FRAME_HEADER_BYTES - 1]));
        assert_eq!(&*decode_frame(&frame, BlockKind::Index, &PLACE).unwrap(), &raw[..]);
        for bit in 0..frame.len() * 8 {
            frame[bit / 8] ^= 1 << (bit % 8);
            let error = decode_frame(&frame, BlockKind::Index, &PLACE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "bit {bit}");
            assert_eq!(error.place().map(|place| place.offset), Some(4096));
            frame[bit / 8] ^= 1 << (bit % 8);
        }
        for cut in 0..frame.len() {
            assert!(decode_frame(&frame[..cut], BlockKind::Index, &PLACE).is_err(), "cut {cut}");
        }
        let error = decode_frame(&frame, BlockKind::Filter, &PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }

    #[test]
    fn a_newer_version_with_a_right_checksum_is_unsupported() {
        let mut frame = Vec::new();
        encode_frame(BlockKind::Meta, Codec::None, b"abc", &mut frame).unwrap();
        frame[8] = VERSION + 1;
        let checksum = xxh3(&frame[CHECKSUM_BYTES..]);
        frame[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        let error = decode_frame(&frame, BlockKind::Meta, &PLACE).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn a_frame_is_the_same_however_it_is_filled() {
        for codec in [Codec::None, Codec::Lz4] {
            for raw in [&b""[..], b"abcabcabcabcabcabcabcabcabc", &[7; 5000]] {
                let (mut copied, mut filled) = (vec![1, 2], vec![1, 2]);
                encode_frame(BlockKind::Spool, codec, raw, &mut copied).unwrap();
                let fill = |out: &mut Vec<u8>| out.extend_from_slice(raw);
                let len =
                    encode_frame_with(BlockKind::Spool, codec, Verify::Slow, &mut filled, fill)
                        .unwrap();
                assert_eq!((len, &filled), (raw.len(), &copied));
                if codec == Codec::None {
                    let mut sealed = [&[7; FRAME_HEADER_BYTES], raw].concat();
                    seal_frame(BlockKind::Spool, &mut sealed).unwrap();
                    assert_eq!(sealed, copied[2..]);
                }
            }
        }
        let (mut out, too_long) = (vec![1], BLOCK_RAW_BYTES_MAX + 1);
        let fill = |out: &mut Vec<u8>| out.resize(out.len() + too_long, 0);
        let error = encode_frame_with(BlockKind::Spool, Codec::None, Verify::Slow, &mut out, fill)
            .unwrap_err();
        assert_eq!((error.kind(), out), (ErrorKind::Invalid, vec![1]));
        let mut frame = vec![0; FRAME_HEADER_BYTES + too_long];
        let error = seal_frame(BlockKind::Spool, &mut frame).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
    }

    #[test]
    fn an_incompressible_block_is_stored_uncompressed() {
        let raw = [3u8, 141, 59, 26, 53, 58, 97, 93];
        let mut frame = Vec::new();
        encode_frame(BlockKind::Blob, Codec::Zstd(3), &raw, &mut frame).unwrap();
        assert_eq!(frame.len(), FRAME_HEADER_BYTES + raw.len());
        assert_eq!(&*decode_frame(&frame, BlockKind::Blob, &PLACE).unwrap(), &raw);
    }
}
