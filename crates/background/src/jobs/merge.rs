//! Carries out the plan of a node: merges, rewrites or flushes the node's runs, or changes the
//! shape of the trunk.

use std::collections::{HashMap, HashSet};

use frondb_core::clock::Nanos;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::wear::WriteCause;
use frondb_core::{NodeId, Result, RunId, SeqNo, TreeId};
use frondb_records::Edit;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_tree::{InstallState, TreeCore, Version, extents_of, tombstones};
use frondb_trunk::install::{Change, PlacedRun, VersionBuilder};
use frondb_trunk::job::{Job, JobStats};
use frondb_trunk::plan::{
    Plan, Planned, Reason, Summary, TOMBSTONE_RUN, TRUNCATION_RUN, plan_node,
};
use frondb_trunk::{CompactionHints, Node, Prepared, View, prepare};

use crate::context::JobContext;
use crate::jobs::install::{InstallEnd, Installed, discard, install};
use crate::jobs::notice::Notice;

/// A job on the runs of a node. While the job exists, the node is claimed in the tree's install
/// state.
pub struct MergeJob {
    /// The tree of the node.
    pub tree: Arc<TreeCore>,
    /// The plan that the job carries out.
    pub planned: Planned,
    pub(super) job: Job,
    claimed: HashSet<RunId>,
    runs: Vec<Arc<Run>>,
    consumed: RangeDeletes,
    snapshots: Arc<[SeqNo]>,
    run_entries: u64,
    begun: Nanos,
    notice: Notice,
    pub(super) reserved: bool,
}

/// The result of beginning a plan.
pub enum Begun {
    /// A job for the caller to step.
    Job(Box<MergeJob>),
    /// The plan changed only the trunk, and the change is installed.
    Done(Installed),
}

impl MergeJob {
    /// Begins a plan. `None` if the tree was dropped, or if the node (or a child to be joined) no
    /// longer exists or is claimed by another job, or the node needs no work any more.
    ///
    /// # Errors
    /// Errors of reading runs, and of the install of a plan without a job.
    pub fn begin(
        context: &JobContext,
        tree: &Arc<TreeCore>,
        planned: Planned,
    ) -> Result<Option<Begun>> {
        let (version, node, planned) = {
            let mut install = tree.install.lock();
            let version = tree.version();
            let root = version.trunk.root.id;
            let Some(node) = version.trunk.find(planned.node).map(Arc::clone) else {
                return Ok(None);
            };
            if tree.is_dropped() || install.claimed.contains(&node.id) {
                return Ok(None);
            }
            // The node may have changed since it was planned.
            let planning = tree.plan_context(&version.trunk, context.plan_limits());
            let summary = Summary::of(&node, node.id == root);
            let Some(planned) = plan_node(&summary, &planning) else { return Ok(None) };
            install.claimed.insert(node.id);
            if matches!(planned.plan, Plan::FlushNode | Plan::Rewrite(..)) {
                node.withdraw_optimize();
            }
            if planned.plan == Plan::TruncatePrefix {
                // Flushes after this point may request another truncation.
                node.hints.truncate_prefix.store(0, Ordering::Relaxed);
            }
            if let Plan::Join(i) = planned.plan {
                let free = node.children()[i..=i + 1]
                    .iter()
                    .all(|child| !install.claimed.contains(&child.id));
                if !free {
                    install.claimed.remove(&node.id);
                    return Ok(None);
                }
            }
            (version, node, planned)
        };
        let begun = match planned.plan {
            Plan::Regroup | Plan::Join(_) => {
                reshape(context, tree, &node, planned).map(Begun::Done)
            }
            _ => Self::job(context, tree, &version, &node, planned)
                .map(|job| Begun::Job(Box::new(job))),
        };
        if !matches!(begun, Ok(Begun::Job(_))) {
            tree.install.lock().claimed.remove(&node.id);
        }
        begun.map(Some)
    }

