//! The options and the report of an optimize.

use std::fmt;

use crate::damage::keys;

/// Options of an optimize.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OptimizeOptions {
    /// The part of the tree's data to optimize, from the smallest key on: above 0, at most 1. The
    /// part ends with a leaf, so a small tree is optimized as a whole.
    pub fraction: f64,
    /// The most leaves rewritten per second; 0 means no limit.
    pub leaves_per_second: u64,
}

impl Default for OptimizeOptions {
    /// The whole tree, without a limit.
    fn default() -> Self {
        Self { fraction: 1.0, leaves_per_second: 0 }
    }
}

/// The result of an optimize.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OptimizeReport {
    /// Leaves in the part of the tree that was optimized.
    pub leaves: u64,
    /// Leaves that were rewritten at the request of the call.
    pub rewritten: u64,
    /// Leaves that still contain garbage, because an open snapshot needs it.
    pub held: u64,
    /// Leaves that could not be consolidated, because data in them or in the nodes above them is
    /// damaged, an update function has failed, or other work was in the way of every attempt;
    /// [`failures`](Self::failures) has the first ones.
    pub failed: u64,
    /// The first of the leaves that could not be consolidated, at most 16, in the order of their
    /// keys.
    pub failures: Vec<FailedLeaf>,
    /// Bytes of the tree on disk before and after, without large values.
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
