//! Compression codecs of blocks, and the contexts they need.
//!
//! A [`Codec`] is an option of a tree. Its byte on disk names only the algorithm, because the level
//! matters only for encoding. Contexts (hash tables, windows) are expensive to make, so the process
//! pools a few of them, and a thread takes one for the duration of a block: in the steady state no
//! block allocates. zstd sizes them to the blocks seen, a few hundred KiB at the low levels.
//!
//! Decoders never trust a length: they write into a slice of the size that the checked header
//! claims, and reject an input that yields more or less.

use std::fmt;
use std::str::FromStr;

use frondb_core::pool::{Limited, Pool};
use frondb_core::{Error, Result};
use zstd::zstd_safe::CParameter;

/// The compression of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
#[non_exhaustive]
pub enum Codec {
    /// Stored uncompressed.
    None,
    /// LZ4 block format: cheapest. Skipped where it saves less than an eighth
    /// ([`CodecTrial`](crate::CodecTrial)).
    #[default]
    Lz4,
    /// Zstandard at a level of 1..=19.
    Zstd(u8),
    /// zlib (RFC 1950) at a level of 1..=9.
    Zlib(u8),
    /// LZMA2 in an xz stream, preset 0..=9: smallest and slowest; pays off with blocks of 128 KiB
    /// or more.
    Lzma(u8),
}

/// Byte on disk: stored.
pub(crate) const CODEC_NONE: u8 = 0;
/// Byte on disk: LZ4 block.
pub(crate) const CODEC_LZ4: u8 = 1;
/// Byte on disk: one Zstandard frame.
pub(crate) const CODEC_ZSTD: u8 = 2;
/// Byte on disk: one zlib stream.
pub(crate) const CODEC_ZLIB: u8 = 3;
/// Byte on disk: one xz stream.
pub(crate) const CODEC_LZMA: u8 = 4;

/// Largest codec byte this build reads.
pub(crate) const CODEC_BYTE_MAX: u8 = CODEC_LZMA;

impl Codec {
    /// The profile for data that is written once and rarely read.
    pub const AGGRESSIVE: Self = Self::Lzma(6);

    /// The byte on disk.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::None => CODEC_NONE,
            Self::Lz4 => CODEC_LZ4,
            Self::Zstd(_) => CODEC_ZSTD,
            Self::Zlib(_) => CODEC_ZLIB,
            Self::Lzma(_) => CODEC_LZMA,
        }
    }

    /// The raw block size from which the codec pays off, bytes; `None` if any size will do.
    #[must_use]
    pub const fn preferred_block_bytes(self) -> Option<usize> {
        match self {
            Self::Lzma(_) => Some(128 * 1024),
            _ => None,
        }
    }

    /// Checks the level.
    ///
    /// # Errors
    /// Invalid, with the range allowed.
    pub fn validate(self) -> Result<()> {
        let (name, level, range) = match self {
            Self::None | Self::Lz4 => return Ok(()),
            Self::Zstd(level) => ("zstd", level, 1..=19),
            Self::Zlib(level) => ("zlib", level, 1..=9),
            Self::Lzma(level) => ("lzma", level, 0..=9),
        };
        if range.contains(&level) {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "codec {name} has the levels {} to {}, not {level}",
            range.start(),
            range.end()
        )))
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::Zlib(level) => write!(f, "zlib:{level}"),
            Self::Lzma(level) => write!(f, "lzma:{level}"),
        }
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// Parses what `Display` prints; `zstd`, `zlib` and `lzma` without a level take 3, 6 and 6,
    /// and `aggressive` is [`Codec::AGGRESSIVE`].
    fn from_str(text: &str) -> Result<Self> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => {
                let level = level.parse::<u8>().map_err(|_| {
                    Error::invalid(format!("codec `{text}`: the level is not a number"))
                })?;
                (name, Some(level))
            }
            None => (text, None),
        };
        let codec = match (name, level) {
            ("none", None) => Self::None,
            ("lz4", None) => Self::Lz4,
            ("aggressive", None) => Self::AGGRESSIVE,
            ("zstd", level) => Self::Zstd(level.unwrap_or(3)),
            ("zlib", level) => Self::Zlib(level.unwrap_or(6)),
            ("lzma", level) => Self::Lzma(level.unwrap_or(6)),
            _ => {
                return Err(Error::invalid(format!(
                    "unknown codec `{text}`: use none, lz4, zstd:1 to zstd:19, zlib:1 to zlib:9, \
                     lzma:0 to lzma:9 or aggressive"
                )));
            }
        };
        codec.validate()?;
        Ok(codec)
    }
}

