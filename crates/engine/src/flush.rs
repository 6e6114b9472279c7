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
use frondb_trunk::install::{Place, VersionBuilder};
use frondb_trunk::job::{Job, JobInput, JobResult};

use crate::env::Env;
use crate::plans::{InstallEnd, Installed, commit_edit, discard};
use frondb_records::Edit;
use frondb_tree::tombstones::TombstoneRuns;
use frondb_tree::{MemSource, TreeCore, Version, extents_of, tombstones};

/// A memtable of less memory than this may be flushed with others of its kind, of other trees.
pub(crate) const SMALL_BYTES: u64 = 16 << 10;
/// Memory of the memtables that are flushed together.
pub(crate) const GROUP_BYTES: u64 = 1 << 20;
/// Most trees whose memtables are flushed together.
pub(crate) const GROUP_TREES: usize = 1024;

/// Memory of the memtable that a flush of `tree` would take, if it is one to flush with others.
pub(crate) fn small_flush_bytes(tree: &TreeCore) -> Option<u64> {
    let version = tree.version();
    let slot = version.frozen.last().filter(|slot| slot.attached().is_none())?;
    let bytes = slot.memtable.bytes();
    (bytes < SMALL_BYTES).then_some(bytes)
}

/// A memtable being flushed.
pub(crate) struct FlushJob {
    pub(crate) tree: Arc<TreeCore>,
    slot: Arc<MemSource>,
    job: Job,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    begun: Nanos,
    /// It uses the space kept for a full disk.
    pub(crate) reserved: bool,
}

/// Whether flushing a tree's frozen memtables leads to space being freed: one of them mostly
/// deletes. Those that are older have to go first, whatever they hold.
pub(crate) fn frees_space(frozen: &[Arc<MemSource>]) -> bool {
    frozen.iter().any(|slot| slot.frees_space())
}

impl FlushJob {
    /// Takes up the oldest frozen memtable of `tree`; `None` if there is none, or one is being
    /// flushed.
    pub(crate) fn begin(env: &Env, tree: &Arc<TreeCore>) -> Result<Option<Self>> {
        let version = {
            let mut install = tree.install.lock();
            let version = tree.version();
            if install.flushing || version.frozen.is_empty() || tree.is_dropped() {
                return Ok(None);
            }
            install.flushing = true;
            version
        };
        let Some(slot) = version.frozen.last().cloned() else { return Ok(None) };
        let begun = Self::job(env, tree, &version, slot);
        if begun.is_err() {
            tree.install.lock().flushing = false;
        }
        begun.map(Some)
    }

    fn job(env: &Env, tree: &Arc<TreeCore>, at: &Version, slot: Arc<MemSource>) -> Result<Self> {
        let trunk = &at.trunk;
        // After the freeze: a snapshot taken from now on sees all that is in the memtable.
        let snapshots = env.snapshots.list();
        let memtable = &slot.memtable;
        let deletes = memtable.range_deletes().clone();
        let newest_delete = deletes.iter().map(|rd| rd.seq).max().unwrap_or(SeqNo::MIN);
        let keep_hidden = snapshots.first().copied().filter(|s| *s < newest_delete);
        let context = tree.plan_context(trunk, env.plan_limits());
        let leaf_target = context.leaf_target();
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
        let job_env = env.job_env(tree, frees_space(&at.frozen));
        let reserved = job_env.reserved;
        let job = Job::new(job_env, input, targets, 1)?;
        let tree = Arc::clone(tree);
        let begun = env.now();
        Ok(Self { tree, slot, job, deletes, keep_hidden, raw_bytes, leaf_target, begun, reserved })
    }

