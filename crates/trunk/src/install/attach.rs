//! Attaches (ingests) the runs of a large commit as they are (rule 18). Nothing is rewritten: the
//! runs become views in the nodes where a flush would put slices, or a leaf of their own if their
//! keys are above all keys of the trunk.
//!
//! ```text
//!  runs of the commit, newest first        children of the root
//!   c |----------------------|             [ A        )[ B          )[ C       )
//!   b      |-----------|           ->        c  b a      c  b          c
//!   a |------|
//! ```
//!
//! Unlike the output of a job, these runs are not cut at pivots, may overlap, and may hold messages
//! that a range delete of the same commit hides. Therefore every node that receives such a run also
//! receives the range delete.

use std::cmp::Reverse;

use frondb_core::SeqNo;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_run::Run;

use crate::install::{Place, PlacedRun, VersionBuilder};
use crate::node::{Body, Key, Node};
use crate::view::View;

/// The runs and range deletes of a commit.
#[derive(Clone, Copy, Debug)]
pub struct RunsToAttach<'a> {
    /// Runs whose SeqNos are above all SeqNos of the trunk. If two runs hold the same key, the run
    /// with the larger maximum SeqNo has the newer message.
    pub runs: &'a [Arc<Run>],
    /// Range deletes of the commit. No job has applied them to the runs.
    pub deletes: &'a RangeDeletes,
    /// Whether the runs can serve as a base: they hold at most one message per key in all of them
    /// together, hold puts only, and have the encoding of bases.
    pub are_base: bool,
}

impl RunsToAttach<'_> {
    fn first_key(&self) -> Option<&[u8]> {
        self.runs.iter().map(|run| &*run.meta().first_key).min()
    }

    fn raw_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.meta().raw_bytes).sum()
    }

    /// Returns the runs newest first, as nodes hold them.
    fn by_age(&self) -> Vec<&Arc<Run>> {
        let mut runs: Vec<&Arc<Run>> = self.runs.iter().collect();
        runs.sort_by_key(|run| Reverse(run.meta().max_seq));
        runs
    }
}