/// An encoder and its current level.
type ZstdEncoder = (u8, zstd::bulk::Compressor<'static>);

/// Decompression contexts, each made at first use: zstd's has some 160 KiB.
#[derive(Default)]
struct Decoders {
    zstd_decoder: Option<zstd::bulk::Decompressor<'static>>,
    zlib_decoder: Option<flate2::Decompress>,
}

/// Compression contexts, each made at first use.
#[derive(Default)]
struct Encoders {
    zstd_encoder: Option<ZstdEncoder>,
    lz4_small: Option<lz4_flex::block::CompressTable>,
    lz4_large: Option<lz4_flex::block::CompressTable>,
    zlib_encoder: Option<(u8, flate2::Compress)>,
    /// Output buffer, so that `out` is not zeroed up to the worst case.
    scratch: Vec<u8>,
}

/// Pools of the process, not of each thread: a thousand connections that read hold no contexts. A
/// context is in use for some microseconds and never while its thread waits, so readers wait for
/// one rather than make more of them than can work at once. When every thread that found none made
/// its own, each of 16 threads left holes of 96 KiB in its malloc arena.
static DECODERS: Limited<Decoders> = Limited::new();
static ENCODERS: Pool<Box<Encoders>> = Pool::new(4);

/// Frees all idle contexts.
pub fn trim_contexts() {
    DECODERS.clear();
    ENCODERS.clear();
}

/// Appends `raw` compressed by `codec` to `out` and returns true; false, with `out` as it was, if
/// that would not make it smaller (the caller stores it).
///
/// # Errors
/// Internal, if the codec's library fails.
pub(crate) fn compress(codec: Codec, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
    if raw.is_empty() || codec == Codec::None {
        return Ok(false);
    }
    let mut encoders = ENCODERS.take().unwrap_or_default();
    let mut scratch = std::mem::take(&mut encoders.scratch);
    let room = bound(codec, raw.len());
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    let written = encoders.compress(codec, raw, &mut scratch[..room]);
    let smaller = match &written {
        Ok(Some(n)) if *n < raw.len() => {
            out.extend_from_slice(&scratch[..*n]);
            Ok(true)
        }
        Ok(_) => Ok(false),
        Err(message) => Err(Error::internal(format!("codec {codec}: {message}"))),
    };
    // One huge block must not keep a huge scratch buffer alive.
    if scratch.len() <= SCRATCH_BYTES_KEPT {
        encoders.scratch = scratch;
    }
    ENCODERS.put(encoders);
    smaller
}

/// Scratch memory kept between blocks.
const SCRATCH_BYTES_KEPT: usize = 1 << 20;

/// Output room that the codec needs for `len` bytes. Where only a smaller output is useful, the raw
/// length suffices; the other codecs need room for their worst case to be fast, or to run at all.
fn bound(codec: Codec, len: usize) -> usize {
    match codec {
        Codec::Lz4 => lz4_flex::block::get_maximum_output_size(len),
        Codec::Zstd(_) => zstd::zstd_safe::compress_bound(len),
        Codec::None | Codec::Zlib(_) | Codec::Lzma(_) => len,
    }
}

impl Encoders {
    /// Compresses into `out`; `None` if it does not fit there.
    fn compress(
        &mut self,
        codec: Codec,
        raw: &[u8],
        out: &mut [u8],
    ) -> Result<Option<usize>, String> {
        match codec {
            Codec::None => Ok(None),
            Codec::Lz4 => {
                use lz4_flex::block::{CompressTable, compress_into_with_table};
                let table = if raw.len() < u16::MAX as usize {
                    self.lz4_small.get_or_insert_with(CompressTable::small)
                } else {
                    self.lz4_large.get_or_insert_with(CompressTable::large)
                };
                compress_into_with_table(raw, out, table).map(Some).map_err(|e| e.to_string())
            }
            Codec::Zstd(level) => {
                let encoder = zstd_encoder(&mut self.zstd_encoder, level)?;
                encoder.compress_to_buffer(raw, out).map(Some).map_err(|e| e.to_string())
            }
            Codec::Zlib(level) => {
                let encoder = match &mut self.zlib_encoder {
                    Some((made_for, encoder)) if *made_for == level => {
                        encoder.reset();
                        encoder
                    }
                    slot => {
                        let level_of = flate2::Compression::new(u32::from(level));
                        &mut slot.insert((level, flate2::Compress::new(level_of, true))).1
                    }
                };
                let status = encoder
                    .compress(raw, out, flate2::FlushCompress::Finish)
                    .map_err(|e| e.to_string())?;
                let done = status == flate2::Status::StreamEnd;
                Ok(done.then_some(encoder.total_out() as usize))
            }
            Codec::Lzma(preset) => lzma_compress(preset, raw, out),
        }
    }
}

impl Decoders {
    /// Decompresses into `out`, and returns the number of bytes.
    fn zstd(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let decoder = match &mut self.zstd_decoder {
            Some(decoder) => decoder,
            slot => slot.insert(zstd::bulk::Decompressor::new().map_err(|e| e.to_string())?),
        };
        decoder.decompress_to_buffer(bytes, out).map_err(|e| e.to_string())
    }

    /// As [`zstd`](Self::zstd).
    fn zlib(&mut self, bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let decoder = match &mut self.zlib_decoder {
            Some(decoder) => {
                decoder.reset(true);
                decoder
            }
            slot => slot.insert(flate2::Decompress::new(true)),
        };
        let status = decoder
            .decompress(bytes, out, flate2::FlushDecompress::Finish)
            .map_err(|e| e.to_string())?;
        if status != flate2::Status::StreamEnd {
            return Err("the compressed stream has the wrong length".into());
        }
        Ok(decoder.total_out() as usize)
    }
}

/// Shortest match that zstd's level 1 looks for, bytes; zstd's own choice is 5 for blocks up to 16
/// KiB. Level 1 is chosen for speed, and short matches cost the decoder more than the bytes that
/// they save (decision 0035).
const ZSTD_1_MIN_MATCH: u32 = 6;

/// The thread's zstd encoder, set to `level`.
fn zstd_encoder(
    slot: &mut Option<ZstdEncoder>,
    level: u8,
) -> Result<&mut zstd::bulk::Compressor<'static>, String> {
    if !matches!(slot, Some((made_for, _)) if *made_for == level) {
        let made = zstd::bulk::Compressor::new(i32::from(level)).and_then(|mut encoder| {
            // The block's header already has the size and a checksum.
            encoder.set_parameter(CParameter::ContentSizeFlag(false))?;
            encoder.set_parameter(CParameter::ChecksumFlag(false))?;
            encoder.set_parameter(CParameter::DictIdFlag(false))?;
            if level == 1 {
                encoder.set_parameter(CParameter::MinMatch(ZSTD_1_MIN_MATCH))?;
            }
            Ok(encoder)
        });
        *slot = Some((level, made.map_err(|e| e.to_string())?));
    }
    match slot {
        Some((_, encoder)) => Ok(encoder),
        None => Err("cannot create a decompression context".into()),
    }
}

