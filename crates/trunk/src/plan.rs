//! The planner: decides from numbers alone what a node needs. No I/O, no locks, no clock.
//!
//! [`Summary`] is what the decision depends on; [`plan_node`] makes the decision. The engine
//! computes summaries from nodes; the text-script tests write them by hand.

use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, RunId, SeqNo};

use crate::node::Node;
use crate::options::TrunkOptions;
use crate::schedule::{merge_due, runs_for};
use crate::view::View;

/// A leaf with more range deletes than this is rewritten (rule 14).
pub const RANGE_DELETES_MAX: usize = 64;

/// A base made of more views than this is rewritten, so that small appends are consolidated from
/// time to time.
pub const BASE_VIEWS_MAX: usize = 16;

/// A tombstone run longer than this makes a leaf worth rewriting immediately (rule 15). A reader
/// may have to step over two such runs, one in a memtable and one whose compaction is in progress,
/// and below each delete over the put that it hides: 128 Ki messages in total.
pub const TOMBSTONE_RUN: u64 = 32 * 1024;

/// A tombstone run longer than this is worth a prefix truncation if it begins the leaf (rule 15).
/// The truncation reads the deletes and what they hide once and writes nothing, so it pays off
/// early.
pub const TRUNCATION_RUN: u64 = 8 * 1024;

/// Rewriting a byte is assumed to cost this many times as much as reading and merging it in a scan.
pub const SCAN_DEBT_FACTOR: u64 = 4;

/// Two leaves are joined only if they have at most this many runs together.
const JOIN_RUNS_MAX: usize = 4;

/// Priority of work that frees deleted large values. It runs when the database is not being written
/// to, or when a thread waits for the space.
pub const PRIORITY_VALUES: u8 = 5;

/// Priority of work that runs only when the database is not being written to.
pub const PRIORITY_IDLE: u8 = 6;

/// Why a leaf is rewritten.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// A long tombstone run (rule 15).
    Tombstones,
    /// More runs than the schedule allows.
    Runs,
    /// More than [`RANGE_DELETES_MAX`] range deletes.
    RangeDeletes,
    /// The runs have reached the configured share of the base's size.
    Growth,
    /// Too much of the leaf is garbage.
    Garbage,
    /// Scans have spent as much on merging as a rewrite costs.
    ScanDebt,
    /// Idle work: the leaf most likely holds large values that are hidden.
    Values,
    /// Idle work: the leaf holds range deletes, or deletes in its base, that a rewrite can drop
    /// with the data they hide.
    Idle,
}

/// The work to do on one node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Moves what an inner node buffers to its children.
    FlushNode,
    /// Cuts off the deletes that begin a leaf, together with what they hide.
    TruncatePrefix,
    /// Merges this many of a node's newest runs into one.
    MergeRuns(usize),
    /// Merges everything in a leaf into a new base, split into this many leaves.
    Rewrite(Reason, u64),
    /// Puts the root's children under a new level of inner nodes; or replaces another inner node by
    /// several with its children; or removes a root that has a single child.
    Regroup,
    /// Joins the child with this index and the next one.
    Join(usize),
}

/// A plan with the figures by which the scheduler orders it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The node.
    pub node: NodeId,
    /// The work to do.
    pub plan: Plan,
    /// Key and value bytes that the plan reads.
    pub work_bytes: u64,
    /// Plans with a smaller number run first.
    pub priority: u8,
    /// Whether the plan reduces the space used, directly or by later steps, so that it may use the
    /// reserve of a full disk (rule 25).
    pub frees_space: bool,
}

impl Planned {
    /// Whether writers are throttled while the plan waits. Work that serves readers does not
    /// throttle them.
    #[must_use]
    pub fn is_debt(&self) -> bool {
        let is_for_readers =
            matches!(self.plan, Plan::Rewrite(Reason::ScanDebt, _) | Plan::Join(_) | Plan::Regroup);
        self.priority < PRIORITY_VALUES && !is_for_readers
    }
}

/// A run as the planner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RunSummary {
    /// Id of the run. Two views of one run are merged together or not at all.
    pub id: RunId,
    /// How many times the messages of the run have been written.
    pub writes: u8,
    /// Key and value bytes.
    pub raw_bytes: u64,
    /// Messages, deletes included.
    pub entries: u64,
    /// Deletes.
    pub deletes: u64,
}

