//! Puts the result of a job into the current trunk: pure changes of the persistent tree, done
//! under the tree's lock by the caller, while the job's I/O is long over.
//!
//! A [`Surgeon`] applies one or more changes and records what the manifest and the run counts
//! must learn ([`Change`]). A result is placed by key range, not by the nodes the job saw: leaves
//! may have been split or joined since, so views are cut at the pivots of now (rule 1).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, RangeDelete, RunId, SeqNo};
use frondb_run::Run;

use crate::format::NodeImage;
use crate::node::{Body, Heat, Key, Node, Trunk};
use crate::view::View;

/// Where a finished run goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On top of what the node of its range holds.
    Slice,
    /// The base of a leaf that held nothing; a slice if it holds something by now.
    Base,
    /// Right of everything the trunk holds (rule 5).
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

/// Applies changes to a trunk. See the module's head.
pub struct Surgeon<'a> {
    trunk: Trunk,
    old_root: NodeId,
    next_id: &'a mut dyn FnMut() -> NodeId,
    images: BTreeMap<NodeId, NodeImage>,
    dropped: BTreeSet<NodeId>,
    views: HashMap<RunId, i64>,
}

/// What a visit decides about a node.
enum Step {
    Keep,
    Descend,
    Replace(Vec<Arc<Node>>),
}

impl<'a> Surgeon<'a> {
    /// A surgeon on `trunk`; `next_id` makes node ids that were never used.
    pub fn new(trunk: Trunk, next_id: &'a mut dyn FnMut() -> NodeId) -> Self {
        Self {
            old_root: trunk.root.id,
            trunk,
            next_id,
            images: BTreeMap::new(),
            dropped: BTreeSet::new(),
            views: HashMap::new(),
        }
    }

    /// What was done.
    #[must_use]
    pub fn finish(self) -> Change {
        let root = (self.trunk.root.id != self.old_root).then_some(self.trunk.root.id);
        Change {
            trunk: self.trunk,
            images: self.images.into_values().collect(),
            dropped: self.dropped.into_iter().collect(),
            root,
            views: self.views.into_iter().filter(|(_, delta)| *delta != 0).collect(),
        }
    }

    /// A memtable's flush: slices, range deletes, and what lies right of all data. `keep_hidden`
    /// is the oldest live snapshot, if one may still need what a range delete hides.
    /// Appended runs go to the last leaf's base until that leaf holds `leaf_target` bytes.
    pub fn flush(
        &mut self,
        made: &[Made],
        deletes: &RangeDeletes,
        keep_hidden: Option<SeqNo>,
        leaf_target: u64,
    ) {
        let (append, slices): (Vec<Made>, Vec<Made>) =
            made.iter().cloned().partition(|made| made.place == Place::Append);
        let root = Arc::clone(&self.trunk.root);
        let level: Vec<Arc<Node>> = match &root.body {
            Body::Leaf { .. } => vec![Arc::clone(&root)],
            Body::Inner { children } => children.clone(),
        };
        for node in level {
            let nodes = self.push(&node, &slices, deletes, keep_hidden);
            if let Some(nodes) = nodes {
                self.replace(node.id, nodes);
            }
        }
        for made in append {
            self.append(made, leaf_target);
        }
    }

    /// An inner node's flush: what it buffered under the claimed ids goes to its children.
    /// Returns `false`, changing nothing, if the node or a claimed run is gone.
    pub fn flush_node(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        deletes: &RangeDeletes,
        made: &[Made],
        keep_hidden: Option<SeqNo>,
    ) -> bool {
        let Some(node) = self.trunk.find(id).map(Arc::clone) else { return false };
        if !holds_all(&node, claimed) {
            return false;
        }
        let mut children = Vec::with_capacity(node.children().len());
        for child in node.children() {
            match self.push(child, made, deletes, keep_hidden) {
                None => children.push(Arc::clone(child)),
                Some(nodes) => {
                    self.record(child, &nodes);
                    children.extend(nodes);
                }
            }
        }
        let runs = without(&node.runs, claimed);
        let newer = newer_deletes(&node, deletes);
        let body = Body::Inner { children };
        let (lo, hi) = (Arc::clone(&node.lo), node.hi.clone());
        let new = Node::new(node.id, lo, hi, runs, newer, body, Arc::clone(&node.heat));
        self.replace(id, vec![new]);
        true
    }