fn lzma_compress(preset: u8, raw: &[u8], out: &mut [u8]) -> Result<Option<usize>, String> {
    use liblzma::stream::{Action, Check, Filters, LzmaOptions, Status, Stream};
    let mut options = LzmaOptions::new_preset(u32::from(preset)).map_err(|e| e.to_string())?;
    // A window larger than the block would only cost memory (a preset's is up to 64 MiB).
    let window = raw.len().next_power_of_two().clamp(4096, 8 << 20);
    options.dict_size(window as u32);
    let mut filters = Filters::new();
    filters.lzma2(&options);
    let mut stream =
        Stream::new_stream_encoder(&filters, Check::None).map_err(|e| e.to_string())?;
    loop {
        let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
        if written == out.len() {
            return Ok(None);
        }
        let status = stream
            .process(&raw[read..], &mut out[written..], Action::Finish)
            .map_err(|e| e.to_string())?;
        if status == Status::StreamEnd {
            return Ok(Some(stream.total_out() as usize));
        }
    }
}

/// Memory that a hostile xz header may make the decoder allocate, bytes.
const LZMA_DECODER_MEMORY_MAX: u64 = 80 << 20;

fn lzma_decompress(bytes: &[u8], out: &mut [u8]) -> Result<usize, String> {
    use liblzma::stream::{Action, Status, Stream};
    let mut stream =
        Stream::new_stream_decoder(LZMA_DECODER_MEMORY_MAX, 0).map_err(|e| e.to_string())?;
    loop {
        let (read, written) = (stream.total_in() as usize, stream.total_out() as usize);
        let status = stream
            .process(&bytes[read..], &mut out[written..], Action::Finish)
            .map_err(|e| e.to_string())?;
        if status == Status::StreamEnd {
            return Ok(stream.total_out() as usize);
        }
        if stream.total_in() as usize == read && stream.total_out() as usize == written {
            return Err("the compressed stream has the wrong length".into());
        }
    }
}

