//! Layer 6: one tree of an open database: what readers see of it, and everything that only reads.
//!
//! ```text
//!  TreeCore --+-- Version: active memtable, frozen sources, trunk      one pointer, replaced as a whole
//!             +-- install state, empty ranges, locks
//!
//!  get, cursor/, estimate/, verify, damage --> a version               nothing here writes or plans
//! ```
//!
//! | file | role |
//! |---|---|
//! | `tree.rs`, `trees.rs` | a tree, its versions; all trees by id |
//! | `version.rs`, `source.rs` | what a reader takes; a memtable or the runs of a commit above the trunk |
//! | `get.rs`, `cursor/` | point lookups, ordered reading |
//! | `value.rs` | reading large values |
//! | `estimate/` | how much a key range holds |
//! | `tombstones/` | runs of deletes worth compacting, known-empty ranges |
//! | `verify.rs`, `damage.rs` | reading everything: faults, ranges that are lost |
//! | `context.rs`, `health.rs`, `account.rs` | what reads take; whether calls are taken; memory of memtables |
//! | `totals.rs`, `large_values.rs`, `snapshot.rs` | figures over all trees, extents of values, a SeqNo to read at |
//!
//! A reader posts hints ([`HintSink`]) and never plans or starts work.

mod account;
mod context;
mod cursor;
mod damage;
pub mod estimate;
pub mod get;
mod health;
mod large_values;
mod snapshot;
mod source;
pub mod tombstones;
mod totals;
mod tree;
mod trees;
mod value;
mod verify;
mod version;

pub use account::MemtableAccount;
pub use context::{HintSink, ReadContext, ReadCounters};
pub use cursor::{Cursor, CursorOptions, Cursors};
pub use damage::{DamagedRange, damaged_ranges};
pub use health::Health;
pub use large_values::LargeValues;
pub use snapshot::Snapshot;
pub use source::{AttachedRuns, MemSource};
pub use totals::{TreeFigures, TreeTotals};
pub use tree::{InstallState, PlanLimits, Tree, TreeCore, TreeParts};
pub use trees::Trees;
pub use value::{check_value, extents_of, read_value};
pub use verify::{VerifyReport, verify_tree};
pub use version::Version;
