//! Large commits whose data is on disk already, as private runs (rules 18 and 19).
//!
//! ```text
//!  pending::add      runs synced, then named by the manifest as pending
//!  the commit        one log record; of each tree: active memtable frozen, runs above it as one frozen
//!                    source, a new active memtable above those; then published with one store
//!  flush             when the source is the oldest frozen one: the log synced up to its record, then one
//!                    edit that makes the runs views of the trunk and ends `pending`
//! ```
//!
//! A flush of runs writes nothing and is over at once, so a commit's record pins the log for no longer
//! than any memtable does. Merges that the planner asks for make bases of the runs.
//!
//! SeqNos: local number `n` of a part becomes `base + n`; the parts of a commit follow each other in
//! the order in which they are given, the messages in its record come last.

use std::collections::HashSet;

use frondb_core::sync::Arc;
use frondb_core::{Result, RunId, SeqNo};
use frondb_run::Run;
use frondb_trunk::install::{Arrived, Change, Made, Place, VersionBuilder};
use frondb_trunk::plan::TOMBSTONE_RUN;

use frondb_records::Edit;
use frondb_tree::{InstallState, MemSource, TreeCore};

use crate::context::JobContext;
use crate::counters::add;
use crate::jobs::install::{InstallEnd, Installed, install as install_change};

/// Makes the oldest frozen source of a tree part of its trunk, if it is runs of a commit. `None` if
/// it is something else, or a flush is under way.
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

fn install(context: &JobContext, tree: &TreeCore, source: &Arc<MemSource>) -> Result<Installed> {
    let Some(attached) = source.attached() else { return Ok(Installed::nothing()) };
    // Rule 6: run data was synced before the runs became pending.
    context.log.wal.sync_to(source.last_lsn())?;
    // After the commit: a snapshot taken from now on sees all of it.
    let snapshots = context.reads.snapshots.list();
    let deletes = source.memtable.range_deletes();
    let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
    let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);

    let leaf_target = tree.plan_context(&tree.version().trunk, context.plan_limits()).leaf_target();
    let (txn, part) = (attached.txn, attached.part);
    let made: Vec<Made> = attached.runs.iter().map(made_of).collect();
    let build = |builder: &mut VersionBuilder<'_>, _: &mut InstallState| {
        let (runs, are_base) = (&attached.runs, attached.are_base);
        let arrived = Arrived { runs, deletes: &deletes, are_base };
        builder.attach(&arrived, keep_hidden, leaf_target);
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
    let Some(installed) = install_change(context, tree, &made, build, end)? else {
        return Ok(Installed::nothing());
    };
    add(&context.counters.attaches, 1);
    Ok(installed)
}

/// As a run that nobody made just now: its place is in the change already.
fn made_of(run: &Arc<Run>) -> Made {
    Made { run: Arc::clone(run), lo: Arc::from([]), hi: None, place: Place::Slice }
}

/// Long stretches of deletes are cleaned away (rule 15): asks the nodes that got many.
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
