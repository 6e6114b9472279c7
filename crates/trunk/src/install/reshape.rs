//! Changes the shape of the tree without reading data: adds and removes levels of inner nodes, and
//! joins neighbours.

use std::cmp::Reverse;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{NodeId, RangeDelete};

use crate::install::VersionBuilder;
use crate::install::version_builder::cut_all;
use crate::node::{Body, Node};
use crate::view::View;

impl VersionBuilder<'_> {
    /// Distributes the children of an inner node over new inner nodes of at most `fanout` children
    /// each. If the node is the root, the new nodes become a level below it; otherwise they replace
    /// the node. If the root has a single child, makes the child the root. Returns `false` if there
    /// is nothing to do.
    pub fn regroup(&mut self, id: NodeId, fanout: usize) -> bool {
        let Some(node) = self.trunk.find(id).map(Arc::clone) else { return false };
        let is_root = id == self.trunk.root.id;
        let children = node.children();
        if children.len() < 2 {
            return is_root && self.collapse(&node);
        }
        let groups = children.len().div_ceil(fanout.max(2)).max(2);
        let size = children.len().div_ceil(groups);
        let mut nodes = Vec::with_capacity(groups);
        for (i, group) in children.chunks(size).enumerate() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (lo, hi) = (Arc::clone(&first.lo), last.hi.clone());
            let runs = cut_all(&node.runs, &lo, hi.as_ref(), groups as u32);
            let deletes = Arc::new(node.range_deletes.clip(&lo, hi.as_deref()));
            let id = if i == 0 && !is_root { node.id } else { self.new_id() };
            let body = Body::Inner { children: group.to_vec() };
            nodes.push(Node::new(id, lo, hi, runs, deletes, body, Arc::default()));
        }
        if is_root {
            for child in &nodes {
                self.record_new(child);
            }
            // The root keeps its id. It buffered nothing, so no runs are lost.
            let body = Body::Inner { children: nodes };
            let root = node.with(Vec::new(), Arc::default(), body);
            self.replace(&node, vec![root]);
        } else {
            self.replace(&node, nodes);
        }
        true
    }

    /// Makes the only child of the root the new root. An inner child that buffers messages must
    /// stay below a root: flushes bypass the buffer of the root, so the root would hold older
    /// messages than the nodes below it.
    fn collapse(&mut self, root: &Arc<Node>) -> bool {
        let [child] = root.children() else { return false };
        let buffers = !child.runs.is_empty() || !child.range_deletes.is_empty();
        if !child.is_leaf() && buffers || !root.runs.is_empty() || !root.range_deletes.is_empty() {
            return false;
        }
        self.record(root, &[]);
        self.trunk.root = Arc::clone(child);
        true
    }

    /// Joins two adjacent children of `parent`, both leaves or both inner nodes, into a node with a
    /// new id, so that a job on either child does not find its node. Returns `false` and changes
    /// nothing if the two are not adjacent children of `parent`.
    pub fn join(&mut self, parent: NodeId, left: NodeId, right: NodeId) -> bool {
        let Some(node) = self.trunk.find(parent).map(Arc::clone) else { return false };
        let children = node.children();
        let Some(i) = children.iter().position(|child| child.id == left) else { return false };
        let (a, b) = match children.get(i..i + 2) {
            Some([a, b]) if b.id == right && a.is_leaf() == b.is_leaf() => (a, b),
            _ => return false,
        };
        let body = match (&a.body, &b.body) {
            (Body::Leaf { base: a }, Body::Leaf { base: b }) => {
                Body::Leaf { base: join_views(a.iter().chain(b).cloned().collect()) }
            }
            _ => Body::Inner { children: [a.children(), b.children()].concat() },
        };
        // The keys of the two nodes are disjoint, so any order that keeps the order of each side is
        // correct. The runs are ordered by largest SeqNo, so that the runs that a next merge takes
        // are newer than all others.
        let mut runs: Vec<View> = a.runs.iter().chain(&b.runs).cloned().collect();
        runs.sort_by_key(|view| (Reverse(view.run.meta().max_seq), view.run.meta().id));
        let deletes = Arc::new(join_range_deletes(&a.range_deletes, &b.range_deletes));
        let (lo, hi) = (Arc::clone(&a.lo), b.hi.clone());
        let id = self.new_id();
        let joined = Node::new(id, lo, hi, join_views(runs), deletes, body, Arc::default());
        self.record(a, std::slice::from_ref(&joined));
        self.record(b, &[]);
        let mut children = children.to_vec();
        children.splice(i..i + 2, [joined]);
        let deletes = Arc::clone(&node.range_deletes);
        let new = node.with(node.runs.clone(), deletes, Body::Inner { children });
        self.replace(&node, vec![new]);
        true
    }
}

/// Joins neighbouring views of one run that meet at a pivot. Views with a gap between them stay
/// separate, because the data in the gap has been merged into other runs.
fn join_views(views: Vec<View>) -> Vec<View> {
    let mut joined: Vec<View> = Vec::with_capacity(views.len());
    for view in views {
        match joined.last_mut() {
            Some(last)
                if last.run.meta().id == view.run.meta().id
                    && last.hi.as_ref() == Some(&view.lo) =>
            {
                last.hi = view.hi;
                // The views show 1/a and 1/b of the run. Together they show this share.
                let (a, b) = (u64::from(last.shares), u64::from(view.shares));
                last.shares = (a * b / (a + b)).max(1) as u32;
            }
            _ => joined.push(view),
        }
    }
    joined
}

/// Returns the range deletes of two neighbouring nodes. Joins range deletes that a pivot has cut in
/// two.
fn join_range_deletes(left: &RangeDeletes, right: &RangeDeletes) -> RangeDeletes {
    let mut all: Vec<RangeDelete> = left.iter().cloned().collect();
    for delete in right.iter() {
        let meets = |other: &&mut RangeDelete| {
            other.seq == delete.seq && other.hi.as_ref() == Some(&delete.lo)
        };
        match all.iter_mut().find(meets) {
            Some(other) => other.hi.clone_from(&delete.hi),
            None => all.push(delete.clone()),
        }
    }
    RangeDeletes::new(all)
}
