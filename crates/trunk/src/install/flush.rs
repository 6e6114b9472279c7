//! Installs flushes, of a memtable or of an inner node's buffer, and drops the views and subtrees
//! that range deletes hide completely.

use std::cmp::Reverse;
use std::collections::HashSet;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{NodeId, RunId, SeqNo};

use crate::install::version_builder::{cut_all, without};
use crate::install::{Place, PlacedRun, VersionBuilder};
use crate::node::{Body, Key, Node};
use crate::view::View;

/// The runs and range deletes that a flush brings to the nodes of one level.
struct FlushedRuns<'a> {
    /// Ordered by key.
    new_runs: &'a [PlacedRun],
    deletes: &'a RangeDeletes,
    /// Whether the same flush will also append data above all keys of the trunk.
    appends: bool,
    /// The oldest live snapshot when the job began. Messages that it sees must be kept.
    oldest: Option<SeqNo>,
}

impl FlushedRuns<'_> {
    /// Returns the new runs that overlap the node's range.
    fn touching(&self, node: &Node) -> &[PlacedRun] {
        let from = self.new_runs.partition_point(|placed| *placed.run.meta().last_key < *node.lo);
        let end = match &node.hi {
            None => self.new_runs.len(),
            Some(hi) => self.new_runs.partition_point(|placed| *placed.run.meta().first_key < **hi),
        };
        self.new_runs.get(from..end).unwrap_or_default()
    }
}

