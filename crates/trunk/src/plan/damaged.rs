//! What a node needs in which background work has found damage: nothing that reads the damaged run.

use super::inner::{inner_runs_max, plan_inner};
use super::leaf::{runs_max, whole_runs};
use super::planned::Plan;
use super::summary::{Context, Summary};

/// The plan of a node with damage: a merge of the runs that are newer than the damaged one, if flushes
/// have brought more than the node may have, or a change of its shape.
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

/// The merge of at most `most` of the newest runs that costs least for each run that it removes. A
/// merge of as few runs as possible would write its own output again with every slice that arrives in
/// the meantime.
pub(super) fn cheapest_merge(node: &Summary, most: usize) -> Plan {
    let mut bytes = node.runs.first().map_or(0, |run| u128::from(run.raw_bytes));
    let cost_of = |n: usize| {
        bytes += node.runs.get(n - 1).map_or(0, |run| u128::from(run.raw_bytes));
        (bytes * 1024 / (n as u128 - 1), n)
    };
    let (_, n) = (2..=most).map(cost_of).min().unwrap_or((0, 2));
    Plan::MergeRuns(whole_runs(&node.runs, n))
}
