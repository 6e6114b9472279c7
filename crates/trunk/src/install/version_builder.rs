//! [`VersionBuilder`]: replaces nodes of an immutable trunk by copying the path to the root, and
//! records what changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{NodeId, RunId, SeqNo};

use crate::format::NodeImage;
use crate::install::Change;
use crate::node::{Body, Key, Node, Trunk};
use crate::view::View;

/// Applies changes to a trunk. Used by one thread, which holds the tree's lock. The thread
/// publishes the trunk of [`finish`](Self::finish) after it has appended the changed and removed
/// nodes of the [`Change`] to the manifest.
///
/// ```text
///   root            root'
///   /  \            /  \          replace(b, [b', c]):
///  a    p    ->    a    p'        b's views are counted down, the views of b', c up;
///      / \             /|\        images: b', c, and p' because its list of children changed;
///     b   d           b'c d       the path to the root is copied, the rest is shared
/// ```
pub struct VersionBuilder<'a> {
    pub(super) trunk: Trunk,
    old_root: NodeId,
    next_id: &'a mut dyn FnMut() -> NodeId,
    /// New and changed nodes. An inner node is included only if its own content or the list of its
    /// children's ids has changed; a change of a child does not change its image.
    changed: BTreeMap<NodeId, Arc<Node>>,
    /// Nodes of the original trunk that were removed.
    dropped: BTreeSet<NodeId>,
    /// Ids of the nodes that this builder created. A node that is created and dropped within one
    /// change is in no list of the result.
    created: HashSet<NodeId>,
    views: HashMap<RunId, i64>,
}

impl<'a> VersionBuilder<'a> {
    /// Creates a builder of changes of `trunk`. `next_id` must return node ids that were never
    /// used.
    pub fn new(trunk: Trunk, next_id: &'a mut dyn FnMut() -> NodeId) -> Self {
        Self {
            old_root: trunk.root.id,
            trunk,
            next_id,
            changed: BTreeMap::new(),
            dropped: BTreeSet::new(),
            created: HashSet::new(),
            views: HashMap::new(),
        }
    }

    /// Returns the result of all changes.
    #[must_use]
    pub fn finish(self) -> Change {
        let root = (self.trunk.root.id != self.old_root).then_some(self.trunk.root.id);
        Change {
            trunk: self.trunk,
            images: self.changed.values().map(|node| NodeImage::of(node)).collect(),
            dropped: self.dropped.into_iter().collect(),
            root,
            views: self.views.into_iter().filter(|(_, delta)| *delta != 0).collect(),
        }
    }

    pub(super) fn new_id(&mut self) -> NodeId {
        let id = (self.next_id)();
        self.created.insert(id);
        id
    }

    /// Returns the node with this id, if it still holds every claimed run.
    pub(super) fn claimed(&self, id: NodeId, claimed: &HashSet<RunId>) -> Option<Arc<Node>> {
        let node = self.trunk.find(id)?;
        let present: HashSet<RunId> = node.views().map(|view| view.run.meta().id).collect();
        claimed.is_subset(&present).then(|| Arc::clone(node))
    }

    /// Replaces `old`, a node of the trunk, by `new` and copies the path above it.
    pub(super) fn replace(&mut self, old: &Arc<Node>, new: Vec<Arc<Node>>) {
        self.record(old, &new);
        let mut path = Vec::new();
        let mut at = Arc::clone(&self.trunk.root);
        while at.id != old.id {
            let Some(child) = at.child_for(&old.lo).cloned() else { return };
            path.push(std::mem::replace(&mut at, child));
        }
        let (mut gone, mut nodes) = (old.id, new);
        for parent in path.into_iter().rev() {
            let same = matches!(&nodes[..], [only] if only.id == gone);
            let mut children = Vec::with_capacity(parent.children().len() + nodes.len());
            for child in parent.children() {
                if child.id == gone {
                    children.append(&mut nodes);
                } else {
                    children.push(Arc::clone(child));
                }
            }
            gone = parent.id;
            nodes.push(self.with_children(&parent, children, !same));
        }
        self.set_root(nodes);
    }

