//! Deletes that readers would have to step over (rule 15): tombstone runs that are worth
//! compacting, and known-empty ranges that cursors skip.
//!
//! ```text
//!  runs.rs           tombstone runs in memtables: requests truncation or compaction for them
//!  search.rs         when a memtable is searched for tombstone runs, and a commit waits for that
//!  empty_ranges.rs   key ranges without entries, found by probes and readers
//!  empty_list.rs     the list of a tree's known-empty ranges, and how a walk skips them
//!  lazy_list.rs      allocates the list when it is first changed
//!  empty_range.rs    one known-empty range, and the smaller ranges from which it grew
//! ```

mod empty_list;
mod empty_range;
mod empty_ranges;
mod lazy_list;
mod runs;
mod search;
#[cfg(test)]
mod testing;

pub(crate) use empty_list::Around;
pub(crate) use empty_ranges::GROWTH_MIN;
pub use empty_ranges::{EmptyRanges, KeyRange};
pub use runs::{TombstoneRuns, request_after_flush, request_after_node_flush};
pub use search::{TombstoneCheck, TombstoneSearch};