    /// Memory that the memtable takes.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.slot.memtable.bytes()
    }

    /// Of that, what was gone through so far.
    pub(crate) fn drained_bytes(&self) -> u64 {
        let memtable = &self.slot.memtable;
        let part = u128::from(memtable.bytes()) * u128::from(self.job.entries_in());
        (part / u128::from(memtable.len().max(1))) as u64
    }

    /// Bytes that its steps have written so far.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.job.bytes_written()
    }

    /// When it was begun.
    pub(crate) fn begun(&self) -> Nanos {
        self.begun
    }

    /// Goes on for a step; `true` when all is written.
    pub(crate) fn step(&mut self) -> Result<bool> {
        self.job.step()
    }

    /// Makes the runs part of the trunk, when all is written.
    pub(crate) fn install(self, env: &Env) -> Result<Installed> {
        let written = self.finish(env)?;
        make_durable(env, std::slice::from_ref(&written))?;
        written.install(env)
    }

    /// Ends the writing. Nothing is durable yet.
    pub(crate) fn finish(self, env: &Env) -> Result<Written> {
        let paid = self.job.bytes_written();
        let result = self.job.finish()?;
        env.throttle.pay(result.stats.bytes_written.saturating_sub(paid), env.now());
        Ok(Written {
            tree: self.tree,
            slot: self.slot,
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
pub(crate) struct Written {
    pub(crate) tree: Arc<TreeCore>,
    slot: Arc<MemSource>,
    result: JobResult,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    /// It uses the space kept for a full disk.
    pub(crate) reserved: bool,
}

/// Makes durable what was written, and the log up to the last record that it holds a part of.
///
/// # Errors
/// None of it may be installed; its runs are given back.
pub(crate) fn make_durable(env: &Env, written: &[Written]) -> Result<()> {
    let last = written.iter().map(|written| written.slot.last_lsn()).max().unwrap_or(Lsn(0));
    let synced = env.runs.space.sync().and_then(|()| env.log.wal.sync_to(last));
    synced.inspect_err(|_| written.iter().for_each(Written::discard))
}

impl Written {
    /// Gives the runs back.
    pub(crate) fn discard(&self) {
        discard(&self.result.made);
    }

    /// Makes the runs part of the trunk. REQUIRES: [`make_durable`].
    pub(crate) fn install(self, env: &Env) -> Result<Installed> {
        let Self { tree, slot, result, deletes, keep_hidden, raw_bytes, leaf_target, .. } = self;
        let appended: u64 = result
            .made
            .iter()
            .filter(|made| made.place == Place::Append)
            .map(|made| made.run.meta().raw_bytes)
            .sum();

        let stretches = TombstoneRuns::find(&tree.version().trunk.root, &slot.memtable);
        let latch = env.edits.begin();
        let mut install = tree.install.lock();
        if tree.is_dropped() {
            install.flushing = false;
            discard(&result.made);
            return Ok(Installed::nothing());
        }
        let trunk = tree.version().trunk.clone();
        let mut next_id = || env.ids.next_node();
        let mut builder = VersionBuilder::new(trunk, &mut next_id);
        builder.flush(&result.made, &deletes, keep_hidden, leaf_target);
        let change = builder.finish();
        tombstones::request_after_flush(&change.trunk.root, &stretches, &result.made);

        let flushed = slot.max_seq();
        // Without a sync of its own the manifest learns how far the log was durable.
        let log = Edit::Log { start: Lsn(0), durable: env.log.wal.durable_lsn() };
        let mut edits = vec![Edit::Flushed { tree: tree.id, seq: flushed }, log];
        let dropped = extents_of(&result.dropped_refs)?;
        let mut orphans = Vec::new();
        for value in slot.take_values() {
            let Some(first) = value.first().copied() else { continue };
            if dropped.iter().any(|extents| extents.first() == Some(&first)) {
                // Overwritten before it ever reached a run.
                orphans.extend(value);
            } else {
                edits.push(Edit::AddValue { tree: tree.id, extents: value.clone() });
                install.values.insert(first, value);
            }
        }
        install.flushed = install.flushed.max(flushed);
        install.flushing = false;
        let end = InstallEnd { flushed: Some(&slot), edits, orphans };
        let installed = commit_edit(&latch, &tree, &mut install, change, &result.made, end);
        drop(install);
        drop(latch);
        tree.note_flush(raw_bytes, appended);
        env.counters.add_flush(&result.stats);
        installed
    }
}

/// A flush that failed is begun anew later, from the memtable.
pub(crate) fn abandon(tree: &TreeCore) {
    tree.install.lock().flushing = false;
}
