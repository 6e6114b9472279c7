//! [`Written`]: the output of the flush of a memtable before its install.

use frondb_core::clock::Nanos;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result, SeqNo};
use frondb_trunk::install::{Change, Place, VersionBuilder};
use frondb_trunk::job::JobResult;

use frondb_records::Edit;
use frondb_space::Extent;
use frondb_tree::tombstones::TombstoneRuns;
use frondb_tree::{InstallState, MemSource, TreeCore, extents_of, tombstones};

use crate::context::JobContext;
use crate::jobs::install::{InstallEnd, Installed, discard, install};
use crate::jobs::notice::Notice;

/// A memtable whose runs are written and not part of the trunk yet.
pub struct Written {
    /// The tree of the memtable.
    pub tree: Arc<TreeCore>,
    pub(super) source: Arc<MemSource>,
    pub(super) result: JobResult,
    pub(super) deletes: RangeDeletes,
    pub(super) keep_hidden: Option<SeqNo>,
    pub(super) raw_bytes: u64,
    pub(super) leaf_target: u64,
    pub(super) begun: Nanos,
    pub(super) notice: Notice,
    /// Whether the flush may use the reserve of a full disk.
    pub reserved: bool,
}

/// Syncs the data of written runs, and the log up to the last record of their memtables.
///
/// # Errors
/// Errors of the syncs. All runs are discarded then, and none may be installed.
pub fn make_durable(context: &JobContext, written: &[Written]) -> Result<()> {
    let last = written.iter().map(|written| written.source.last_lsn()).max().unwrap_or(Lsn(0));
    let synced = context.space.sync().and_then(|()| context.log.wal.sync_to(last));
    synced.inspect_err(|_| written.iter().for_each(Written::discard))
}

impl Written {
    /// Frees the extents of the runs.
    pub fn discard(&self) {
        discard(&self.result.new_runs);
    }

    /// Makes the runs part of the trunk. REQUIRES: [`make_durable`] returned `Ok` for these runs.
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let begun = self.begun;
        let Self {
            tree, source, result, deletes, keep_hidden, raw_bytes, leaf_target, notice, ..
        } = self;
        let appended: u64 = result
            .new_runs
            .iter()
            .filter(|placed| placed.place == Place::Append)
            .map(|placed| placed.run.meta().raw_bytes)
            .sum();

        let new_runs = &result.new_runs;
        let tombstone_runs = TombstoneRuns::find(&tree.version().trunk.root, &source.memtable);
        let build = |builder: &mut VersionBuilder<'_>, _: &mut InstallState| {
            builder.flush(new_runs, &deletes, keep_hidden, leaf_target);
            true
        };
        let end = |change: &Change, state: &mut InstallState| {
            tombstones::request_after_flush(&change.trunk.root, &tombstone_runs, new_runs);
            let dropped = extents_of(&result.dropped_refs)?;
            Ok(note_flush(context, &tree, state, &source, &dropped))
        };
        let installed = install(context, &tree, new_runs, build, end);
        let Some(installed) = installed.inspect_err(|_| discard(new_runs))? else {
            tree.install.lock().flushing = false;
            discard(new_runs);
            return Ok(Installed::nothing());
        };
        tree.note_flush(raw_bytes, appended);
        context.counters.add_flush(&result.stats);
        let nanos = context.reads.nanos_since(begun);
        context.latencies.flush.add(nanos);
        notice.ended(result.stats.bytes_written, nanos);
        Ok(installed)
    }
}

/// Records in the install state that a memtable is flushed. From now on the tree owns the
/// memtable's large values, except the values in `dropped`, which were overwritten before they
/// reached a run.
fn note_flush<'a>(
    context: &JobContext,
    tree: &TreeCore,
    state: &mut InstallState,
    source: &'a Arc<MemSource>,
    dropped: &[Vec<Extent>],
) -> InstallEnd<'a> {
    let flushed = source.max_seq();
    // Also record how far the log is durable. As a part of this edit, that costs no sync of its
    // own.
    let log = Edit::Log { start: Lsn(0), durable: context.log.wal.durable_lsn() };
    let mut edits = vec![Edit::Flushed { tree: tree.id, seq: flushed }, log];
    let mut orphans = Vec::new();
    for value in source.take_values() {
        let Some(first) = value.first().copied() else { continue };
        if dropped.iter().any(|extents| extents.first() == Some(&first)) {
            orphans.extend(value);
        } else {
            edits.push(Edit::AddValue { tree: tree.id, extents: value.clone() });
            state.values.insert(first, value);
        }
    }
    state.flushed = state.flushed.max(flushed);
    state.flushing = false;
    InstallEnd { flushed: Some(source), edits, orphans }
}
