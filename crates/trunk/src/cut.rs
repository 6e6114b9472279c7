//! Cuts the output of a job into runs: at node boundaries for a flush, at even sizes for a
//! rewritten base, nowhere for a merge of runs.

use frondb_core::sync::Arc;

use crate::install::Place;
use crate::node::{Key, Trunk};

/// A key range of a job's output. No run has keys of two targets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// First key of the range.
    pub lo: Key,
    /// First key after the range; `None` for no bound.
    pub hi: Option<Key>,
    /// Where an install puts the runs of this range.
    pub place: Place,
    /// Key and value bytes after which a new run begins. Limits the size of leaves when a base is
    /// split.
    pub piece_bytes: u64,
}

/// Returns the targets of a memtable's flush into `trunk`: one slice for each child of the root, or
/// for the root if it is a leaf. The first flush into an empty leaf becomes its base.
///
/// `right_edge` is the largest key of all data that is older than the memtable. Larger keys are
/// appended to the last leaf (rule 5).
#[must_use]
pub fn flush_targets(trunk: &Trunk, right_edge: Option<&[u8]>, leaf_target: u64) -> Vec<Target> {
    let root = &trunk.root;
    let nodes = if root.is_leaf() { std::slice::from_ref(root) } else { root.children() };
    let mut targets: Vec<Target> = nodes
        .iter()
        .map(|node| Target {
            lo: Arc::clone(&node.lo),
            hi: node.hi.clone(),
            place: if node.is_empty() { Place::Base } else { Place::Slice },
            piece_bytes: if node.is_empty() { leaf_target } else { u64::MAX },
        })
        .collect();
    if let (Some(edge), Some(last)) = (right_edge, targets.last_mut())
        && last.place == Place::Slice
    {
        // The smallest key above the edge that lies in the last leaf.
        let above: Key = [edge, &[0]].concat().into();
        let lo = above.max(Arc::clone(&trunk.last_leaf().lo));
        if *last.lo < *lo {
            last.hi = Some(Arc::clone(&lo));
            targets.push(Target { lo, hi: None, place: Place::Append, piece_bytes: leaf_target });
        } else {
            last.place = Place::Append;
            last.piece_bytes = leaf_target;
        }
    }
    targets
}

/// Returns the targets of an inner node's flush: for each child one slice, or for an empty leaf its
/// base.
pub(crate) fn node_targets(node: &crate::Node, leaf_target: u64) -> Vec<Target> {
    let targets = node.children().iter().map(|child| Target {
        lo: Arc::clone(&child.lo),
        hi: child.hi.clone(),
        place: if child.is_empty() { Place::Base } else { Place::Slice },
        piece_bytes: if child.is_empty() { leaf_target } else { u64::MAX },
    });
    targets.collect()
}

/// Returns the single target of a job on the range `[lo, hi)`.
pub(crate) fn one_target(
    lo: &Key,
    hi: Option<&Key>,
    place: Place,
    piece_bytes: u64,
) -> Vec<Target> {
    vec![Target { lo: Arc::clone(lo), hi: hi.cloned(), place, piece_bytes }]
}
