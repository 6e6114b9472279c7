//! Nodes of the trunk, and the immutable tree that they form.
//!
//! Invariants. [`verify`](crate::verify) checks them as far as nodes and the metadata of runs show
//! them; it does not see the ages of single messages (3 and 4).
//! 1. The ranges of an inner node's children are adjacent and together equal the node's own range.
//! 2. A view lies inside its node's range.
//! 3. The `runs` of a node are ordered by age, newest first: their largest SeqNos descend, and
//!    where two runs hold the same key, the first run has the newer message. Two largest SeqNos are
//!    equal only for runs with disjoint keys (outputs of one job, views of one run).
//! 4. Everything that a parent buffers is newer than everything that its children hold for the same
//!    key, or for the range of a range delete. This is not true across different keys: appended
//!    data (rule 5) bypasses the buffers and goes to the last leaf, and then lies below older
//!    messages of other keys.
//! 5. For each key, `base` is older than all `runs` of its leaf; the views of a base are disjoint
//!    and ascend.
//! 6. The root buffers nothing unless it is a leaf.

use frondb_block::Codec;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{NodeId, SeqNo, TreeId};

use crate::damage::NodeDamage;
pub use crate::key::Key;
use crate::plan::merge_for_readers;
use crate::view::View;

/// Hints of readers, flushes and optimizes to the planner about one node. All versions of the node
/// share the hints. They are not durable.
#[derive(Debug, Default)]
pub struct CompactionHints {
    /// Bytes that scans have read or merged since the last consolidation beyond what they would
    /// have read in a leaf with only a base.
    pub scan_debt: AtomicU64,
    /// Cost of scans and lookups since the last merge of the leaf's runs, as far as a single run
    /// above the base would have saved it. In bytes that a scan would read.
    pub run_debt: AtomicU64,
    /// Set when a cursor has stepped over a long tombstone run here, or when a flush has brought
    /// one.
    pub compact_tombstones: AtomicU64,
    /// Set when a flush brought deletes that appear to lie at the beginning of a leaf (rule 15).
    pub truncate_prefix: AtomicU64,
    /// Set when a prefix truncation has found a live row near the beginning of the leaf. The
    /// planner does not try again before the leaf is rewritten.
    pub truncation_futile: AtomicU64,
    /// The SeqNo of the oldest snapshot that was live when the base was written, plus 1; 0 if there
    /// was none. The base may contain garbage that this snapshot kept.
    pub held_by: AtomicU64,
    /// Number of range deletes in the leaf that the snapshot of `held_by` kept.
    pub held_range_deletes: AtomicU64,
    /// Number of messages that the last rewrite of the leaf dropped, as a percentage of the
    /// messages of the runs that it merged into the base; at most 100. An estimate of how many
    /// messages of runs overwrite an older one.
    pub overlap_percent: AtomicU64,
    /// Set while an optimize waits for this node, until the rewrite of the leaf or the flush of the
    /// inner node begins.
    pub optimize: AtomicU64,
    /// Number of flushes of an inner node since it was created or the database was opened.
    pub flushes: AtomicU64,
    /// The runs of this node that background work could not read.
    pub damage: NodeDamage,
}

