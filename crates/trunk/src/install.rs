//! Puts the result of a job into the current trunk. Every function here works in memory on
//! immutable nodes: it makes new nodes and a new path to the root. The caller holds the tree's
//! lock, and the job's I/O is over.
//!
//! A [`VersionBuilder`] applies one or more changes. It records what has to be written to the
//! manifest, and how the number of views of each run changes ([`Change`]). A result is placed by
//! its key range and not by the nodes that the job saw: leaves may have been split or joined since,
//! so views are cut at the current pivots (rule 1).
//!
//! | file | changes |
//! |---|---|
//! | `version_builder.rs` | replace a node, copy the path above it, record it |
//! | `flush.rs` | flushes; drop what range deletes hide completely |
//! | `attach.rs` | attach the runs of a large commit as they are |
//! | `merge.rs` | merge, rewrite, prefix truncation, relocation of a run |
//! | `reshape.rs` | add and remove levels of inner nodes, join neighbours |

mod attach;
mod flush;
mod merge;
mod reshape;
mod version_builder;

pub use attach::RunsToAttach;
pub use version_builder::VersionBuilder;

use std::collections::HashMap;

use frondb_core::sync::Arc;
use frondb_core::{NodeId, RunId};
use frondb_run::Run;

use crate::format::NodeImage;
use crate::node::{Key, Trunk};
use crate::view::View;

/// Where an install puts a finished run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// As the newest run of each node in its range.
    Slice,
    /// The base of a leaf without data; a slice if the leaf has received data since the job began.
    Base,
    /// After the largest key of the trunk (rule 5); a slice if the trunk now has larger keys.
    Append,
}

/// A finished run, the range of keys that it may hold, and its place.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The run.
    pub run: Arc<Run>,
    /// First key of the run's range.
    pub lo: Key,
    /// First key after the range; `None` for no bound.
    pub hi: Option<Key>,
    /// Where the install puts the run.
    pub place: Place,
}

impl PlacedRun {
    fn view(&self) -> View {
        View::whole(Arc::clone(&self.run), Arc::clone(&self.lo), self.hi.clone())
    }
}

/// The result of one or more changes, for the manifest, the counts of views and the planner.
#[derive(Debug)]
pub struct Change {
    /// The new trunk.
    pub trunk: Trunk,
    /// Images of all new and changed nodes.
    pub images: Vec<NodeImage>,
    /// Nodes that were removed.
    pub dropped: Vec<NodeId>,
    /// The id of the new root; `None` if the root has kept its id.
    pub root: Option<NodeId>,
    /// For each run, by how much the number of its views changed.
    pub views: HashMap<RunId, i64>,
}

impl Change {
    /// Returns the ids of the nodes that the planner should examine again.
    #[must_use]
    pub fn touched(&self) -> Vec<NodeId> {
        self.images.iter().map(|image| image.id).collect()
    }
}
