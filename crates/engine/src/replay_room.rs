//! Room for the memtables of a recovery: flushes, and the merges that they make overdue, by the thread that
//! recovers.
//!
//! A long log makes many flushes, and a tree that got them without a merge would have dozens of runs in one
//! node: reading it would take more memory than the log did. A merge that fails (a damaged block, a full disk)
//! is left to the workers, who know what to do; recovery goes on.

use std::collections::BTreeMap;

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind, Lsn, Result, TreeId};
use frondb_trunk::plan::{Planned, Summary, plan_node};

use crate::attach;
use crate::background::EDIT_BYTES;
use crate::env::Env;
use crate::flush::{FlushJob, GROUP_TREES, Written, abandon, make_durable};
use crate::plans::{Begun, Installed, MergeJob, Running};
use frondb_tree::TreeCore;

/// Keeps the memtables within the write buffer.
pub(crate) struct Room<'a> {
    env: &'a Env,
    /// Nothing more is flushed: the disk is full.
    full: bool,
    /// Nothing more is merged: a merge has failed.
    unmerged: bool,
    /// Trees of which a record is to come that logs all of their memtable again, and where it begins: what
    /// there is of them before it may lack its beginning, and a flush would say that it is all (rule 10).
    relogs: BTreeMap<TreeId, Lsn>,
}

impl<'a> Room<'a> {
    pub(crate) fn new(env: &'a Env, relogs: BTreeMap<TreeId, Lsn>) -> Self {
        Self { env, full: false, unmerged: false, relogs }
    }

    /// Flushes while the write buffer is full. REQUIRES: the record at `taken` is the last one taken (rule 8).
    pub(crate) fn make(&mut self, taken: Lsn) -> Result<()> {
        let buffer = self.env.memory().write_buffer_bytes();
        while !self.full && self.env.account.unflushed_bytes() >= buffer {
            self.relogs.retain(|_, start| *start > taken);
            let before = self.env.account.unflushed_bytes();
            match self.flush_largest(buffer / 2) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    tracing::warn!(%error, "the disk is full: recovery takes the log into memory");
                    self.full = true;
                }
                Err(error) => return Err(error),
            }
            if self.env.account.unflushed_bytes() >= before {
                break;
            }
        }
        Ok(())
    }

    /// Flushes the trees with the most in memory, until so much of it is free: one sync of the data for all.
    fn flush_largest(&mut self, bytes: u64) -> Result<()> {
        let env = self.env;
        let in_memory = |tree: &Arc<TreeCore>| -> u64 {
            tree.version().memtables().map(|memtable| memtable.bytes()).sum()
        };
        let whole = env.trees.all().into_iter().filter(|tree| !self.relogs.contains_key(&tree.id));
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
        // Oldest first: a tree may have several sources.
        while !chosen.is_empty() {
            for tree in &chosen {
                tree.freeze();
            }
            flush_oldest(env, &chosen)?;
            chosen.retain(|tree| !tree.version().frozen.is_empty());
        }
        for tree in &flushed {
            if !self.unmerged
                && let Err(error) = merge_due(env, tree)
            {
                env.check_health()?;
                tracing::warn!(%error, "a merge of the recovery failed; it is tried again later");
                self.unmerged = true;
            }
        }
        Ok(())
    }
}

/// Flushes the oldest frozen source of each tree.
fn flush_oldest(env: &Env, trees: &[Arc<TreeCore>]) -> Result<()> {
    let mut written = Vec::new();
    for tree in trees {
        make_room_for_edit(env)?;
        if let Some(installed) = attach::flush(env, tree)? {
            settle(env, installed)?;
            continue;
        }
        let Some(mut job) = FlushJob::begin(env, tree)? else { continue };
        let ended = loop {
            match job.step() {
                Ok(false) => {}
                Ok(true) => break job.finish(env),
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
    if let Err(error) = make_durable(env, &written) {
        written.iter().for_each(|written| abandon(&written.tree));
        return Err(error);
    }
    let mut written = written.into_iter();
    while let Some(one) = written.next() {
        let tree = Arc::clone(&one.tree);
        let installed = match make_room_for_edit(env) {
            Ok(()) => one.install(env),
            Err(error) => {
                one.discard();
                Err(error)
            }
        };
        let settled = installed.and_then(|installed| settle(env, installed));
        if let Err(error) = settled {
            abandon(&tree);
            give_up(written.collect());
            return Err(error);
        }
    }
    Ok(())
}

fn give_up(written: Vec<Written>) {
    for one in written {
        one.discard();
        abandon(&one.tree);
    }
}

/// The trunk in memory is ahead of the manifest until this is done.
fn settle(env: &Env, installed: Installed) -> Result<()> {
    installed.settle(env).map(drop).inspect_err(|error| env.poison(error))
}

fn make_room_for_edit(env: &Env) -> Result<()> {
    if env.edits.manifest.has_reserve() || env.edits.manifest.make_room(EDIT_BYTES)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NoSpace, "no space left for the manifest"))
}

/// Does what the tree needs by now, most urgent first.
fn merge_due(env: &Env, tree: &Arc<TreeCore>) -> Result<()> {
    let mut last = None;
    while let Some(planned) = due(env, tree) {
        // One that changes nothing would be planned again.
        if last.replace((planned.node, planned.plan)) == Some((planned.node, planned.plan)) {
            break;
        }
        make_room_for_edit(env)?;
        match MergeJob::begin(env, tree, planned)? {
            None => break,
            Some(Begun::Done(installed)) => settle(env, installed)?,
            Some(Begun::Job(job)) => settle(env, merge(env, tree, job)?)?,
        }
    }
    Ok(())
}

fn due(env: &Env, tree: &TreeCore) -> Option<Planned> {
    let version = tree.version();
    let context = tree.plan_context(&version.trunk, env.plan_limits());
    let (root, mut due) = (version.trunk.root.id, None::<Planned>);
    version.trunk.for_each(&mut |node| {
        let planned = plan_node(&Summary::of(node, node.id == root), &context);
        let planned = planned.filter(Planned::is_debt);
        if let Some(planned) = planned
            && due.as_ref().is_none_or(|due| planned.priority < due.priority)
        {
            due = Some(planned);
        }
    });
    due
}

fn merge(env: &Env, tree: &TreeCore, job: Box<MergeJob>) -> Result<Installed> {
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
        (Ok(()), Running::Merge(job)) => job.install(env),
        (Err(error), _) => Err(error),
        (Ok(()), Running::Flush(_)) => Err(Error::internal("a merge became a flush")),
    };
    installed.inspect_err(|_| {
        tree.install.lock().claimed.remove(&node);
    })
}