impl CompactionHints {
    /// Adds bytes that a scan spent on merging.
    pub fn add_scan_debt(&self, bytes: u64) {
        self.scan_debt.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds the cost of reading several runs above the base, in bytes that a scan would read.
    /// Returns the new run debt.
    pub fn add_run_debt(&self, bytes: u64) -> u64 {
        self.run_debt.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    /// Requests a tombstone compaction of the leaf.
    pub fn request_tombstone_compaction(&self) {
        self.compact_tombstones.store(1, Ordering::Relaxed);
    }

    /// Returns a copy of the hints, for a node that replaces this one under another id.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = |value: &AtomicU64| value.load(Ordering::Relaxed).into();
        Self {
            scan_debt: copy(&self.scan_debt),
            run_debt: copy(&self.run_debt),
            compact_tombstones: copy(&self.compact_tombstones),
            truncate_prefix: copy(&self.truncate_prefix),
            truncation_futile: copy(&self.truncation_futile),
            held_by: copy(&self.held_by),
            held_range_deletes: copy(&self.held_range_deletes),
            overlap_percent: copy(&self.overlap_percent),
            // The optimize also examines the new node, and requests work on it itself.
            optimize: AtomicU64::new(0),
            flushes: copy(&self.flushes),
            // The next job that finds the damage notes it again.
            damage: NodeDamage::default(),
        }
    }

    /// Returns all hints as numbers; `None` if damage or a failure is noted.
    /// [`from_numbers`](Self::from_numbers) is the reverse.
    #[must_use]
    pub fn numbers(&self) -> Option<[u64; 10]> {
        let Self {
            scan_debt,
            run_debt,
            compact_tombstones,
            truncate_prefix,
            truncation_futile,
            held_by,
            held_range_deletes,
            overlap_percent,
            optimize,
            flushes,
            damage,
        } = self;
        let numbers = [
            scan_debt,
            run_debt,
            compact_tombstones,
            truncate_prefix,
            truncation_futile,
            held_by,
            held_range_deletes,
            overlap_percent,
            optimize,
            flushes,
        ];
        damage.is_none().then(|| numbers.map(|number| number.load(Ordering::Relaxed)))
    }

    /// Returns the hints whose [`numbers`](Self::numbers) these are.
    #[must_use]
    pub fn from_numbers(numbers: [u64; 10]) -> Self {
        let [
            scan_debt,
            run_debt,
            compact_tombstones,
            truncate_prefix,
            truncation_futile,
            held_by,
            held_range_deletes,
            overlap_percent,
            optimize,
            flushes,
        ] = numbers.map(AtomicU64::new);
        Self {
            scan_debt,
            run_debt,
            compact_tombstones,
            truncate_prefix,
            truncation_futile,
            held_by,
            held_range_deletes,
            overlap_percent,
            optimize,
            flushes,
            damage: NodeDamage::default(),
        }
    }

    /// Requests a prefix truncation of the leaf.
    pub fn request_prefix_truncation(&self) {
        self.truncate_prefix.store(1, Ordering::Relaxed);
    }
}

/// The content that differs between leaves and inner nodes.
#[derive(Debug)]
pub enum Body {
    /// A leaf holds the consolidated data of its range.
    Leaf {
        /// Disjoint views in key order, older than all of the node's runs.
        base: Vec<View>,
    },
    /// An inner node holds children.
    Inner {
        /// At least one, in key order.
        children: Vec<Arc<Node>>,
    },
}

/// Sums over a node and everything below it. Estimates if a view shows only a part of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names and the types of its fields say it")]
pub struct NodeTotals {
    pub leaves: u64,
    /// Nodes that are not leaves.
    pub inners: u64,
    pub views: u64,
    /// Messages, deletes included.
    pub entries: u64,
    pub deletes: u64,
    /// Key and value bytes of all messages.
    pub raw_bytes: u64,
    /// Key and value bytes of the bases.
    pub base_raw_bytes: u64,
    /// The part of `base_raw_bytes` whose codec [is slow](frondb_block::Codec::is_slow).
    pub packed_raw_bytes: u64,
    /// Messages in bases whose runs have exactly one message per key. Does not include runs that
    /// kept several messages of a key, for a snapshot or because of updates.
    pub base_keys: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// References to large values.
    pub refs: u64,
}

impl NodeTotals {
    fn add_view(&mut self, view: &View) {
        self.views += 1;
        self.entries += view.entries();
        self.deletes += view.deletes();
        self.raw_bytes += view.raw_bytes();
        self.disk_bytes += view.disk_bytes();
        self.refs += view.refs();
    }

