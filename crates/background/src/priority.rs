//! Priorities of background work (rule 3). Work of a smaller number runs first. The planner gives
//! plans their priority: [`frondb_trunk::plan`].

/// Tombstone compaction of a leaf, and of an inner node: the flush that brings its tombstone runs
/// closer to the leaves (rule 15).
pub const TOMBSTONES: u8 = 0;
/// Flush of a memtable or of an inner node, regroup, join.
pub const FLUSH: u8 = 1;
/// Amortised merges, which many reads have made worthwhile, and the work of an optimize. Both
/// together get at least a quarter of the steps of background jobs.
pub const SCAN: u8 = frondb_trunk::plan::PRIORITY_AMORTISED;
