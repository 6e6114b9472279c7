//! Carrying out what the planner decided for a node, and the end of every install: the manifest
//! edit, the new version, and the runs that nobody needs any more.

use frondb_commit::EditLatch;
use std::collections::{HashMap, HashSet};

use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, Result, RunId, SeqNo};
use frondb_manifest::Ticket;
use frondb_run::Run;
use frondb_space::Extent;
use frondb_trunk::install::{Change, Made, VersionBuilder};
use frondb_trunk::job::{Job, JobStats};
use frondb_trunk::plan::{Plan, Planned, Summary, TOMBSTONE_RUN, TRUNCATION_RUN, plan_node};
use frondb_trunk::{CompactionHints, Node, View};
use frondb_trunk::{Prepared, prepare};

use crate::env::Env;
use crate::flush::FlushJob;
use crate::work::{RANK_FLUSH, Work};
use frondb_records::Edit;
use frondb_tree::{InstallState, MemSource, TreeCore, Version, extents_of, tombstones};

/// A job under way.
pub(crate) enum Running {
    /// Of a memtable.
    Flush(Box<FlushJob>),
    /// Of a node.
    Merge(Box<MergeJob>),
}

impl Running {
    /// Smaller comes first.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Flush(_) => RANK_FLUSH,
            Self::Merge(job) => job.planned.priority,
        }
    }

    /// Whether writers are slowed while it waits.
    pub(crate) fn is_debt(&self) -> bool {
        match self {
            Self::Flush(_) => true,
            Self::Merge(job) => job.planned.is_debt(),
        }
    }

    /// Whether it may run while the disk is full.
    pub(crate) fn frees_space(&self) -> bool {
        match self {
            Self::Flush(job) => job.reserved,
            Self::Merge(job) => job.reserved,
        }
    }

    /// Goes on for a step; `true` when all is written.
    pub(crate) fn step(&mut self) -> Result<bool> {
        match self {
            Self::Flush(job) => job.step(),
            Self::Merge(job) => job.job.step(),
        }
    }

    /// Bytes that its steps have written so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        match self {
            Self::Flush(job) => job.bytes_written(),
            Self::Merge(job) => job.job.bytes_written(),
        }
    }

    /// The node that it merges; `None` for a flush.
    pub(crate) fn node(&self) -> Option<NodeId> {
        match self {
            Self::Flush(_) => None,
            Self::Merge(job) => Some(job.planned.node),
        }
    }

    pub(crate) fn tree(&self) -> &Arc<TreeCore> {
        match self {
            Self::Flush(job) => &job.tree,
            Self::Merge(job) => &job.tree,
        }
    }
}

/// A node's runs being merged, rewritten or flushed.
pub(crate) struct MergeJob {
    pub(crate) tree: Arc<TreeCore>,
    pub(crate) planned: Planned,
    job: Job,
    claimed: HashSet<RunId>,
    runs: Vec<Arc<Run>>,
    consumed: RangeDeletes,
    snapshots: Arc<[SeqNo]>,
    run_entries: u64,
    reserved: bool,
}

/// What became of a plan.
pub(crate) enum Begun {
    /// There is a job to step.
    Job(Box<MergeJob>),
    /// It was a change of the trunk alone, and is done.
    Done(Installed),
}

/// What an install leaves to do without locks.
pub(crate) struct Installed {
    ticket: Option<Ticket>,
    dead: Vec<Arc<Run>>,
    /// Nodes to plan anew.
    pub(crate) touched: Vec<NodeId>,
    /// Bytes of the edit.
    pub(crate) edit_bytes: u64,
    /// Large values that the new version does not refer to.
    orphans: Vec<Extent>,
    /// The version that was replaced, kept until the edit is durable.
    old: Option<Arc<Version>>,
}

impl Installed {
    pub(crate) fn nothing() -> Self {
        Self {
            ticket: None,
            dead: Vec::new(),
            touched: Vec::new(),
            edit_bytes: 0,
            orphans: Vec::new(),
            old: None,
        }
    }

