//! Plans for a leaf (rules 14 and 15 among others).

use frondb_core::NodeId;

use super::planned::{PRIORITY_IDLE, PRIORITY_PACK, Plan, Reason};
use super::readers::merge_for_readers;
use super::summary::{Context, RunSummary, Summary};
use super::thresholds::{
    BASE_VIEWS_MAX, PACK_IDLE_PART, PACK_PART, RANGE_DELETES_MAX, SCAN_DEBT_FACTOR,
};
use crate::schedule::{merge_due, runs_for};

pub(super) fn plan_leaf(node: &Summary, context: &Context) -> Option<Plan> {
    let o = &context.options;
    let runs = node.runs_raw_bytes();
    let total = runs + node.base.raw_bytes;
    let rewrite = |reason| Some(Plan::Rewrite(reason, context.pieces(total)));
    let held = node.is_held(context);
    if node.truncate_prefix && node.runs.iter().any(|run| run.deletes > 0) {
        return Some(Plan::TruncatePrefix);
    }
    if node.compact_tombstones && node.has_deletes(held) {
        return rewrite(Reason::Tombstones);
    }
    let kept = if held { node.held_range_deletes } else { 0 };
    if node.range_deletes > kept + RANGE_DELETES_MAX {
        return rewrite(Reason::RangeDeletes);
    }
    if !node.runs.is_empty() {
        let grown = node.base.raw_bytes * o.growth_percent / 100 * jitter_percent(node.id) / 100;
        let k = runs_max(node, context);
        if runs >= grown.max(o.slice_bytes_min) {
            // A leaf that waits for this rewrite gets no merges of its runs. So if it has too many
            // runs, the rewrite is as urgent as a merge.
            let too_many = node.runs.len() as u64 > k;
            return rewrite(if too_many { Reason::Runs } else { Reason::Growth });
        }
        let writes: Vec<u8> = node.runs.iter().map(|run| run.writes).collect();
        if let Some(n) = merge_due(&writes, k, context.writes()) {
            // If the merge does not remove the garbage, a rewrite follows. On a full disk the
            // rewrite must come first, because a merge keeps most garbage and finds no space.
            if garbage_percent(node, held, node.truncated_entries / 2) > o.garbage_percent {
                return rewrite(Reason::Runs);
            }
            return Some(Plan::MergeRuns(whole_runs(&node.runs, n)));
        }
        if node.runs.len() as u64 > k {
            return rewrite(Reason::Runs);
        }
    }
    if node.base_views.len() > BASE_VIEWS_MAX {
        // A rewrite that frees space is worth more than a merge, especially on a full disk.
        let garbage = garbage_percent(node, held, node.truncated_entries);
        if garbage >= o.garbage_percent / 2 {
            return rewrite(Reason::Runs);
        }
        // Writing a small base again costs little, and one view takes less of the manifest.
        let is_small = node.base.raw_bytes <= o.leaf_bytes_min;
        let whole = Plan::MergeBase { from: 0, views: node.base_views.len() };
        return Some(if is_small { whole } else { merge_base(&node.base_views) });
    }
    // If rows are deleted in key order, the rest of a truncated leaf is soon deleted, too, and is
    // then dropped without any write. So truncated messages count half.
    let truncated = node.truncated_entries;
    if node.hides_view && !held || garbage_percent(node, held, truncated / 2) > o.garbage_percent {
        return rewrite(Reason::Garbage);
    }
    if node.optimize {
        let frees_values = !held && context.is_worth(node.old_refs.min(node.run_deletes()), total);
        return rewrite(if frees_values { Reason::Garbage } else { Reason::Optimize });
    }
    if node.scan_debt > total * SCAN_DEBT_FACTOR && !node.runs.is_empty() {
        return rewrite(Reason::ScanDebt);
    }
    let sizes = node.runs.iter().map(|run| (run.id, run.raw_bytes));
    if let Some(merge) = merge_for_readers(sizes, total, context.inputs_max)
        && node.run_debt >= merge.due
    {
        return Some(Plan::MergeForReaders(merge.runs));
    }
    let pack = || {
        is_worth_packing(node, context)
            .then_some(Plan::Rewrite(Reason::Pack, context.pieces(total)))
    };
    if held {
        return pack();
    }
    // Each delete that is newer than large values most likely hides one of them. If their space is
    // worth the bytes that the rewrite reads and writes, the rewrite counts as debt, because users
    // wait for the space.
    if context.is_worth(node.old_refs.min(node.run_deletes()), total) {
        return rewrite(Reason::Garbage);
    }
    // Any newer message may hide a value. A base holds deletes only if a snapshot needed the
    // messages that they hide.
    let hidden = match node.runs.is_empty() {
        true => node.base_refs.min(node.base.deletes),
        false => node.old_refs,
    };
    if context.is_worth(hidden, total) {
        return rewrite(Reason::Values);
    }
    let garbage_in_base = node.base.deletes > 0 && node.runs.is_empty()
        || truncated > 0 && garbage_percent(node, held, truncated) > o.garbage_percent;
    if node.range_deletes > 0 || garbage_in_base {
        return rewrite(Reason::Idle);
    }
    pack()
}

