//! The additional cost of reads because a leaf has several runs, or because many of its rows are in
//! the memtable. Once this cost reaches the cost of a consolidation of the leaf, or of a flush, the
//! consolidation or the flush is due.
//!
//! ```text
//!   a scan:    cursors beyond the first  x a block  --> scan debt (a rewrite of the leaf)
//!              runs above the base - 1   x a block  --> run debt  (a merge of these runs)
//!              messages of the memtable             --> a flush of the memtable
//!   a lookup:  runs above the base - 1   x a filter --> run debt
//! ```
//!
//! A reader whose cost makes a debt reach its limit posts a hint. A reader never plans.

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_memtable::Memtable;
use frondb_trunk::plan::SCAN_DEBT_FACTOR;
use frondb_trunk::{Asked, Node};

use crate::context::ReadContext;
use crate::source::MemSource;
use crate::tree::TreeCore;

/// Cost of a filter probe, expressed as the bytes that a scan reads in the same time: 0.3 us to
/// 0.5 us, including the search for the filter part in the cache.
const FILTER_BYTES: u64 = 128;

/// A flush is due only if scans have taken this many messages for each message of the memtable. In
/// the memtable, a message costs a scan a cache miss or two more than in a block. To flush a
/// message and merge it later costs about as much as these cache misses cost this many scans.
const FLUSH_FACTOR: u64 = 8;

/// The fixed cost of a flush, in messages that scans take: a flush writes a run and an edit of the
/// manifest, and syncs both.
const FLUSH_MESSAGES_FIXED: u64 = 256 * 1024;

/// Returns whether scans have taken so many messages from an active memtable that its flush would
/// have cost less. False unless the cache has room for the flushed data: if the data exceeds
/// memory, a memtable saves its readers the I/O for its rows.
#[must_use]
pub fn is_flush_paid(context: &ReadContext, memtable: &Memtable) -> bool {
    let gathered = memtable.gathered();
    gathered >= FLUSH_MESSAGES_FIXED
        && gathered - FLUSH_MESSAGES_FIXED >= memtable.len().saturating_mul(FLUSH_FACTOR)
        && context.runs.cache.room() >= memtable.bytes()
}

/// Posts a hint if a flush of the active memtable is due because of scans.
pub(crate) fn ask_for_flush(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    leaf: &Node,
    active: &MemSource,
) {
    if is_flush_paid(context, &active.memtable) && active.ask_for_flush(active.memtable.gathered())
    {
        context.hints.post(tree, leaf.id);
    }
}

/// Adds the cost of a scan that opened `sources` cursors over runs, `runs` of them above the leaf's
/// base. The first source is free; each further source adds one block.
pub(crate) fn add_scan(
    context: &ReadContext,
    tree: &Arc<TreeCore>,
    leaf: &Arc<Node>,
    sources: usize,
    runs: usize,
) {
    let extra = (sources as u64).saturating_sub(1);
    if extra == 0 {
        return;
    }
    let block = tree.options().trunk.run_block_bytes as u64;
    leaf.hints.add_scan_debt(extra * block);
    let debt = leaf.hints.scan_debt.load(Ordering::Relaxed);
    let due = leaf.totals.raw_bytes * SCAN_DEBT_FACTOR;
    // Post once, when the debt passes the limit.
    if debt > due && debt - extra * block <= due {
        context.hints.post(tree, leaf.id);
    }
    add_run_debt(context, tree, leaf, (runs as u64).saturating_sub(1) * block);
}

/// Adds the cost of a lookup to the leaf's run debt: a filter probe for each run above the base
/// except the first.
pub(crate) fn add_lookup(context: &ReadContext, tree: &Arc<TreeCore>, asked: Asked<'_>) {
    let extra = (asked.runs as u64).saturating_sub(1);
    add_run_debt(context, tree, asked.leaf, extra * FILTER_BYTES);
}

fn add_run_debt(context: &ReadContext, tree: &Arc<TreeCore>, leaf: &Node, bytes: u64) {
    let due = leaf.run_debt_due;
    if bytes == 0 || due == u64::MAX {
        return;
    }
    let debt = leaf.hints.add_run_debt(bytes);
    if passes_limit(debt - bytes, debt, due) {
        context.hints.post(tree, leaf.id);
    }
}

/// Returns whether a debt reaches its limit, or has doubled since the last hint. The hint is
/// repeated because the merge may have been impossible: the disk was full, or other work had the
/// leaf.
fn passes_limit(before: u64, debt: u64, due: u64) -> bool {
    (debt / due).checked_ilog2() != (before / due).checked_ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debt_that_is_not_paid_is_reported_ever_more_seldom() {
        let due = 1000;
        let reported = |debts: std::ops::Range<u64>| {
            debts
                .map(|debt| debt * FILTER_BYTES)
                .filter(|&debt| passes_limit(debt, debt + FILTER_BYTES, due))
        };
        assert_eq!(reported(0..7).count(), 0, "the limit is 7.8 times the cost");
        assert_eq!(reported(7..8).count(), 1);
        assert_eq!(reported(8..1_000_000).count(), 16);
    }
}
