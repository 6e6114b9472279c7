//! Estimates of how many entries and bytes a key range holds, from counts and samples.
//!
//! ```text
//!  range.rs      entries and bytes of a range: counts, corrected by samples
//!  counts.rs     messages of a range, by the counts of nodes, block indexes and memtables
//!  sample.rs     one sample: the messages from one key on
//!  strata.rs     samples over a long range whose parts may differ
//!  short.rs      short ranges, counted key by key
//!  positions.rs  short ranges, counted by positions of their bounds, without merging
//!  split.rs      keys that cut a tree into parts of about equal size
//!
//!  key_range.rs, key_space.rs, leaf.rs, share.rs     shared helpers
//! ```

mod counts;
mod key_range;
mod key_space;
mod leaf;
mod positions;
mod range;
mod sample;
mod share;
mod short;
mod split;
mod strata;

pub use counts::{RangeMessages, range_messages};
pub use range::{RangeEstimate, estimate};
pub use short::{FirstEntries, Precision, count_first};
pub use split::split_keys;
