//! Finds the next node on which an optimize has to work, and the key at which the optimize of a
//! part of the tree ends. Pure functions.
//!
//! An optimize goes through the leaves in key order and consolidates each: everything committed
//! before the optimize began becomes a base without garbage. Before that, inner nodes flush what
//! they buffer for a leaf.
//!
//! SeqNos alone do not show which data is old: a run of old data that is merged twice with newer
//! data counts as new ([`RunMeta::min_seq`](frondb_run::RunMeta)). So an optimize works once on
//! each node that holds runs above a base, and then goes by SeqNos, so that it ends although writes
//! continue.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{RunId, SeqNo};

use crate::node::{Key, Node, Trunk};
use crate::options::TrunkOptions;
use crate::view::View;

/// What an optimize covers, and what decides whether a node still needs its work.
#[derive(Clone, Copy)]
pub struct OptimizeScope<'a> {
    /// The newest SeqNo that the optimize covers.
    pub upto: SeqNo,
    /// The last run id given out before the optimize began.
    pub last_run: RunId,
    /// The oldest live snapshot; `None` if there is none.
    pub oldest_snapshot: Option<SeqNo>,
    /// The options of the tree.
    pub options: TrunkOptions,
    /// Whether the optimize has worked on the node.
    pub is_worked_on: &'a dyn Fn(&Node) -> bool,
}

/// The state of the trunk at an optimize's current key.
#[derive(Clone, Copy, Debug)]
pub struct OptimizeStep<'a> {
    /// The leaf whose range contains the key.
    pub leaf: &'a Arc<Node>,
    /// The node that needs work before the optimize can continue: an inner node above the leaf, or
    /// the leaf itself; `None` if the leaf is consolidated.
    pub next: Option<&'a Arc<Node>>,
    /// Whether the leaf contains garbage that was kept for a snapshot, which may have ended, or
    /// updates that a rewrite could not apply.
    pub is_held: bool,
}

impl Trunk {
    /// Returns what an optimize has to do at `key`.
    #[must_use]
    pub fn optimize_at(&self, key: &[u8], scope: &OptimizeScope<'_>) -> OptimizeStep<'_> {
        let (mut node, mut above) = (&self.root, None);
        while let Some(child) = node.child_for(key) {
            if above.is_none() && is_flush_needed(node, scope) {
                above = Some(node);
            }
            node = child;
        }
        let (needs, is_held) = leaf_needs(node, scope);
        OptimizeStep { leaf: node, next: above.or_else(|| needs.then_some(node)), is_held }
    }

    /// Returns the upper bound of the leaf that ends the first `fraction` (0 to 1) of the data in
    /// leaves; `None` if this is the last leaf.
    #[must_use]
    pub fn fraction_end(&self, fraction: f64) -> Option<Key> {
        let mut leaves = Vec::new();
        self.for_each(&mut |node| {
            if node.is_leaf() {
                leaves.push(node);
            }
        });
        let all: u64 = leaves.iter().map(|leaf| leaf.totals.raw_bytes).sum();
        let wanted = all as f64 * fraction;
        let mut passed = 0;
        let last = leaves.into_iter().find(|leaf| {
            passed += leaf.totals.raw_bytes;
            passed as f64 >= wanted
        });
        last.and_then(|leaf| leaf.hi.clone())
    }

    /// Returns the number of leaves whose range overlaps `[from, to)`.
    #[must_use]
    pub fn leaves_between(&self, from: &[u8], to: Option<&[u8]>) -> u64 {
        let mut leaves = 0;
        self.for_each(&mut |node| {
            let is_behind = to.is_some_and(|to| *node.lo >= *to);
            let is_before = node.hi.as_ref().is_some_and(|hi| **hi <= *from);
            leaves += u64::from(node.is_leaf() && !is_behind && !is_before);
        });
        leaves
    }
}

impl Node {
    /// Requests the work of an optimize on the node. Returns `false` if it had already been
    /// requested.
    pub fn request_optimize(&self) -> bool {
        self.hints.optimize.swap(1, Ordering::Relaxed) == 0
    }

    /// Withdraws the request, when the work begins or is abandoned. Returns whether there was a
    /// request.
    pub fn withdraw_optimize(&self) -> bool {
        self.hints.optimize.swap(0, Ordering::Relaxed) != 0
    }

    /// Whether the work of an optimize is requested and has not begun.
    #[must_use]
    pub fn is_optimize_requested(&self) -> bool {
        self.hints.optimize.load(Ordering::Relaxed) != 0
    }
}

/// Whether an inner node buffers data that must reach the leaves before the leaf is consolidated.
fn is_flush_needed(node: &Node, scope: &OptimizeScope<'_>) -> bool {
    match (scope.is_worked_on)(node) {
        false => !node.runs.is_empty() || !node.range_deletes.is_empty(),
        true => has_old(&node.runs, scope.upto) || old_deletes(node, scope.upto) > 0,
    }
}

/// Whether a rewrite would improve the leaf, and whether the leaf contains garbage that was kept
/// for a snapshot, or updates that a rewrite could not apply.
fn leaf_needs(leaf: &Node, scope: &OptimizeScope<'_>) -> (bool, bool) {
    let upto = scope.upto;
    let held_by = leaf.hints.held_by.load(Ordering::Relaxed);
    let is_held = scope.oldest_snapshot.is_some_and(|oldest| oldest.get() < held_by);
    let kept = if is_held { leaf.hints.held_range_deletes.load(Ordering::Relaxed) } else { 0 };
    let in_base = leaf.base().iter().any(|view| {
        let meta = view.run.meta();
        view.deletes() > 0 || meta.updates > 0 || !meta.unique_keys
    });
    let is_new = match leaf.base() {
        [] => (scope.is_worked_on)(leaf),
        base => base.iter().all(|view| view.run.meta().id > scope.last_run),
    };
    let is_unpacked = leaf.base().iter().any(|view| {
        let meta = view.run.meta();
        !scope.options.is_packed(meta.codec, meta.tree_block_bytes)
    });
    let above = !leaf.runs.is_empty() && !is_new || has_old(&leaf.runs, upto);
    let needs = above
        || old_deletes(leaf, upto) > kept
        || leaf.base().iter().filter(|view| is_old(view, upto)).count() > 1
        || leaf.truncated_entries() > 0 && !is_new
        // A base written since the optimize began contains only garbage that a snapshot needed, and
        // updates that the rewrite could not apply.
        || in_base && !is_held && !is_new
        || is_unpacked && !(scope.is_worked_on)(leaf);
    (needs, in_base || kept > 0)
}

/// Whether, judging by SeqNos, the view has a message that the optimize must consider.
fn is_old(view: &View, upto: SeqNo) -> bool {
    view.run.meta().min_seq <= upto
}

fn has_old(views: &[View], upto: SeqNo) -> bool {
    views.iter().any(|view| is_old(view, upto))
}

/// Returns the number of range deletes that the optimize must consider.
fn old_deletes(node: &Node, upto: SeqNo) -> u64 {
    node.range_deletes.iter().filter(|delete| delete.seq <= upto).count() as u64
}