/// A node as the planner sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The node.
    pub id: NodeId,
    /// Its runs, newest first.
    pub runs: Vec<RunSummary>,
    /// Its base, all views together.
    pub base: RunSummary,
    /// How many views make up the base.
    pub base_views: usize,
    /// Range deletes.
    pub range_deletes: usize,
    /// See [`CompactionHints::scan_debt`](crate::CompactionHints::scan_debt).
    pub scan_debt: u64,
    /// See [`CompactionHints::compact_tombstones`](crate::CompactionHints::compact_tombstones).
    pub compact_tombstones: bool,
    /// See [`CompactionHints::truncate_prefix`](crate::CompactionHints::truncate_prefix); set only
    /// if the truncation is possible.
    pub truncate_prefix: bool,
    /// Messages of the base that prefix truncation cut off and that are still on disk.
    pub truncated_entries: u64,
    /// See [`CompactionHints::overlap_percent`](crate::CompactionHints::overlap_percent).
    pub overlap_percent: u64,
    /// See [`CompactionHints::held_by`](crate::CompactionHints::held_by).
    pub held_by: u64,
    /// See [`CompactionHints::held_range_deletes`](crate::CompactionHints::held_range_deletes).
    pub held_range_deletes: usize,
    /// Whether a leaf's range deletes hide everything that one of its views shows.
    pub hides_view: bool,
    /// References to large values in all views but the newest, which newer messages may hide.
    pub old_refs: u64,
    /// References to large values in the base.
    pub base_refs: u64,
    /// The children; empty for a leaf.
    pub children: Vec<ChildSummary>,
    /// Whether the node is the root.
    pub is_root: bool,
}

/// A child as the planner sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChildSummary {
    /// Key and value bytes of the child and everything below it.
    pub raw_bytes: u64,
    /// Runs that the child holds in addition to a base.
    pub runs: usize,
    /// Range deletes that the child holds.
    pub range_deletes: usize,
    /// How many children the child has; 0 for a leaf.
    pub children: usize,
    /// References to large values in the child and everything below it.
    pub refs: u64,
}

/// The inputs of the decision in addition to the node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Context {
    /// The tree's options.
    pub options: TrunkOptions,
    /// Key and value bytes of the tree.
    pub tree_raw_bytes: u64,
    /// Key and value bytes that a typical flush of this tree's memtable brings.
    pub flush_raw_bytes: u64,
    /// Average size on disk of a large value of the tree.
    pub value_bytes: u64,
    /// Levels of the trunk.
    pub height: usize,
    /// The oldest live snapshot, if there is one.
    pub oldest_snapshot: Option<SeqNo>,
    /// How many runs a job may read in addition to a base, at least two. A plan that frees space on
    /// a full disk may read more.
    pub inputs_max: usize,
}

impl Context {
    /// The target size of a leaf in key and value bytes (rule 4).
    #[must_use]
    pub fn leaf_target(&self) -> u64 {
        let o = &self.options;
        let flush = self.flush_raw_bytes.max(1);
        let for_slices = (u128::from(self.tree_raw_bytes) * u128::from(o.slice_bytes_min)
            / u128::from(flush))
        .min(u128::from(u64::MAX)) as u64;
        (self.tree_raw_bytes / 512).max(for_slices).clamp(o.leaf_bytes_min, o.leaf_bytes_max)
    }

    /// The number of children above which the root gets a level of inner nodes.
    #[must_use]
    pub fn root_children_max(&self) -> usize {
        let slices = self.flush_raw_bytes / self.options.slice_bytes_min.max(1);
        // Leaf sizes vary by a factor of two around the target, and so does the number of children.
        (slices as usize * 2).max(self.options.fanout * 2)
    }

    /// How often a message is written before it reaches the base: one more for each level of inner
    /// nodes on its way.
    fn writes(&self) -> u8 {
        self.options.writes_before_base.saturating_add(self.height.saturating_sub(2) as u8)
    }

    /// Whether the space freed with this many large values justifies reading and writing `bytes`.
    fn is_worth(&self, values: u64, bytes: u64) -> bool {
        values > 0 && u128::from(values) * u128::from(self.value_bytes) >= u128::from(bytes)
    }

    /// The number of leaves into which data of this size is split.
    #[must_use]
    pub fn pieces(&self, raw_bytes: u64) -> u64 {
        let target = self.leaf_target();
        ((raw_bytes + target / 2) / target).max(1)
    }
}

