//! What is hashed, and how it is kept.

use std::fmt;
use std::str::FromStr;

use frondb_core::checksum::xxh3;
use frondb_core::limits::KEY_BYTES_MAX;
use frondb_core::{Error, Result};

/// The structure of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum FilterKind {
    /// No filter.
    None,
    /// Blocked Bloom filter, 10 bits a key, about 1 % false positives, one cache line a query.
    #[default]
    BlockedBloom,
    /// Binary fuse filter, about 9 bits a key, 0.4 % false positives, three cache lines a query.
    BinaryFuse8,
}

/// Which part of a key goes into the filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum FilterPolicy {
    /// Nothing: there is no filter.
    None,
    /// The whole key: answers point reads.
    #[default]
    Full,
    /// The first so many bytes, 1 to [`KEY_BYTES_MAX`] (a shorter key counts whole): answers point
    /// reads less exactly, and scans of a prefix at least that long.
    Prefix(u16),
}

impl FilterPolicy {
    /// The hash of `key` to push or to ask for; `None` if there is no filter.
    #[inline]
    #[must_use]
    pub fn hash(self, key: &[u8]) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Full => Some(xxh3(key)),
            Self::Prefix(bytes) => Some(xxh3(&key[..key.len().min(usize::from(bytes))])),
        }
    }

    /// The hash that every key beginning with `prefix` has; `None` if they have no hash in common.
    #[must_use]
    pub fn hash_of_prefix(self, prefix: &[u8]) -> Option<u64> {
        match self {
            Self::Prefix(bytes) => prefix.get(..usize::from(bytes)).map(xxh3),
            Self::None | Self::Full => None,
        }
    }
}

impl fmt::Display for FilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Prefix(bytes) => write!(f, "prefix:{bytes}"),
        }
    }
}

impl FromStr for FilterPolicy {
    type Err = Error;

    /// Parses what `Display` prints.
    fn from_str(text: &str) -> Result<Self> {
        match text {
            "none" => return Ok(Self::None),
            "full" => return Ok(Self::Full),
            _ => {}
        }
        text.strip_prefix("prefix:")
            .and_then(|bytes| bytes.parse::<u16>().ok())
            .filter(|&bytes| (1..=KEY_BYTES_MAX).contains(&usize::from(bytes)))
            .map(Self::Prefix)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "unknown filter `{text}`: use none, full, or prefix:1 to prefix:{KEY_BYTES_MAX}"
                ))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for policy in [FilterPolicy::None, FilterPolicy::Full, FilterPolicy::Prefix(12)] {
            assert_eq!(policy.to_string().parse::<FilterPolicy>().unwrap(), policy);
        }
        for wrong in ["", "prefix", "prefix:0", "prefix:40000", "bloom"] {
            assert!(wrong.parse::<FilterPolicy>().is_err(), "{wrong} was accepted");
        }
    }

    #[test]
    fn a_long_enough_prefix_has_the_hash_of_its_keys() {
        let policy = FilterPolicy::Prefix(4);
        assert_eq!(policy.hash(b"abcdef"), policy.hash_of_prefix(b"abcd"));
        assert_eq!(policy.hash(b"abcdef"), policy.hash_of_prefix(b"abcdx"));
        assert_eq!(policy.hash_of_prefix(b"abc"), None);
        assert_ne!(policy.hash(b"abc"), policy.hash(b"abcd"));
        assert_eq!(FilterPolicy::Full.hash_of_prefix(b"abcd"), None);
        assert_eq!(FilterPolicy::None.hash(b"abcd"), None);
    }
}