impl VersionBuilder<'_> {
    /// Installs a memtable's flush: adds slices and range deletes to the nodes, and appends runs
    /// whose keys are above all keys of the trunk. `keep_hidden` is the oldest live snapshot, if a
    /// live snapshot may still need data that a range delete hides. Appended runs go to the base of
    /// the last leaf until that leaf has `leaf_target` bytes.
    pub fn flush(
        &mut self,
        new_runs: &[PlacedRun],
        deletes: &RangeDeletes,
        keep_hidden: Option<SeqNo>,
        leaf_target: u64,
    ) {
        let (append, slices): (Vec<PlacedRun>, Vec<PlacedRun>) =
            new_runs.iter().cloned().partition(|placed| self.is_right_of_all(placed));
        let appends = !append.is_empty();
        let incoming = FlushedRuns { new_runs: &slices, deletes, appends, oldest: keep_hidden };
        let root = Arc::clone(&self.trunk.root);
        if root.is_leaf() {
            if let Some(nodes) = self.push(&root, &incoming) {
                self.replace(&root, nodes);
            }
        } else if let Some(children) = self.push_below(&root, &incoming) {
            // The root of a tree with inner nodes buffers nothing, because its buffer would receive
            // a slice from every flush.
            let ids = |nodes: &[Arc<Node>]| nodes.iter().map(|n| n.id).collect::<Vec<_>>();
            let changed = ids(&children) != ids(root.children());
            let root = self.with_children(&root, children, changed);
            self.set_root(vec![root]);
        }
        for placed in append {
            self.append(placed, leaf_target);
        }
    }

    /// Installs an inner node's flush: removes the claimed runs and `deletes` from the node, and
    /// adds `new_runs` and `deletes` to its children. `keep_hidden` is the oldest live snapshot.
    /// Returns `false` and changes nothing if the node or a claimed run is no longer there.
    pub fn flush_node(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        deletes: &RangeDeletes,
        new_runs: &[PlacedRun],
        keep_hidden: Option<SeqNo>,
    ) -> bool {
        let Some(node) = self.claimed(id, claimed) else { return false };
        let incoming = FlushedRuns { new_runs, deletes, appends: false, oldest: keep_hidden };
        let children = self.push_below(&node, &incoming);
        let children = children.unwrap_or_else(|| node.children().to_vec());
        let runs = without(&node.runs, claimed);
        let new = node.with(runs, node.deletes_after(deletes), Body::Inner { children });
        self.replace(&node, vec![new]);
        true
    }

    /// Adds slices and range deletes to the children, and returns the new list of children; `None`
    /// if nothing arrived.
    fn push_below(&mut self, node: &Node, incoming: &FlushedRuns<'_>) -> Option<Vec<Arc<Node>>> {
        let mut changed = false;
        let mut children = Vec::with_capacity(node.children().len());
        for child in node.children() {
            match self.push(child, incoming) {
                None => children.push(Arc::clone(child)),
                Some(nodes) => {
                    self.record(child, &nodes);
                    changed = true;
                    children.extend(nodes);
                }
            }
        }
        changed.then_some(children)
    }

    /// Adds slices and range deletes to one node, and returns the nodes that replace it; `None` if
    /// nothing touches the node. The caller records the change.
    fn push(&mut self, node: &Arc<Node>, incoming: &FlushedRuns<'_>) -> Option<Vec<Arc<Node>>> {
        let (lo, hi) = (&node.lo, node.hi.as_ref());
        let touching = incoming.touching(node);
        let arriving = incoming.deletes.clip(lo, hi.map(|hi| &**hi));
        if touching.is_empty() && arriving.is_empty() {
            return None;
        }
        let mut deletes = node.range_deletes.union(&arriving);
        let pruned =
            if arriving.is_empty() { None } else { self.prune(node, &deletes, incoming.oldest) };
        let node = pruned.as_ref().unwrap_or(node);
        if node.holds_no_message() {
            // In an empty node, a range delete can hide only messages that arrive with it and that
            // were kept for a snapshot.
            let kept = deletes.iter().filter(|rd| incoming.oldest.is_some_and(|s| s < rd.seq));
            let arrives = !touching.is_empty() || incoming.appends && hi.is_none();
            deletes =
                if arrives { RangeDeletes::new(kept.cloned()) } else { RangeDeletes::empty() };
            // The node may be an inner node, because the leaves may have got a new parent since the
            // job began.
            let all_base = touching.iter().all(|placed| placed.place == Place::Base);
            if node.is_leaf() && !touching.is_empty() && all_base {
                return Some(self.leaves_of(node, touching, &deletes));
            }
        }
        let mut runs: Vec<View> =
            touching.iter().filter_map(|placed| placed.view().cut(lo, hi, 2)).collect();
        runs.sort_by_key(|view| Reverse(view.run.meta().max_seq));
        runs.extend(node.runs.iter().cloned());
        Some(vec![node.with(runs, Arc::new(deletes), node.body_clone())])
    }

    /// Replaces a leaf without messages by one leaf for each new run.
    fn leaves_of(
        &mut self,
        node: &Node,
        pieces: &[PlacedRun],
        deletes: &RangeDeletes,
    ) -> Vec<Arc<Node>> {
        let leaves = pieces.iter().enumerate().map(|(i, piece)| {
            let lo = if i == 0 { Arc::clone(&node.lo) } else { Arc::clone(&piece.lo) };
            let hi = pieces.get(i + 1).map_or_else(|| node.hi.clone(), |p| Some(Arc::clone(&p.lo)));
            let id = if i == 0 { node.id } else { self.new_id() };
            let base = piece.view().cut(&lo, hi.as_ref(), 2).into_iter().collect();
            let deletes = Arc::new(deletes.clip(&lo, hi.as_deref()));
            Node::new(id, lo, hi, Vec::new(), deletes, Body::Leaf { base }, Arc::default())
        });
        leaves.collect()
    }

    /// Whether a run was made for appending, and its keys lie in the last leaf above all keys of
    /// the trunk. While a flush runs, the data that is older than its memtable can only shrink, so
    /// this is true of each run made for appending, unless a caller lets two flushes overlap.
    fn is_right_of_all(&self, placed: &PlacedRun) -> bool {
        let first = &placed.run.meta().first_key;
        placed.place == Place::Append
            && self.trunk.root.max_key().is_none_or(|max| *max < **first)
            && *self.trunk.last_leaf().lo <= **first
    }

    /// Appends a run whose keys are above all keys of the trunk: to the base of the last leaf, or
    /// as the base of a new leaf.
    pub(super) fn append(&mut self, placed: PlacedRun, leaf_target: u64) {
        let leaf = Arc::clone(self.trunk.last_leaf());
        // The views of a base are disjoint, so each view begins with the first key of its run.
        let lo: Key = Arc::from(&*placed.run.meta().first_key);
        let bytes = leaf.base_raw_bytes() + placed.run.meta().raw_bytes;
        let full = !leaf.base().is_empty() && bytes > leaf_target;
        let view = View::whole(placed.run, Arc::clone(&lo), None);
        if full {
            let left = leaf.left_of(&lo);
            // Range deletes of the same flush may hide data that the flush kept for a snapshot.
            let deletes = Arc::new(leaf.range_deletes.clip(&lo, None));
            let (id, body) = (self.new_id(), Body::Leaf { base: vec![view] });
            let right = Node::new(id, lo, None, Vec::new(), deletes, body, Arc::default());
            self.replace(&leaf, vec![left, right]);
        } else {
            let mut base = leaf.base().to_vec();
            base.push(view);
            let deletes = Arc::clone(&leaf.range_deletes);
            let new = leaf.with(leaf.runs.clone(), deletes, Body::Leaf { base });
            self.replace(&leaf, vec![new]);
        }
    }

    /// Drops everything that `deletes` hide from every reader (rule 14): views of this node and of
    /// the nodes below it, and whole subtrees. `deletes` are all range deletes on the path,
    /// including those of this node; a node that keeps any view or child keeps its own. Returns the
    /// new node, or `None` if nothing is hidden completely. The caller records the node itself.
    ///
    /// Runs that refer to values in extents of their own are kept: the merge that drops the
    /// references frees the values (rule 17).
    pub(super) fn prune(
        &mut self,
        node: &Arc<Node>,
        deletes: &RangeDeletes,
        oldest: Option<SeqNo>,
    ) -> Option<Arc<Node>> {
        if node.holds_no_message() {
            return None;
        }
        let (lo, hi) = (&node.lo, node.hi.as_ref());
        let deletes = deletes.clip(lo, hi.map(|hi| &**hi)).union(&node.range_deletes);
        // Data that is hidden from the oldest snapshot is hidden from all later snapshots.
        let reader = oldest.unwrap_or(SeqNo::MAX);
        let hidden_below = deletes.covers_wholly(lo, hi.map(|hi| &**hi), reader);
        if hidden_below.is_some_and(|seq| node.max_seq() < seq) && !node.holds_refs() {
            return Some(self.emptied(node, lo, hi));
        }
        let stays = |view: &&View| view.run.meta().refs > 0 || !view.is_hidden_by(&deletes, reader);
        let shown = |views: &[View]| views.iter().filter(stays).cloned().collect::<Vec<View>>();
        let mut changed = false;
        let body = match &node.body {
            Body::Leaf { base } => Body::Leaf { base: shown(base) },
            Body::Inner { children } => {
                let mut children = children.clone();
                for child in &mut children {
                    if let Some(new) = self.prune(child, &deletes, oldest) {
                        self.record(child, std::slice::from_ref(&new));
                        *child = new;
                        changed = true;
                    }
                }
                Body::Inner { children }
            }
        };
        let new = node.with(shown(&node.runs), Arc::clone(&node.range_deletes), body);
        changed |= new.views().count() < node.views().count();
        changed.then_some(new)
    }

    /// Returns a copy of the node over `[lo, hi)` without data, of the same height. The caller
    /// records it.
    fn emptied(&mut self, node: &Node, lo: &Key, hi: Option<&Key>) -> Arc<Node> {
        let body = match node.children().split_first() {
            None => Body::Leaf { base: Vec::new() },
            Some((first, others)) => {
                for child in others {
                    self.record_dropped(child);
                }
                let empty = self.emptied(first, lo, hi);
                self.record(first, std::slice::from_ref(&empty));
                Body::Inner { children: vec![empty] }
            }
        };
        let (lo, hi) = (Arc::clone(lo), hi.cloned());
        Node::new(node.id, lo, hi, Vec::new(), Arc::default(), body, Arc::default())
    }
}

impl Node {
    /// Returns the leaf cut off at `hi`. REQUIRES: no view shows a key at or after `hi`.
    pub(super) fn left_of(&self, hi: &Key) -> Arc<Self> {
        Self::new(
            self.id,
            Arc::clone(&self.lo),
            Some(Arc::clone(hi)),
            cut_all(&self.runs, &self.lo, Some(hi), 1),
            Arc::new(self.range_deletes.clip(&self.lo, Some(hi))),
            Body::Leaf { base: cut_all(self.base(), &self.lo, Some(hi), 1) },
            Arc::clone(&self.hints),
        )
    }

    /// Whether the node and everything below it hold no message.
    pub(super) fn holds_no_message(&self) -> bool {
        self.views().next().is_none() && self.children().iter().all(|c| c.holds_no_message())
    }

    /// Whether a run of the node or below refers to values in extents of their own.
    fn holds_refs(&self) -> bool {
        self.views().any(|view| view.run.meta().refs > 0)
            || self.children().iter().any(|child| child.holds_refs())
    }
}
