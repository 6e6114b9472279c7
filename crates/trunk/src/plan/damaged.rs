//! Plans for a node in which background work has found damage: they avoid the damaged run.

use super::inner::{inner_runs_max, plan_inner};
use super::leaf::{runs_max, whole_runs};
use super::planned::Plan;
use super::summary::{Context, Summary};

/// Returns the plan for a node with damage: a change of its shape, or a merge of the runs that are
/// newer than the damaged run, if they exceed the allowed number.
pub(super) fn plan_damaged(node: &Summary, context: &Context) -> Option<Plan> {
    let is_leaf = node.children.is_empty();
    if !is_leaf && let Some(plan @ (Plan::Regroup | Plan::Join(_))) = plan_inner(node, context) {
        return Some(plan);
    }
    let sound = node.runs.iter().take_while(|run| !run.is_damaged).count();
    let most = if is_leaf {
        usize::try_from(runs_max(node, context)).unwrap_or(usize::MAX)
    } else {
        inner_runs_max(context)
    };
    (sound > most.max(2)).then(|| cheapest_merge(node, sound.min(context.inputs_max.max(2))))
}

/// Returns the merge of at most `most` of the newest runs that costs least per removed run. If each
/// merge took as few runs as possible, it would rewrite the last merge's output for every new
/// slice.
pub(super) fn cheapest_merge(node: &Summary, most: usize) -> Plan {
    let mut bytes = node.runs.first().map_or(0, |run| u128::from(run.raw_bytes));
    let cost_of = |n: usize| {
        bytes += node.runs.get(n - 1).map_or(0, |run| u128::from(run.raw_bytes));
        (bytes * 1024 / (n as u128 - 1), n)
    };
    let (_, n) = (2..=most).map(cost_of).min().unwrap_or((0, 2));
    Plan::MergeRuns(whole_runs(&node.runs, n))
}
