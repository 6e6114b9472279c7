//! Layer 2: merging sorted sources, the hot kernel of the engine.
//!
//! ```text
//!   runs, memtables: Source, Source, ...          newest first
//!        | chunks
//!      Merger      loser tree over offset-value codes: (key, SeqNo descending) order
//!        |
//!        +-- FoldMerge      for jobs: keeps what live snapshots need (rules 12 to 14, 17)
//!        +-- VisibleMerge   for cursors: the entries that one snapshot sees, in either direction
//!   Lookup                  the same for one key, with messages passed by the caller
//! ```
//!
//! One thread at a time may use each object. Sources are `Send`, so a merge may move to another
//! thread between two steps. The caller positions and bounds the sources.

mod fold;
mod input;
mod lookup;
mod loser_tree;
mod merger;
mod order;
mod stats;
mod update;
mod visible;
mod workspace;

pub use fold::{FoldMerge, FoldOptions};
pub use lookup::Lookup;
pub use merger::Merger;
pub use stats::{FoldStats, VisibleStats};
pub use update::{ValueReader, VisibleValue};
pub use visible::{LastRead, OwnMessages, VisibleMerge, VisibleOptions};
