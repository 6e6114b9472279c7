//! Turns a plan into a job: its inputs, the places of its output, and the runs that it claims.
//! Decides whether the job may drop deletes (rules 13 and 14).

use std::collections::HashSet;

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Error, Result, RunId, SeqNo};
use frondb_run::Run;

use crate::cut::{Target, node_targets, one_target};
use crate::install::Place;
use crate::job::{Job, JobEnv, JobInput, view_input};
use crate::node::{Node, Trunk};
use crate::plan::Plan;
use crate::view::View;

/// A job, with the data that the install of its result needs.
pub struct Prepared {
    /// The job, ready to be stepped.
    pub job: Job,
    /// Ids of the runs whose views in the node the job replaces (rule 1).
    pub claimed: HashSet<RunId>,
    /// The claimed runs.
    pub runs: Vec<Arc<Run>>,
    /// The node's range deletes, which the job applies.
    pub consumed: RangeDeletes,
    /// Number of messages of the leaf's runs, without its base.
    pub run_entries: u64,
}

/// Creates the job of `plan` for `node`, a node of `trunk`. `leaf_target` is the target size of a
/// leaf ([`Context::leaf_target`](crate::plan::Context::leaf_target)). `snapshots` are the live
/// snapshots, ascending, listed after `trunk` was taken.
///
/// # Errors
/// `Corruption` or a device error of a run's block index; `Internal` for a plan without a job.
pub fn prepare(
    env: JobEnv,
    trunk: &Trunk,
    node: &Node,
    plan: Plan,
    leaf_target: u64,
    snapshots: Arc<[SeqNo]>,
) -> Result<Prepared> {
    let (views, base) = match plan {
        Plan::FlushNode => (&node.runs[..], &[][..]),
        Plan::MergeRuns(n) | Plan::MergeForReaders(n) => (newest(&node.runs, n), &[][..]),
        Plan::MergeBase { from, views } => (&[][..], part(node.base(), from, views)),
        Plan::Rewrite(..) | Plan::TruncatePrefix => (&node.runs[..], node.base()),
        Plan::Regroup | Plan::Join(_) => {
            return Err(Error::internal(
                "a plan that only changes the shape of the trunk has no job",
            ));
        }
    };
    // All data that the parents buffer for these keys is newer (invariant 4 of a node). So nothing
    // is older than all views of a leaf together, and nothing is older than its base.
    let all = views.len() + base.len() == node.views().count();
    let at_base = node.is_leaf() && (all || matches!(plan, Plan::MergeBase { .. }));
    let consumed = (*node.range_deletes).clone();
    let mut input = view_input(views.iter(), consumed.clone(), snapshots, at_base)?;
    input.add_base(base);
    let runs: Vec<Arc<Run>> = views.iter().chain(base).map(|v| Arc::clone(&v.run)).collect();
    let claimed = runs.iter().map(|run| run.meta().id).collect();
    let writes = views.iter().map(|view| view.run.meta().writes).filter(|w| *w < u8::MAX).max();
    // In a node with a damaged run, the newer runs are merged again and again, and their count must
    // not reach 255, the value of bases.
    let writes = writes.unwrap_or(0).saturating_add(1).min(u8::MAX - 1);
    let targets = targets(node, plan, &input, leaf_target);
    let newer = match plan {
        // For the same key, the leaf's runs are newer than its base, as is the data that the
        // parents buffer.
        Plan::MergeBase { .. } => node.runs.iter().map(|view| view.run.meta().min_seq).min(),
        _ => None,
    };
    let oldest_newer = trunk.oldest_above(node).into_iter().chain(newer).min();
    let mut job = Job::below(env, input, targets, writes, oldest_newer)?;
    if plan == Plan::TruncatePrefix {
        job.end_at_first_kept();
    }
    let run_entries = node.runs.iter().map(View::entries).sum();
    Ok(Prepared { job, claimed, runs, consumed, run_entries })
}

fn targets(node: &Node, plan: Plan, input: &JobInput, leaf_target: u64) -> Vec<Target> {
    let (lo, hi) = (&node.lo, node.hi.as_ref());
    match plan {
        Plan::FlushNode => node_targets(node, leaf_target),
        Plan::Rewrite(_, pieces) if pieces > 1 => {
            one_target(lo, hi, Place::Base, input.raw_bytes / pieces + 1)
        }
        Plan::MergeBase { from, .. } => {
            let lo = node.base().get(from).map_or(lo, |view| &view.lo);
            one_target(lo, hi, Place::Base, u64::MAX)
        }
        Plan::Rewrite(..) => one_target(lo, hi, Place::Base, u64::MAX),
        _ => one_target(lo, hi, Place::Slice, u64::MAX),
    }
}

/// Returns up to `n` views, beginning with the view at index `from`.
fn part(views: &[View], from: usize, n: usize) -> &[View] {
    let views = views.get(from..).unwrap_or_default();
    &views[..n.min(views.len())]
}

/// Returns the `n` newest views and the other views of the last one's run, because runs are claimed
/// whole.
fn newest(runs: &[View], n: usize) -> &[View] {
    let mut n = n.min(runs.len());
    let id = |view: &View| view.run.meta().id;
    while n > 0 && n < runs.len() && id(&runs[n]) == id(&runs[n - 1]) {
        n += 1;
    }
    &runs[..n]
}
