//! Puts the result of a job into the current trunk: pure changes of the persistent tree, done
//! under the tree's lock by the caller, while the job's I/O is long over.
//!
//! A [`VersionBuilder`] applies one or more changes and notes what the manifest and the counts of views
//! must learn ([`Change`]). A result is placed by key range, not by the nodes the job saw: leaves
//! may have been split or joined since, so views are cut at the pivots of now (rule 1).
//!
//! | file | changes |
//! |---|---|
//! | `version_builder.rs` | what they all use: replace a node, copy the path above it, note it |
//! | `flush.rs` | a memtable or an inner node's buffer goes down; what range deletes hide wholly goes |
//! | `attach.rs` | the runs of a large commit come in as they are |
//! | `merge.rs` | runs of a leaf become one; a leaf becomes new leaves; a run moves on disk |
//! | `reshape.rs` | levels of inner nodes, joins |

mod attach;
mod flush;
mod merge;
mod reshape;
mod version_builder;

pub use attach::Arrived;
pub use version_builder::VersionBuilder;

use std::collections::HashMap;

use frondb_core::sync::Arc;
use frondb_core::{NodeId, RunId};
use frondb_run::Run;

use crate::format::NodeImage;
use crate::node::{Key, Trunk};
use crate::view::View;

/// Where a finished run goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On top of what the node of its range holds.
    Slice,
    /// The base of a leaf that held nothing; a slice if it holds something by now.
    Base,
    /// Right of everything the trunk holds (rule 5); a slice if that is no longer so.
    Append,
}

/// A finished run and the range of keys it may hold.
#[derive(Clone, Debug)]
pub struct Made {
    /// The run.
    pub run: Arc<Run>,
    /// First key of its range.
    pub lo: Key,
    /// First key beyond its range.
    pub hi: Option<Key>,
    /// Where it goes.
    pub place: Place,
}

impl Made {
    fn view(&self) -> View {
        View::whole(Arc::clone(&self.run), Arc::clone(&self.lo), self.hi.clone())
    }
}

/// What a change did, for the manifest, the counts of views and the planner.
#[derive(Debug)]
pub struct Change {
    /// The new trunk.
    pub trunk: Trunk,
    /// Images of new and changed nodes.
    pub images: Vec<NodeImage>,
    /// Nodes that are gone.
    pub dropped: Vec<NodeId>,
    /// The new root's id, if the root is another node now.
    pub root: Option<NodeId>,
    /// How many views of each run were added (or taken away).
    pub views: HashMap<RunId, i64>,
}

impl Change {
    /// Ids of the nodes that the planner should look at again.
    #[must_use]
    pub fn touched(&self) -> Vec<NodeId> {
        self.images.iter().map(|image| image.id).collect()
    }
}
