//! How much a key range holds: estimated from counts and samples, without reading the range.
//!
//! ```text
//!  range.rs    entries and bytes of a range: counts of nodes, indexes and memtables, corrected by samples
//!  sample.rs   one sample: the messages around a place; and counting short ranges key by key
//!  strata.rs   samples over a range whose ends differ
//!  single.rs   ranges that lie in consolidated data alone
//!  split.rs    keys that cut a tree into parts of about equal size
//! ```

mod range;
mod sample;
mod single;
mod split;
mod strata;

pub use range::{RangeEstimate, RangeMessages, estimate, range_messages};
pub use sample::{FirstEntries, count_first};
pub use split::split_keys;
