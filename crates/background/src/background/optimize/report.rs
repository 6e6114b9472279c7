//! The options and the report of an optimize.

use std::fmt;

use crate::damage::keys;

/// Options of an optimize. The default is to optimize the whole tree without a rate limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OptimizeOptions {
    pub(super) fraction: f64,
    pub(super) leaves_per_second: u64,
}

impl Default for OptimizeOptions {
    fn default() -> Self {
        Self { fraction: 1.0, leaves_per_second: 0 }
    }
}

impl OptimizeOptions {
    /// Returns the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the fraction of the tree's data to optimize, beginning at the smallest key: above 0 and
    /// at most 1. Default 1. The part ends at the end of a leaf, so a tree of a few MiB is
    /// optimized as a whole.
    #[must_use]
    pub fn fraction(mut self, fraction: f64) -> Self {
        self.fraction = fraction;
        self
    }

    /// Sets the most leaves that the call rewrites per second; 0, the default, means no limit.
    /// Rewrites for other reasons do not count. A leaf has 8 to 256 MiB of keys and values; the
    /// larger the tree, the larger its leaves.
    #[must_use]
    pub fn leaves_per_second(mut self, leaves: u64) -> Self {
        self.leaves_per_second = leaves;
        self
    }
}

/// The result of an optimize.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OptimizeReport {
    /// Leaves in the part of the tree that was optimized.
    pub leaves: u64,
    /// Leaves that were rewritten at the request of the call.
    pub rewritten: u64,
    /// Leaves that still contain deleted or overwritten rows or updates, because an open snapshot
    /// needs them, or because an update could not be applied: the update function fails or is
    /// missing, or the old or the new value is too large. No read loses data because of this.
    pub held: u64,
    /// Leaves that could not be consolidated, because data in them or in the nodes above them is
    /// damaged, or because other background work prevented every attempt.
    /// [`failures`](Self::failures) describes the first of these leaves.
    pub failed: u64,
    /// The first leaves, in key order, that could not be consolidated; at most 16.
    pub failures: Vec<FailedLeaf>,
    /// Bytes of the tree on disk before and after the call, without large values.
    pub disk_bytes: (u64, u64),
}

/// A leaf that could not be consolidated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedLeaf {
    /// First key of the leaf.
    pub lo: Vec<u8>,
    /// First key after the leaf; `None` at the end of the tree.
    pub hi: Option<Vec<u8>>,
    /// The reason: the error with tree and keys; for damage also file and offset.
    pub why: String,
}

impl fmt::Display for FailedLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = keys(&self.lo, self.hi.as_deref());
        write!(f, "the leaf with keys {keys} could not be consolidated: {}", self.why)
    }
}