    /// Several newest runs of a leaf became `made` (or nothing). `false` if an input is gone.
    pub fn merge_runs(&mut self, id: NodeId, claimed: &HashSet<RunId>, made: &[Made]) -> bool {
        let Some(node) = self.trunk.find(id).map(Arc::clone) else { return false };
        if !holds_all(&node, claimed) {
            return false;
        }
        let Some(at) = node.runs.iter().position(|view| claimed.contains(&view.run.meta().id))
        else {
            return false;
        };
        let mut runs = without(&node.runs, claimed);
        let views = made.iter().filter_map(|made| made.view().cut(&node.lo, node.hi.as_ref(), 1));
        let tail = runs.split_off(at);
        runs.extend(views);
        runs.extend(tail);
        let body = Body::Leaf { base: node.base().to_vec() };
        self.replace(id, vec![node.with(runs, Arc::clone(&node.range_deletes), body)]);
        true
    }

    /// A leaf's claimed runs and base became `pieces`, one leaf each, whose ranges make up the
    /// leaf's range when the job began. `consumed` are the range deletes the job applied;
    /// `keep_hidden` is the oldest live snapshot. `false` if an input is gone.
    pub fn rewrite(
        &mut self,
        id: NodeId,
        claimed: &HashSet<RunId>,
        consumed: &RangeDeletes,
        pieces: &[Made],
        keep_hidden: Option<SeqNo>,
        overlap_percent: u64,
    ) -> bool {
        let Some(node) = self.trunk.find(id).map(Arc::clone) else { return false };
        if !holds_all(&node, claimed) {
            return false;
        }
        let newer_runs = without(&node.runs, claimed);
        let newer_base = without(node.base(), claimed);
        let mut deletes: Vec<RangeDelete> =
            newer_deletes(&node, consumed).iter().cloned().collect();
        deletes
            .extend(consumed.iter().filter(|rd| keep_hidden.is_some_and(|s| s < rd.seq)).cloned());
        let deletes = RangeDeletes::new(deletes);

        let mut bounds: Vec<(Key, Option<Key>)> = Vec::new();
        for piece in pieces {
            if node.hi.as_ref().is_none_or(|hi| piece.lo < *hi) {
                bounds.push((Arc::clone(&piece.lo), piece.hi.clone()));
            }
        }
        if bounds.is_empty() {
            bounds.push((Arc::clone(&node.lo), node.hi.clone()));
        }
        bounds[0].0 = Arc::clone(&node.lo);
        let parts = bounds.len() as u32;
        if let Some(last) = bounds.last_mut() {
            last.1.clone_from(&node.hi);
        }
        let leaves = bounds.into_iter().enumerate().map(|(i, (lo, hi))| {
            let mut base: Vec<View> = pieces
                .get(i)
                .and_then(|piece| piece.view().cut(&lo, hi.as_ref(), 1))
                .into_iter()
                .collect();
            base.extend(cut_all(&newer_base, &lo, hi.as_ref(), parts));
            let runs = cut_all(&newer_runs, &lo, hi.as_ref(), parts);
            let clipped = Arc::new(deletes.clip(&lo, hi.as_deref()));
            let id = if i == 0 { node.id } else { (self.next_id)() };
            let heat = Heat::default();
            heat.overlap_percent.store(overlap_percent, Ordering::Relaxed);
            let held_by = keep_hidden.map_or(0, |snapshot| snapshot.get() + 1);
            heat.held_by.store(held_by, Ordering::Relaxed);
            Node::new(id, lo, hi, runs, clipped, Body::Leaf { base }, Arc::new(heat))
        });
        let leaves = leaves.collect();
        self.replace(id, leaves);
        true
    }