    fn add(&mut self, other: &Self) {
        self.leaves += other.leaves;
        self.inners += other.inners;
        self.views += other.views;
        self.entries += other.entries;
        self.deletes += other.deletes;
        self.raw_bytes += other.raw_bytes;
        self.base_raw_bytes += other.base_raw_bytes;
        self.packed_raw_bytes += other.packed_raw_bytes;
        self.base_keys += other.base_keys;
        self.disk_bytes += other.disk_bytes;
        self.refs += other.refs;
    }
}

/// One node. Immutable; a change creates a new node, which has the same id unless jobs on the old
/// node must not find it (a prefix truncation or a join).
#[derive(Debug)]
pub struct Node {
    /// Node ids are never reused.
    pub id: NodeId,
    /// First key of the node's range.
    pub lo: Key,
    /// First key after the range; `None` for no bound.
    pub hi: Option<Key>,
    /// Views of runs, newest first. In an inner node, the runs that it buffers for its children.
    pub runs: Vec<View>,
    /// Range deletes that may still hide messages in this node or below.
    pub range_deletes: Arc<RangeDeletes>,
    /// The base of a leaf, or the children of an inner node.
    pub body: Body,
    /// Hints from readers, flushes and optimizes.
    pub hints: Arc<CompactionHints>,
    /// Sums over this node and everything below it.
    pub totals: NodeTotals,
    /// The [run debt](CompactionHints::run_debt), in bytes, at which a merge of some of the leaf's
    /// runs is due; `u64::MAX` if no merge can become due.
    pub run_debt_due: u64,
}

impl Node {
    /// Creates a node from its parts and computes the totals.
    #[must_use]
    pub fn new(
        id: NodeId,
        lo: Key,
        hi: Option<Key>,
        mut runs: Vec<View>,
        range_deletes: Arc<RangeDeletes>,
        mut body: Body,
        hints: Arc<CompactionHints>,
    ) -> Arc<Self> {
        let mut totals = NodeTotals::default();
        // Save memory, because nodes live long and a database may have very many.
        runs.shrink_to_fit();
        for view in &runs {
            totals.add_view(view);
        }
        match &mut body {
            Body::Leaf { base } => {
                base.shrink_to_fit();
                totals.leaves = 1;
                for view in &*base {
                    totals.add_view(view);
                    totals.base_raw_bytes += view.raw_bytes();
                    if view.run.meta().codec.is_some_and(Codec::is_slow) {
                        totals.packed_raw_bytes += view.raw_bytes();
                    }
                    if view.run.meta().unique_keys {
                        totals.base_keys += view.entries();
                    }
                }
            }
            Body::Inner { children } => {
                totals.inners = 1;
                for child in children {
                    totals.add(&child.totals);
                }
            }
        }
        let is_leaf = matches!(body, Body::Leaf { .. });
        let sizes = runs.iter().map(|view| (view.run.meta().id, view.raw_bytes()));
        let merge =
            if is_leaf { merge_for_readers(sizes, totals.raw_bytes, usize::MAX) } else { None };
        let run_debt_due = merge.map_or(u64::MAX, |merge| merge.due);
        Arc::new(Self { id, lo, hi, runs, range_deletes, body, hints, totals, run_debt_due })
    }

    /// Creates an empty leaf.
    #[must_use]
    pub fn empty_leaf(id: NodeId, lo: Key, hi: Option<Key>) -> Arc<Self> {
        let body = Body::Leaf { base: Vec::new() };
        Self::new(id, lo, hi, Vec::new(), Arc::default(), body, Arc::default())
    }

    /// Whether the node is a leaf.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self.body, Body::Leaf { .. })
    }

    /// Returns the children of an inner node; empty for a leaf.
    #[must_use]
    pub fn children(&self) -> &[Arc<Self>] {
        match &self.body {
            Body::Inner { children } => children,
            Body::Leaf { .. } => &[],
        }
    }

    /// Returns the base of a leaf; empty for an inner node.
    #[must_use]
    pub fn base(&self) -> &[View] {
        match &self.body {
            Body::Leaf { base } => base,
            Body::Inner { .. } => &[],
        }
    }

    /// Returns the child whose range contains `key`; `None` for a leaf.
    #[must_use]
    pub fn child_for(&self, key: &[u8]) -> Option<&Arc<Self>> {
        let children = self.children();
        let after = children.partition_point(|child| *child.lo <= *key);
        children.get(after.saturating_sub(1))
    }

