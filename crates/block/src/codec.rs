//! Compression codecs of blocks, and the contexts they need.
//!
//! A [`Codec`] is an option of a tree. Its byte on disk names only the algorithm, because the level
//! matters only for encoding. Contexts (hash tables, windows) are expensive to make, so the process
//! pools a few of them, and a thread takes one for the duration of a block. Only xz makes its
//! contexts for each block. zstd sizes its contexts to the blocks seen: a few hundred KiB at low
//! levels.
//!
//! Decoders never trust a length: they write into a slice of the size that the checked header
//! claims, and reject an input that yields more or less.

pub(crate) mod contexts;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use frondb_core::option_value::OptionValue;
use frondb_core::{Error, Result};

pub use contexts::trim_contexts;
pub(crate) use contexts::{Check, compress, decompress, decompress_with};

/// Makes [`Codec`] with the levels of its variants. A row is `TAG VARIANT("NAME"): FIRST..=LAST,
/// DEFAULT;`: the name has that default level if no level follows it. Texts, checks, the command's
/// help, SQL and options.md follow the rows.
///
/// The metadata of runs has the tag, so a tag never changes and is never used again. SQL numbers
/// its codecs in the order of the rows, so a new row is the last one.
macro_rules! codecs_with_levels {
    ($($(#[doc = $doc:literal])*
       $tag:literal $variant:ident($name:literal): $levels:expr, $default:literal;)*) => {
        /// The compression of blocks.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
        #[non_exhaustive]
        pub enum Codec {
            /// Blocks are stored uncompressed.
            None,
            /// LZ4 block format: cheapest. Skipped where it saves less than an eighth
            /// (`CodecTrial`).
            #[default]
            Lz4,
            $($(#[doc = $doc])*
            ///
            #[doc = concat!("Levels `", stringify!($levels), "`; `", $name, "` is level `",
                $default, "`.")]
            $variant(u8),)*
        }

        impl Codec {
            const LEVELS: &'static [Levels] = &[$(Levels {
                tag: $tag,
                name: $name,
                range: $levels,
                default: $default,
                codec: Self::$variant,
            }),*];

            /// Encodes the codec in two bytes: tag and level. The metadata of runs has these bytes;
            /// do not change their meaning.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 2] {
                match self {
                    Self::None => [0, 0],
                    Self::Lz4 => [1, 0],
                    $(Self::$variant(level) => [$tag, level],)*
                }
            }
        }
    };
}

/// The levels of one codec.
struct Levels {
    tag: u8,
    name: &'static str,
    range: RangeInclusive<u8>,
    default: u8,
    codec: fn(u8) -> Codec,
}

codecs_with_levels! {
    /// Zstandard.
    2 Zstd("zstd"): 1..=19, 3;
    /// zlib (RFC 1950).
    3 Zlib("zlib"): 1..=9, 6;
    /// LZMA2 in an xz stream; the level is the preset. Smallest and slowest; pays off with blocks
    /// of 128 KiB or more.
    4 Lzma("lzma"): 0..=9, 6;
    /// Zstandard with a dictionary that is trained from the tree's own data. While the tree is
    /// small, blocks are compressed without a dictionary.
    5 ZstdDictionary("zstd-dictionary"): 1..=19, 19;
}

/// Byte on disk: not compressed.
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

/// Returns the name of the codec with this byte on disk.
pub(crate) const fn name_of(byte: u8) -> &'static str {
    match byte {
        CODEC_NONE => "none",
        CODEC_LZ4 => "lz4",
        CODEC_ZSTD => "zstd",
        CODEC_ZLIB => "zlib",
        CODEC_LZMA => "lzma",
        _ => "an unknown codec",
    }
}

impl Codec {
    /// The codec for data that is written once and rarely read.
    pub const AGGRESSIVE: Self = Self::ZstdDictionary(19);

    /// Returns every codec at every level, in the order of [`to_bytes`](Self::to_bytes).
    pub fn all() -> impl Iterator<Item = Self> {
        let bytes = (0..=u8::MAX).flat_map(|codec| (0..=u8::MAX).map(move |level| [codec, level]));
        bytes.filter_map(Self::from_bytes)
    }

    /// The codec for new data of a tree whose own codec [is slow](Self::is_slow), until background
    /// work has time to compress the data with that codec.
    pub const QUICK: Self = Self::Zstd(1);

    /// Whether the codec is so slow that writers would wait for merges that use it. Data is then
    /// packed with [`QUICK`](Self::QUICK) first, and packed again in the background.
    #[must_use]
    pub const fn is_slow(self) -> bool {
        matches!(self, Self::Zstd(10..) | Self::ZstdDictionary(_) | Self::Lzma(_))
    }

    /// Whether the codec is so fast that decoding each written block to verify it would slow down
    /// encoding noticeably: none, lz4, and zstd up to level 3. The output of other codecs is always
    /// verified.
    #[must_use]
    pub const fn is_fast(self) -> bool {
        matches!(self, Self::None | Self::Lz4 | Self::Zstd(..=3))
    }

