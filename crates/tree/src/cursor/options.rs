//! [`CursorOptions`]: the part of a tree and the state that a cursor shows.

use frondb_core::tuple::prefix_end;

use super::key_range::{KeyRange, bounds_of};
use crate::snapshot::Snapshot;

/// The range and the state that a cursor shows. Default: the whole tree as of now.
#[derive(Clone, Debug, Default)]
pub struct CursorOptions {
    /// First key that the cursor shows; `None` for no bound.
    pub(super) lower: Option<Vec<u8>>,
    /// First key after the cursor's range; `None` for no bound.
    pub(super) upper: Option<Vec<u8>>,
    /// The snapshot to read at; `None` for a new one.
    pub(super) snapshot: Option<Snapshot>,
}

impl CursorOptions {
    /// Returns options that show the whole tree as of now.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Shows only keys in `range`, for example `"a".."b"`.
    #[must_use]
    pub fn range(mut self, range: impl KeyRange) -> Self {
        (self.lower, self.upper) = bounds_of(&range);
        self
    }

    /// Shows only keys that begin with `prefix`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        let prefix = prefix.as_ref();
        self.lower = Some(prefix.to_vec());
        self.upper = prefix_end(prefix);
        self
    }

    /// Shows the state of a snapshot.
    #[must_use]
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        self.snapshot = Some(snapshot.clone());
        self
    }

    /// Returns the first key of the range, and the first key after the range; `None` for no bound.
    #[doc(hidden)]
    #[must_use]
    pub fn bounds(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        (self.lower.as_deref(), self.upper.as_deref())
    }
}
