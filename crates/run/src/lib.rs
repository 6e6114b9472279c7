//! Layer 3: immutable sorted runs. A [`RunWriter`] writes a run once, a [`RunMeta`] in the manifest
//! describes it, and point lookups and cursors read it until the last reference to it is dropped.
//!
//! ```text
//!  extents of data files, one logical byte space:
//!  | block | block | ... | block | index frames | filter frames | dictionary | padding to 4 KiB |
//!  0                             blocks_bytes                                end
//! ```
//!
//! A [`Spool`] is simpler: the temporary data of an external sort, read once and never in the
//! manifest.
//!
//! The crate has no notion of nodes or logs, and knows a tree only by its id: the engine marks a
//! [`Run`] as dead, and dropping the last reference to it releases its extents (rule 7).

mod block_reads;
mod cache_warmer;
mod cached_blocks;
mod charge;
mod count;
mod cursor;
mod dictionaries;
mod dictionary_reads;
mod env;
mod estimate;
mod filter_writer;
pub mod format;
mod in_memory;
mod index;
mod index_frames;
mod index_reads;
mod loads;
mod lookup;
mod low_memory;
mod missing;
mod needed;
mod output;
mod range_filter;
mod read;
mod reader;
mod rebuild;
mod residency;
mod spool;
mod verify;
mod writer;

pub use cursor::RunCursor;
pub use dictionaries::HeldDictionary;
pub use env::{Cached, RunEnv, RunStats};
pub use estimate::KeyAfter;
pub use filter_writer::FILTER_PART_KEYS;
pub use format::{RunDictionary, RunMeta};
pub use index::{BlockIndex, INDEX_PART_BLOCKS, TopIndex};
pub use lookup::Visit;
pub use low_memory::{merge_input_bytes, merge_inputs_max, run_block_bytes_max};
pub use missing::{AfterBlock, CachedGet, MissingBlock, ReadBlock};
pub use needed::{NeededBlock, read_needed};
pub use output::Output;
pub use range_filter::RangeAnswer;
pub use read::ReadMode;
pub use reader::Run;
pub use residency::frames::Frame;
pub use residency::handover::Handover;
pub use spool::{Spool, SpoolSource, SpoolWriter};
pub use verify::DamagedPart;
pub use writer::{RunOptions, RunWriter};

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
