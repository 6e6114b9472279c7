//! Deletes that readers would have to step over (rule 15): tombstone runs that are worth
//! compacting, and known-empty ranges that cursors skip.
//!
//! ```text
//!  runs.rs           tombstone runs in memtables: requests truncation or compaction for them
//!  search.rs         when a memtable is searched for them, and what a commit does about it
//!  empty_ranges.rs   key ranges without entries, found by probes
//! ```

mod empty_ranges;
mod runs;
mod search;
#[cfg(test)]
mod testing;

pub use empty_ranges::{EmptyRanges, KeyRange};
pub use runs::{TombstoneRuns, request_after_flush, request_after_node_flush};
pub use search::{TombstoneCheck, TombstoneSearch};