/// Whether enough of the leaf is unpacked to pack all of it. `false` if the leaf's runs will soon
/// make a rewrite due, because that rewrite would write everything again.
fn is_worth_packing(node: &Summary, context: &Context) -> bool {
    let (left, all) = (node.unpacked_bytes(&context.options), node.base.raw_bytes);
    left > 0 && left * PACK_IDLE_PART >= all && node.runs_raw_bytes() * PACK_PART <= all
}

/// Returns the priority of packing the leaf. A leaf that is still small, or has little to pack,
/// waits until the database is idle, because most likely more data arrives, and all of it would be
/// packed again.
pub(super) fn pack_priority(node: &Summary, context: &Context) -> u8 {
    let (left, all) = (node.unpacked_bytes(&context.options), node.base.raw_bytes);
    let is_large = all >= context.leaf_target() / 2;
    if is_large && left * PACK_PART >= all { PRIORITY_PACK } else { PRIORITY_IDLE }
}

/// Returns the merge of neighbouring views of a base that costs least per removed view: small
/// appends are merged with each other, and seldom with the output of earlier merges. Views of one
/// run are merged together (rule 1).
fn merge_base(views: &[RunSummary]) -> Plan {
    let is_same = |a: usize| move |b: &RunSummary| b.id == views[a].id;
    let first = |at: usize| views.iter().position(is_same(at)).unwrap_or(at);
    let last = |at: usize| views.iter().rposition(is_same(at)).unwrap_or(at);
    let spans: Vec<(usize, usize)> = (0..views.len()).map(|at| (first(at), last(at))).collect();
    let mut best = (u128::MAX, 0..views.len());
    for from in 0..views.len() {
        let (mut bytes, mut needs) = (0, from);
        for (at, (first, last)) in spans.iter().copied().enumerate().skip(from) {
            if first < from {
                break;
            }
            bytes += u128::from(views[at].raw_bytes);
            needs = needs.max(last);
            if at > from && needs <= at {
                let cost = bytes * 1024 / (at - from) as u128;
                if cost < best.0 {
                    best = (cost, from..at + 1);
                }
            }
        }
    }
    let (_, views) = best;
    Plan::MergeBase { from: views.start, views: views.len() }
}

/// Extends `n` runs by the other views of the last run, because runs are claimed whole (rule 1).
pub(super) fn whole_runs(runs: &[RunSummary], n: usize) -> usize {
    let more = runs[n..].iter().take_while(|run| n > 0 && run.id == runs[n - 1].id);
    n + more.count()
}

/// Returns K, the number of runs that the leaf may have. K is derived from the number of slices
/// that the leaf will absorb before a rewrite of its base is due.
pub(super) fn runs_max(node: &Summary, context: &Context) -> u64 {
    let newest: Vec<u64> = node.runs.iter().take(4).map(|run| run.raw_bytes.max(1)).collect();
    let slices: Vec<u64> = node
        .runs
        .iter()
        .filter(|run| u64::from(run.writes) < u64::from(context.writes()))
        .map(|run| run.raw_bytes.max(1))
        .collect();
    let sample = if slices.is_empty() { &newest } else { &slices };
    let average = sample.iter().sum::<u64>() / sample.len().max(1) as u64;
    let base = node.base.raw_bytes.max(context.leaf_target() / 2);
    let expected = (base * context.options.growth_percent / 100).div_ceil(average.max(1));
    runs_for(expected.min(4096), u64::from(context.options.writes_before_base)).clamp(2, 24)
}

/// Estimates the percentage of the leaf's messages that a rewrite drops. `truncated` is the number
/// of truncated messages that count as garbage.
pub(super) fn garbage_percent(node: &Summary, held: bool, truncated: u64) -> u64 {
    let run_entries: u64 = node.runs.iter().map(|run| run.entries).sum();
    let run_deletes: u64 = node.runs.iter().map(|run| run.deletes).sum();
    let entries = run_entries + node.base.entries + node.truncated_entries;
    if entries == 0 {
        return 0;
    }
    // A delete removes itself and the message that it hides. An overwrite removes the message that
    // it hides.
    let overwritten = run_entries.saturating_sub(run_deletes) * node.overlap_percent / 100;
    let base_deletes = if held { 0 } else { node.base.deletes };
    let garbage = run_deletes * 2 + base_deletes + overwritten + truncated;
    (garbage * 100 / entries).min(100)
}

/// Returns 75 to 125, depending on the node, so that leaves do not all come due at the same time.
fn jitter_percent(id: NodeId) -> u64 {
    let mixed = id.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    75 + mixed % 51
}