    /// Waits until the edit is durable; then what it dropped may go (rule 7), which a superblock must
    /// know: a manifest that lost the edit would name space that was used again. An edit that drops
    /// nothing says what the log has too.
    pub(crate) fn settle(self, env: &Env) -> Result<Vec<NodeId>> {
        let drops = !self.dead.is_empty() || !self.orphans.is_empty();
        match self.ticket {
            Some(ticket) if drops => env.edits.manifest.secure(ticket)?,
            Some(ticket) => env.edits.manifest.sync(ticket)?,
            None => {}
        }
        for run in &self.dead {
            run.kill();
        }
        if let Some(old) = &self.old {
            old.hold.add(self.orphans);
        }
        Ok(self.touched)
    }
}

/// What the end of an install adds to its edit.
#[derive(Default)]
pub(crate) struct InstallEnd<'a> {
    /// The memtable that is in the trunk now.
    pub(crate) flushed: Option<&'a Arc<MemSource>>,
    /// Edits beside those of the change itself.
    pub(crate) edits: Vec<Edit>,
    /// Large values that nothing refers to from now on.
    pub(crate) orphans: Vec<Extent>,
}

impl MergeJob {
    /// Goes from a plan to a job. `None` if the node is gone or needs nothing any more.
    pub(crate) fn begin(
        env: &Env,
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
            let context = tree.plan_context(&version.trunk, env.plan_limits());
            let summary = Summary::of(&node, node.id == root);
            let Some(planned) = plan_node(&summary, &context) else { return Ok(None) };
            install.claimed.insert(node.id);
            if planned.plan == Plan::TruncatePrefix {
                // What is flushed from now on asks again.
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
            Plan::Regroup | Plan::Join(_) => reshape(env, tree, &node, planned).map(Begun::Done),
            _ => {
                Self::job(env, tree, &version, &node, planned).map(|job| Begun::Job(Box::new(job)))
            }
        };
        if !matches!(begun, Ok(Begun::Job(_))) {
            tree.install.lock().claimed.remove(&node.id);
        }
        begun.map(Some)
    }

    fn job(
        env: &Env,
        tree: &Arc<TreeCore>,
        version: &Version,
        node: &Arc<Node>,
        planned: Planned,
    ) -> Result<Self> {
        let snapshots = env.snapshots.list();
        let leaf_target = tree.plan_context(&version.trunk, env.plan_limits()).leaf_target();
        let job_env = env.job_env(tree, planned.frees_space);
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
            reserved,
        })
    }

    /// Makes the result part of the trunk.
    pub(crate) fn install(self, env: &Env) -> Result<Installed> {
        let Self { tree, planned, job, claimed, runs, consumed, snapshots, run_entries, .. } = self;
        let paid = job.bytes_written();
        let result = job.finish()?;
        env.throttle.pay(result.stats.bytes_written.saturating_sub(paid), env.now());
        let below = match &result.first_kept {
            Some(key) => ranks(&runs, key)?,
            None => HashMap::new(),
        };
        // A trim writes nothing, and a reader may be waiting for it.
        if !result.made.is_empty()
            && let Err(error) = env.runs.space.sync()
        {
            discard(&result.made);
            return Err(error);
        }
        let latch = env.edits.begin();
        let mut install = tree.install.lock();
        install.claimed.remove(&planned.node);
        let trunk = tree.version().trunk.clone();
        let mut next_id = || env.ids.next_node();
        let mut builder = VersionBuilder::new(trunk, &mut next_id);
        let oldest = snapshots.first().copied();
        let done = !tree.is_dropped()
            && match planned.plan {
                Plan::FlushNode => {
                    builder.flush_node(planned.node, &claimed, &consumed, &result.made, oldest)
                }
                Plan::MergeRuns(_) => builder.merge_runs(planned.node, &claimed, &result.made),
                Plan::TruncatePrefix => {
                    let (version, stats) = (tree.version(), &result.stats);
                    let hints =
                        hints_after_truncation(&version, planned.node, stats, oldest.is_some());
                    let kept = result.first_kept.as_ref();
                    builder.truncate_prefix(planned.node, &claimed, kept, &below, hints)
                }
                _ => {
                    let met = result.stats.entries_in.saturating_sub(result.stats.entries_out);
                    let overlap = (met * 100 / run_entries.max(1)).min(100);
                    let made = &result.made;
                    builder.rewrite(planned.node, &claimed, &consumed, made, oldest, overlap)
                }
            };
        if !done {
            discard(&result.made);
            return Ok(Installed { touched: vec![planned.node], ..Installed::nothing() });
        }
        let change = builder.finish();
        if planned.plan == Plan::FlushNode
            && let Some(node) = change.trunk.find(planned.node)
            && node.hints.compact_tombstones.swap(0, Ordering::Relaxed) != 0
        {
            tombstones::request_after_node_flush(node, &result.made);
        }
        let (mut edits, mut orphans) = (Vec::new(), Vec::new());
        for extents in extents_of(&result.dropped_refs)? {
            let Some(first) = extents.first().copied() else { continue };
            if install.values.remove(&first).is_some() {
                edits.push(Edit::DropValue { tree: tree.id, first });
                orphans.extend(extents);
            }
        }
        let end = InstallEnd { flushed: None, edits, orphans };
        let installed = commit_edit(&latch, &tree, &mut install, change, &result.made, end);
        drop(install);
        drop(latch);
        drop(runs);
        env.counters.add_merge(&planned, &result.stats);
        installed
    }
}