/// Decompresses `bytes` by the codec byte of a header into all of `out`.
///
/// # Errors
/// The fault, for the caller to report as a corruption.
pub(crate) fn decompress(codec: u8, bytes: &[u8], out: &mut [u8]) -> Result<(), String> {
    if codec == CODEC_NONE {
        if bytes.len() != out.len() {
            return Err(format!("{} bytes instead of {}", bytes.len(), out.len()));
        }
        out.copy_from_slice(bytes);
        return Ok(());
    }
    let n = match codec {
        CODEC_LZ4 => lz4_flex::block::decompress_into(bytes, out).map_err(|e| e.to_string())?,
        CODEC_ZSTD => DECODERS.with(|decoders| decoders.zstd(bytes, out))?,
        CODEC_ZLIB => DECODERS.with(|decoders| decoders.zlib(bytes, out))?,
        CODEC_LZMA => lzma_decompress(bytes, out)?,
        _ => return Err(format!("unknown codec byte {codec}")),
    };
    if n == out.len() { Ok(()) } else { Err(format!("{n} bytes instead of {}", out.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for codec in [
            Codec::None,
            Codec::Lz4,
            Codec::Zstd(1),
            Codec::Zstd(19),
            Codec::Zlib(9),
            Codec::Lzma(0),
        ] {
            assert_eq!(codec.to_string().parse::<Codec>().unwrap(), codec);
        }
        assert_eq!("aggressive".parse::<Codec>().unwrap(), Codec::AGGRESSIVE);
        for wrong in ["", "zstd:", "zstd:0", "zstd:20", "lz4:1", "zlib:10", "brotli", "zstd:-1"] {
            assert!(wrong.parse::<Codec>().is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn every_codec_round_trips_and_refuses_a_wrong_length() {
        let raw: Vec<u8> = (0..50_000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        for codec in [Codec::Lz4, Codec::Zstd(1), Codec::Zstd(9), Codec::Zlib(6), Codec::Lzma(6)] {
            for len in [1, 100, 5_000, 65_535, 200_000] {
                let raw = &raw[..len];
                let mut packed = vec![7];
                if !compress(codec, raw, &mut packed).unwrap() {
                    assert_eq!(packed, [7], "{codec} changed the output buffer");
                    continue;
                }
                let mut back = vec![0; len];
                decompress(codec.byte(), &packed[1..], &mut back).unwrap();
                assert_eq!(back, raw, "{codec} {len}");
                let mut longer = vec![0; len + 1];
                assert!(decompress(codec.byte(), &packed[1..], &mut longer).is_err(), "{codec}");
                let mut shorter = vec![0; len - 1];
                assert!(decompress(codec.byte(), &packed[1..], &mut shorter).is_err(), "{codec}");
                let cut = &packed[1..packed.len() - 1];
                assert!(decompress(codec.byte(), cut, &mut back).is_err(), "{codec}");
            }
        }
    }
}