    /// Gives the children of an inner node (of the root: a new level) in groups of `fanout` to
    /// inner nodes of their own; a node that is not the root is itself split.
    pub fn regroup(&mut self, id: NodeId, fanout: usize) -> bool {
        let Some(node) = self.trunk.find(id).map(Arc::clone) else { return false };
        let children = node.children();
        if children.len() < 2 {
            return false;
        }
        let is_root = id == self.trunk.root.id;
        let groups = children.len().div_ceil(fanout.max(2)).max(2);
        let size = children.len().div_ceil(groups);
        let mut nodes = Vec::new();
        for (i, group) in children.chunks(size).enumerate() {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (lo, hi) = (Arc::clone(&first.lo), last.hi.clone());
            let runs = cut_all(&node.runs, &lo, hi.as_ref(), groups as u32);
            let deletes = Arc::new(node.range_deletes.clip(&lo, hi.as_deref()));
            let id = if i == 0 && !is_root { node.id } else { (self.next_id)() };
            let body = Body::Inner { children: group.to_vec() };
            nodes.push(Node::new(id, lo, hi, runs, deletes, body, Arc::default()));
        }
        if is_root {
            let new = (Arc::clone(&node.lo), node.hi.clone());
            let root_runs = Vec::new();
            self.record(&node, &nodes);
            self.dropped.remove(&node.id);
            let body = Body::Inner { children: nodes };
            let root =
                Node::new(node.id, new.0, new.1, root_runs, Arc::default(), body, Arc::default());
            self.images.insert(root.id, NodeImage::of(&root));
            self.trunk.root = root;
        } else {
            self.replace(id, nodes);
        }
        true
    }

    /// Joins two adjacent small leaves below `parent` into one. `false` if they are not there.
    pub fn join(&mut self, parent: NodeId, left: NodeId, right: NodeId) -> bool {
        let Some(node) = self.trunk.find(parent).map(Arc::clone) else { return false };
        let children = node.children();
        let Some(i) = children.iter().position(|child| child.id == left) else { return false };
        let (a, b) = (
            &children[i],
            match children.get(i + 1) {
                Some(b) if b.id == right && b.is_leaf() && children[i].is_leaf() => b,
                _ => return false,
            },
        );
        let mut runs: Vec<View> = a.runs.iter().chain(&b.runs).cloned().collect();
        runs.sort_by_key(|view| std::cmp::Reverse(view.run.meta().max_seq));
        let base = a.base().iter().chain(b.base()).cloned().collect();
        let deletes = a.range_deletes.iter().chain(b.range_deletes.iter()).cloned();
        let joined = Node::new(
            a.id,
            Arc::clone(&a.lo),
            b.hi.clone(),
            runs,
            Arc::new(RangeDeletes::new(deletes)),
            Body::Leaf { base },
            Arc::default(),
        );
        let mut new_children: Vec<_> = children.to_vec();
        self.record(a, std::slice::from_ref(&joined));
        self.record(b, &[]);
        new_children.splice(i..=i + 1, [joined]);
        let body = Body::Inner { children: new_children };
        let new = node.with(node.runs.clone(), Arc::clone(&node.range_deletes), body);
        self.replace(parent, vec![new]);
        true
    }

    /// `new` is a copy of run `old` in another place: takes its place in every view.
    pub fn relocate(&mut self, old: RunId, new: &Arc<Run>) {
        let mut holders = Vec::new();
        self.trunk.for_each(&mut |node| {
            if node.views().any(|view| view.run.meta().id == old) {
                holders.push(Arc::clone(node));
            }
        });
        let moved = |view: &View| {
            let run = if view.run.meta().id == old { new } else { &view.run };
            View { run: Arc::clone(run), ..view.clone() }
        };
        for node in holders {
            // A holder may lie below another one that was replaced meanwhile: its children are
            // taken from the trunk of now.
            let Some(node) = self.trunk.find(node.id).map(Arc::clone) else { continue };
            let runs = node.runs.iter().map(moved).collect();
            let body = match &node.body {
                Body::Leaf { base } => Body::Leaf { base: base.iter().map(moved).collect() },
                Body::Inner { children } => Body::Inner { children: children.clone() },
            };
            let new = node.with(runs, Arc::clone(&node.range_deletes), body);
            self.replace(node.id, vec![new]);
        }
    }

