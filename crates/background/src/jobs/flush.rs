//! Flushes a memtable: writes its messages as small runs, called slices, of the nodes below the
//! root.
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
//! Memtables smaller than `SMALL_BYTES` are flushed in groups: each step is done for all memtables
//! of a group, so a group costs as many syncs as one flush.

use frondb_core::clock::Nanos;
use frondb_core::range_delete::RangeDeletes;
use frondb_core::sync::Arc;
use frondb_core::wear::WriteCause;
use frondb_core::{Result, SeqNo};
use frondb_tree::{MemSource, TreeCore, Version};
use frondb_trunk::cut::flush_targets;
use frondb_trunk::job::{Job, JobInput};

use crate::context::JobContext;
use crate::jobs::install::Installed;
use crate::jobs::notice::Notice;
use crate::jobs::written::{Written, make_durable};

/// Bytes of memory. A smaller memtable may be flushed together with small memtables of other trees.
pub(crate) const SMALL_BYTES: u64 = 16 << 10;
/// Most bytes of memory of the memtables in a group.
pub(crate) const GROUP_BYTES: u64 = 1 << 20;
/// Most trees in a group.
pub(crate) const GROUP_TREES: usize = 1024;

/// Returns the size in bytes of the memtable that `tree` would flush next; `None` if that memtable
/// is not small, if attached runs are due first, or if nothing is frozen.
pub(crate) fn small_flush_bytes(tree: &TreeCore) -> Option<u64> {
    let version = tree.version();
    let source = version.frozen.last().filter(|source| source.attached().is_none())?;
    let bytes = source.memtable.bytes();
    (bytes < SMALL_BYTES).then_some(bytes)
}

/// A flush under way.
pub struct FlushJob {
    /// The tree whose memtable is flushed.
    pub tree: Arc<TreeCore>,
    source: Arc<MemSource>,
    job: Job,
    deletes: RangeDeletes,
    keep_hidden: Option<SeqNo>,
    raw_bytes: u64,
    leaf_target: u64,
    begun: Nanos,
    notice: Notice,
    /// Whether the flush may use the reserve of a full disk.
    pub reserved: bool,
}

/// Whether flushes of a tree's frozen memtables will free space, because one of the memtables has
/// mostly deletes or a range delete. The older memtables must be flushed before that one, whatever
/// they contain.
pub fn frees_space(frozen: &[Arc<MemSource>]) -> bool {
    frozen.iter().any(|source| source.frees_space())
}

impl FlushJob {
    /// Begins to flush the oldest frozen memtable of `tree`. `None` if no memtable is frozen, if a
    /// flush of the tree is under way, or if the tree was dropped.
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

    /// Creates the job that writes the messages of `source` as slices of the nodes below the root.
    fn job(
        context: &JobContext,
        tree: &Arc<TreeCore>,
        at: &Version,
        source: Arc<MemSource>,
    ) -> Result<Self> {
        let trunk = &at.trunk;
        // List the snapshots after the freeze: a snapshot that is taken later sees the whole
        // memtable.
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
            has_updates: tree.update().is_some(),
            at_base: trunk.root.is_empty(),
            raw_bytes,
            disk_bytes: raw_bytes * 3 / 4,
            handover: Arc::default(),
        };
        let job_env = context.job_env(WriteCause::Flush, tree, frees_space(&at.frozen));
        let reserved = job_env.reserved;
        let job = Job::new(job_env, input, targets, 1)?;
        let tree = Arc::clone(tree);
        let (begun, notice) = (context.reads.now(), Notice::flush(context, tree.id));
        Ok(Self {
            tree,
            source,
            job,
            deletes,
            keep_hidden,
            raw_bytes,
            leaf_target,
            begun,
            notice,
            reserved,
        })
    }

    /// Returns the bytes of memory that the flushed memtable takes.
    pub fn memtable_bytes(&self) -> u64 {
        self.source.memtable.bytes()
    }

    /// Estimates how many bytes of the memtable the flush has processed so far.
    pub fn drained_bytes(&self) -> u64 {
        let memtable = &self.source.memtable;
        let part = u128::from(memtable.bytes()) * u128::from(self.job.entries_in());
        (part / u128::from(memtable.len().max(1))) as u64
    }

    /// Returns the bytes that the steps of the flush have written so far.
    pub fn bytes_written(&self) -> u64 {
        self.job.bytes_written()
    }

    /// Returns the time at which the flush began.
    pub fn begun(&self) -> Nanos {
        self.begun
    }

    /// Runs one step. Returns `true` when all output is written.
    pub fn step(&mut self) -> Result<bool> {
        self.job.step()
    }

    /// Finishes the runs, makes them durable and makes them part of the trunk. REQUIRES:
    /// [`step`](Self::step) has returned `true`.
    pub fn install(self, context: &JobContext) -> Result<Installed> {
        let written = self.finish(context)?;
        make_durable(context, std::slice::from_ref(&written))?;
        written.install(context)
    }

    /// Finishes the runs, without making them durable.
    pub fn finish(self, context: &JobContext) -> Result<Written> {
        let paid = self.job.bytes_written();
        let result = self.job.finish()?;
        context.throttle.pay(result.stats.bytes_written.saturating_sub(paid), context.reads.now());
        Ok(Written {
            tree: self.tree,
            source: self.source,
            result,
            deletes: self.deletes,
            keep_hidden: self.keep_hidden,
            raw_bytes: self.raw_bytes,
            leaf_target: self.leaf_target,
            begun: self.begun,
            notice: self.notice,
            reserved: self.reserved,
        })
    }
}

/// Ends a failed flush of a tree. A later flush begins again from the memtable.
pub fn abandon(tree: &TreeCore) {
    tree.install.lock().flushing = false;
}
