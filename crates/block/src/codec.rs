//! Compression codecs of blocks, and the contexts they need.
//!
//! A [`Codec`] is an option of a tree. Its byte on disk names only the algorithm, because the level
//! matters only for encoding. Contexts (hash tables, windows) are expensive to make, so the process
//! pools a few of them, and a thread takes one for the duration of a block: in the steady state no
//! block allocates. zstd sizes them to the blocks seen, a few hundred KiB at the low levels.
//!
//! Decoders never trust a length: they write into a slice of the size that the checked header
//! claims, and reject an input that yields more or less.

mod contexts;

use std::fmt;
use std::str::FromStr;

use frondb_core::{Error, Result};

pub use contexts::trim_contexts;
pub(crate) use contexts::{compress, decompress};

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