impl Summary {
    /// The summary of `node`.
    #[must_use]
    pub fn of(node: &Node, is_root: bool) -> Self {
        let mut base = RunSummary { writes: u8::MAX, ..RunSummary::default() };
        for view in node.base() {
            base.raw_bytes += view.raw_bytes();
            base.entries += view.entries();
            base.deletes += view.deletes();
        }
        let runs = node.runs.iter().map(|view| RunSummary {
            id: view.run.meta().id,
            writes: view.run.meta().writes,
            raw_bytes: view.raw_bytes(),
            entries: view.entries(),
            deletes: view.deletes(),
        });
        Self {
            id: node.id,
            runs: runs.collect(),
            base,
            base_views: node.base().len(),
            range_deletes: node.range_deletes.len(),
            scan_debt: node.hints.scan_debt.load(Ordering::Relaxed),
            compact_tombstones: node.hints.compact_tombstones.load(Ordering::Relaxed) != 0,
            truncate_prefix: node.hints.truncate_prefix.load(Ordering::Relaxed) != 0
                && node.can_truncate_prefix(),
            truncated_entries: node.truncated_entries(),
            overlap_percent: node.hints.overlap_percent.load(Ordering::Relaxed),
            held_by: node.hints.held_by.load(Ordering::Relaxed),
            held_range_deletes: node.hints.held_range_deletes.load(Ordering::Relaxed) as usize,
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
                })
                .collect(),
            is_root,
        }
    }

    fn runs_raw_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.raw_bytes).sum()
    }

    fn run_deletes(&self) -> u64 {
        self.runs.iter().map(|run| run.deletes).sum()
    }

    /// Estimate of the base's bytes that the deletes in the runs hide.
    fn hidden_raw_bytes(&self) -> u64 {
        let deletes = self.run_deletes();
        let part = u128::from(self.base.raw_bytes) * u128::from(deletes.min(self.base.entries))
            / u128::from(self.base.entries.max(1));
        part as u64
    }

    /// Whether the snapshot that kept garbage when the base was written is still live. While it is,
    /// rewriting the base would keep the same garbage.
    fn is_held(&self, context: &Context) -> bool {
        context.oldest_snapshot.is_some_and(|oldest| oldest.get() < self.held_by)
    }

    /// Whether a rewrite can drop deletes or range deletes.
    fn has_deletes(&self, held: bool) -> bool {
        let (base, range) =
            if held { (0, self.held_range_deletes) } else { (self.base.deletes, 0) };
        base > 0 || self.range_deletes > range || self.runs.iter().any(|run| run.deletes > 0)
    }
}

/// Whether the range deletes of a leaf hide a whole view. Range deletes drop such views when they
/// arrive, unless at that time a snapshot or a value in extents of its own needs the view.
fn hides_view(node: &Node) -> bool {
    let deletes = &node.range_deletes;
    node.is_leaf() && node.views().any(|view| view.is_hidden_by(deletes, SeqNo::MAX))
}

/// The most urgent work that the node needs now, if any.
#[must_use]
pub fn plan_node(node: &Summary, context: &Context) -> Option<Planned> {
    let for_values = || hides_values_below(node, context).then_some(Plan::FlushNode);
    let plan = if node.children.is_empty() {
        plan_leaf(node, context)?
    } else {
        plan_inner(node, context).or_else(for_values)?
    };
    let plan = within_inputs(node, plan, context);
    let runs = node.runs_raw_bytes();
    let (work_bytes, priority) = match plan {
        Plan::FlushNode if node.compact_tombstones => (runs, 0),
        Plan::FlushNode if !is_flush_due(node, context) => (runs, PRIORITY_VALUES),
        Plan::FlushNode => (runs, 1),
        Plan::TruncatePrefix => (runs + node.hidden_raw_bytes(), 0),
        Plan::MergeRuns(n) => (node.runs[..n].iter().map(|run| run.raw_bytes).sum(), 2),
        Plan::Rewrite(Reason::Tombstones, _) => (runs + node.base.raw_bytes, 0),
        Plan::Rewrite(Reason::Runs, _) => (runs + node.base.raw_bytes, 2),
        Plan::Rewrite(Reason::ScanDebt, _) => (runs + node.base.raw_bytes, 4),
        Plan::Rewrite(Reason::Values, _) => (runs + node.base.raw_bytes, PRIORITY_VALUES),
        Plan::Rewrite(Reason::Idle, _) => (runs + node.base.raw_bytes, PRIORITY_IDLE),
        Plan::Rewrite(..) => (runs + node.base.raw_bytes, 3),
        Plan::Regroup | Plan::Join(_) => (0, 1),
    };
    let frees_space = frees_space(node, plan, context);
    Some(Planned { node: node.id, plan, work_bytes, priority, frees_space })
}

