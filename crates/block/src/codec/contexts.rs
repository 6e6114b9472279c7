//! The contexts of the codecs, pooled by the process, and the calls of the codecs' libraries.
//!
//! Invariant: no context is used again after an error, and no encoder after an output that did not
//! fit its buffer, because the libraries do not define the state of a context then. In this state
//! zlib-rs 0.6.8 has a bug, which is to be reported:
//!
//! At level 1, `State::block_open` says whether `deflate_quick` has begun a block. Neither
//! `reset_keep` nor `lm_init` resets it. It stays above 0 when `deflate` returns while a block is
//! open because the output buffer is full, for example with `Z_FINISH`, 65,000 incompressible bytes
//! and an output buffer of that size. If the caller gives up the stream and resets the encoder, the
//! next stream lacks the three bits of its first block's header. Its zlib header and Adler-32 are
//! valid, but it cannot be decoded. A reset has to set `block_open` to 0, as `deflateInit` does.
//! (`a_block_after_one_that_did_not_shrink_decodes` in tests/suite/codecs.rs.)

use frondb_core::pool::{Limited, Pool};
use zstd::zstd_safe::zstd_sys::ZSTD_cParameter as Parameter;
use zstd::zstd_safe::{DCtx, DDict, compress_bound, get_error_name};

use super::{CODEC_LZ4, CODEC_LZMA, CODEC_NONE, CODEC_ZLIB, CODEC_ZSTD, Codec};
use crate::context::Context;
#[cfg(any(test, feature = "testing"))]
use crate::faulty;

/// The level for which an encoder was made, and the encoder.
type ZstdEncoder = (u8, Context);

/// Decompression contexts, each made at first use. A zstd context takes about 160 KiB.
#[derive(Default)]
struct Decoders {
    zstd_decoder: Option<DCtx<'static>>,
    zlib_decoder: Option<flate2::Decompress>,
}

/// Compression contexts, each made at first use.
#[derive(Default)]
struct Encoders {
    zstd_encoder: Option<ZstdEncoder>,
    lz4_small: Option<lz4_flex::block::CompressTable>,
    lz4_large: Option<lz4_flex::block::CompressTable>,
    zlib_encoder: Option<(u8, flate2::Compress)>,
    /// Output buffer, kept so that `out` is not zeroed up to the worst case.
    scratch: Vec<u8>,
}

/// The process has one pool, not one per thread, so a thousand connections that read hold no
/// contexts between their reads. A decoder is in use for some microseconds and never while its
/// thread waits, so a thread that finds no idle decoder waits for one instead of creating more
/// decoders than the processors can use. When every such thread created a decoder, each of 16
/// threads left holes of 96 KiB in its malloc arena.
static DECODERS: Limited<Decoders> = Limited::new();
/// A thread that finds no idle encoders makes new ones; at most 4 are kept.
static ENCODERS: Pool<Box<Encoders>> = Pool::new(4);

/// Frees all idle contexts, and the buffers into which checks decode.
pub fn trim_contexts() {
    DECODERS.clear();
    ENCODERS.clear();
    DECODED.clear();
}

/// How the output of an encoder is checked before it is used.
#[derive(Debug)]
pub(crate) enum Check<'a> {
    /// The output is not checked.
    No,
    /// The output is decoded and compared with the raw bytes.
    Decode,
    /// The output is decoded into this buffer and compared with the raw bytes. The buffer is as
    /// long as the raw bytes; the caller uses its contents afterwards.
    Into(&'a mut [u8]),
}

