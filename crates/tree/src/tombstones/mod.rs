//! Deletes that readers would have to step over (rule 15): runs of them that are worth compacting, and
//! ranges of keys that are known to be empty.

mod empty_ranges;
mod runs;

pub use empty_ranges::{EmptyRanges, KeyRange};
pub use runs::{TombstoneRuns, is_due, request_after_flush, request_after_node_flush};