    /// Returns the byte on disk.
    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::None => CODEC_NONE,
            Self::Lz4 => CODEC_LZ4,
            Self::Zstd(_) | Self::ZstdDictionary(_) => CODEC_ZSTD,
            Self::Zlib(_) => CODEC_ZLIB,
            Self::Lzma(_) => CODEC_LZMA,
        }
    }

    /// Whether data that was packed with `used` is in the final form of a tree with this codec;
    /// `used` is `None` if it is unknown, as in bases that earlier releases wrote.
    #[must_use]
    pub fn is_final_for(self, used: Option<Self>) -> bool {
        used.map_or(!self.is_slow(), |used| used == self)
    }

    /// Decodes the result of [`to_bytes`](Self::to_bytes); `None` if there is no such codec.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 2]) -> Option<Self> {
        let codec = match bytes {
            [0, 0] => Self::None,
            [1, 0] => Self::Lz4,
            [tag, level] => (Self::LEVELS.iter().find(|row| row.tag == tag)?.codec)(level),
        };
        codec.validate().ok().map(|()| codec)
    }

    /// Returns the block size, in bytes before compression, from which the codec pays off; `None`
    /// if it pays off with any size.
    #[must_use]
    pub const fn preferred_block_bytes(self) -> Option<usize> {
        match self {
            Self::Lzma(_) | Self::ZstdDictionary(_) => Some(128 * 1024),
            _ => None,
        }
    }

    /// Returns the codec's level and its row of `LEVELS`; `None` if the codec has no levels.
    fn level(self) -> Option<(u8, &'static Levels)> {
        let [tag, level] = self.to_bytes();
        Self::LEVELS.iter().find(|row| row.tag == tag).map(|row| (level, row))
    }

    /// Checks the level.
    ///
    /// # Errors
    /// Invalid, with the range allowed.
    pub fn validate(self) -> Result<()> {
        match self.level() {
            Some((level, Levels { name, range, .. })) if !range.contains(&level) => {
                let (first, last) = (range.start(), range.end());
                let message = format!("codec {name} has the levels {first} to {last}, not {level}");
                Err(Error::invalid(message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the texts that name a codec, for messages: `none, lz4, zstd[:1-19], ..`.
    #[must_use]
    pub fn choices() -> String {
        let row = |Levels { name, range, .. }: &Levels| {
            format!("{name}[:{}-{}]", range.start(), range.end())
        };
        let rows: Vec<String> = Self::LEVELS.iter().map(row).collect();
        format!("none, lz4, {} or aggressive", rows.join(", "))
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.level() {
            Some((level, row)) => write!(f, "{}:{level}", row.name),
            None => f.write_str(name_of(self.byte())),
        }
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// Parses the output of `Display`; a name without a level means the codec's default level, and
    /// `aggressive` is [`Codec::AGGRESSIVE`].
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
            _ => {
                let row = Self::LEVELS.iter().find(|row| row.name == name).ok_or_else(|| {
                    Error::invalid(format!("unknown codec `{text}`: use {}", Self::choices()))
                })?;
                (row.codec)(level.unwrap_or(row.default))
            }
        };
        codec.validate()?;
        Ok(codec)
    }
}

impl OptionValue for Codec {
    fn read(text: &str) -> Result<Self> {
        text.parse()
    }

    fn check(&self, _: &str, _: Option<&(u64, u64)>) -> Result<()> {
        self.validate()
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
            Codec::ZstdDictionary(7),
            Codec::Zlib(9),
            Codec::Lzma(0),
        ] {
            assert_eq!(codec.to_string().parse::<Codec>().unwrap(), codec);
            assert_eq!(Codec::from_bytes(codec.to_bytes()), Some(codec));
        }
        for (name, codec) in [
            ("aggressive", Codec::AGGRESSIVE),
            ("zstd-dictionary", Codec::AGGRESSIVE),
            ("zstd", Codec::Zstd(3)),
            ("zlib", Codec::Zlib(6)),
            ("lzma", Codec::Lzma(6)),
        ] {
            assert_eq!(name.parse::<Codec>().unwrap(), codec);
        }
        let unknown = "lz5".parse::<Codec>().unwrap_err();
        assert!(unknown.message().contains("lz4, zstd[:1-19], "), "{unknown}");
        assert_eq!(Codec::all().count(), 2 + 19 + 9 + 10 + 19);
        for codec in Codec::all() {
            assert_eq!(codec.to_string().parse::<Codec>().unwrap(), codec);
        }
        for wrong in [
            "",
            "zstd:",
            "zstd:0",
            "zstd:20",
            "zstd-dictionary:0",
            "lz4:1",
            "zlib:10",
            "brotli",
            "zstd:-1",
        ] {
            assert!(wrong.parse::<Codec>().is_err(), "{wrong} was accepted");
        }
        for wrong in [[0, 1], [1, 1], [2, 0], [2, 20], [6, 1]] {
            assert_eq!(Codec::from_bytes(wrong), None);
        }
    }

    #[test]
    fn a_base_is_packed_in_the_end_with_the_tree_s_codec() {
        let aggressive = Codec::ZstdDictionary(19);
        for (codec, used, is_final) in [
            (aggressive, Some(aggressive), true),
            (aggressive, Some(Codec::ZstdDictionary(18)), false),
            (aggressive, Some(Codec::QUICK), false),
            (Codec::QUICK, Some(Codec::QUICK), true),
            (Codec::Zstd(3), None, true),
            (Codec::Lzma(6), None, false),
        ] {
            assert_eq!(codec.is_final_for(used), is_final, "{codec} {used:?}");
        }
    }

    #[test]
    fn every_codec_round_trips_and_refuses_a_wrong_length() {
        let raw: Vec<u8> = (0..50_000u32).flat_map(|i| (i / 7).to_be_bytes()).collect();
        for codec in [Codec::Lz4, Codec::Zstd(1), Codec::Zstd(9), Codec::Zlib(6), Codec::Lzma(6)] {
            for len in [1, 100, 5_000, 65_535, 200_000] {
                let raw = &raw[..len];
                let mut packed = vec![7];
                if !compress(codec, raw, &mut packed, Check::No).unwrap() {
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