/// Appends `raw` compressed by `codec` to `out` and returns `true`. Returns `false`, with `out`
/// unchanged, if compression would not make `raw` smaller; the caller then stores it uncompressed.
///
/// # Errors
/// The fault, if the codec's library fails or its output does not decode to `raw`. `out` is then
/// unchanged.
pub(crate) fn compress(
    codec: Codec,
    raw: &[u8],
    out: &mut Vec<u8>,
    check: Check<'_>,
) -> Result<bool, String> {
    if raw.is_empty() || codec == Codec::None {
        return Ok(false);
    }
    let mut encoders = ENCODERS.take().unwrap_or_default();
    let mut scratch = std::mem::take(&mut encoders.scratch);
    let room = bound(codec, raw.len());
    if scratch.len() < room {
        scratch.resize(room, 0);
    }
    // On an error the encoders are dropped, not returned to the pool.
    let written = encoders.compress(codec, raw, &mut scratch[..room])?;
    #[cfg(any(test, feature = "testing"))]
    faulty::spoil(&mut scratch[..room]);
    let is_smaller = written.is_some_and(|n| n < raw.len());
    if let Some(n) = written.filter(|_| is_smaller) {
        check.run(raw, |back| decompress(codec.byte(), &scratch[..n], back))?;
        out.extend_from_slice(&scratch[..n]);
    }
    // One huge block must not keep a huge scratch buffer alive.
    if scratch.len() <= SCRATCH_BYTES_KEPT {
        encoders.scratch = scratch;
    }
    ENCODERS.put(encoders);
    Ok(is_smaller)
}

/// Buffers into which a check decodes, to compare.
static DECODED: Pool<Vec<u8>> = Pool::new(4);

impl Check<'_> {
    /// Calls `decode` and compares the decoded bytes with `raw`, if the variant requires a check.
    ///
    /// # Errors
    /// The fault.
    pub(crate) fn run(
        self,
        raw: &[u8],
        decode: impl FnOnce(&mut [u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        match self {
            Self::No => Ok(()),
            Self::Into(back) => compare(raw, back, decode),
            Self::Decode => {
                let mut back = DECODED.take().unwrap_or_default();
                if back.len() < raw.len() {
                    back.resize(raw.len(), 0);
                }
                compare(raw, &mut back[..raw.len()], decode)?;
                if back.len() <= SCRATCH_BYTES_KEPT {
                    DECODED.put(back);
                }
                Ok(())
            }
        }
    }
}

/// Decodes into `back` and compares.
fn compare(
    raw: &[u8],
    back: &mut [u8],
    decode: impl FnOnce(&mut [u8]) -> Result<(), String>,
) -> Result<(), String> {
    decode(back).map_err(|fault| format!("what was written does not decode: {fault}"))?;
    if back == raw { Ok(()) } else { Err("what was written decodes to other bytes".into()) }
}

/// Bytes of scratch memory that are kept between blocks.
const SCRATCH_BYTES_KEPT: usize = 1 << 20;

/// Returns the output room that the codec needs for `len` bytes. lz4 and zstd need room for their
/// worst case to be fast, or to run at all. For the other codecs the raw length suffices, because
/// only a smaller output is used.
fn bound(codec: Codec, len: usize) -> usize {
    match codec {
        Codec::Lz4 => lz4_flex::block::get_maximum_output_size(len),
        Codec::Zstd(_) | Codec::ZstdDictionary(_) => compress_bound(len),
        Codec::None | Codec::Zlib(_) | Codec::Lzma(_) => len,
    }
}

impl Encoders {
    /// Compresses `raw` into `out` and returns the number of bytes; `None` if they do not fit.
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
            Codec::Zstd(level) | Codec::ZstdDictionary(level) => {
                let encoder = zstd_encoder(&mut self.zstd_encoder, level)?;
                encoder.compress(raw, out).map(Some).map_err(|e| e.to_string())
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
                let written = encoder.total_out() as usize;
                if status == flate2::Status::StreamEnd {
                    return Ok(Some(written));
                }
                // The output did not fit: the next block gets a new encoder (see the module's
                // head).
                self.zlib_encoder = None;
                Ok(None)
            }
            Codec::Lzma(preset) => lzma_compress(preset, raw, out),
        }
    }
}

