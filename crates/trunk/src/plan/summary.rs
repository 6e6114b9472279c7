//! [`Summary`] and [`Context`]: all inputs of a plan.

use frondb_block::Codec;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, RunId, SeqNo};

use crate::node::Node;
use crate::options::TrunkOptions;
use crate::view::View;

/// The properties of a run that the planner uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunSummary {
    /// Id of the run. Two views of one run are merged together or not at all.
    pub id: RunId,
    /// Number of times that the messages of the run have been written; 255 for a base.
    pub writes: u8,
    /// Key and value bytes.
    pub raw_bytes: u64,
    /// Messages, deletes included.
    pub entries: u64,
    /// Deletes.
    pub deletes: u64,
    /// The codec of a base; `None` if unknown.
    pub codec: Option<Codec>,
    /// Value of `TrunkOptions::base_block_bytes` when the base was written; 0 if unknown.
    pub tree_block_bytes: u32,
    /// Whether background work has found damage in the node's views of the run.
    pub is_damaged: bool,
}

impl RunSummary {
    fn of(view: &View, damaged: &[RunId]) -> Self {
        let meta = view.run.meta();
        Self {
            id: meta.id,
            writes: meta.writes,
            raw_bytes: view.raw_bytes(),
            entries: view.entries(),
            deletes: view.deletes(),
            codec: meta.codec,
            tree_block_bytes: meta.tree_block_bytes,
            is_damaged: damaged.contains(&meta.id),
        }
    }
}

/// The properties of a node that the planner uses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Id of the node.
    pub id: NodeId,
    /// The node's runs, newest first.
    pub runs: Vec<RunSummary>,
    /// Sums over the views of the node's base.
    pub base: RunSummary,
    /// The views that make up the base, in key order.
    pub base_views: Vec<RunSummary>,
    /// Number of range deletes of the node.
    pub range_deletes: usize,
    /// See [`CompactionHints::scan_debt`](crate::CompactionHints::scan_debt).
    pub scan_debt: u64,
    /// See [`CompactionHints::run_debt`](crate::CompactionHints::run_debt).
    pub run_debt: u64,
    /// See [`CompactionHints::compact_tombstones`](crate::CompactionHints::compact_tombstones).
    pub compact_tombstones: bool,
    /// See [`CompactionHints::truncate_prefix`](crate::CompactionHints::truncate_prefix); set only
    /// if the truncation is possible.
    pub truncate_prefix: bool,
    /// Messages of the base that prefix truncations have cut off and that are still on disk.
    pub truncated_entries: u64,
    /// See [`CompactionHints::overlap_percent`](crate::CompactionHints::overlap_percent).
    pub overlap_percent: u64,
    /// See [`CompactionHints::held_by`](crate::CompactionHints::held_by).
    pub held_by: u64,
    /// See [`CompactionHints::held_range_deletes`](crate::CompactionHints::held_range_deletes).
    pub held_range_deletes: usize,
    /// See [`CompactionHints::optimize`](crate::CompactionHints::optimize).
    pub optimize: bool,
    /// Whether a leaf's range deletes hide everything that one of its views shows.
    pub hides_view: bool,
    /// References to large values in all views except the newest; newer messages may hide these
    /// values.
    pub old_refs: u64,
    /// References to large values in the base.
    pub base_refs: u64,
    /// The children; empty for a leaf.
    pub children: Vec<ChildSummary>,
    /// Whether the node is the root.
    pub is_root: bool,
}

/// The properties of a child that the planner uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChildSummary {
    /// Key and value bytes of the child and everything below it.
    pub raw_bytes: u64,
    /// Runs that the child holds in addition to a base.
    pub runs: usize,
    /// Range deletes that the child holds.
    pub range_deletes: usize,
    /// Number of children of the child; 0 for a leaf.
    pub children: usize,
    /// References to large values in the child and everything below it.
    pub refs: u64,
    /// Whether background work has found damage in one of the child's runs.
    pub is_damaged: bool,
}

/// The inputs of the decision besides the node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Context {
    /// The tree's options.
    pub options: TrunkOptions,
    /// Key and value bytes of the tree.
    pub tree_raw_bytes: u64,
    /// Key and value bytes that a usual flush of the tree's memtable brings.
    pub flush_raw_bytes: u64,
    /// Average size of a large value of the tree on disk, in bytes.
    pub value_bytes: u64,
    /// Levels of the trunk, leaves included.
    pub height: usize,
    /// The oldest live snapshot; `None` if there is none.
    pub oldest_snapshot: Option<SeqNo>,
    /// The most runs that a job may read besides a base, at least two. A plan that frees space may
    /// read more.
    pub inputs_max: usize,
}

impl Context {
    /// Returns the target size of a leaf in key and value bytes (rule 4).
    #[must_use]
    pub fn leaf_target(&self) -> u64 {
        let o = &self.options;
        let flush = self.flush_raw_bytes.max(1);
        let for_slices = (u128::from(self.tree_raw_bytes) * u128::from(o.slice_bytes_min)
            / u128::from(flush))
        .min(u128::from(u64::MAX)) as u64;
        (self.tree_raw_bytes / 512).max(for_slices).clamp(o.leaf_bytes_min, o.leaf_bytes_max)
    }

