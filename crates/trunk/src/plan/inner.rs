//! Plans for an inner node.

use super::planned::Plan;
use super::summary::{ChildSummary, Context, Summary};
use super::thresholds::{JOIN_RUNS_MAX, RANGE_DELETES_MAX};

/// Whether an inner node buffers enough for its children, more than it may, or a tombstone run that
/// is to be compacted.
pub(super) fn is_flush_due(node: &Summary, context: &Context) -> bool {
    let o = &context.options;
    let enough = o.slice_bytes_min.saturating_mul(node.children.len() as u64);
    let is_enough = node.runs_raw_bytes() >= enough || node.runs.len() > inner_runs_max(context);
    !node.runs.is_empty() && (node.compact_tombstones || is_enough)
        || node.range_deletes > RANGE_DELETES_MAX
}

/// Returns the most runs that an inner node may buffer.
pub(super) fn inner_runs_max(context: &Context) -> usize {
    (4 * context.options.fanout.max(4)).min(context.inputs_max.saturating_sub(1))
}

/// Whether an inner node buffers deletes that may hide large values below it (at most one value
/// each), and the space of these values is worth rewriting the leaves: only a rewrite of a leaf can
/// free them.
pub(super) fn hides_values_below(node: &Summary, context: &Context) -> bool {
    let sum = |of: fn(&ChildSummary) -> u64| node.children.iter().map(of).sum::<u64>();
    let (refs, below) = (sum(|child| child.refs), sum(|child| child.raw_bytes));
    let deletes = node.run_deletes();
    let leaves = below.min(deletes.saturating_mul(context.leaf_target()));
    context.is_worth(refs.min(deletes), node.runs_raw_bytes() + leaves)
}

pub(super) fn plan_inner(node: &Summary, context: &Context) -> Option<Plan> {
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
        // A join with a damaged child would make the other child unreadable for jobs, too.
        (a, b) if a.is_damaged || b.is_damaged => false,
        (a, b) if a.children == 0 && b.children == 0 => {
            a.raw_bytes < small && b.raw_bytes < small && a.runs + b.runs <= JOIN_RUNS_MAX
        }
        (a, b) => a.children > 0 && b.children > 0 && a.children + b.children <= o.fanout,
    };
    let join = node.children.windows(2).position(joins).map(Plan::Join);
    join.or_else(|| is_optimized(node).then_some(Plan::FlushNode))
}

/// Whether an optimize waits for the node to flush its buffer.
pub(super) fn is_optimized(node: &Summary) -> bool {
    node.optimize && (!node.runs.is_empty() || node.range_deletes > 0)
}
