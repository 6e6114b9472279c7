//! Plans the nodes of a tree, and hands the plans to the queue.

use std::collections::HashSet;

use frondb_core::NodeId;
use frondb_core::sync::Arc;
use frondb_tree::TreeCore;
use frondb_trunk::plan::{Summary, plan_node};

use crate::context::JobContext;
use crate::queue::Queue;

/// Plans `nodes` of a tree again, and their parents. Removes the plans of nodes that no longer
/// exist.
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
    // A change of a node may make a join or a regroup of its parent due.
    version.trunk.for_each(&mut |node| {
        if !node.is_leaf() && node.children().iter().any(|child| nodes.contains(&child.id)) {
            let planned = plan_node(&Summary::of(node, node.id == root), &planning);
            queue.set_plan(tree, node.id, planned);
        }
    });
}

/// Plans all nodes of a tree again after a change of the tree's options. Removes plans that are not
/// due any more.
pub fn replan_all(context: &JobContext, queue: &Queue, tree: &Arc<TreeCore>) {
    let mut nodes = Vec::new();
    tree.version().trunk.for_each(&mut |node| nodes.push(node.id));
    replan(context, queue, tree, &nodes);
}

/// Plans all nodes of a tree. Removes no plan, unlike [`replan_all`].
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