/// The plan itself if its inputs fit into memory; otherwise a merge of the newest runs that reduces
/// their number. That merge takes as few runs as possible, because it writes them once more.
fn within_inputs(node: &Summary, plan: Plan, context: &Context) -> Plan {
    let reads = match plan {
        Plan::MergeRuns(n) => n,
        Plan::FlushNode | Plan::TruncatePrefix | Plan::Rewrite(..) => node.runs.len(),
        Plan::Regroup | Plan::Join(_) => 0,
    };
    let most = context.inputs_max.max(2);
    if reads <= most || frees_space(node, plan, context) {
        return plan;
    }
    Plan::MergeRuns(whole_runs(&node.runs, (reads - most + 1).min(most)))
}

/// Whether the plan frees space, judged by the contents of the node as well as by the reason: a
/// leaf that is rewritten for growth may be mostly garbage on a full disk.
fn frees_space(node: &Summary, plan: Plan, context: &Context) -> bool {
    match plan {
        Plan::Rewrite(
            Reason::Tombstones
            | Reason::Garbage
            | Reason::RangeDeletes
            | Reason::Values
            | Reason::Idle,
            _,
        ) => true,
        Plan::Rewrite(..) => {
            garbage_percent(node, node.is_held(context), node.truncated_entries)
                >= context.options.garbage_percent / 2
        }
        Plan::FlushNode => {
            let (entries, deletes) = node
                .runs
                .iter()
                .fold((0, 0), |sum, run| (sum.0 + run.entries, sum.1 + run.deletes));
            node.range_deletes > 0 || deletes * 2 > entries
        }
        Plan::TruncatePrefix => true,
        Plan::MergeRuns(_) | Plan::Regroup | Plan::Join(_) => false,
    }
}

/// Whether an inner node buffers enough for its children, or more than it may keep.
fn is_flush_due(node: &Summary, context: &Context) -> bool {
    let o = &context.options;
    let enough = o.slice_bytes_min.saturating_mul(node.children.len() as u64);
    let runs_max = (4 * o.fanout.max(4)).min(context.inputs_max.saturating_sub(1));
    let is_enough = node.runs_raw_bytes() >= enough || node.runs.len() > runs_max;
    !node.runs.is_empty() && (node.compact_tombstones || is_enough)
        || node.range_deletes > RANGE_DELETES_MAX
}

/// Whether an inner node buffers deletes that may hide large values below (at most one value each)
/// whose space is worth rewriting the leaves for: only a leaf can free them.
fn hides_values_below(node: &Summary, context: &Context) -> bool {
    let sum = |of: fn(&ChildSummary) -> u64| node.children.iter().map(of).sum::<u64>();
    let (refs, below) = (sum(|child| child.refs), sum(|child| child.raw_bytes));
    let deletes = node.run_deletes();
    let leaves = below.min(deletes.saturating_mul(context.leaf_target()));
    context.is_worth(refs.min(deletes), node.runs_raw_bytes() + leaves)
}

fn plan_inner(node: &Summary, context: &Context) -> Option<Plan> {
    let o = &context.options;
    if is_flush_due(node, context) {
        return Some(Plan::FlushNode);
    }
    if node.is_root
        && let [only] = &node.children[..]
        && (only.children == 0 || only.runs + only.range_deletes == 0)
    {
        return Some(Plan::Regroup);
    }
    let children_max = if node.is_root { context.root_children_max() } else { o.fanout * 2 };
    if node.children.len() > children_max {
        return Some(Plan::Regroup);
    }
    let small = context.leaf_target() / 4;
    let joins = |pair: &[ChildSummary]| match (pair[0], pair[1]) {
        (a, b) if a.children == 0 && b.children == 0 => {
            a.raw_bytes < small && b.raw_bytes < small && a.runs + b.runs <= JOIN_RUNS_MAX
        }
        (a, b) => a.children > 0 && b.children > 0 && a.children + b.children <= o.fanout,
    };
    node.children.windows(2).position(joins).map(Plan::Join)
}

