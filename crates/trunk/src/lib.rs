//! Layer 4: the trunk, a B-epsilon-tree whose nodes hold references to immutable sorted runs.
//!
//! ```text
//!  memtable flush -> root -> inner nodes, with the runs they buffer
//!                               -> LEAF {runs newest..oldest, base}
//! ```
//!
//! A [`Trunk`] is immutable and shared. Every change creates a new trunk by copying the path from
//! the root ([`install`]), and lists the [`NodeImage`]s for the manifest. Background work has three
//! parts: [`plan`] decides what a node needs (a pure function), [`job`] merges and writes (I/O
//! without locks, in steps), and [`install`] puts the result into the current trunk (short; its
//! caller holds the tree's lock).
//!
//! This crate does not depend on memtables, logs or threads.

mod base;
pub mod cut;
mod damage;
mod faults;
mod filter_policy;
pub mod format;
pub mod install;
pub mod job;
mod key;
mod lookup;
mod node;
mod optimize;
mod options;
mod path;
pub mod plan;
mod prepare;
mod restore;
mod scan;
mod schedule;
mod verify;
mod view;

pub use damage::NodeDamage;
pub use filter_policy::FilterPolicy;
pub use format::NodeImage;
pub use lookup::Asked;
pub use node::{Body, CompactionHints, Key, Node, NodeTotals, Trunk};
pub use optimize::{OptimizeScope, OptimizeStep};
pub use options::{OptionRow, TrunkOptions};
pub use path::LookupPath;
pub use prepare::{Prepared, prepare};
pub use restore::{Restored, restore};
pub use scan::{Scan, Segment, segment};
pub use verify::verify;
pub use view::View;

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
