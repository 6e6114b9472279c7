//! Installs the output of merges: several runs of a node become one, a leaf is rewritten as new
//! leaves, a leaf loses its deleted prefix, or a run is replaced by a copy elsewhere on disk.

use std::collections::{HashMap, HashSet};

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, RunId, SeqNo};
use frondb_run::Run;

use crate::install::version_builder::{cut_all, without};
use crate::install::{PlacedRun, VersionBuilder};
use crate::node::{Body, CompactionHints, Key, Node};
use crate::view::View;

impl VersionBuilder<'_> {
    /// Replaces claimed runs of a node, the newest when the job began, by `new_runs` (or by
    /// nothing). Returns `false` and changes nothing if an input is no longer there.
    pub fn merge_runs(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        new_runs: &[PlacedRun],
    ) -> bool {
        let Some(node) = self.claimed(id, claimed) else { return false };
        let is_claimed = |view: &View| claimed.contains(&view.run.meta().id);
        let Some(at) = node.runs.iter().position(is_claimed) else { return false };
        // Runs that arrived since the job began are newer and stay in front.
        let mut runs = node.runs[..at].to_vec();
        let new =
            new_runs.iter().filter_map(|placed| placed.view().cut(&node.lo, node.hi.as_ref(), 2));
        runs.extend(new);
        runs.extend(without(&node.runs[at..], claimed));
        let deletes = Arc::clone(&node.range_deletes);
        node.hints.run_debt.store(0, Ordering::Relaxed);
        self.replace(&node, vec![node.with(runs, deletes, node.body_clone())]);
        true
    }

    /// Replaces the claimed views of a leaf's base by `new_runs`, which hold the same keys. Returns
    /// `false` and changes nothing if a claimed run is no longer there.
    pub fn merge_base(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        new_runs: &[PlacedRun],
    ) -> bool {
        let Some(node) = self.claimed(id, claimed) else { return false };
        let is_claimed = |view: &&View| claimed.contains(&view.run.meta().id);
        let old = node.base();
        let from = old.iter().take_while(|view| !is_claimed(view)).count();
        let end = from + old[from..].iter().take_while(is_claimed).count();
        // The job read neighbouring views. Runs appended since it began have larger keys.
        if from == end || old[end..].iter().any(|view| is_claimed(&view)) {
            return false;
        }
        let new =
            new_runs.iter().filter_map(|placed| placed.view().cut(&node.lo, node.hi.as_ref(), 2));
        let mut base = old[..from].to_vec();
        base.extend(new);
        base.extend(old[end..].iter().cloned());
        let deletes = Arc::clone(&node.range_deletes);
        self.replace(&node, vec![node.with(node.runs.clone(), deletes, Body::Leaf { base })]);
        true
    }

    /// Replaces a leaf's claimed runs and base by one leaf for each of `pieces`, whose ranges make
    /// up the leaf's range at the time when the job began. `consumed` are the range deletes that
    /// the job applied; `keep_hidden` is the oldest live snapshot; `overlap_percent` becomes the
    /// [hint](CompactionHints::overlap_percent) of that name of the new leaves. Returns `false` and
    /// changes nothing if an input is no longer there.
    pub fn rewrite(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        consumed: &RangeDeletes,
        pieces: &[PlacedRun],
        keep_hidden: Option<SeqNo>,
        overlap_percent: u64,
    ) -> bool {
        let Some(node) = self.claimed(id, claimed) else { return false };
        let newer_runs = without(&node.runs, claimed);
        let newer_base = without(node.base(), claimed);
        // A consumed range delete is dropped, unless a snapshot is older than it: for this
        // snapshot, the job kept data that the range delete hides.
        let kept = consumed.iter().filter(|rd| keep_hidden.is_some_and(|s| s < rd.seq));
        let kept = RangeDeletes::new(kept.cloned());
        let deletes = node.deletes_after(consumed).union(&kept);

        let bounds = piece_bounds(&node, pieces);
        let parts = bounds.len() as u32;
        let mut leaves = Vec::with_capacity(bounds.len());
        for (i, (lo, hi)) in bounds.into_iter().enumerate() {
            let piece = pieces.get(i).and_then(|piece| piece.view().cut(&lo, hi.as_ref(), 2));
            let hints = CompactionHints::default();
            hints.overlap_percent.store(overlap_percent, Ordering::Relaxed);
            if let Some(snapshot) = keep_hidden {
                hints.held_by.store(snapshot.get() + 1, Ordering::Relaxed);
                let kept = kept.clip(&lo, hi.as_deref()).len() as u64;
                hints.held_range_deletes.store(kept, Ordering::Relaxed);
            }
            let mut base: Vec<View> = piece.into_iter().collect();
            base.extend(cut_all(&newer_base, &lo, hi.as_ref(), parts));
            let runs = cut_all(&newer_runs, &lo, hi.as_ref(), parts);
            let deletes = Arc::new(deletes.clip(&lo, hi.as_deref()));
            let id = if i == 0 { node.id } else { self.new_id() };
            let body = Body::Leaf { base };
            leaves.push(Node::new(id, lo, hi, runs, deletes, body, Arc::new(hints)));
        }
        self.replace(&node, leaves);
        true
    }

    /// Truncates the deleted prefix of a leaf: cuts the leaf's claimed views at `first_kept`, or
    /// drops these views if `first_kept` is `None`. No reader can see a message of these views
    /// below `first_kept`. `below` has, for each run, the number of its messages below
    /// `first_kept`. The leaf gets a new id, so that a job that read the old leaf does not find its
    /// node: the output of such a job would bring back what the deletes hid. Returns `false` and
    /// changes nothing if an input is no longer there or nothing is cut.
    pub fn truncate_prefix(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        first_kept: Option<&Key>,
        below: &HashMap<RunId, u64>,
        hints: CompactionHints,
    ) -> bool {
        let Some(node) = self.claimed(id, claimed) else { return false };
        let is_cut = |view: &View| {
            claimed.contains(&view.run.meta().id)
                && first_kept.is_none_or(|kept| *view.first_key() < **kept)
        };
        if !node.views().any(is_cut) {
            return false;
        }
        let cut = |view: &View| {
            if !is_cut(view) {
                return Some(view.clone());
            }
            view.truncated(first_kept?, below.get(&view.run.meta().id).copied().unwrap_or(0))
        };
        let runs: Vec<View> = node.runs.iter().filter_map(cut).collect();
        let base: Vec<View> = node.base().iter().filter_map(cut).collect();
        let (lo, hi, deletes) = (node.lo.clone(), node.hi.clone(), node.range_deletes.clone());
        let (id, body) = (self.new_id(), Body::Leaf { base });
        let leaf = Node::new(id, lo, hi, runs, deletes, body, Arc::new(hints));
        self.replace(&node, vec![leaf]);
        true
    }

    /// Replaces run `old` by its copy `new` in every view.
    pub fn relocate(&mut self, old: RunId, new: &Arc<Run>) {
        let mut holders = Vec::new();
        self.trunk.for_each(&mut |node| {
            if node.views().any(|view| view.run.meta().id == old) {
                holders.push(node.id);
            }
        });
        let moved = |view: &View| {
            let run = if view.run.meta().id == old { new } else { &view.run };
            View { run: Arc::clone(run), ..view.clone() }
        };
        for id in holders {
            // An earlier iteration may have replaced a child of this node, so look the node up in
            // the current trunk.
            let Some(node) = self.trunk.find(id).map(Arc::clone) else { continue };
            let runs = node.runs.iter().map(moved).collect();
            let body = match &node.body {
                Body::Leaf { base } => Body::Leaf { base: base.iter().map(moved).collect() },
                Body::Inner { children } => Body::Inner { children: children.clone() },
            };
            let copy = node.with(runs, Arc::clone(&node.range_deletes), body);
            self.replace(&node, vec![copy]);
        }
    }
}

/// Returns the ranges of the leaves that a rewritten leaf becomes: the ranges of the pieces,
/// extended to the leaf's current range. The leaf may have become smaller if an append split it;
/// then no output of the job lies beyond its new end.
fn piece_bounds(node: &Node, pieces: &[PlacedRun]) -> Vec<(Key, Option<Key>)> {
    let inside = |piece: &&PlacedRun| node.hi.as_ref().is_none_or(|hi| piece.lo < *hi);
    let pivots: Vec<&Key> = pieces.iter().filter(inside).skip(1).map(|piece| &piece.lo).collect();
    let los = std::iter::once(&node.lo).chain(pivots.iter().copied());
    let his = pivots.iter().map(|&pivot| Some(Arc::clone(pivot)));
    los.cloned().zip(his.chain(std::iter::once(node.hi.clone()))).collect()
}
