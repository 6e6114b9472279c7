//! Planning the nodes of a tree anew: what the planner says goes to the queue.

use std::collections::HashSet;

use frondb_core::NodeId;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;
use frondb_trunk::plan::{Summary, plan_node};

use crate::context::JobContext;
use crate::queue::Queue;

/// Plans `nodes` of a tree anew.
pub fn replan(context: &JobContext, queue: &Queue, tree: &Arc<TreeCore>, nodes: &[NodeId]) {
    if tree.is_dropped() {
        return;
    }
    let version = tree.version();
    let planning = tree.plan_context(&version.trunk, context.plan_limits());
    let root = version.trunk.root.id;
    let mut todo: HashSet<NodeId> = nodes.iter().copied().collect();
    version.trunk.for_each(&mut |node| {
        if todo.remove(&node.id) {
            let planned = plan_node(&Summary::of(node, node.id == root), &planning);
            queue.set_plan(tree, node.id, planned);
        }
    });
    for gone in todo {
        queue.set_plan(tree, gone, None);
    }
    // Joins and regroups concern the parents of what changed.
    version.trunk.for_each(&mut |node| {
        if !node.is_leaf() && node.children().iter().any(|child| nodes.contains(&child.id)) {
            let planned = plan_node(&Summary::of(node, node.id == root), &planning);
            queue.set_plan(tree, node.id, planned);
        }
    });
}

/// Plans all nodes of a tree.
pub fn plan_all(context: &JobContext, queue: &Queue, tree: &Arc<TreeCore>) {
    let version = tree.version();
    let planning = tree.plan_context(&version.trunk, context.plan_limits());
    let root = version.trunk.root.id;
    version.trunk.for_each(&mut |node| {
        let planned = plan_node(&Summary::of(node, node.id == root), &planning);
        if planned.is_some() {
            queue.set_plan(tree, node.id, planned);
        }
    });
}
