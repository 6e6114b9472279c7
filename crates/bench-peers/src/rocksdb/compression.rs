//! The compression settings of RocksDB for each codec.
//!
//! A codec's compression level applies to the bottommost level of the tree; the levels above are
//! compressed with lz4. If they had zstd too, RocksDB would move the files of a load in key order
//! down to the bottom without compressing them again, because it compares algorithms and not
//! compression levels. Then no byte would be compressed with the given level. `zstd:3` has zstd in
//! all levels of the tree, because RocksDB's default compression level for zstd is 3 in all levels
//! of the tree.
//!
//! If the codec has dictionaries, each file has one of its own. zstd trains it from the first
//! [`TRAIN_BYTES`] of the file: a hundred times the size of the dictionary, as zstd recommends.
//! Without a limit RocksDB would buffer the whole file for the training.

use std::ffi::c_int;
use std::fmt;

use frondb_bench::engine::Codec;

use super::ffi::*;

const BLOCK_BYTES: usize = 16 << 10;
const LARGE_BLOCK_BYTES: usize = 128 << 10;
const DICTIONARY_BYTES: c_int = 64 << 10;
pub(super) const TRAIN_BYTES: c_int = 100 * DICTIONARY_BYTES;
/// RocksDB's default values for the window and the strategy of zstd.
pub(super) const WINDOW_BITS: c_int = -14;
pub(super) const STRATEGY: c_int = 0;

/// The settings of a codec.
pub(super) struct Compression {
    /// The algorithms of the upper levels and of the bottommost level; `None` for RocksDB's
    /// default.
    pub(super) algorithms: Option<(c_int, c_int)>,
    /// The compression level of the bottommost level; `None` for RocksDB's default, which is 3 for
    /// zstd.
    pub(super) level: Option<c_int>,
    /// The largest dictionary; 0 means none.
    pub(super) dictionary_bytes: c_int,
    /// The block size; `None` for RocksDB's default.
    pub(super) block_bytes: Option<usize>,
}

impl Compression {
    /// Returns the settings of `codec`.
    pub(super) fn of(codec: Codec) -> Self {
        let bottom = |level, dictionary_bytes, block_bytes| Self {
            algorithms: Some((LZ4_COMPRESSION, ZSTD_COMPRESSION)),
            level,
            dictionary_bytes,
            block_bytes: Some(block_bytes),
        };
        let plain = |algorithm| Self {
            algorithms: Some((algorithm, algorithm)),
            ..bottom(None, 0, BLOCK_BYTES)
        };
        match codec {
            Codec::Default => {
                Self { algorithms: None, block_bytes: None, ..bottom(None, 0, BLOCK_BYTES) }
            }
            Codec::None => plain(NO_COMPRESSION),
            Codec::Zstd(3) => plain(ZSTD_COMPRESSION),
            Codec::Zstd(level) => bottom(Some(level.into()), 0, BLOCK_BYTES),
            Codec::ZstdDictionary(level) => {
                bottom(Some(level.into()), DICTIONARY_BYTES, BLOCK_BYTES)
            }
            Codec::Aggressive => bottom(Some(19), DICTIONARY_BYTES, LARGE_BLOCK_BYTES),
            _ => bottom(None, 0, BLOCK_BYTES),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithms {
            None => return f.write_str("the library's default compression and blocks"),
            Some((NO_COMPRESSION, _)) => f.write_str("no compression")?,
            Some((ZSTD_COMPRESSION, _)) => f.write_str("zstd")?,
            Some(_) => match self.level {
                Some(level) => write!(f, "lz4, zstd {level} at the bottom")?,
                None => f.write_str("lz4, zstd at the bottom")?,
            },
        }
        if self.dictionary_bytes > 0 {
            let (size, samples) = (self.dictionary_bytes >> 10, TRAIN_BYTES >> 10);
            write!(f, " with dictionaries of {size} KiB from {samples} KiB")?;
        }
        match self.block_bytes {
            Some(bytes) => write!(f, ", {} KiB blocks", bytes >> 10),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_described() {
        let text = |codec| Compression::of(codec).to_string();
        assert_eq!(text(Codec::Standard), "lz4, zstd at the bottom, 16 KiB blocks");
        assert_eq!(text(Codec::Default), "the library's default compression and blocks");
        assert_eq!(text(Codec::None), "no compression, 16 KiB blocks");
        assert_eq!(text(Codec::Zstd(3)), "zstd, 16 KiB blocks");
        assert_eq!(
            text(Codec::Aggressive),
            "lz4, zstd 19 at the bottom with dictionaries of 64 KiB from 6400 KiB, 128 KiB blocks"
        );
    }
}
