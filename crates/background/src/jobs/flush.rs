//! Flushing a memtable: its messages become slices of the nodes below the root.
//!
//! One flush a tree at a time, oldest memtable first, so that runs reach the trunk in order.
//! Order of durability (rule 6): run data synced, then the log synced up to the memtable's last
//! record, then the manifest edit durable, then log segments recycled.
//!
//! ```text
//!   FlushJob::step ... finish --> Written --> make_durable --> install --> Installed::settle
//!             runs written              data and log synced   edit appended    edit durable
//! ```
//!
//! Memtables of a few rows go through it together ([`SMALL_BYTES`]): each step for all of a group,
//! so that a group costs the syncs of one flush.

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

/// A memtable of less memory than this may be flushed with others of its kind, of other trees.
pub(crate) const SMALL_BYTES: u64 = 16 << 10;
/// Memory of the memtables that are flushed together.
pub(crate) const GROUP_BYTES: u64 = 1 << 20;
/// Most trees whose memtables are flushed together.
pub(crate) const GROUP_TREES: usize = 1024;

/// Memory of the memtable that a flush of `tree` would take, if it is one to flush with others.
pub(crate) fn small_flush_bytes(tree: &TreeCore) -> Option<u64> {
    let version = tree.version();
    let source = version.frozen.last().filter(|source| source.attached().is_none())?;
    let bytes = source.memtable.bytes();
    (bytes < SMALL_BYTES).then_some(bytes)
}

/// A memtable being flushed.
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
    /// It uses the space kept for a full disk.
    pub reserved: bool,
}

/// Whether flushing a tree's frozen memtables leads to space being freed: one of them mostly
/// deletes. Those that are older have to go first, whatever they hold.
pub fn frees_space(frozen: &[Arc<MemSource>]) -> bool {
    frozen.iter().any(|source| source.frees_space())
}

impl FlushJob {
    /// Takes up the oldest frozen memtable of `tree`; `None` if there is none, or one is being
    /// flushed.
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
        // After the freeze: a snapshot taken from now on sees all that is in the memtable.
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

    /// Memory that the memtable takes.
    pub fn memtable_bytes(&self) -> u64 {
        self.source.memtable.bytes()
    }

    /// Of that, what was gone through so far.
    pub fn drained_bytes(&self) -> u64 {
        let memtable = &self.source.memtable;
        let part = u128::from(memtable.bytes()) * u128::from(self.job.entries_in());
        (part / u128::from(memtable.len().max(1))) as u64
    }

    /// Bytes that its steps have written so far.
    pub fn bytes_written(&self) -> u64 {
        self.job.bytes_written()
    }

    /// When it was begun.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// Goes on for a step; `true` when all is written.
    pub fn step(&mut self) -> Result<bool> {
        self.job.step()
    }

    /// Makes the runs part of the trunk, when all is written.
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let written = self.finish(context)?;
        make_durable(context, std::slice::from_ref(&written))?;
        written.install(context)
    }

    /// Ends the writing. Nothing is durable yet.
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

/// A memtable whose runs are written.
pub struct Written {
    /// The tree.
    pub tree: Arc<TreeCore>,
    source: Arc<MemSource>,
    result: JobResult,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    /// It uses the space kept for a full disk.
    pub reserved: bool,
}

/// Makes durable what was written, and the log up to the last record that it holds a part of.
///
/// # Errors
/// None of it may be installed; its runs are given back.
pub fn make_durable(context: &JobContext, written: &[Written]) -> Result<()> {
    let last = written.iter().map(|written| written.source.last_lsn()).max().unwrap_or(Lsn(0));
    let synced = context.reads.runs.space.sync().and_then(|()| context.log.wal.sync_to(last));
    synced.inspect_err(|_| written.iter().for_each(Written::discard))
}

impl Written {
    /// Gives the runs back.
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

/// Notes in the install state that a memtable is flushed; its large values are the tree's from now on, but
/// for those `dropped`, which were overwritten before they ever reached a run.
fn note_flush<'a>(
    context: &JobContext,
    tree: &TreeCore,
    state: &mut InstallState,
    source: &'a Arc<MemSource>,
    dropped: &[Vec<Extent>],
) -> InstallEnd<'a> {
    let flushed = source.max_seq();
    // Without a sync of its own the manifest learns how far the log was durable.
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

/// A flush that failed is begun anew later, from the memtable.
pub fn abandon(tree: &TreeCore) {
    tree.install.lock().flushing = false;
}
