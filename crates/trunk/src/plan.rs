//! The planner: decides from numbers alone what a node needs. No I/O, no locks, no clock.
//!
//! [`Summary`] has the numbers on which the decision depends; [`plan_node`] makes the decision. The
//! engine computes summaries from nodes; the text-script tests write them by hand.
//!
//! ```text
//!  this file      the decision, its priority, and the limit of its inputs
//!  leaf.rs        plans for leaves
//!  damaged.rs     plans for nodes in which background work has found damage
//!  inner.rs       plans for inner nodes
//!  readers.rs     amortised merges of a leaf's runs
//!  summary.rs     the inputs of the decision: the node, and the tree around it
//!  planned.rs     the result: the work, its reason and its priority
//!  thresholds.rs  fixed thresholds
//! ```

mod damaged;
mod inner;
mod leaf;
mod planned;
mod readers;
mod summary;
mod thresholds;

use damaged::{cheapest_merge, plan_damaged};
use inner::{hides_values_below, is_flush_due, is_optimized, plan_inner};
use leaf::{garbage_percent, pack_priority, plan_leaf};
pub use planned::{
    PRIORITY_AMORTISED, PRIORITY_IDLE, PRIORITY_PACK, PRIORITY_VALUES, Plan, Planned, Reason,
};
pub(crate) use readers::merge_for_readers;
pub use summary::{ChildSummary, Context, RunSummary, Summary};
pub use thresholds::{
    BASE_VIEWS_MAX, RANGE_DELETES_MAX, SCAN_DEBT_FACTOR, TOMBSTONE_RUN, TRUNCATION_RUN,
};

/// Returns the most urgent work that the node needs now, if any.
#[must_use]
pub fn plan_node(node: &Summary, context: &Context) -> Option<Planned> {
    let for_values = || hides_values_below(node, context).then_some(Plan::FlushNode);
    let plan = if node.is_damaged() {
        plan_damaged(node, context)?
    } else if node.children.is_empty() {
        plan_leaf(node, context)?
    } else {
        plan_inner(node, context).or_else(for_values)?
    };
    let wanted = plan;
    let plan = within_inputs(node, plan, context);
    let is_optimize = matches!(wanted, Plan::Rewrite(Reason::Optimize, _));
    let least = if is_optimize { PRIORITY_AMORTISED } else { 0 };
    let priority = priority_of(node, plan, context).max(least);
    // While a merge first reduces the number of inputs, the wanted plan also remains due.
    let waits = if plan == wanted { 0 } else { work_bytes(node, wanted) };
    let work_bytes = work_bytes(node, plan) + waits;
    let frees_space = frees_space(node, plan, context);
    Some(Planned { node: node.id, plan, work_bytes, priority, frees_space })
}

/// Key and value bytes that a plan reads.
fn work_bytes(node: &Summary, plan: Plan) -> u64 {
    let sum = |runs: &[RunSummary]| runs.iter().map(|run| run.raw_bytes).sum();
    match plan {
        Plan::FlushNode => node.runs_raw_bytes(),
        Plan::TruncatePrefix => node.runs_raw_bytes() + node.hidden_raw_bytes(),
        Plan::MergeRuns(n) | Plan::MergeForReaders(n) => sum(&node.runs[..n]),
        Plan::MergeBase { from, views } => sum(&node.base_views[from..from + views]),
        Plan::Rewrite(..) => node.runs_raw_bytes() + node.base.raw_bytes,
        Plan::Regroup | Plan::Join(_) => 0,
    }
}

fn priority_of(node: &Summary, plan: Plan, context: &Context) -> u8 {
    match plan {
        Plan::FlushNode if node.compact_tombstones => 0,
        Plan::FlushNode if !is_flush_due(node, context) => {
            if is_optimized(node) {
                PRIORITY_AMORTISED
            } else {
                PRIORITY_VALUES
            }
        }
        Plan::TruncatePrefix | Plan::Rewrite(Reason::Tombstones, _) => 0,
        Plan::FlushNode | Plan::Regroup | Plan::Join(_) => 1,
        Plan::MergeRuns(_) | Plan::MergeBase { .. } | Plan::Rewrite(Reason::Runs, _) => 2,
        Plan::MergeForReaders(_) | Plan::Rewrite(Reason::ScanDebt | Reason::Optimize, _) => {
            PRIORITY_AMORTISED
        }
        Plan::Rewrite(Reason::Values, _) => PRIORITY_VALUES,
        Plan::Rewrite(Reason::Idle, _) => PRIORITY_IDLE,
        Plan::Rewrite(Reason::Pack, _) => pack_priority(node, context),
        Plan::Rewrite(..) => 3,
    }
}

/// Returns the plan itself if it frees space, or if a job may read so many runs at once
/// ([`Context::inputs_max`]); otherwise a merge of some of the newest runs into one.
fn within_inputs(node: &Summary, plan: Plan, context: &Context) -> Plan {
    let reads = match plan {
        Plan::MergeRuns(n) => n,
        Plan::FlushNode | Plan::TruncatePrefix | Plan::Rewrite(..) => node.runs.len(),
        // Already limited, or reads no run above a base.
        Plan::MergeForReaders(_) | Plan::MergeBase { .. } | Plan::Regroup | Plan::Join(_) => 0,
    };
    let most = context.inputs_max.max(2);
    if reads <= most || frees_space(node, plan, context) {
        return plan;
    }
    cheapest_merge(node, most)
}

/// Whether the plan frees space, judged by the contents of the node as well as by the reason: on a
/// full disk, a leaf that is rewritten because of growth may be mostly garbage.
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
        Plan::Rewrite(reason, _) => {
            let held = node.is_held(context);
            let hides = node.range_deletes > 0 || node.old_refs > 0 || node.base.deletes > 0;
            garbage_percent(node, held, node.truncated_entries)
                >= context.options.garbage_percent / 2
                || reason == Reason::Optimize && hides && !held
        }
        Plan::FlushNode => {
            let (entries, deletes) = node
                .runs
                .iter()
                .fold((0, 0), |sum, run| (sum.0 + run.entries, sum.1 + run.deletes));
            node.range_deletes > 0 || deletes * 2 > entries
        }
        Plan::TruncatePrefix => true,
        Plan::MergeRuns(_)
        | Plan::MergeForReaders(_)
        | Plan::MergeBase { .. }
        | Plan::Regroup
        | Plan::Join(_) => false,
    }
}