    /// Everything is deleted at once and no snapshot needs it: one empty leaf.
    pub fn clear(&mut self) {
        let root = Arc::clone(&self.trunk.root);
        self.drop_below(&root);
        let leaf = Node::empty_leaf((self.next_id)(), Key::from([]), None);
        self.record(&root, std::slice::from_ref(&leaf));
        self.trunk.root = leaf;
    }

    /// Adds slices and range deletes to one node; `None` if none touch it.
    fn push(
        &mut self,
        node: &Arc<Node>,
        made: &[Made],
        deletes: &RangeDeletes,
        keep_hidden: Option<SeqNo>,
    ) -> Option<Vec<Arc<Node>>> {
        let (lo, hi) = (&node.lo, node.hi.as_ref());
        let touching: Vec<&Made> =
            made.iter().filter(|made| made.view().cut(lo, hi, 1).is_some()).collect();
        let deletes = deletes.clip(lo, hi.map(|hi| &**hi));
        if touching.is_empty() && deletes.is_empty() {
            return None;
        }
        // Rule 14: all that is here is older than a range delete that covers the whole node, and
        // no snapshot needs it.
        let covered = deletes.covers_wholly(lo, hi.map(|hi| &**hi), SeqNo::MAX);
        let node = match covered {
            Some(seq) if keep_hidden.is_none() && max_seq(node) < seq => &self.emptied(node),
            _ => node,
        };
        if node.is_empty() && keep_hidden.is_none() {
            let all_base = !touching.is_empty() && touching.iter().all(|m| m.place == Place::Base);
            if touching.is_empty() {
                return Some(vec![Arc::clone(node)]);
            }
            if all_base {
                return Some(self.leaves_of(node, &touching));
            }
        }
        let parts = |made: &Made| if made.lo < *lo || made.hi.as_ref() > hi { 2 } else { 1 };
        let mut runs: Vec<View> =
            touching.iter().filter_map(|made| made.view().cut(lo, hi, parts(made))).collect();
        runs.extend(node.runs.iter().cloned());
        let all = node.range_deletes.iter().chain(deletes.iter()).cloned();
        let all = Arc::new(RangeDeletes::new(all));
        Some(vec![node.with(runs, all, node.body_clone())])
    }

    /// One leaf a piece, in place of an empty leaf.
    fn leaves_of(&mut self, node: &Arc<Node>, pieces: &[&Made]) -> Vec<Arc<Node>> {
        let n = pieces.len();
        let leaves = pieces.iter().enumerate().map(|(i, piece)| {
            let lo = if i == 0 { Arc::clone(&node.lo) } else { Arc::clone(&piece.lo) };
            let hi = pieces.get(i + 1).map_or_else(|| node.hi.clone(), |p| Some(Arc::clone(&p.lo)));
            let id = if i == 0 { node.id } else { (self.next_id)() };
            let parts = if n == 1 { 1 } else { 2 };
            let base = piece.view().cut(&lo, hi.as_ref(), parts).into_iter().collect();
            Node::new(id, lo, hi, Vec::new(), Arc::default(), Body::Leaf { base }, Arc::default())
        });
        leaves.collect()
    }

