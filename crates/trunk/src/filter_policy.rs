//! [`FilterPolicy`]: which runs of a tree get filters.

use std::fmt;

use frondb_core::option_value::OptionValue;
use frondb_core::{Error, Result};

/// Which runs of a tree get filters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilterPolicy {
    /// No filters: lookups read a block of every run whose key range contains the key.
    None,
    /// Filters over whole keys, on runs and on the base: for trees that are searched by the full
    /// key.
    Full,
    /// Filters over whole keys, on runs but not on the base.
    Runs,
    /// Filters over this many first bytes of keys, on runs only: for indexes that are scanned by
    /// prefix. If the bounds of a cursor or count share these bytes, the filters save reading
    /// blocks of runs that have no key with these bytes. If the bounds share fewer bytes, the
    /// filters cannot be used. Keys with fewer bytes are hashed whole.
    Prefix(u16),
}

impl fmt::Display for FilterPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Runs => f.write_str("runs"),
            Self::Prefix(bytes) => write!(f, "prefix:{bytes}"),
        }
    }
}

impl OptionValue for FilterPolicy {
    fn read(text: &str) -> Result<Self> {
        let prefix = text.strip_prefix("prefix:").and_then(|bytes| bytes.parse().ok());
        match (text, prefix) {
            ("none", _) => Ok(Self::None),
            ("full", _) => Ok(Self::Full),
            ("runs", _) => Ok(Self::Runs),
            (_, Some(bytes)) => Ok(Self::Prefix(bytes)),
            _ => Err(Error::invalid(format!(
                "{text:?} is no filter: use none, full, runs, or prefix:N with the number of bytes"
            ))),
        }
    }
}