    /// Whether `key` lies in the node's range.
    #[must_use]
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.lo <= *key && self.hi.as_ref().is_none_or(|hi| *key < **hi)
    }

    /// Returns all views, newest first; the base last.
    pub fn views(&self) -> impl Iterator<Item = &View> {
        self.runs.iter().chain(self.base())
    }

    /// Key and value bytes of the node's runs; the base does not count.
    #[must_use]
    pub fn runs_raw_bytes(&self) -> u64 {
        self.runs.iter().map(View::raw_bytes).sum()
    }

    /// Key and value bytes of a leaf's base.
    #[must_use]
    pub fn base_raw_bytes(&self) -> u64 {
        self.base().iter().map(View::raw_bytes).sum()
    }

    /// Whether a prefix truncation of this leaf is possible and may save work. Not possible if a
    /// view refers to large values, because the truncation would have to free the values whose
    /// references it cuts off.
    #[must_use]
    pub fn can_truncate_prefix(&self) -> bool {
        self.is_leaf()
            && self.hints.truncation_futile.load(Ordering::Relaxed) == 0
            && self.views().all(|view| view.run.meta().refs == 0)
    }

    /// Number of messages of a leaf's base that prefix truncations have cut off but whose runs are
    /// still in use. Too large if another leaf also has a view of the run.
    #[must_use]
    pub fn truncated_entries(&self) -> u64 {
        let is_trimmed = |view: &&View| view.lo > self.lo && *view.run.meta().first_key < *view.lo;
        let views = self.base().iter().filter(is_trimmed);
        views.map(|view| view.run.meta().entries - view.entries()).sum()
    }

    /// Whether a leaf holds no runs, no base and no range deletes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_leaf()
            && self.runs.is_empty()
            && self.base().is_empty()
            && self.range_deletes.is_empty()
    }

    /// Returns an upper bound of the keys that the views of this node and below show; `None` if
    /// there is no view.
    #[must_use]
    pub fn max_key(&self) -> Option<&[u8]> {
        // For a view that ends inside its run, return the bound of the view, because finding the
        // exact last key would need a read.
        let own = self.views().filter_map(view_max).max();
        let below = self.children().iter().rev().find_map(|child| child.max_key());
        own.max(below)
    }
}

fn view_max(view: &View) -> Option<&[u8]> {
    let last = &*view.run.meta().last_key;
    match &view.hi {
        Some(hi) if **hi <= *last => Some(hi),
        _ => Some(last),
    }
}

/// One immutable state of a tree's nodes.
#[derive(Clone, Debug)]
pub struct Trunk {
    /// Id of the tree.
    pub tree: TreeId,
    /// The root: a leaf while the tree is small.
    pub root: Arc<Node>,
}

impl Trunk {
    /// Returns the last leaf in key order.
    #[must_use]
    pub fn last_leaf(&self) -> &Arc<Node> {
        let mut node = &self.root;
        while let Some(child) = node.children().last() {
            node = child;
        }
        node
    }

    /// Returns the smallest SeqNo of the messages and range deletes that the nodes above `node`
    /// buffer; `None` if these nodes buffer nothing. It may be below SeqNos of `node`: see
    /// invariant 4 of this module.
    #[must_use]
    pub fn oldest_above(&self, node: &Node) -> Option<SeqNo> {
        let (mut at, mut oldest) = (&self.root, None);
        while at.id != node.id {
            let runs = at.runs.iter().map(|view| view.run.meta().min_seq);
            let deletes = at.range_deletes.iter().map(|delete| delete.seq);
            oldest = runs.chain(deletes).chain(oldest).min();
            at = at.child_for(&node.lo)?;
        }
        oldest
    }

    /// Returns the node with this id, if it is still part of the trunk.
    #[must_use]
    pub fn find(&self, id: NodeId) -> Option<&Arc<Node>> {
        fn walk(node: &Arc<Node>, id: NodeId) -> Option<&Arc<Node>> {
            if node.id == id {
                return Some(node);
            }
            node.children().iter().find_map(|child| walk(child, id))
        }
        walk(&self.root, id)
    }

    /// Visits every node, parents before children.
    pub fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a Arc<Node>)) {
        fn walk<'a>(node: &'a Arc<Node>, visit: &mut dyn FnMut(&'a Arc<Node>)) {
            visit(node);
            for child in node.children() {
                walk(child, visit);
            }
        }
        walk(&self.root, visit);
    }

    /// Number of levels, including the leaves.
    #[must_use]
    pub fn height(&self) -> usize {
        let (mut node, mut height) = (&self.root, 1);
        while let Some(child) = node.children().first() {
            node = child;
            height += 1;
        }
        height
    }
}