    /// Creates the job of a plan that writes data.
    fn job(
        context: &JobContext,
        tree: &Arc<TreeCore>,
        version: &Version,
        node: &Arc<Node>,
        planned: Planned,
    ) -> Result<Self> {
        let snapshots = context.reads.snapshots.list();
        let leaf_target = tree.plan_context(&version.trunk, context.plan_limits()).leaf_target();
        let mut job_env = context.job_env(WriteCause::Merge, tree, planned.frees_space);
        if matches!(planned.plan, Plan::Rewrite(Reason::Pack | Reason::Optimize, _)) {
            job_env.packing = context.final_packing(tree, &version.trunk, &job_env.options);
        }
        let reserved = job_env.reserved;
        let (trunk, listed) = (&version.trunk, Arc::clone(&snapshots));
        let Prepared { job, claimed, runs, consumed, run_entries } =
            prepare(job_env, trunk, node, planned.plan, leaf_target, listed)?;
        Ok(Self {
            tree: Arc::clone(tree),
            planned,
            job,
            claimed,
            runs,
            consumed,
            snapshots,
            run_entries,
            begun: context.reads.now(),
            notice: Notice::merge(context, tree.id),
            reserved,
        })
    }

    /// Makes the job's output part of the trunk. REQUIRES: the job's last step has returned `true`.
    ///
    /// # Errors
    /// Errors of writing, of the sync of the data, and of the install.
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let Self {
            tree,
            planned,
            job,
            claimed,
            runs,
            consumed,
            snapshots,
            run_entries,
            begun,
            notice,
            ..
        } = self;
        let paid = job.bytes_written();
        let result = job.finish()?;
        context.throttle.pay(result.stats.bytes_written.saturating_sub(paid), context.reads.now());
        let below = match &result.first_kept {
            Some(key) => entries_below(&runs, key)?,
            None => HashMap::new(),
        };
        // A prefix truncation writes no data, so it skips the sync: a reader may be waiting for the
        // truncation.
        if !result.new_runs.is_empty()
            && let Err(error) = context.space.sync()
        {
            discard(&result.new_runs);
            return Err(error);
        }
        let oldest = snapshots.first().copied();
        let (node, new_runs, stats) = (planned.node, &result.new_runs, &result.stats);
        let build = |builder: &mut VersionBuilder<'_>, _: &mut InstallState| match planned.plan {
            Plan::FlushNode => builder.flush_node(node, &claimed, &consumed, new_runs, oldest),
            Plan::MergeRuns(_) | Plan::MergeForReaders(_) => {
                builder.merge_runs(node, &claimed, new_runs)
            }
            Plan::MergeBase { .. } => builder.merge_base(node, &claimed, new_runs),
            Plan::TruncatePrefix => {
                let hints = hints_after_truncation(&tree.version(), node, stats, oldest.is_some());
                let kept = result.first_kept.as_ref();
                builder.truncate_prefix(node, &claimed, kept, &below, hints)
            }
            _ => {
                let met = stats.entries_in.saturating_sub(stats.entries_out);
                let overlap = (met * 100 / run_entries.max(1)).min(100);
                builder.rewrite(node, &claimed, &consumed, new_runs, oldest, overlap)
            }
        };
        let end = |change: &Change, state: &mut InstallState| {
            state.claimed.remove(&node);
            if planned.plan == Plan::FlushNode {
                pass_hints_on(change, node, new_runs);
            }
            let (edits, orphans) = drop_values(tree.id, state, &result.dropped_refs)?;
            Ok(InstallEnd { flushed: None, edits, orphans })
        };
        let installed = install(context, &tree, new_runs, build, end);
        let Some(installed) = installed.inspect_err(|_| discard(new_runs))? else {
            tree.install.lock().claimed.remove(&node);
            discard(new_runs);
            return Ok(Installed::nothing_but(vec![node]));
        };
        drop(runs);
        context.counters.add_merge(&planned, stats);
        let nanos = context.reads.nanos_since(begun);
        context.latencies.merge.add(nanos);
        notice.ended(stats.bytes_written, nanos);
        Ok(installed)
    }
}

