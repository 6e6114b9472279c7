//! Priorities of background work; smaller comes first (rule 3). The planner gives those of nodes:
//! [`frondb_trunk::plan`].

/// Of the tombstone compaction of a leaf.
pub const TOMBSTONES: u8 = 0;
/// Of a memtable's flush.
pub const FLUSH: u8 = 1;
/// Of what scans have paid for: at least a quarter of the steps.
pub const SCAN: u8 = 4;
