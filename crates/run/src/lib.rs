//! Layer 3: immutable sorted runs. A run is written once by a [`RunWriter`], described by a
//! [`RunMeta`] in the manifest, and read by point lookups and cursors until nobody holds it.
//!
//! ```text
//!  extents of data files, one logical byte space:
//!  | block | block | ... | block | index frame | filter frame | padding to 4 KiB |
//!  0                             blocks_bytes                 end
//! ```
//!
//! A [`Spool`] is their poor relative, for what is sorted outside of memory: read once, and never in
//! the manifest.
//!
//! The crate knows nothing of trees, nodes or logs: a [`Run`] is told when it is dead and gives
//! its extents back when the last holder lets go (rule 7).

mod count;
mod cursor;
mod demand;
mod env;
mod flights;
pub mod format;
mod index;
mod keep;
mod little;
mod loads;
mod output;
mod read;
mod reader;
mod rebuild;
mod spool;
mod verify;
mod writer;

pub use cursor::{ReadMode, RunCursor};
pub use env::{Cached, RunEnv, RunStats};
pub use format::RunMeta;
pub use index::BlockIndex;
pub use little::{merge_input_bytes, merge_inputs_max, run_block_bytes_max};
pub use output::Output;
pub use reader::{KeyAfter, Run, Visit};
pub use spool::{Spool, SpoolSource, SpoolWriter};
pub use verify::DamagedPart;
pub use writer::{RunOptions, RunWriter};

#[doc(hidden)]
pub mod fuzz;
