//! What reads cost because a leaf has several runs: they pay for its consolidation.
//!
//! ```text
//!   a scan:    cursors beyond the first  x a block  --> scan debt (a rewrite of the leaf)
//!              runs above the base - 1   x a block  --> run debt  (a merge of these runs)
//!   a lookup:  runs above the base - 1   x a filter --> run debt
//! ```
//!
//! A reader that brings a debt to its limit posts a hint. It never plans.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_trunk::plan::SCAN_DEBT_FACTOR;
use frondb_trunk::{Asked, Node};

use crate::context::ReadContext;
use crate::tree::TreeCore;

/// Cost of asking a filter, as bytes that a scan reads: 0.3 us to 0.5 us with the search for the
/// part of the filter in the cache.
const FILTER_BYTES: u64 = 128;

/// Adds the cost of a scan that opened `sources` cursors over runs. A leaf whose only run is its
/// base adds nothing; each further run adds one block.
pub(crate) fn add_scan(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    leaf: &Arc<Node>,
    sources: usize,
) {
    let extra = (sources as u64).saturating_sub(1);
    if extra == 0 {
        return;
    }
    let block = tree.options.trunk.run_block_bytes as u64;
    leaf.hints.add_scan_debt(extra * block);
    let debt = leaf.hints.scan_debt.load(Ordering::Relaxed);
    let due = leaf.totals.raw_bytes * SCAN_DEBT_FACTOR;
    // Posts once, when the debt passes the limit.
    if debt > due && debt - extra * block <= due {
        context.hints.post(tree, leaf.id);
    }
    let bases = usize::from(!leaf.base().is_empty());
    let runs = sources.saturating_sub(bases).min(leaf.runs.len());
    add_run_debt(context, tree, leaf, (runs as u64).saturating_sub(1) * block);
}

/// Adds the cost of a lookup.
pub(crate) fn add_lookup(context: &ReadContext, tree: &Arc<TreeCore>, asked: Asked<'_>) {
    add_run_debt(context, tree, asked.leaf, asked.extra_runs() * FILTER_BYTES);
}

fn add_run_debt(context: &ReadContext, tree: &Arc<TreeCore>, leaf: &Node, bytes: u64) {
    let due = leaf.run_debt_due;
    if bytes == 0 || due == u64::MAX {
        return;
    }
    let debt = leaf.hints.add_run_debt(bytes);
    // The planner may allow fewer inputs, and so a later merge: it is asked again at each multiple.
    if debt / due != (debt - bytes) / due {
        context.hints.post(tree, leaf.id);
    }
}
