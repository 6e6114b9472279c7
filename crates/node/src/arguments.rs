//! Arguments that several calls have: durability, lock waits, isolation, ranges of keys.

use std::ops::Bound;
use std::time::Duration;

use frondb::tuple::prefix_end;
use frondb::{Durability, Error, Isolation, Result, Wait};

/// Returns the durability for the argument `sync`; without one, that of the handle.
pub(crate) fn durability(sync: Option<bool>, default: Durability) -> Durability {
    match sync {
        Some(true) => Durability::Sync,
        Some(false) => Durability::NoSync,
        None => default,
    }
}

/// Returns a time of milliseconds.
pub(crate) fn millis(name: &str, millis: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(millis / 1000.0).map_err(|_| {
        Error::invalid(format!("{name} is {millis}; it must be a number of milliseconds from 0 on"))
    })
}

pub(crate) fn isolation(text: &str) -> Result<Isolation> {
    match text {
        "read-uncommitted" => Ok(Isolation::ReadUncommitted),
        "read-committed" => Ok(Isolation::ReadCommitted),
        "repeatable-read" => Ok(Isolation::RepeatableRead),
        "serializable" => Ok(Isolation::Serializable),
        _ => Err(Error::invalid(format!(
            "isolation is {text:?}; it must be read-uncommitted, read-committed, repeatable-read or \
             serializable"
        ))),
    }
}

pub(crate) fn wait(text: &str) -> Result<Wait> {
    match text {
        "timeout" => Ok(Wait::Timeout),
        "nowait" => Ok(Wait::NoWait),
        "skip-locked" => Ok(Wait::SkipLocked),
        "show-locked" => Ok(Wait::ShowLocked),
        _ => Err(Error::invalid(format!(
            "wait is {text:?}; it must be timeout, nowait, skip-locked or show-locked"
        ))),
    }
}

/// The keys from `lower` on and before `upper`; `None` for no bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) lower: Option<Vec<u8>>,
    pub(crate) upper: Option<Vec<u8>>,
}

impl Keys {
    /// Returns the keys that are in `[lower, upper)` and begin with `prefix`.
    pub(crate) fn new(lower: Option<&[u8]>, upper: Option<&[u8]>, prefix: Option<&[u8]>) -> Self {
        let (mut lower, mut upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        if let Some(prefix) = prefix {
            lower = lower.max(Some(prefix.to_vec()));
            upper = match (upper, prefix_end(prefix)) {
                (Some(upper), Some(end)) => Some(upper.min(end)),
                (upper, end) => upper.or(end),
            };
        }
        Self { lower, upper }
    }

    /// Returns the first key, and the first key after the range; `None` for no bound.
    pub(crate) fn bounds(&self) -> (&[u8], Option<&[u8]>) {
        (self.lower.as_deref().unwrap_or_default(), self.upper.as_deref())
    }

    /// Returns the two ends of the range.
    pub(crate) fn ends(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        (
            self.lower.as_deref().map_or(Bound::Unbounded, Bound::Included),
            self.upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
        )
    }
}
