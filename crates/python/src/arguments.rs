//! Arguments that several calls have: durability, times, lock waits, ranges of keys.

use std::ops::Bound as End;
use std::time::Duration;

use frondb::tuple::prefix_end;
use frondb::{Durability, Isolation, Wait};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::bytes::Bytes;
use crate::errors;

/// Returns the durability for the argument `sync`; without one, that of the handle.
pub(crate) fn durability(sync: Option<bool>, default: Durability) -> Durability {
    match sync {
        Some(true) => Durability::Sync,
        Some(false) => Durability::NoSync,
        None => default,
    }
}

/// Returns a time of seconds.
pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        errors::invalid(format!("{name} is {seconds}; it must be a number of seconds from 0 on"))
    })
}

/// Returns the word in lower case, with `-` between its parts.
fn word(text: &str) -> String {
    text.to_ascii_lowercase().replace(['_', ' '], "-")
}

pub(crate) fn isolation(text: &str) -> PyResult<Isolation> {
    match word(text).as_str() {
        "read-uncommitted" => Ok(Isolation::ReadUncommitted),
        "read-committed" => Ok(Isolation::ReadCommitted),
        "repeatable-read" => Ok(Isolation::RepeatableRead),
        "serializable" => Ok(Isolation::Serializable),
        _ => Err(errors::invalid(format!(
            "isolation is {text:?}; it must be read-uncommitted, read-committed, repeatable-read or \
             serializable"
        ))),
    }
}

pub(crate) fn wait(text: &str) -> PyResult<Wait> {
    match word(text).as_str() {
        "timeout" => Ok(Wait::Timeout),
        "nowait" | "no-wait" => Ok(Wait::NoWait),
        "skip-locked" => Ok(Wait::SkipLocked),
        "show-locked" => Ok(Wait::ShowLocked),
        _ => Err(errors::invalid(format!(
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
    /// Returns the keys that are in `[start, stop)` and begin with `prefix`.
    pub(crate) fn new(
        start: Option<Bytes<'_, '_>>,
        stop: Option<Bytes<'_, '_>>,
        prefix: Option<Bytes<'_, '_>>,
    ) -> Self {
        let (mut lower, mut upper) =
            (start.map(|start| start.to_vec()), stop.map(|stop| stop.to_vec()));
        if let Some(prefix) = prefix {
            lower = lower.max(Some(prefix.to_vec()));
            upper = match (upper, prefix_end(&prefix)) {
                (Some(stop), Some(end)) => Some(stop.min(end)),
                (stop, end) => stop.or(end),
            };
        }
        Self { lower, upper }
    }

    /// # Errors
    /// `TypeError` without a bound, so that a forgotten argument does not delete all rows.
    pub(crate) fn check_given(&self) -> PyResult<()> {
        if self.lower.is_some() || self.upper.is_some() {
            return Ok(());
        }
        Err(PyTypeError::new_err(
            "delete_range needs start, stop or prefix; Tree.clear() deletes all rows",
        ))
    }

    /// Returns the first key, and the first key after the range; `None` for no bound.
    pub(crate) fn bounds(&self) -> (&[u8], Option<&[u8]>) {
        (self.lower.as_deref().unwrap_or_default(), self.upper.as_deref())
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| lower <= key)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    /// Returns the two ends of the range.
    pub(crate) fn ends(&self) -> (End<&[u8]>, End<&[u8]>) {
        (
            self.lower.as_deref().map_or(End::Unbounded, End::Included),
            self.upper.as_deref().map_or(End::Unbounded, End::Excluded),
        )
    }
}
