//! [`RecoveryFlusher`]: keeps the memtables within the write buffer during recovery. The recovering
//! thread flushes, and carries out the merges that the flushes make overdue.
//!
//! A long log causes many flushes. Without merges, a node would get dozens of runs, and to read
//! that node would take more memory than the log did. If a merge fails (a damaged block, a full
//! disk), recovery continues, and workers handle the failure later.

use std::collections::BTreeMap;

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_trunk::plan::{Planned, Summary, plan_node};

use frondb_tree::{MemtableAccount, TreeCore};

use crate::context::JobContext;
use crate::jobs::flush::{FlushJob, GROUP_TREES, abandon};
use crate::jobs::install::{EDIT_BYTES, Installed};
use crate::jobs::merge::{Begun, MergeJob};
use crate::jobs::written::{Written, make_durable};
use crate::jobs::{Running, attach};

/// Flushes memtables during recovery, so that they stay within the write buffer. Only the
/// recovering thread uses it.
pub struct RecoveryFlusher<'a> {
    context: &'a JobContext,
    account: &'a MemtableAccount,
    /// Whether a flush found the disk full; then no more is flushed.
    full: bool,
    /// Whether a merge has failed without showing new damage; then no more is merged.
    unmerged: bool,
    /// For some trees, the position of a log record that logs their whole memtable again and that
    /// recovery has not applied yet. Until then, the memtable may lack its oldest messages, so a
    /// flush would wrongly record that those messages are in runs (rule 10).
    relogs: BTreeMap<TreeId, Lsn>,
}

impl<'a> RecoveryFlusher<'a> {
    /// Creates a flusher for one recovery. A tree in `relogs` is not flushed before recovery has
    /// applied the record at the tree's position.
    #[must_use]
    pub fn new(
        context: &'a JobContext,
        account: &'a MemtableAccount,
        relogs: BTreeMap<TreeId, Lsn>,
    ) -> Self {
        Self { context, account, full: false, unmerged: false, relogs }
    }

    /// Flushes while the write buffer is full. REQUIRES: the record at `taken` is the last record
    /// that recovery has applied (rule 8).
    ///
    /// # Errors
    /// Errors of flushes, except `NoSpace`: on a full disk, recovery keeps the messages of the log
    /// in memory.
    pub fn flush_while_full(&mut self, taken: Lsn) -> Result<()> {
        let buffer = self.context.shares.now().write_buffer_bytes();
        while !self.full && self.account.unflushed_bytes() >= buffer {
            self.relogs.retain(|_, start| *start > taken);
            let before = self.account.unflushed_bytes();
            match self.flush_largest(buffer / 2) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    tracing::warn!(%error, "the disk is full; recovery keeps the rest of the log in memory");
                    self.full = true;
                }
                Err(error) => return Err(error),
            }
            if self.account.unflushed_bytes() >= before {
                break;
            }
        }
        Ok(())
    }

    /// Flushes the trees with the largest memtables until `bytes` of memory are free. One sync of
    /// the data serves all of them.
    fn flush_largest(&mut self, bytes: u64) -> Result<()> {
        let context = self.context;
        let in_memory = |tree: &Arc<TreeCore>| -> u64 {
            let version = tree.open_version();
            version.map_or(0, |version| version.memtables().map(|memtable| memtable.bytes()).sum())
        };
        let whole =
            context.trees.all().into_iter().filter(|tree| !self.relogs.contains_key(&tree.id));
        let mut trees: Vec<(u64, Arc<TreeCore>)> =
            whole.map(|tree| (in_memory(&tree), tree)).collect();
        trees.sort_by_key(|(bytes, tree)| (std::cmp::Reverse(*bytes), tree.id));
        let (mut chosen, mut sum) = (Vec::new(), 0);
        for (size, tree) in trees {
            if sum >= bytes || size == 0 || chosen.len() == GROUP_TREES {
                break;
            }
            sum += size;
            chosen.push(tree);
        }
        let flushed = chosen.clone();
        // A tree may have several frozen sources; they are flushed oldest first.
        while !chosen.is_empty() {
            for tree in &chosen {
                tree.freeze();
            }
            flush_oldest(context, &chosen)?;
            chosen.retain(|tree| tree.has_frozen());
        }
        for tree in &flushed {
            if !self.unmerged
                && let Err(error) = merge_due(context, tree)
            {
                context.health.check_unpoisoned()?;
                tracing::warn!(%error, "a merge during recovery failed; a worker will try it again");
                self.unmerged = true;
            }
        }
        Ok(())
    }
}

