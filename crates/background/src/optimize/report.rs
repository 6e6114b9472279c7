//! How a tree is optimized, and what an optimize has done.

use std::fmt;

use crate::damage::keys;

/// How a tree is optimized.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OptimizeOptions {
    /// The part of the tree's data, from its smallest key on: above 0, at most 1. The part ends with
    /// a leaf, so a small tree is optimized whole.
    pub fraction: f64,
    /// How many leaves are rewritten a second, at most; 0 means no limit.
    pub leaves_per_second: u64,
}

impl Default for OptimizeOptions {
    /// The whole tree, without a limit.
    fn default() -> Self {
        Self { fraction: 1.0, leaves_per_second: 0 }
    }
}

/// What an optimize has done.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct OptimizeReport {
    /// Leaves in the part of the tree that was optimized.
    pub leaves: u64,
    /// Leaves that were rewritten at the request of the call.
    pub rewritten: u64,
    /// Leaves in which an open snapshot keeps garbage.
    pub held: u64,
    /// Leaves that could not be consolidated, because data in them or in the nodes above them is
    /// damaged, or an update function has failed; [`failures`](Self::failures) has the first ones.
    pub failed: u64,
    /// The first of the leaves that could not be consolidated, at most 16, in the order of their keys.
    pub failures: Vec<FailedLeaf>,
    /// Bytes of the tree on disk before and after, without large values.
    pub disk_bytes: (u64, u64),
}

/// A leaf that could not be consolidated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedLeaf {
    /// Its first key.
    pub lo: Vec<u8>,
    /// The first key after it; `None` at the end of the tree.
    pub hi: Option<Vec<u8>>,
    /// Why: the error with tree and keys, and with file and offset if it is damage.
    pub why: String,
}

impl fmt::Display for FailedLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = keys(&self.lo, self.hi.as_deref());
        write!(f, "the leaf with keys {keys} could not be consolidated: {}", self.why)
    }
}
