//! [`Planned`]: the work due on a node, its reason, and its urgency.

use frondb_core::NodeId;

/// Priority of amortised merges and of optimizes. Writers do not wait for work with this or a
/// larger number.
pub const PRIORITY_AMORTISED: u8 = 4;

/// Priority of work that frees deleted large values. It runs when the database is not being written
/// to, or when a thread waits for the space.
pub const PRIORITY_VALUES: u8 = 5;

/// Priority of work that runs only when the database is not being written to.
pub const PRIORITY_IDLE: u8 = 6;

/// Priority of packing leaves: after all other work, but also when the database is not idle.
pub const PRIORITY_PACK: u8 = 7;

/// Why a leaf is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A long tombstone run (rule 15).
    Tombstones,
    /// More runs than the leaf may have, or a merge of runs or of base views is due in a leaf with
    /// much garbage.
    Runs,
    /// More than [`RANGE_DELETES_MAX`](super::RANGE_DELETES_MAX) range deletes.
    RangeDeletes,
    /// The size of the runs has reached `growth_percent` of the size of the base.
    Growth,
    /// Much of the leaf is garbage, or deletes in its runs hide large values that are worth the
    /// rewrite.
    Garbage,
    /// An optimize waits for the leaf.
    Optimize,
    /// Scans have spent as much on merging as a rewrite costs.
    ScanDebt,
    /// Idle work: the leaf most likely holds large values that newer messages hide.
    Values,
    /// Idle work: a rewrite can drop range deletes, or deletes in the base, with the data that they
    /// hide, or many messages that prefix truncations have cut off.
    Idle,
    /// Enough of the base lacks the tree's codec or block size, for example because it was written
    /// quickly while writers were waiting.
    Pack,
}

/// The work to do on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Moves everything that an inner node buffers to its children.
    FlushNode,
    /// Cuts off the deletes at the beginning of a leaf, together with the messages that they hide.
    TruncatePrefix,
    /// Merges this many of a node's newest runs into one.
    MergeRuns(usize),
    /// As `MergeRuns`, in a leaf, because reading these runs has cost as much as the merge.
    MergeForReaders(usize),
    /// Merges neighbouring views of a leaf's base into one, beginning with the view of this index.
    MergeBase {
        /// Index of the first view.
        from: usize,
        /// Number of views to merge, at least two.
        views: usize,
    },
    /// Merges everything in a leaf into a new base, split into this many leaves.
    Rewrite(Reason, u64),
    /// Puts the root's children under a new level of inner nodes, divides another inner node into
    /// several, or removes a root that has a single child.
    Regroup,
    /// Joins the child with this index and the next one.
    Join(usize),
}

/// A plan, with the numbers by which the scheduler orders plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// Id of the node.
    pub node: NodeId,
    /// The work to do.
    pub plan: Plan,
    /// Key and value bytes that the plan reads. If the plan only reduces the number of inputs for
    /// another plan, also the bytes that the other plan would read.
    pub work_bytes: u64,
    /// Plans with a smaller number run first.
    pub priority: u8,
    /// Whether the plan reduces the used space, directly or by later steps, so that it may use the
    /// reserve of a full disk (rule 25).
    pub frees_space: bool,
}

impl Planned {
    /// Whether writers are throttled while the plan waits. Work for readers or for an optimize does
    /// not throttle writers.
    #[must_use]
    pub fn is_debt(&self) -> bool {
        let is_shape = matches!(self.plan, Plan::Join(_) | Plan::Regroup);
        self.priority < PRIORITY_AMORTISED && !is_shape
    }
}