    /// Returns a copy of the node with `children`. `changed` says whether their ids differ from the
    /// ids of the node's children.
    pub(super) fn with_children(
        &mut self,
        node: &Node,
        children: Vec<Arc<Node>>,
        changed: bool,
    ) -> Arc<Node> {
        let deletes = Arc::clone(&node.range_deletes);
        let new = node.with(node.runs.clone(), deletes, Body::Inner { children });
        if changed {
            self.changed.insert(new.id, Arc::clone(&new));
        }
        new
    }

    /// Makes a single node the root, or gives several nodes a new root.
    pub(super) fn set_root(&mut self, mut nodes: Vec<Arc<Node>>) {
        let single = if nodes.len() == 1 { nodes.pop() } else { None };
        self.trunk.root = match single {
            Some(root) => root,
            None => {
                let id = self.new_id();
                let body = Body::Inner { children: nodes };
                let deletes = Arc::default();
                let root =
                    Node::new(id, Key::default(), None, Vec::new(), deletes, body, Arc::default());
                self.changed.insert(id, Arc::clone(&root));
                root
            }
        };
    }

    /// Records that the nodes `new` replace `old`. Counts only the views of these nodes, and not
    /// the views of the nodes below.
    pub(super) fn record(&mut self, old: &Node, new: &[Arc<Node>]) {
        for view in old.views() {
            *self.views.entry(view.run.meta().id).or_insert(0) -= 1;
        }
        for node in new {
            self.record_new(node);
        }
        if new.iter().all(|node| node.id != old.id) {
            self.changed.remove(&old.id);
            if !self.created.remove(&old.id) {
                self.dropped.insert(old.id);
            }
        }
    }

    /// Records a node that replaces no other node.
    pub(super) fn record_new(&mut self, node: &Arc<Node>) {
        for view in node.views() {
            *self.views.entry(view.run.meta().id).or_insert(0) += 1;
        }
        self.changed.insert(node.id, Arc::clone(node));
    }

    /// Records that a node and everything below it are removed.
    pub(super) fn record_dropped(&mut self, node: &Node) {
        for child in node.children() {
            self.record_dropped(child);
        }
        self.record(node, &[]);
    }
}

impl Node {
    /// Returns a copy of the node with other content and the same range and hints.
    pub(super) fn with(
        &self,
        runs: Vec<View>,
        deletes: Arc<RangeDeletes>,
        body: Body,
    ) -> Arc<Self> {
        let (lo, hi) = (Arc::clone(&self.lo), self.hi.clone());
        Self::new(self.id, lo, hi, runs, deletes, body, Arc::clone(&self.hints))
    }

    pub(super) fn body_clone(&self) -> Body {
        match &self.body {
            Body::Leaf { base } => Body::Leaf { base: base.clone() },
            Body::Inner { children } => Body::Inner { children: children.clone() },
        }
    }

    /// Largest SeqNo of a message in the node or below; 0 if there is none.
    pub(super) fn max_seq(&self) -> SeqNo {
        let own = self.views().map(|view| view.run.meta().max_seq);
        own.chain(self.children().iter().map(|child| child.max_seq())).max().unwrap_or(SeqNo::MIN)
    }

    /// Returns the node's range deletes that arrived after a job copied `taken`: they have larger
    /// SeqNos.
    pub(super) fn deletes_after(&self, taken: &RangeDeletes) -> Arc<RangeDeletes> {
        match taken.iter().map(|rd| rd.seq).max() {
            None => Arc::clone(&self.range_deletes),
            Some(newest) => {
                let newer = self.range_deletes.iter().filter(|rd| rd.seq > newest).cloned();
                Arc::new(RangeDeletes::new(newer))
            }
        }
    }
}

/// Returns the views of runs that were not claimed.
pub(super) fn without(views: &[View], claimed: &HashSet<RunId>) -> Vec<View> {
    views.iter().filter(|view| !claimed.contains(&view.run.meta().id)).cloned().collect()
}

/// Returns the views cut to `[lo, hi)`, each counted as one of about `parts` equal parts.
pub(super) fn cut_all(views: &[View], lo: &Key, hi: Option<&Key>, parts: u32) -> Vec<View> {
    views.iter().filter_map(|view| view.cut(lo, hi, parts)).collect()
}
