//! The block index of a run: maps a key to its block, in two levels.
//!
//! ```text
//!  top index    | part 0 | part 1 | part 2 |      about 60 bytes a part in memory
//!                    |        |
//!  parts        | blocks 0..768 | blocks 768..1570 | ...      about 4 KiB each on disk
//! ```
//!
//! The cost of a lookup must not grow with the run: a lookup reads one part, and each part competes
//! for the cache on its own. The index of a run with few blocks has one part and no top index.
//! Earlier versions wrote every index in this form, whatever its size.

mod builder;
mod decode;
mod filter_parts;
mod packed;
mod packer;
mod part;
mod separator;
#[cfg(test)]
mod tests;
mod top;

pub use builder::INDEX_PART_BLOCKS;
pub(crate) use builder::{IndexBuilder, IndexFrames};
pub(crate) use filter_parts::FilterPart;
#[cfg(any(test, feature = "testing"))]
pub(crate) use filter_parts::FilterSpan;
pub(crate) use packer::IndexPacker;
pub use part::BlockIndex;
pub(crate) use separator::Separator;
pub(crate) use top::PartPlace;
pub use top::TopIndex;
