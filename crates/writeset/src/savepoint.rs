//! Savepoints (rule 20): the position in each tree's writes at which a savepoint was set.

/// Identifies a savepoint of one write set. Ids ascend and are never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SavepointId(pub(crate) u64);

/// A savepoint.
pub(crate) struct Mark {
    pub(crate) id: SavepointId,
    /// A position for each tree that the write set had when the savepoint was set, in its order.
    pub(crate) trees: Vec<TreeMark>,
}

/// A position in one tree's writes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TreeMark {
    /// The last number assigned.
    pub(crate) number: u64,
    /// Bytes of messages in memory at the savepoint. Valid if no spill has happened since.
    pub(crate) bytes: usize,
    /// Number of messages in these bytes.
    pub(crate) count: u64,
    /// Number of spills so far.
    pub(crate) spills: u64,
    /// Number of messages written and not undone.
    pub(crate) written: u64,
    /// Bytes of these messages, and of their large values.
    pub(crate) written_bytes: u64,
    /// Whether the `written` messages include a put or an update. A write set with deletes only may
    /// use the reserve on a full disk.
    pub(crate) adds_data: bool,
}