impl VersionBuilder<'_> {
    /// Makes the runs and range deletes of a commit part of the trunk. `keep_hidden` is the oldest
    /// live snapshot, if a live snapshot may still need data that a range delete hides.
    /// `leaf_target` is the target size of a leaf in key and value bytes.
    pub fn attach(
        &mut self,
        incoming: &RunsToAttach<'_>,
        keep_hidden: Option<SeqNo>,
        leaf_target: u64,
    ) {
        let right = incoming.deletes.is_empty() && self.lies_right_of_all(incoming);
        if right && incoming.are_base {
            self.attach_base(incoming, leaf_target);
        } else if right && incoming.raw_bytes() >= leaf_target / 4 {
            // A smaller leaf would be joined with its neighbour again.
            self.attach_leaf(incoming);
        } else {
            self.attach_views(incoming, keep_hidden);
        }
    }

    /// Whether the keys of the runs lie in the last leaf, above all keys of the trunk.
    fn lies_right_of_all(&self, incoming: &RunsToAttach<'_>) -> bool {
        incoming.first_key().is_some_and(|first| {
            self.trunk.root.max_key().is_none_or(|max| *max < *first)
                && *self.trunk.last_leaf().lo <= *first
        })
    }

    /// Appends runs in the encoding of bases, unchanged, in key order.
    fn attach_base(&mut self, incoming: &RunsToAttach<'_>, leaf_target: u64) {
        let mut runs: Vec<&Arc<Run>> = incoming.runs.iter().collect();
        runs.sort_by(|a, b| a.meta().first_key.cmp(&b.meta().first_key));
        for run in runs {
            let (run, lo) = (Arc::clone(run), Arc::from(&*run.meta().first_key));
            self.append(PlacedRun { run, lo, hi: None, place: Place::Append }, leaf_target);
        }
    }

    /// Makes the runs a new last leaf, so that consolidating them reads nothing else. If the last
    /// leaf is empty, it receives the runs itself.
    fn attach_leaf(&mut self, incoming: &RunsToAttach<'_>) {
        let leaf = Arc::clone(self.trunk.last_leaf());
        let is_empty = leaf.views().next().is_none();
        let first = incoming.first_key().filter(|first| !is_empty && *leaf.lo < **first);
        let lo: Key = first.map_or_else(|| Arc::clone(&leaf.lo), Arc::from);
        let view = |run: &Arc<Run>| View::whole(Arc::clone(run), Arc::clone(&lo), None);
        let mut runs: Vec<View> = incoming.by_age().into_iter().map(view).collect();
        if first.is_none() {
            runs.extend(leaf.runs.iter().cloned());
            let deletes = Arc::clone(&leaf.range_deletes);
            let new = leaf.with(runs, deletes, leaf.body_clone());
            return self.replace(&leaf, vec![new]);
        }
        // The new leaf has the attached runs only. Older data, which older range deletes hide, is
        // in the left leaf.
        let body = Body::Leaf { base: Vec::new() };
        let right = Node::new(
            self.new_id(),
            Arc::clone(&lo),
            None,
            runs,
            Arc::default(),
            body,
            Arc::default(),
        );
        let left = leaf.left_of(&lo);
        self.replace(&leaf, vec![left, right]);
    }

    /// Gives each child of the root (or the root, if it is a leaf) views of the incoming runs that
    /// overlap its key range, as its newest runs, and the incoming range deletes of that range.
    fn attach_views(&mut self, incoming: &RunsToAttach<'_>, keep_hidden: Option<SeqNo>) {
        let root = Arc::clone(&self.trunk.root);
        let nodes = if root.is_leaf() { std::slice::from_ref(&root) } else { root.children() };
        let whole = |run: &Arc<Run>| View::whole(Arc::clone(run), Key::from([]), None);
        // Pairs each run with the number of nodes that it overlaps, because its messages are
        // assumed to be spread evenly over them.
        let runs: Vec<(View, u32)> = incoming
            .by_age()
            .into_iter()
            .map(|run| {
                let view = whole(run);
                let reaches = |node: &&Arc<Node>| view.cut(&node.lo, node.hi.as_ref(), 1).is_some();
                let parts = nodes.iter().filter(reaches).count() as u32;
                (view, parts)
            })
            .collect();
        let mut changed = Vec::with_capacity(nodes.len());
        for node in nodes {
            let (lo, hi) = (&node.lo, node.hi.as_ref());
            let views = runs.iter().filter_map(|(view, parts)| view.cut(lo, hi, *parts));
            let views: Vec<View> = views.collect();
            let deletes = incoming.deletes.clip(lo, hi.map(|hi| &**hi));
            if views.is_empty() && deletes.is_empty() {
                changed.push(Arc::clone(node));
                continue;
            }
            let new = self.receive(node, views, &deletes, keep_hidden);
            if !root.is_leaf() {
                self.record(node, std::slice::from_ref(&new));
            }
            changed.push(new);
        }
        if root.is_leaf() {
            self.replace(&root, changed);
        } else {
            // The root's children keep their ids, so the image of the root is unchanged.
            let root = self.with_children(&root, changed, false);
            self.set_root(vec![root]);
        }
    }

    /// Returns the node with new views and range deletes. The caller records it.
    fn receive(
        &mut self,
        node: &Arc<Node>,
        mut views: Vec<View>,
        arriving: &RangeDeletes,
        oldest: Option<SeqNo>,
    ) -> Arc<Node> {
        let mut deletes = node.range_deletes.union(arriving);
        let pruned = if arriving.is_empty() { None } else { self.prune(node, &deletes, oldest) };
        let node = pruned.as_ref().unwrap_or(node);
        if node.holds_no_message() {
            // The range deletes can hide only messages that arrived with them.
            let hides = |seq| views.iter().any(|view| view.run.meta().min_seq < seq);
            deletes = RangeDeletes::new(deletes.iter().filter(|rd| hides(rd.seq)).cloned());
        }
        views.extend(node.runs.iter().cloned());
        node.with(views, Arc::new(deletes), node.body_clone())
    }
}
