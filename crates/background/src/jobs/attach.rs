//! Attaching: the private runs of a large commit, which are on disk already, become part of the
//! trunk (rules 18 and 19).
//!
//! ```text
//!  PendingParts::add   runs synced, then named by the manifest as pending
//!  the commit          one log record; for each tree: active memtable frozen, the runs added as a
//!                      newer frozen source, a new active memtable; published with one store
//!  flush               when the source is the oldest frozen one: log synced up to its record, then
//!                      one edit makes the runs views of the trunk and ends `pending`
//! ```
//!
//! A flush of attached runs writes no data and ends at once, so the record of the commit pins the
//! log no longer than a memtable does. Later merges turn the runs into bases.
//!
//! SeqNos: before the commit, the messages of a part have local numbers from 1. The commit turns
//! local number `n` into SeqNo `base + n`. The parts of a commit get their SeqNos in the order in
//! which they were given, and the messages in the commit's log record get the last SeqNos.

use std::collections::HashSet;

use frondb_core::sync::Arc;
use frondb_core::{Result, RunId, SeqNo};
use frondb_run::Run;
use frondb_trunk::install::{Change, Place, PlacedRun, RunsToAttach, VersionBuilder};
use frondb_trunk::plan::TOMBSTONE_RUN;

use frondb_records::Edit;
use frondb_tree::{InstallState, MemSource, TreeCore};

use crate::context::JobContext;
use crate::counters::add;
use crate::jobs::install::{InstallEnd, Installed, install as install_change};

/// Makes the oldest frozen source of a tree part of its trunk, if the source consists of attached
/// runs. `None` if it does not, if a flush is under way, or if the tree was dropped.
///
/// # Errors
/// Errors of the log and the manifest.
pub fn flush(context: &JobContext, tree: &Arc<TreeCore>) -> Result<Option<Installed>> {
    let source = {
        let mut install = tree.install.lock();
        if install.flushing || tree.is_dropped() {
            return Ok(None);
        }
        let oldest = tree.version().frozen.last().cloned();
        let Some(source) = oldest.filter(|source| source.attached().is_some()) else {
            return Ok(None);
        };
        install.flushing = true;
        source
    };
    let installed = install(context, tree, &source);
    tree.install.lock().flushing = false;
    installed.map(Some)
}

/// Makes the attached runs of `source` views of the trunk.
fn install(context: &JobContext, tree: &TreeCore, source: &Arc<MemSource>) -> Result<Installed> {
    let Some(attached) = source.attached() else { return Ok(Installed::nothing()) };
    // Rule 6. The data of the runs was synced before they became pending.
    context.log.wal.sync_to(source.last_lsn())?;
    // List the snapshots after the commit: a snapshot that is taken later sees the whole commit.
    let snapshots = context.reads.snapshots.list();
    let deletes = source.memtable.range_deletes();
    let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
    let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);

    let leaf_target = tree.plan_context(&tree.version().trunk, context.plan_limits()).leaf_target();
    let (txn, part) = (attached.txn, attached.part);
    let new_runs: Vec<PlacedRun> = attached.runs.iter().map(placed_run).collect();
    let build = |builder: &mut VersionBuilder<'_>, _: &mut InstallState| {
        let (runs, are_base) = (&attached.runs, attached.are_base);
        let incoming = RunsToAttach { runs, deletes: &deletes, are_base };
        builder.attach(&incoming, keep_hidden, leaf_target);
        true
    };
    let end = |change: &Change, state: &mut InstallState| {
        request_tombstone_compaction(change, &attached.runs);
        let mut edits = vec![
            Edit::Flushed { tree: tree.id, seq: attached.last },
            Edit::EndPending { tree: tree.id, txn, part },
        ];
        for value in source.take_values() {
            let Some(first) = value.first().copied() else { continue };
            edits.push(Edit::AddValue { tree: tree.id, extents: value.clone() });
            state.values.insert(first, value);
        }
        state.flushed = state.flushed.max(attached.last);
        context.edits.pending().end_part(txn, part);
        Ok(InstallEnd { flushed: Some(source), edits, orphans: Vec::new() })
    };
    let Some(installed) = install_change(context, tree, &new_runs, build, end)? else {
        return Ok(Installed::nothing());
    };
    add(&context.counters.attaches, 1);
    Ok(installed)
}

/// Returns the run in the form in which an install takes new runs. The install uses only the run:
/// the change of the trunk already has the run's bounds and place.
fn placed_run(run: &Arc<Run>) -> PlacedRun {
    PlacedRun { run: Arc::clone(run), lo: Arc::from([]), hi: None, place: Place::Slice }
}

/// Requests tombstone compaction of the nodes to which `runs` brought a tombstone run (rule 15).
fn request_tombstone_compaction(change: &Change, runs: &[Arc<Run>]) {
    if runs.iter().map(|run| run.meta().deletes).sum::<u64>() <= TOMBSTONE_RUN {
        return;
    }
    let ids: HashSet<RunId> = runs.iter().map(|run| run.meta().id).collect();
    change.trunk.for_each(&mut |node| {
        let new = node.runs.iter().filter(|view| ids.contains(&view.run.meta().id));
        if new.map(frondb_trunk::View::deletes).sum::<u64>() > TOMBSTONE_RUN {
            node.hints.request_tombstone_compaction();
        }
    });
}