    /// Appends a run right of all data: to the last leaf's base, or as a new leaf's.
    fn append(&mut self, made: Made, leaf_target: u64) {
        let Some(leaf) = self.last_leaf() else { return };
        let first = &made.run.meta().first_key;
        let right_of_all = self.trunk.root.max_key().is_none_or(|max| *max < **first);
        let view = made.view();
        let lo: Key = Arc::from(&**first);
        if !right_of_all || *lo < *leaf.lo {
            // Cannot happen while one flush at a time installs; still right if it did.
            let runs = [view.cut(&leaf.lo, None, 1)].into_iter().flatten();
            let runs = runs.chain(leaf.runs.iter().cloned()).collect();
            let new = leaf.with(runs, Arc::clone(&leaf.range_deletes), leaf.body_clone());
            self.replace(leaf.id, vec![new]);
            return;
        }
        let bytes = leaf.base_raw_bytes() + made.run.meta().raw_bytes;
        let full = !leaf.base().is_empty() && bytes > leaf_target;
        if full {
            let left = Node::new(
                leaf.id,
                Arc::clone(&leaf.lo),
                Some(Arc::clone(&lo)),
                cut_all(&leaf.runs, &leaf.lo, Some(&lo), 1),
                Arc::new(leaf.range_deletes.clip(&leaf.lo, Some(&lo))),
                Body::Leaf { base: cut_all(leaf.base(), &leaf.lo, Some(&lo), 1) },
                Arc::clone(&leaf.heat),
            );
            let base = vec![View::whole(made.run, Arc::clone(&lo), None)];
            let deletes = Arc::new(leaf.range_deletes.clip(&lo, None));
            let (id, body) = ((self.next_id)(), Body::Leaf { base });
            let right = Node::new(id, lo, None, Vec::new(), deletes, body, Arc::default());
            self.replace(leaf.id, vec![left, right]);
        } else {
            let mut base = leaf.base().to_vec();
            base.push(View::whole(made.run, Arc::clone(&leaf.lo), None));
            // Views of a base are disjoint: each begins where its run does.
            if let Some(last) = base.last_mut() {
                last.lo = lo;
            }
            let body = Body::Leaf { base };
            let new = leaf.with(leaf.runs.clone(), Arc::clone(&leaf.range_deletes), body);
            self.replace(leaf.id, vec![new]);
        }
    }

    fn last_leaf(&self) -> Option<Arc<Node>> {
        let mut node = &self.trunk.root;
        while let Some(child) = node.children().last() {
            node = child;
        }
        Some(Arc::clone(node))
    }

    /// The node without any data, of the same height.
    fn emptied(&mut self, node: &Arc<Node>) -> Arc<Node> {
        let body = match &node.body {
            Body::Leaf { .. } => Body::Leaf { base: Vec::new() },
            Body::Inner { children } => {
                let first = self.emptied_child(&children[0], node);
                for child in &children[1..] {
                    self.drop_below(child);
                    self.record(child, &[]);
                }
                Body::Inner { children: vec![first] }
            }
        };
        let (lo, hi) = (Arc::clone(&node.lo), node.hi.clone());
        Node::new(node.id, lo, hi, Vec::new(), Arc::default(), body, Arc::default())
    }

    fn emptied_child(&mut self, child: &Arc<Node>, parent: &Node) -> Arc<Node> {
        let empty = self.emptied(child);
        let (lo, hi) = (Arc::clone(&parent.lo), parent.hi.clone());
        let stretched = Node::new(
            empty.id,
            lo,
            hi,
            Vec::new(),
            Arc::default(),
            empty.body_clone(),
            Arc::default(),
        );
        self.record(child, std::slice::from_ref(&stretched));
        stretched
    }

    fn drop_below(&mut self, node: &Arc<Node>) {
        for child in node.children() {
            self.drop_below(child);
            self.record(child, &[]);
        }
    }

    /// Puts `nodes` in the place of node `id` and copies the path above it.
    fn replace(&mut self, id: NodeId, nodes: Vec<Arc<Node>>) {
        let root = Arc::clone(&self.trunk.root);
        let mut nodes = Some(nodes);
        let result = self.rebuild(&root, &mut |node| {
            if node.id == id {
                nodes.take().map_or(Step::Keep, Step::Replace)
            } else if node.is_leaf() {
                Step::Keep
            } else {
                Step::Descend
            }
        });
        let Some(mut result) = result else { return };
        if result.len() == 1 {
            if let Some(root) = result.pop() {
                self.trunk.root = root;
            }
        } else {
            let body = Body::Inner { children: result };
            let id = (self.next_id)();
            let root = Node::new(
                id,
                Key::from([]),
                None,
                Vec::new(),
                Arc::default(),
                body,
                Arc::default(),
            );
            self.images.insert(id, NodeImage::of(&root));
            self.trunk.root = root;
        }
    }

