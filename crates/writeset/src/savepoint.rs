//! Savepoints: where each tree's writes stood.

/// Names a savepoint of one write set. Ids ascend and are not used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SavepointId(pub(crate) u64);

/// A savepoint that is set.
pub(crate) struct Mark {
    pub(crate) id: SavepointId,
    /// Of the trees there were, in the write set's order.
    pub(crate) trees: Vec<TreeMark>,
}

/// Where one tree's writes stood.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeMark {
    /// The last number.
    pub(crate) number: u64,
    /// Bytes in memory, if nothing was spilled since.
    pub(crate) bytes: usize,
    /// Messages in them.
    pub(crate) count: u64,
    /// How often had been spilled.
    pub(crate) spills: u64,
    /// Messages written and not undone.
    pub(crate) written: u64,
    /// Whether a put or an update was among all that was written.
    pub(crate) grows: bool,
}