/// Counts the flush of an inner node, and passes a request for the node's tombstone compaction on
/// to its children.
fn pass_hints_on(change: &Change, node: NodeId, new_runs: &[PlacedRun]) {
    let Some(node) = change.trunk.find(node) else { return };
    node.hints.flushes.fetch_add(1, Ordering::Relaxed);
    if node.hints.compact_tombstones.swap(0, Ordering::Relaxed) != 0 {
        tombstones::request_after_node_flush(node, new_runs);
    }
}

/// Removes from the install state the large values to which a merge dropped the references. Returns
/// the edits that record the removal, and the extents of the values.
fn drop_values(
    tree: TreeId,
    state: &mut InstallState,
    dropped_refs: &[Box<[u8]>],
) -> Result<(Vec<Edit>, Vec<Extent>)> {
    let (mut edits, mut orphans) = (Vec::new(), Vec::new());
    for extents in extents_of(dropped_refs)? {
        let Some(first) = extents.first().copied() else { continue };
        if state.values.remove(&first).is_some() {
            edits.push(Edit::DropValue { tree, first });
            orphans.extend(extents);
        }
    }
    Ok((edits, orphans))
}

/// Estimates how many messages of each run are below `key`.
fn entries_below(runs: &[Arc<Run>], key: &[u8]) -> Result<HashMap<RunId, u64>> {
    runs.iter().map(|run| Ok((run.meta().id, run.rank(key)?))).collect()
}

/// Returns the compaction hints of a leaf after prefix truncation. What readers and flushes have
/// recorded stays, except the request for tombstone compaction, which depends on the remaining
/// deletes. `held` says whether a snapshot was live.
fn hints_after_truncation(
    version: &Version,
    node: NodeId,
    stats: &JobStats,
    held: bool,
) -> CompactionHints {
    let Some(node) = version.trunk.find(node) else { return CompactionHints::default() };
    let deletes: u64 = node.runs.iter().map(View::deletes).sum();
    // The truncation was futile if it read few messages, because the tombstone run ends early in
    // this leaf. It was not futile if a snapshot still needed the rows: the leaf is truncated after
    // the end of the snapshot.
    let in_vain = !held && stats.entries_in < TRUNCATION_RUN.min(deletes / 2);
    if in_vain {
        // Also set the flag in the current leaf, which stays in the trunk if nothing was truncated.
        node.hints.truncation_futile.store(1, Ordering::Relaxed);
    }
    let hints = node.hints.copy();
    if deletes.saturating_sub(stats.dropped_deletes) > TOMBSTONE_RUN {
        // Another tombstone run is left. The flushes that brought it may have requested no
        // compaction: memtables frozen early because of the truncated run may have cut the other
        // run into pieces that are too short.
        hints.request_tombstone_compaction();
    } else if !in_vain {
        hints.compact_tombstones.store(0, Ordering::Relaxed);
    }
    hints
}

/// Changes the trunk without writing data: regroups the children of a node, or joins two of them.
fn reshape(
    context: &JobContext,
    tree: &TreeCore,
    node: &Node,
    planned: Planned,
) -> Result<Installed> {
    let build = |builder: &mut VersionBuilder<'_>, state: &mut InstallState| match planned.plan {
        Plan::Join(i) => {
            let children = node.children();
            let claimed = [i, i + 1].iter().any(|&i| state.claimed.contains(&children[i].id));
            !claimed && builder.join(node.id, children[i].id, children[i + 1].id)
        }
        _ => builder.regroup(node.id, tree.options().trunk.fanout),
    };
    let installed = install(context, tree, &[], build, |_, _| Ok(InstallEnd::default()))?;
    Ok(installed.unwrap_or_else(Installed::nothing))
}