fn plan_leaf(node: &Summary, context: &Context) -> Option<Plan> {
    let o = &context.options;
    let runs = node.runs_raw_bytes();
    let total = runs + node.base.raw_bytes;
    let rewrite = |reason| Some(Plan::Rewrite(reason, context.pieces(total)));
    let held = node.is_held(context);
    if node.truncate_prefix && node.runs.iter().any(|run| run.deletes > 0) {
        return Some(Plan::TruncatePrefix);
    }
    if node.compact_tombstones && node.has_deletes(held) {
        return rewrite(Reason::Tombstones);
    }
    let kept = if held { node.held_range_deletes } else { 0 };
    if node.range_deletes > kept + RANGE_DELETES_MAX {
        return rewrite(Reason::RangeDeletes);
    }
    if !node.runs.is_empty() {
        let grown = node.base.raw_bytes * o.growth_percent / 100 * jitter_percent(node.id) / 100;
        if runs >= grown.max(o.slice_bytes_min) {
            return rewrite(Reason::Growth);
        }
        let k = runs_max(node, context);
        let writes: Vec<u8> = node.runs.iter().map(|run| run.writes).collect();
        if let Some(n) = merge_due(&writes, k, context.writes()) {
            return Some(Plan::MergeRuns(whole_runs(&node.runs, n)));
        }
        if node.runs.len() as u64 > k {
            return rewrite(Reason::Runs);
        }
    }
    if node.base_views > BASE_VIEWS_MAX {
        return rewrite(Reason::Runs);
    }
    // Where rows are deleted in key order, the rest of a truncated leaf is soon deleted too, and
    // then dropped without any write. So truncated messages count half.
    let truncated = node.truncated_entries;
    if node.hides_view && !held || garbage_percent(node, held, truncated / 2) > o.garbage_percent {
        return rewrite(Reason::Garbage);
    }
    if node.scan_debt > total * SCAN_DEBT_FACTOR && !node.runs.is_empty() {
        return rewrite(Reason::ScanDebt);
    }
    if held {
        return None;
    }
    // Each delete above large values most likely hides one of them. If their space is worth the
    // bytes that the rewrite reads and writes, the rewrite counts as debt, because users wait for
    // the space.
    if context.is_worth(node.old_refs.min(node.run_deletes()), total) {
        return rewrite(Reason::Garbage);
    }
    // Any newer message may hide a value. The base holds deletes of its own only where a snapshot
    // needed what they hide.
    let hidden = match node.runs.is_empty() {
        true => node.base_refs.min(node.base.deletes),
        false => node.old_refs,
    };
    if context.is_worth(hidden, total) {
        return rewrite(Reason::Values);
    }
    let garbage_in_base = node.base.deletes > 0 && node.runs.is_empty()
        || truncated > 0 && garbage_percent(node, held, truncated) > o.garbage_percent;
    if node.range_deletes > 0 || garbage_in_base {
        return rewrite(Reason::Idle);
    }
    None
}

/// Extends `n` runs by the other views of the last run: runs are claimed whole (rule 1).
fn whole_runs(runs: &[RunSummary], n: usize) -> usize {
    let more = runs[n..].iter().take_while(|run| n > 0 && run.id == runs[n - 1].id);
    n + more.count()
}

/// K, the number of runs that the leaf may have, derived from the number of slices that it will
/// absorb before its base is due.
fn runs_max(node: &Summary, context: &Context) -> u64 {
    let newest: Vec<u64> = node.runs.iter().take(4).map(|run| run.raw_bytes.max(1)).collect();
    let slices: Vec<u64> = node
        .runs
        .iter()
        .filter(|run| u64::from(run.writes) < u64::from(context.writes()))
        .map(|run| run.raw_bytes.max(1))
        .collect();
    let sample = if slices.is_empty() { &newest } else { &slices };
    let average = sample.iter().sum::<u64>() / sample.len().max(1) as u64;
    let base = node.base.raw_bytes.max(context.leaf_target() / 2);
    let expected = (base * context.options.growth_percent / 100).div_ceil(average.max(1));
    runs_for(expected.min(4096), u64::from(context.options.writes_before_base)).clamp(2, 24)
}

/// Estimated share of the leaf's messages that a rewrite drops. `truncated` is the number of
/// truncated messages to count as garbage.
fn garbage_percent(node: &Summary, held: bool, truncated: u64) -> u64 {
    let run_entries: u64 = node.runs.iter().map(|run| run.entries).sum();
    let run_deletes: u64 = node.runs.iter().map(|run| run.deletes).sum();
    let entries = run_entries + node.base.entries + node.truncated_entries;
    if entries == 0 {
        return 0;
    }
    // A delete removes itself and the message that it hides; an overwrite removes the one that it
    // hides.
    let overwritten = run_entries.saturating_sub(run_deletes) * node.overlap_percent / 100;
    let base_deletes = if held { 0 } else { node.base.deletes };
    let garbage = run_deletes * 2 + base_deletes + overwritten + truncated;
    (garbage * 100 / entries).min(100)
}

/// 75 to 125, depending on the node, so that leaves do not all come due at the same time.
fn jitter_percent(id: NodeId) -> u64 {
    let mixed = id.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    75 + mixed % 51
}
