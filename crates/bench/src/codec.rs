//! The codecs of a benchmark, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A codec, or a setting of an engine that implies one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Codec {
    /// The engine's recommended setting.
    Standard,
    /// The smallest result possible, at any cost in processor time while writing.
    Aggressive,
    /// The defaults of the engine's library: neither codec nor block size is set.
    Default,
    /// No compression.
    None,
    /// LZ4.
    Lz4,
    /// zlib with this level.
    Zlib(u8),
    /// Zstandard with this level.
    Zstd(u8),
    /// Zstandard with this level and with dictionaries trained from the data.
    ZstdDictionary(u8),
    /// LZMA with this level.
    Lzma(u8),
    /// LZMA on blocks of 4 MiB, the size of TokuDB's blocks, without an engine.
    TokuLzma,
}

impl Codec {
    /// The codecs that `compression` compares, in the order in which it measures them.
    pub const ALL: [Self; 13] = [
        Self::Standard,
        Self::Aggressive,
        Self::Default,
        Self::None,
        Self::Lz4,
        Self::Zlib(6),
        Self::Zstd(3),
        Self::Zstd(9),
        Self::Zstd(19),
        Self::ZstdDictionary(9),
        Self::ZstdDictionary(19),
        Self::Lzma(6),
        Self::TokuLzma,
    ];
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard => f.write_str("standard"),
            Self::Aggressive => f.write_str("aggressive"),
            Self::Default => f.write_str("default"),
            Self::None => f.write_str("none"),
            Self::Lz4 => f.write_str("lz4"),
            Self::Zlib(level) => write!(f, "zlib:{level}"),
            Self::Zstd(level) => write!(f, "zstd:{level}"),
            Self::ZstdDictionary(level) => write!(f, "zstd-dictionary:{level}"),
            Self::Lzma(level) => write!(f, "lzma:{level}"),
            Self::TokuLzma => f.write_str("toku-lzma"),
        }
    }
}

impl FromStr for Codec {
    type Err = Error;

    /// Finds the codec of this name in [`Codec::ALL`]; no engine has any other.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|codec| codec.to_string() == text).ok_or_else(|| {
            let names = Self::ALL.map(|codec| codec.to_string()).join(", ");
            Error::Usage(format!("there is no codec {text}; use one of {names}"))
        })
    }
}

impl TryFrom<String> for Codec {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Codec> for String {
    fn from(codec: Codec) -> Self {
        codec.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for codec in Codec::ALL {
            assert_eq!(codec.to_string().parse::<Codec>().unwrap(), codec);
            let json = serde_json::to_string(&codec).unwrap();
            assert_eq!(serde_json::from_str::<Codec>(&json).unwrap(), codec);
        }
        let error = "zstd:99".parse::<Codec>().unwrap_err().to_string();
        assert!(error.contains("zstd:99") && error.contains("zstd-dictionary:19"), "{error}");
    }
}
