//! Layer 6: the trees of an open database, and every way of reading them.
//!
//! ```text
//!  TreeCore --+-- Version: active memtable, frozen sources, trunk    (one pointer to all of it)
//!             +-- install state, known-empty ranges, locks
//!
//!  get, cursor/, estimate/, verify, damage --> a version             (they write no file)
//! ```
//!
//! | file | role |
//! |---|---|
//! | `tree.rs`, `tree/`, `handle.rs` | a tree with its version and install state; its handle |
//! | `trees.rs` | all trees of a database by id |
//! | `stowed.rs` | a tree that nothing uses, in few bytes |
//! | `version.rs`, `source.rs` | the sources of a reader: memtables, attached runs, the trunk |
//! | `get.rs`, `multi_get.rs`, `multi_get/` | point lookups, of one key and of several |
//! | `in_memory.rs` | point lookups that read no device |
//! | `cursor/` | ordered reading |
//! | `pins.rs` | the versions that cursors pin, and how a flush unpins them |
//! | `value.rs` | reading large values |
//! | `estimate/` | how many entries and bytes a key range holds |
//! | `tombstones/` | tombstone runs that are worth compacting; known-empty ranges |
//! | `read_debt.rs` | what reading a leaf costs, and when a merge or a flush costs less |
//! | `verify.rs`, `damage.rs` | reading all of a tree: to find faults; to find lost ranges |
//! | `context.rs`, `health.rs` | what a read needs besides its tree; whether calls are accepted |
//! | `account.rs`, `totals.rs` | memory of memtables; sizes of all trees together |
//! | `memory.rs` | what share of the memory each part may use |
//! | `large_values.rs`, `snapshot.rs` | extents of large values; a fixed state to read at |
//!
//! A reader posts compaction hints ([`HintSink`]). A reader never plans or starts background work.

mod account;
mod context;
mod cursor;
mod damage;
pub mod estimate;
pub mod get;
mod handle;
mod health;
mod in_memory;
mod large_values;
mod memory;
mod multi_get;
mod pins;
mod read_debt;
mod snapshot;
mod source;
mod stowed;
pub mod tombstones;
mod totals;
mod tree;
mod trees;
mod value;
mod verify;
mod version;

pub use account::MemtableAccount;
pub use context::{HintSink, ReadContext, ReadCounters};
pub use cursor::{Cursor, CursorOptions, KeyRange, Moves, Range, Resting};
pub use damage::{DamagedRange, damaged_ranges};
pub use handle::AsTree;
pub use health::Health;
pub use in_memory::get_in_memory;
pub use large_values::LargeValues;
pub use memory::{Memory, MemoryRules, MemoryShares};
pub use multi_get::{multi_get, multi_get_under};
pub use pins::Cursors;
pub use read_debt::is_flush_paid;
pub use snapshot::Snapshot;
pub use source::{AttachedRuns, MemSource};
pub use stowed::{Stowed, StowedParts};
pub use totals::{StowingSink, TreeSizes, TreeTotals};
pub use tree::planning::PlanLimits;
pub use tree::{InstallState, State, TreeCore, TreeParts, TreeShared, ViewCounts};
pub use trees::Trees;
pub use value::{check_value, extents_of, read_value};
pub use verify::{VerifyReport, verify_tree};
pub use version::Version;