/// How many messages of each run are below `key`, about.
fn ranks(runs: &[Arc<Run>], key: &[u8]) -> Result<HashMap<RunId, u64>> {
    runs.iter().map(|run| Ok((run.meta().id, run.rank(key)?))).collect()
}

/// The hints of a leaf that was trimmed: what readers and flushes said of it still holds, but whether
/// it needs cleaning depends on what is left of the deletes. `held` says whether a snapshot was live.
fn hints_after_truncation(
    version: &Version,
    node: NodeId,
    stats: &JobStats,
    held: bool,
) -> CompactionHints {
    let Some(node) = version.trunk.find(node) else { return CompactionHints::default() };
    let deletes: u64 = node.runs.iter().map(View::deletes).sum();
    // A stretch may end in the leaf and be short in it; one that a snapshot holds goes after it.
    let in_vain = !held && stats.entries_in < TRUNCATION_RUN.min(deletes / 2);
    if in_vain {
        // Of this leaf too: it stays if nothing could be cut.
        node.hints.truncated_in_vain.store(1, Ordering::Relaxed);
    }
    let hints = node.hints.copy();
    if deletes.saturating_sub(stats.dropped_deletes) > TOMBSTONE_RUN {
        // Another stretch, which flushes cut short for the sake of this one.
        hints.request_tombstone_compaction();
    } else if !in_vain {
        hints.compact_tombstones.store(0, Ordering::Relaxed);
    }
    hints
}

/// Changes of the trunk without data: a level of inner nodes, two leaves joined.
fn reshape(env: &Env, tree: &Arc<TreeCore>, node: &Node, planned: Planned) -> Result<Installed> {
    let latch = env.edits.begin();
    let mut install = tree.install.lock();
    let trunk = tree.version().trunk.clone();
    let mut next_id = || env.ids.next_node();
    let mut builder = VersionBuilder::new(trunk, &mut next_id);
    let done = match planned.plan {
        Plan::Join(i) => {
            let children = node.children();
            let claimed = [i, i + 1].iter().any(|&i| install.claimed.contains(&children[i].id));
            !claimed && builder.join(node.id, children[i].id, children[i + 1].id)
        }
        _ => builder.regroup(node.id, tree.options.trunk.fanout),
    };
    if !done || tree.is_dropped() {
        return Ok(Installed::nothing());
    }
    let change = builder.finish();
    let end = InstallEnd::default();
    commit_edit(&latch, tree, &mut install, change, &[], end)
}