    /// Returns the number of children above which the root gets a level of inner nodes.
    #[must_use]
    pub fn root_children_max(&self) -> usize {
        let slices = self.flush_raw_bytes / self.options.slice_bytes_min.max(1);
        // Leaf sizes vary by a factor of two around the target, and so does the number of children.
        (slices as usize * 2).max(self.options.fanout * 2)
    }

    /// Returns the most writes of a message before it reaches the base: the option, plus one for
    /// each level of inner nodes below the root.
    pub(super) fn writes(&self) -> u8 {
        self.options.writes_before_base.saturating_add(self.height.saturating_sub(2) as u8)
    }

    /// Whether the space of this many large values is worth reading and writing `bytes`.
    pub(super) fn is_worth(&self, values: u64, bytes: u64) -> bool {
        values > 0 && u128::from(values) * u128::from(self.value_bytes) >= u128::from(bytes)
    }

    /// Returns the number of leaves into which data of this size is split.
    #[must_use]
    pub fn pieces(&self, raw_bytes: u64) -> u64 {
        let target = self.leaf_target();
        ((raw_bytes + target / 2) / target).max(1)
    }
}

impl Summary {
    /// Returns the summary of `node`.
    #[must_use]
    pub fn of(node: &Node, is_root: bool) -> Self {
        let mut base = RunSummary { writes: u8::MAX, ..RunSummary::default() };
        for view in node.base() {
            base.raw_bytes += view.raw_bytes();
            base.entries += view.entries();
            base.deletes += view.deletes();
        }
        let damaged = node.hints.damage.runs();
        let summary_of = |view: &View| RunSummary::of(view, &damaged);
        Self {
            id: node.id,
            runs: node.runs.iter().map(summary_of).collect(),
            base,
            base_views: node.base().iter().map(summary_of).collect(),
            range_deletes: node.range_deletes.len(),
            scan_debt: node.hints.scan_debt.load(Ordering::Relaxed),
            run_debt: node.hints.run_debt.load(Ordering::Relaxed),
            compact_tombstones: node.hints.compact_tombstones.load(Ordering::Relaxed) != 0,
            truncate_prefix: node.hints.truncate_prefix.load(Ordering::Relaxed) != 0
                && node.can_truncate_prefix(),
            truncated_entries: node.truncated_entries(),
            overlap_percent: node.hints.overlap_percent.load(Ordering::Relaxed),
            held_by: node.hints.held_by.load(Ordering::Relaxed),
            held_range_deletes: node.hints.held_range_deletes.load(Ordering::Relaxed) as usize,
            optimize: node.hints.optimize.load(Ordering::Relaxed) != 0,
            hides_view: hides_view(node),
            old_refs: node.views().skip(1).map(View::refs).sum(),
            base_refs: node.base().iter().map(View::refs).sum(),
            children: node
                .children()
                .iter()
                .map(|child| ChildSummary {
                    raw_bytes: child.totals.raw_bytes,
                    runs: child.runs.len(),
                    range_deletes: child.range_deletes.len(),
                    children: child.children().len(),
                    refs: child.totals.refs,
                    is_damaged: child.damage().is_some(),
                })
                .collect(),
            is_root,
        }
    }

    /// Whether background work has found damage in one of the node's runs.
    pub(super) fn is_damaged(&self) -> bool {
        self.runs.iter().chain(&self.base_views).any(|run| run.is_damaged)
    }

    pub(super) fn runs_raw_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.raw_bytes).sum()
    }

    /// Key and value bytes of the base that are not in their final form for these options.
    pub(super) fn unpacked_bytes(&self, options: &TrunkOptions) -> u64 {
        let is_packed = |view: &&RunSummary| options.is_packed(view.codec, view.tree_block_bytes);
        let unpacked = self.base_views.iter().filter(|view| !is_packed(view));
        unpacked.map(|view| view.raw_bytes).sum()
    }

    pub(super) fn run_deletes(&self) -> u64 {
        self.runs.iter().map(|run| run.deletes).sum()
    }

    /// Estimates the bytes of the base that the deletes in the runs hide.
    pub(super) fn hidden_raw_bytes(&self) -> u64 {
        let deletes = self.run_deletes();
        let part = u128::from(self.base.raw_bytes) * u128::from(deletes.min(self.base.entries))
            / u128::from(self.base.entries.max(1));
        part as u64
    }

    /// Whether the snapshot that kept garbage when the base was written is still live. While it is
    /// live, a rewrite of the base would keep the same garbage.
    pub(super) fn is_held(&self, context: &Context) -> bool {
        context.oldest_snapshot.is_some_and(|oldest| oldest.get() < self.held_by)
    }

    /// Whether a rewrite can drop deletes or range deletes.
    pub(super) fn has_deletes(&self, held: bool) -> bool {
        let (base, range) =
            if held { (0, self.held_range_deletes) } else { (self.base.deletes, 0) };
        base > 0 || self.range_deletes > range || self.runs.iter().any(|run| run.deletes > 0)
    }
}

/// Whether the range deletes of a leaf hide everything that one of its views shows. An arriving
/// range delete drops such a view at once, unless a snapshot or a value in extents of its own needs
/// the view.
fn hides_view(node: &Node) -> bool {
    let deletes = &node.range_deletes;
    node.is_leaf() && node.views().any(|view| view.is_hidden_by(deletes, SeqNo::MAX))
}