impl Decoders {
    /// Decompresses into `out`, and returns the number of bytes.
    fn zstd(
        &mut self,
        dictionary: Option<&DDict<'static>>,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<usize, String> {
        let decoder = match &mut self.zstd_decoder {
            Some(decoder) => decoder,
            slot => slot.insert(DCtx::try_create().ok_or("no memory for a decoder")?),
        };
        let written = match dictionary {
            Some(dictionary) => decoder.decompress_using_ddict(out, bytes, dictionary),
            None => decoder.decompress(out, bytes),
        };
        written.map_err(|code| get_error_name(code).to_owned())
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

/// Shortest match that zstd's level 1 looks for, bytes. zstd's own choice is 5 for blocks up to 16
/// KiB. Level 1 is chosen for speed, and shorter matches cost the decoder more time than the bytes
/// that they save are worth: a block of sysbench's rows decodes in 12.1 us instead of 16.0.
const ZSTD_1_MIN_MATCH: u32 = 6;

/// Returns the zstd encoder in `slot` if it has this level; else replaces it by a new one.
fn zstd_encoder(slot: &mut Option<ZstdEncoder>, level: u8) -> Result<&mut Context, String> {
    if !matches!(slot, Some((made_for, _)) if *made_for == level) {
        // Free the old encoder first: an encoder of a high level has megabytes.
        *slot = None;
    }
    match slot {
        Some((_, encoder)) => Ok(encoder),
        slot => {
            let mut parameters = vec![
                (Parameter::ZSTD_c_compressionLevel, u32::from(level)),
                // The block's header has the size and a checksum already.
                (Parameter::ZSTD_c_contentSizeFlag, 0),
                (Parameter::ZSTD_c_checksumFlag, 0),
                (Parameter::ZSTD_c_dictIDFlag, 0),
            ];
            if level == 1 {
                parameters.push((Parameter::ZSTD_c_minMatch, ZSTD_1_MIN_MATCH));
            }
            let made = Context::new(&parameters, &[]).map_err(|e| e.to_string())?;
            Ok(&mut slot.insert((level, made)).1)
        }
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

/// Most memory that the xz decoder may allocate, whatever the xz header demands, bytes.
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

/// Runs `decode` with pooled decoders. After an error, drops these decoders.
fn with_decoders(
    decode: impl FnOnce(&mut Decoders) -> Result<usize, String>,
) -> Result<usize, String> {
    DECODERS.with(|decoders| decode(decoders).inspect_err(|_| *decoders = Decoders::default()))
}

/// Decompresses `bytes`, which must give as many bytes as `out` has. `codec` is the codec byte of a
/// frame's header.
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
        CODEC_ZSTD => with_decoders(|decoders| decoders.zstd(None, bytes, out))?,
        CODEC_ZLIB => with_decoders(|decoders| decoders.zlib(bytes, out))?,
        CODEC_LZMA => lzma_decompress(bytes, out)?,
        _ => return Err(format!("unknown codec byte {codec}")),
    };
    if n == out.len() { Ok(()) } else { Err(format!("{n} bytes instead of {}", out.len())) }
}

/// As [`decompress`], for bytes that were compressed with a dictionary.
///
/// # Errors
/// As `decompress`.
pub(crate) fn decompress_with(
    dictionary: &DDict<'static>,
    bytes: &[u8],
    out: &mut [u8],
) -> Result<(), String> {
    let n = with_decoders(|decoders| decoders.zstd(Some(dictionary), bytes, out))?;
    if n == out.len() { Ok(()) } else { Err(format!("{n} bytes instead of {}", out.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_whose_output_does_not_fit_is_dropped() {
        let mut encoders = Encoders::default();
        let text = vec![7; 10_000];
        for level in [1, 6] {
            let fits = encoders.compress(Codec::Zlib(level), &text, &mut [0; 10_000]);
            assert!(fits.unwrap().is_some() && encoders.zlib_encoder.is_some());
            let fits = encoders.compress(Codec::Zlib(level), &text, &mut [0; 20]);
            assert!(fits.unwrap().is_none() && encoders.zlib_encoder.is_none());
        }
    }
}