    fn rebuild(
        &mut self,
        node: &Arc<Node>,
        decide: &mut dyn FnMut(&Arc<Node>) -> Step,
    ) -> Option<Vec<Arc<Node>>> {
        match decide(node) {
            Step::Keep => None,
            Step::Replace(nodes) => {
                self.record(node, &nodes);
                Some(nodes)
            }
            Step::Descend => {
                let mut changed = false;
                let mut children = Vec::with_capacity(node.children().len() + 1);
                for child in node.children() {
                    match self.rebuild(child, decide) {
                        None => children.push(Arc::clone(child)),
                        Some(nodes) => {
                            changed = true;
                            children.extend(nodes);
                        }
                    }
                }
                if !changed {
                    return None;
                }
                let same = children.iter().map(|c| c.id).eq(node.children().iter().map(|c| c.id));
                let deletes = Arc::clone(&node.range_deletes);
                let new = node.with(node.runs.clone(), deletes, Body::Inner { children });
                if !same {
                    self.images.insert(new.id, NodeImage::of(&new));
                }
                Some(vec![new])
            }
        }
    }

    /// Notes that `new` nodes take the place of `old`: their own views, not those below.
    fn record(&mut self, old: &Arc<Node>, new: &[Arc<Node>]) {
        for view in old.views() {
            *self.views.entry(view.run.meta().id).or_insert(0) -= 1;
        }
        for node in new {
            for view in node.views() {
                *self.views.entry(view.run.meta().id).or_insert(0) += 1;
            }
            self.images.insert(node.id, NodeImage::of(node));
            self.dropped.remove(&node.id);
        }
        if new.iter().all(|node| node.id != old.id) {
            self.dropped.insert(old.id);
            self.images.remove(&old.id);
        }
    }
}

impl Made {
    fn view(&self) -> View {
        let hi = match self.place {
            Place::Append => None,
            _ => self.hi.clone(),
        };
        View::whole(Arc::clone(&self.run), Arc::clone(&self.lo), hi)
    }
}

impl Node {
    fn with(&self, runs: Vec<View>, deletes: Arc<RangeDeletes>, body: Body) -> Arc<Self> {
        let (lo, hi) = (Arc::clone(&self.lo), self.hi.clone());
        Self::new(self.id, lo, hi, runs, deletes, body, Arc::clone(&self.heat))
    }

    fn body_clone(&self) -> Body {
        match &self.body {
            Body::Leaf { base } => Body::Leaf { base: base.clone() },
            Body::Inner { children } => Body::Inner { children: children.clone() },
        }
    }
}

fn holds_all(node: &Node, claimed: &HashSet<RunId>) -> bool {
    let present: HashSet<RunId> = node.views().map(|view| view.run.meta().id).collect();
    claimed.is_subset(&present)
}

fn without(views: &[View], claimed: &HashSet<RunId>) -> Vec<View> {
    views.iter().filter(|view| !claimed.contains(&view.run.meta().id)).cloned().collect()
}

fn cut_all(views: &[View], lo: &Key, hi: Option<&Key>, parts: u32) -> Vec<View> {
    views.iter().filter_map(|view| view.cut(lo, hi, parts)).collect()
}

/// The node's range deletes that came after the job took its copy: theirs are larger SeqNos.
fn newer_deletes(node: &Node, taken: &RangeDeletes) -> Arc<RangeDeletes> {
    let newest = taken.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
    if taken.is_empty() {
        return Arc::clone(&node.range_deletes);
    }
    let newer = node.range_deletes.iter().filter(|rd| rd.seq > newest).cloned();
    Arc::new(RangeDeletes::new(newer))
}

fn max_seq(node: &Node) -> SeqNo {
    let own = node.views().map(|view| view.run.meta().max_seq).max().unwrap_or(SeqNo::MIN);
    node.children().iter().map(|child| max_seq(child)).max().unwrap_or(SeqNo::MIN).max(own)
}
