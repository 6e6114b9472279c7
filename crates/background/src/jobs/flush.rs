//! Flushing a memtable: its messages become slices of the nodes below the root.
//!
//! A tree has at most one flush under way, and the oldest memtable is flushed first, so runs reach
//! the trunk in order. The order of durability (rule 6): run data synced, then the log synced up to
//! the last record of the memtable, then the manifest edit durable, then log segments recycled.
//!
//! ```text
//!   FlushJob::step ... finish --> Written --> make_durable --> install --> Installed::settle
//!             runs written              data and log synced   edit appended    edit durable
//! ```
//!
//! Memtables of a few rows (`SMALL_BYTES`) are flushed together: each step is done for all
//! memtables of a group, so that a group costs the syncs of one flush.

use frondb_core::clock::Nanos;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::{Lsn, Result, SeqNo};
use frondb_trunk::cut::flush_targets;
use frondb_trunk::install::{Change, Place, VersionBuilder};
use frondb_trunk::job::{Job, JobInput, JobResult};

use frondb_records::Edit;
use frondb_space::Extent;
use frondb_tree::tombstones::TombstoneRuns;
use frondb_tree::{InstallState, MemSource, TreeCore, Version, extents_of, tombstones};

use crate::context::JobContext;
use crate::jobs::install::{InstallEnd, Installed, discard, install};

/// Bytes of memory; a smaller memtable may be flushed together with small ones of other trees.
pub(crate) const SMALL_BYTES: u64 = 16 << 10;
/// Bytes of memory of the memtables that are flushed together, at most.
pub(crate) const GROUP_BYTES: u64 = 1 << 20;
/// Number of trees whose memtables are flushed together, at most.
pub(crate) const GROUP_TREES: usize = 1024;

/// Bytes of memory of the memtable that a flush of `tree` would take; `None` if it is not a small
/// memtable.
pub(crate) fn small_flush_bytes(tree: &TreeCore) -> Option<u64> {
    let version = tree.version();
    let source = version.frozen.last().filter(|source| source.attached().is_none())?;
    let bytes = source.memtable.bytes();
    (bytes < SMALL_BYTES).then_some(bytes)
}

/// A flush under way.
pub struct FlushJob {
    /// The tree.
    pub tree: Arc<TreeCore>,
    source: Arc<MemSource>,
    job: Job,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    begun: Nanos,
    /// Whether it may use the reserve of a full disk.
    pub reserved: bool,
}

/// Whether flushing a tree's frozen memtables leads to space being freed: one of them mostly
/// deletes. The older ones have to be flushed before it, whatever they hold.
pub fn frees_space(frozen: &[Arc<MemSource>]) -> bool {
    frozen.iter().any(|source| source.frees_space())
}

impl FlushJob {
    /// Begins to flush the oldest frozen memtable of `tree`. `None` if there is none, or a flush of
    /// the tree is under way.
    ///
    /// # Errors
    /// Errors of the trunk's job.
    pub fn begin(context: &JobContext, tree: &Arc<TreeCore>) -> Result<Option<Self>> {
        let version = {
            let mut install = tree.install.lock();
            let version = tree.version();
            if install.flushing || version.frozen.is_empty() || tree.is_dropped() {
                return Ok(None);
            }
            install.flushing = true;
            version
        };
        let Some(source) = version.frozen.last().cloned() else { return Ok(None) };
        let begun = Self::job(context, tree, &version, source);
        if begun.is_err() {
            tree.install.lock().flushing = false;
        }
        begun.map(Some)
    }