/// Flushes the oldest frozen source of each tree.
fn flush_oldest(context: &JobContext, trees: &[Arc<TreeCore>]) -> Result<()> {
    let mut written = Vec::new();
    for tree in trees {
        context.reserve_edit(EDIT_BYTES)?;
        if let Some(installed) = attach::flush(context, tree)? {
            settle(context, installed)?;
            continue;
        }
        let Some(mut job) = FlushJob::begin(context, tree)? else { continue };
        let ended = loop {
            match job.step() {
                Ok(false) => {}
                Ok(true) => break job.finish(context),
                Err(error) => break Err(error),
            }
        };
        match ended {
            Ok(one) => written.push(one),
            Err(error) => {
                abandon(tree);
                give_up(written);
                return Err(error);
            }
        }
    }
    if let Err(error) = make_durable(context, &written) {
        written.iter().for_each(|written| abandon(&written.tree));
        return Err(error);
    }
    let mut written = written.into_iter();
    while let Some(one) = written.next() {
        let tree = Arc::clone(&one.tree);
        let installed = match context.reserve_edit(EDIT_BYTES) {
            Ok(()) => one.install(context),
            Err(error) => {
                one.discard();
                Err(error)
            }
        };
        let settled = installed.and_then(|installed| settle(context, installed));
        if let Err(error) = settled {
            abandon(&tree);
            give_up(written.collect());
            return Err(error);
        }
    }
    Ok(())
}

/// Discards written runs. Their memtables can be flushed again.
fn give_up(written: Vec<Written>) {
    for one in written {
        one.discard();
        abandon(&one.tree);
    }
}

/// Makes an install durable. A failure poisons the database, because the trunk in memory is then
/// ahead of the manifest.
fn settle(context: &JobContext, installed: Installed) -> Result<()> {
    installed.settle(context).map(drop).inspect_err(|error| context.health.poison(error))
}

/// Carries out the overdue plans of a tree, smallest priority number first.
fn merge_due(context: &JobContext, tree: &Arc<TreeCore>) -> Result<()> {
    let mut last = None;
    while let Some(planned) = due(context, tree) {
        // Stop after a plan that changed nothing: the same plan would be due again and again.
        if last.replace((planned.node, planned.plan)) == Some((planned.node, planned.plan)) {
            break;
        }
        context.reserve_edit(EDIT_BYTES)?;
        match carry_out(context, tree, planned) {
            Ok(true) => {}
            Ok(false) => break,
            // Continue: the other nodes, and the readable runs of this one, can still be merged.
            Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Io) => {
                if !context.note_failed_merge(tree, planned.node, &error) {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Carries out a plan. Returns `false` if the plan has become unnecessary.
fn carry_out(context: &JobContext, tree: &Arc<TreeCore>, planned: Planned) -> Result<bool> {
    match MergeJob::begin(context, tree, planned)? {
        None => return Ok(false),
        Some(Begun::Done(installed)) => settle(context, installed)?,
        Some(Begun::Job(job)) => settle(context, merge(context, tree, job)?)?,
    }
    Ok(true)
}

/// Returns the tree's overdue plan with the smallest priority number.
fn due(context: &JobContext, tree: &TreeCore) -> Option<Planned> {
    let version = tree.version();
    let planning = tree.plan_context(&version.trunk, context.plan_limits());
    let (root, mut due) = (version.trunk.root.id, None::<Planned>);
    version.trunk.for_each(&mut |node| {
        let planned = plan_node(&Summary::of(node, node.id == root), &planning);
        let planned = planned.filter(Planned::is_debt);
        if let Some(planned) = planned
            && due.as_ref().is_none_or(|due| planned.priority < due.priority)
        {
            due = Some(planned);
        }
    });
    due
}

/// Steps a merge to its end and installs it.
fn merge(context: &JobContext, tree: &TreeCore, job: Box<MergeJob>) -> Result<Installed> {
    let node = job.planned.node;
    let mut running = Running::Merge(job);
    let stepped = loop {
        match running.step() {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let installed = match (stepped, running) {
        (Ok(()), Running::Merge(job)) => job.install(context),
        (Err(error), _) => Err(error),
        (Ok(()), Running::Flush(_)) => Err(Error::internal("a merge became a flush")),
    };
    installed.inspect_err(|_| {
        tree.install.lock().claimed.remove(&node);
    })
}
