//! Savepoints: the position of each tree's writes when the savepoint was set.

/// Identifies a savepoint of one write set. Ids ascend and are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SavepointId(pub(crate) u64);

/// A savepoint that is set.
pub(crate) struct Mark {
    pub(crate) id: SavepointId,
    /// The trees that had been written when the savepoint was set, in the write set's order.
    pub(crate) trees: Vec<TreeMark>,
}

/// The position of one tree's writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeMark {
    /// The last number assigned.
    pub(crate) number: u64,
    /// Bytes in memory, if nothing has been spilled since.
    pub(crate) bytes: usize,
    /// Messages in these bytes.
    pub(crate) count: u64,
    /// Number of spills so far.
    pub(crate) spills: u64,
    /// Messages written and not undone.
    pub(crate) written: u64,
    /// Whether these messages include a put or an update.
    pub(crate) adds_data: bool,
}
