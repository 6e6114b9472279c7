//! Stows trees that nothing uses ([`TreeCore::stow`]): at recovery, after a job, after very many
//! stowed trees were opened, and in an idle database. If the database has workers, no commit or
//! read does this.

use frondb_tree::{PlanLimits, TreeCore};
use frondb_trunk::Trunk;
use frondb_trunk::plan::{Summary, plan_node};

use super::Background;
use crate::context::JobContext;

/// Stows a tree unless something uses it or there is work for it. Returns whether the tree is
/// stowed.
pub fn stow(context: &JobContext, tree: &TreeCore) -> bool {
    let limits = limits(context);
    tree.stow(|trunk| has_work(tree, trunk, limits))
}

/// Returns the limits that the planner would use if no snapshot existed.
fn limits(context: &JobContext) -> PlanLimits {
    PlanLimits { oldest_snapshot: None, ..context.plan_limits() }
}

/// Whether a node of the tree has a plan, or would get one when snapshots end. Such a tree is not
/// stowed, because a stowed tree is not planned until it changes. Takes only the lock of the tree's
/// options.
fn has_work(tree: &TreeCore, trunk: &Trunk, limits: PlanLimits) -> bool {
    let planning = tree.plan_context(trunk, limits);
    let mut has_work = false;
    trunk.for_each(&mut |node| {
        let summary = Summary::of(node, node.id == trunk.root.id);
        has_work |= plan_node(&summary, &planning).is_some();
    });
    has_work
}

impl Background {
    /// Stows the trees that were not used since the last call.
    pub(crate) fn stow_unused(&self) {
        let limits = limits(&self.jobs);
        for tree in self.trees.all() {
            tree.stow_unused(|trunk| has_work(&tree, trunk, limits));
        }
    }

    /// Stows all trees that nothing uses at this moment, and returns how many trees are stowed.
    #[cfg(any(test, feature = "testing"))]
    pub fn stow_all(&self) -> usize {
        let trees = self.trees.all();
        trees.iter().filter(|tree| stow(&self.jobs, tree)).count()
    }
}