    fn job(
        context: &JobContext,
        tree: &Arc<TreeCore>,
        at: &Version,
        source: Arc<MemSource>,
    ) -> Result<Self> {
        let trunk = &at.trunk;
        // Taken after the freeze, so any later snapshot sees the whole memtable.
        let snapshots = context.reads.snapshots.list();
        let memtable = &source.memtable;
        let deletes = memtable.range_deletes().clone();
        let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
        let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);
        let leaf_target = tree.plan_context(trunk, context.plan_limits()).leaf_target();
        let targets = flush_targets(trunk, trunk.root.max_key(), leaf_target);
        let raw_bytes = memtable.data_bytes();
        let input = JobInput {
            sources: vec![Box::new(memtable.scan_all())],
            range_deletes: deletes.clone(),
            snapshots,
            seqs: (
                memtable.min_seq().unwrap_or(SeqNo::MIN),
                memtable.max_seq().unwrap_or(SeqNo::MIN),
            ),
            has_updates: tree.update.is_some(),
            at_base: trunk.root.is_empty(),
            raw_bytes,
            disk_bytes: raw_bytes * 3 / 4,
        };
        let job_env = context.job_env(tree, frees_space(&at.frozen));
        let reserved = job_env.reserved;
        let job = Job::new(job_env, input, targets, 1)?;
        let tree = Arc::clone(tree);
        let begun = context.now();
        Ok(Self {
            tree,
            source,
            job,
            deletes,
            keep_hidden,
            raw_bytes,
            leaf_target,
            begun,
            reserved,
        })
    }

    /// Bytes of memory that the memtable takes.
    pub fn memtable_bytes(&self) -> u64 {
        self.source.memtable.bytes()
    }

    /// Bytes of that memory that the flush has gone through so far.
    pub fn drained_bytes(&self) -> u64 {
        let memtable = &self.source.memtable;
        let part = u128::from(memtable.bytes()) * u128::from(self.job.entries_in());
        (part / u128::from(memtable.len().max(1))) as u64
    }

    /// Bytes that its steps have written so far.
    pub fn bytes_written(&self) -> u64 {
        self.job.bytes_written()
    }

    /// When the flush began.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// Runs one step; `true` when all is written.
    pub fn step(&mut self) -> Result<bool> {
        self.job.step()
    }

    /// Makes the runs part of the trunk. REQUIRES: all is written.
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let written = self.finish(context)?;
        make_durable(context, std::slice::from_ref(&written))?;
        written.install(context)
    }

    /// Finishes the runs. Nothing is durable yet.
    pub fn finish(self, context: &JobContext) -> Result<Written> {
        let paid = self.job.bytes_written();
        let result = self.job.finish()?;
        context.throttle.pay(result.stats.bytes_written.saturating_sub(paid), context.now());
        Ok(Written {
            tree: self.tree,
            source: self.source,
            result,
            deletes: self.deletes,
            keep_hidden: self.keep_hidden,
            raw_bytes: self.raw_bytes,
            leaf_target: self.leaf_target,
            reserved: self.reserved,
        })
    }
}

/// A memtable whose runs are written and not part of the trunk yet.
pub struct Written {
    /// The tree.
    pub tree: Arc<TreeCore>,
    source: Arc<MemSource>,
    result: JobResult,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    /// Whether it may use the reserve of a full disk.
    pub reserved: bool,
}

/// Syncs the data of written runs, and the log up to the last record of their memtables.
///
/// # Errors
/// None of the runs may be installed then, and all of them are discarded.
pub fn make_durable(context: &JobContext, written: &[Written]) -> Result<()> {
    let last = written.iter().map(|written| written.source.last_lsn()).max().unwrap_or(Lsn(0));
    let synced = context.reads.runs.space.sync().and_then(|()| context.log.wal.sync_to(last));
    synced.inspect_err(|_| written.iter().for_each(Written::discard))
}

impl Written {
    /// Returns the extents of the runs.
    pub fn discard(&self) {
        discard(&self.result.made);
    }

    /// Makes the runs part of the trunk. REQUIRES: [`make_durable`].
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let Self { tree, source, result, deletes, keep_hidden, raw_bytes, leaf_target, .. } = self;
        let appended: u64 = result
            .made
            .iter()
            .filter(|made| made.place == Place::Append)
            .map(|made| made.run.meta().raw_bytes)
            .sum();

        let made = &result.made;
        let tombstone_runs = TombstoneRuns::find(&tree.version().trunk.root, &source.memtable);
        let build = |builder: &mut VersionBuilder<'_>, _: &mut InstallState| {
            builder.flush(made, &deletes, keep_hidden, leaf_target);
            true
        };
        let end = |change: &Change, state: &mut InstallState| {
            tombstones::request_after_flush(&change.trunk.root, &tombstone_runs, made);
            let dropped = extents_of(&result.dropped_refs)?;
            Ok(note_flush(context, &tree, state, &source, &dropped))
        };
        let Some(installed) = install(context, &tree, made, build, end)? else {
            tree.install.lock().flushing = false;
            discard(made);
            return Ok(Installed::nothing());
        };
        tree.note_flush(raw_bytes, appended);
        context.counters.add_flush(&result.stats);
        Ok(installed)
    }
}

/// Notes in the install state that a memtable is flushed. Its large values belong to the tree from
/// now on, except for those in `dropped`, which were overwritten before they reached a run.
fn note_flush<'a>(
    context: &JobContext,
    tree: &TreeCore,
    state: &mut InstallState,
    source: &'a Arc<MemSource>,
    dropped: &[Vec<Extent>],
) -> InstallEnd<'a> {
    let flushed = source.max_seq();
    // Lets the manifest know how far the log is durable, without a sync of its own.
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

/// Ends a failed flush of a tree. A later flush begins again from the memtable.
pub fn abandon(tree: &TreeCore) {
    tree.install.lock().flushing = false;
}