/// Appends the edit of a change, publishes the new version, and says what is left to do.
/// REQUIRES: the tree's install lock.
pub(crate) fn commit_edit(
    latch: &EditLatch<'_>,
    tree: &TreeCore,
    install: &mut InstallState,
    change: Change,
    made: &[Made],
    end: InstallEnd<'_>,
) -> Result<Installed> {
    tree.note_values(install);
    let id = tree.id;
    let old = tree.version();
    let dead = dead_runs(install, &change, &old, made);
    let mut edits = end.edits;
    edits.extend(made.iter().map(|made| Edit::AddRun(made.run.meta().clone())));
    edits.extend(change.images.iter().map(|node| Edit::PutNode { tree: id, node: node.clone() }));
    edits.extend(change.dropped.iter().map(|&node| Edit::DropNode { tree: id, node }));
    edits.extend(change.root.map(|root| Edit::SetRoot { tree: id, root }));
    edits.extend(dead.iter().map(|run| Edit::DropRun { tree: id, run: run.meta().id }));
    // It changes what readers see before it is durable: after an error nothing was changed but the
    // counts of views, and no edit may follow this one.
    let (ticket, edit_bytes) = latch.append_final(&edits)?;
    let touched = change.touched();
    let old = tree.publish(change.trunk, end.flushed, !end.orphans.is_empty());
    Ok(Installed {
        ticket: Some(ticket),
        dead,
        touched,
        edit_bytes,
        orphans: end.orphans,
        old: Some(old),
    })
}

/// Counts views and returns the runs that have none left.
pub(crate) fn dead_runs(
    install: &mut InstallState,
    change: &Change,
    old: &Version,
    made: &[Made],
) -> Vec<Arc<Run>> {
    let mut gone = HashSet::new();
    for (&run, &delta) in &change.views {
        let count = install.views.entry(run).or_insert(0);
        *count = u32::try_from(i64::from(*count) + delta).unwrap_or(0);
        if *count == 0 {
            install.views.remove(&run);
            gone.insert(run);
        }
    }
    let mut dead = Vec::new();
    if !gone.is_empty() {
        old.trunk.for_each(&mut |node| {
            for view in node.views() {
                if gone.remove(&view.run.meta().id) {
                    dead.push(Arc::clone(&view.run));
                }
            }
        });
    }
    // A run that no node took (all of it beyond a pivot of now) dies unborn.
    let unborn = made.iter().filter(|made| !install.views.contains_key(&made.run.meta().id));
    dead.extend(unborn.map(|made| Arc::clone(&made.run)));
    dead
}

/// Runs that will not be installed give their extents back.
pub(crate) fn discard(made: &[Made]) {
    for made in made {
        made.run.kill();
    }
}

/// Plans `nodes` of a tree anew.
pub(crate) fn replan(env: &Env, work: &Work, tree: &Arc<TreeCore>, nodes: &[NodeId]) {
    if tree.is_dropped() {
        return;
    }
    let version = tree.version();
    let context = tree.plan_context(&version.trunk, env.plan_limits());
    let root = version.trunk.root.id;
    let mut todo: HashSet<NodeId> = nodes.iter().copied().collect();
    version.trunk.for_each(&mut |node| {
        if todo.remove(&node.id) {
            let planned = plan_node(&Summary::of(node, node.id == root), &context);
            work.set_plan(tree, node.id, planned);
        }
    });
    for gone in todo {
        work.set_plan(tree, gone, None);
    }
    // Joins and regroups concern the parents of what changed.
    version.trunk.for_each(&mut |node| {
        if !node.is_leaf() && node.children().iter().any(|child| nodes.contains(&child.id)) {
            let planned = plan_node(&Summary::of(node, node.id == root), &context);
            work.set_plan(tree, node.id, planned);
        }
    });
}

/// Plans all nodes of a tree.
pub(crate) fn plan_all(env: &Env, work: &Work, tree: &Arc<TreeCore>) {
    let version = tree.version();
    let context = tree.plan_context(&version.trunk, env.plan_limits());
    let root = version.trunk.root.id;
    version.trunk.for_each(&mut |node| {
        let planned = plan_node(&Summary::of(node, node.id == root), &context);
        if planned.is_some() {
            work.set_plan(tree, node.id, planned);
        }
    });
}
