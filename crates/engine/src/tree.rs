//! One tree of an open engine: its sources as readers see them, and what an install changes.
//!
//! # One pointer (rule 2)
//! What a reader needs (active memtable, frozen memtables, trunk) is one immutable [`Version`].
//! A reader takes the pointer once and sees every message exactly once, newer before older; a
//! freeze and an install each replace it as a whole.
//!
//! Locks, in this order: the engine's commit lock, the manifest gate, [`TreeCore::install`],
//! [`TreeCore::version`]. Nobody does I/O under the last two.

use std::collections::{HashMap, HashSet};

use frondb_core::budget::Budget;
use frondb_core::message::SharedUpdateFn;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, RwLock};
use frondb_core::{Error, Lsn, NodeId, Result, RunId, SeqNo, TreeId};
use frondb_locks::LockTable;
use frondb_memtable::Memtable;
use frondb_run::Run;
use frondb_space::{Extent, Hold};
use frondb_trunk::Trunk;
use frondb_trunk::plan::Context;

use crate::env::Env;
use crate::large_values::LargeValues;
use crate::sums::{Share, TreeSums};
use crate::voids::Voids;
use frondb_records::TreeOptions;

/// A source above the trunk and the part of the log that it needs: a memtable, or the private runs of
/// a large commit (then the memtable has the commit's range deletes and nothing else).
pub(crate) struct MemSlot {
    pub(crate) memtable: Arc<Memtable>,
    attached: Option<AttachedRuns>,
    /// Extents of the large values that its messages refer to.
    values: Mutex<Vec<Vec<Extent>>>,
    /// Set when it is frozen: the sum it is counted in, and its share.
    counted: Mutex<Option<(Arc<AtomicU64>, u64)>>,
    /// Start of the first record with a message in it; `u64::MAX` while it is empty.
    first_lsn: AtomicU64,
    /// End of the last such record.
    last_lsn: AtomicU64,
    /// It was logged again, and the old records are needed until the new one is durable.
    relogged: Mutex<Option<Relogged>>,
}

/// Where a memtable's log began before it was logged again, and where the new record ends.
#[derive(Clone, Copy)]
struct Relogged {
    old: Lsn,
    end: Lsn,
}

impl MemSlot {
    pub(crate) fn new(budget: &Arc<Budget>) -> Arc<Self> {
        Self::of(Memtable::new(Arc::clone(budget)))
    }

    pub(crate) fn of(memtable: Memtable) -> Arc<Self> {
        Self::with(memtable, None)
    }

    /// What a large commit brings to a tree; `memtable` has its range deletes.
    pub(crate) fn attached_runs(memtable: Memtable, attached: AttachedRuns) -> Arc<Self> {
        memtable.seal();
        Self::with(memtable, Some(attached))
    }

    fn with(memtable: Memtable, attached: Option<AttachedRuns>) -> Arc<Self> {
        Arc::new(Self {
            memtable: Arc::new(memtable),
            attached,
            values: Mutex::new(Vec::new()),
            counted: Mutex::new(None),
            first_lsn: AtomicU64::new(u64::MAX),
            last_lsn: AtomicU64::new(0),
            relogged: Mutex::new(None),
        })
    }

    /// A record at `[start, end)` has messages for the memtable.
    pub(crate) fn logged(&self, start: Lsn, end: Lsn) {
        self.first_lsn.fetch_min(start.get(), Ordering::AcqRel);
        self.last_lsn.fetch_max(end.get(), Ordering::AcqRel);
    }

    /// The memtable was logged again as a whole at `[start, end)`; the log was durable up to
    /// `durable` before. The old records stay needed until the new one is durable: a power failure
    /// could take it, and what it repeats may have been promised.
    pub(crate) fn logged_again(&self, start: Lsn, end: Lsn, durable: Lsn) {
        if let Some(old) = self.needed_from(durable) {
            *self.relogged.lock() = Some(Relogged { old, end });
        }
        self.first_lsn.store(start.get(), Ordering::Release);
        self.last_lsn.store(end.get(), Ordering::Release);
    }

    /// Where the log begins that recovery would need for it, if the log is durable up to
    /// `durable`.
    pub(crate) fn needed_from(&self, durable: Lsn) -> Option<Lsn> {
        match *self.relogged.lock() {
            Some(relogged) if relogged.end > durable => Some(relogged.old),
            _ => self.first_lsn(),
        }
    }

    /// Where the log that holds its messages begins, if it has any.
    pub(crate) fn first_lsn(&self) -> Option<Lsn> {
        let lsn = self.first_lsn.load(Ordering::Acquire);
        (lsn != u64::MAX).then_some(Lsn(lsn))
    }

    pub(crate) fn last_lsn(&self) -> Lsn {
        Lsn(self.last_lsn.load(Ordering::Acquire))
    }

    /// What makes it the source of a large commit.
    #[inline]
    pub(crate) fn attached(&self) -> Option<&AttachedRuns> {
        self.attached.as_ref()
    }

    /// Its runs, to be read after its memtable; newest first. A memtable's has none.
    #[inline]
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        self.attached.as_ref().map_or(&[], |attached| &attached.runs)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.attached.is_none() && self.memtable.is_empty()
    }

    /// Largest SeqNo in it.
    pub(crate) fn max_seq(&self) -> SeqNo {
        match &self.attached {
            Some(attached) => attached.last,
            None => self.memtable.max_seq().unwrap_or(SeqNo::MIN),
        }
    }

    /// Whether flushing it leads to space being freed: it mostly deletes.
    pub(crate) fn frees_space(&self) -> bool {
        let stats = self.memtable.stats();
        let metas = || self.runs().iter().map(|run| run.meta());
        let deletes = stats.deletes + metas().map(|meta| meta.deletes).sum::<u64>();
        let messages = stats.messages + metas().map(|meta| meta.entries).sum::<u64>();
        stats.range_deletes > 0 || deletes * 2 > messages
    }

    /// A message refers to a value in these extents.
    pub(crate) fn add_value(&self, extents: Vec<Extent>) {
        self.values.lock().push(extents);
    }

    /// Bytes on disk of the large values that it takes care of.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.values.lock().iter().flatten().map(|extent| extent.bytes()).sum()
    }

    /// Whether it takes care of the large value in these extents.
    pub(crate) fn owns_value(&self, extents: &[Extent]) -> bool {
        self.values.lock().iter().any(|value| **value == *extents)
    }

    /// The large values, which the caller takes care of from now on.
    pub(crate) fn take_values(&self) -> Vec<Vec<Extent>> {
        std::mem::take(&mut *self.values.lock())
    }

    /// Counts its memory in `sum`, and no longer where it was counted before, until it goes.
    pub(crate) fn count_in(&self, sum: &Arc<AtomicU64>) {
        let bytes = self.memtable.bytes();
        sum.fetch_add(bytes, Ordering::Relaxed);
        let before = self.counted.lock().replace((Arc::clone(sum), bytes));
        if let Some((sum, bytes)) = before {
            sum.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// The runs of a large commit that its tree has above the trunk.
pub(crate) struct AttachedRuns {
    /// The transaction, and the part of it that the manifest has as pending.
    pub(crate) txn: u64,
    pub(crate) part: u32,
    /// Newest first, with SeqNos.
    pub(crate) runs: Vec<Arc<Run>>,
    /// The last SeqNo that the part has.
    pub(crate) last: SeqNo,
    /// Whether the runs are fit for a base.
    pub(crate) are_base: bool,
}

impl Drop for MemSlot {
    fn drop(&mut self) {
        if let Some((sum, bytes)) = self.counted.lock().take() {
            sum.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// All sources of a tree at one moment. Immutable but for the active memtable's growth.
pub(crate) struct Version {
    pub(crate) active: Arc<MemSlot>,
    /// Newest first.
    pub(crate) frozen: Vec<Arc<MemSlot>>,
    pub(crate) trunk: Trunk,
    /// Keeps the large values that a reader of this version may find references to.
    pub(crate) hold: Arc<Hold>,
}

impl Version {
    /// The memtables, newest first. For what runs cannot matter to; all else goes over `slots`.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.frozen).map(|slot| &slot.memtable)
    }

    /// The sources above the trunk, newest first.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Arc<MemSlot>> {
        std::iter::once(&self.active).chain(&self.frozen)
    }
}

/// What only installs change.
#[derive(Default)]
pub(crate) struct Install {
    /// Views of each run in the newest trunk; a run without any is dead.
    pub(crate) views: HashMap<RunId, u32>,
    /// Nodes that a job works on.
    pub(crate) claimed: HashSet<NodeId>,
    /// A memtable is being flushed.
    pub(crate) flushing: bool,
    /// Values in extents of their own that runs refer to, by their first extent.
    pub(crate) values: LargeValues,
    /// All messages up to here are in runs.
    pub(crate) flushed: SeqNo,
}

/// The shared state of a tree.
pub(crate) struct TreeCore {
    pub(crate) id: TreeId,
    pub(crate) engine: u64,
    pub(crate) name: RwLock<String>,
    pub(crate) options: TreeOptions,
    pub(crate) update: Option<SharedUpdateFn>,
    /// Why `update` is only a stand-in.
    pub(crate) missing: Option<Error>,
    pub(crate) version: RwLock<Arc<Version>>,
    pub(crate) install: Mutex<Install>,
    pub(crate) dropped: AtomicBool,
    /// The bulk load that the tree comes with; 0 once that has committed, and for every other tree.
    pub(crate) coming_with: AtomicU64,
    /// The sums over all trees, and whether this one is in them. Changed under `version`.
    pub(crate) sums: Arc<TreeSums>,
    pub(crate) counted: AtomicBool,
    /// Key and value bytes that a flush brings, smoothed.
    pub(crate) flush_raw_bytes: AtomicU64,
    /// Bytes on disk of a large value, on average, as of the last install.
    pub(crate) mean_value_bytes: AtomicU64,
    /// The last flush went right of all data.
    pub(crate) sequential: AtomicBool,
    /// Row and range locks of transactions.
    pub(crate) locks: Arc<LockTable>,
    /// SeqNo of the newest commit with messages for it, since the engine was opened. Set before
    /// that becomes visible.
    pub(crate) newest_commit: AtomicU64,
    /// Where the log has the last commit of a prepared transaction that has written to it, since the
    /// engine was opened; 0 if there is none.
    pub(crate) prepared_end: AtomicU64,
    /// Deletes the active memtable had when it was last looked through for a long stretch.
    pub(crate) stretch_looked: AtomicU64,
    /// Ranges of keys without an entry.
    pub(crate) voids: Voids,
    /// Messages stepped over by reads that were deletes; for rule 15's test and for status.
    pub(crate) deletes_skipped: AtomicU64,
}

impl TreeCore {
    pub(crate) fn version(&self) -> Arc<Version> {
        Arc::clone(&self.version.read())
    }

    /// Bytes on disk of the large values that runs refer to.
    pub(crate) fn value_bytes(&self) -> u64 {
        self.install.lock().values.bytes()
    }

    /// Whether it takes no calls: it was dropped, or the load that makes it has not committed.
    pub(crate) fn is_dropped(&self) -> bool {
        self.was_dropped() || self.is_coming()
    }

    pub(crate) fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    pub(crate) fn is_coming(&self) -> bool {
        self.coming_with.load(Ordering::Acquire) != 0
    }

    /// What the planner needs to know of the tree.
    pub(crate) fn context(&self, trunk: &Trunk, env: &Env) -> Context {
        // A tree that gets a share of the write buffer flushes about this much; smaller flushes (of
        // a few deletes, of a small tree) say nothing about how its leaves should be cut.
        let least = env.memory().write_buffer_bytes() / 8;
        let flush_raw_bytes = self.flush_raw_bytes.load(Ordering::Relaxed).max(least);
        Context {
            options: self.options.trunk,
            tree_raw_bytes: trunk.root.totals.raw_bytes,
            flush_raw_bytes,
            value_bytes: self.mean_value_bytes.load(Ordering::Relaxed),
            height: trunk.height(),
            oldest_snapshot: env.snapshots.oldest(),
            inputs_max: frondb_run::merge_inputs_max(env.budget.total()),
        }
    }

    /// Notes how much a flush brought.
    pub(crate) fn note_flush(&self, raw_bytes: u64) {
        let seen = self.flush_raw_bytes.load(Ordering::Relaxed);
        let next = if seen == 0 { raw_bytes } else { (seen * 3 + raw_bytes) / 4 };
        self.flush_raw_bytes.store(next.max(1), Ordering::Relaxed);
    }

    /// Takes another active memtable. REQUIRES: nobody else uses the tree yet.
    pub(crate) fn set_active(&self, active: Arc<MemSlot>) {
        let mut version = self.version.write();
        let (trunk, hold) = (version.trunk.clone(), Arc::clone(&version.hold));
        let frozen = version.frozen.clone();
        self.replace(&mut version, Version { active, frozen, trunk, hold });
    }

    /// Replaces the version, and with it the tree's share of the sums. Returns the old one.
    fn replace(&self, version: &mut Arc<Version>, new: Version) -> Arc<Version> {
        if self.counted.load(Ordering::Relaxed) {
            self.sums.change(Share::of(version), Share::of(&new));
        }
        std::mem::replace(version, Arc::new(new))
    }

    /// The tree is listed from now on: it has a share of the sums.
    pub(crate) fn begin_count(&self) {
        let version = self.version.write();
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.sums.change(Share::default(), Share::of(&version));
        }
    }

    /// The tree is dropped: it has no share any more, and is empty for who asks from now on. Returns
    /// what it was. REQUIRES: the commit lock, `install`.
    pub(crate) fn end(&self, env: &Env, trunk: Trunk) -> Arc<Version> {
        let mut version = self.version.write();
        if self.counted.swap(false, Ordering::Relaxed) {
            self.sums.change(Share::of(&version), Share::default());
        }
        let hold = version.hold.succeed();
        let empty = Version { active: MemSlot::new(&env.budget), frozen: Vec::new(), trunk, hold };
        self.replace(&mut version, empty)
    }

    /// Freezes the active memtable, if it has anything. REQUIRES: the commit lock.
    pub(crate) fn freeze(&self, env: &Env) -> bool {
        let _install = self.install.lock();
        let mut version = self.version.write();
        if version.active.is_empty() {
            return false;
        }
        self.freeze_under(env, &mut version, None);
        true
    }

    /// Puts the runs of a commit above all that the tree has, and a new active memtable above them
    /// (rule 18). A new one in any case: a reader that has the version of before would see what
    /// comes into the old one, and not the runs. REQUIRES: the commit lock.
    pub(crate) fn attach(&self, env: &Env, slot: Arc<MemSlot>) {
        let _install = self.install.lock();
        let mut version = self.version.write();
        slot.count_in(&env.frozen_bytes);
        self.freeze_under(env, &mut version, Some(slot));
    }

    /// Freezes the active memtable, if it has anything, below `above`.
    fn freeze_under(&self, env: &Env, version: &mut Arc<Version>, above: Option<Arc<MemSlot>>) {
        // Nothing more is inserted: merges of its arrays that are under way would be for nothing.
        let mut frozen = Vec::with_capacity(version.frozen.len() + 2);
        frozen.extend(above);
        if !version.active.is_empty() {
            version.active.memtable.seal();
            version.active.count_in(&env.frozen_bytes);
            frozen.push(Arc::clone(&version.active));
        }
        frozen.extend(version.frozen.iter().cloned());
        let new = Version {
            active: MemSlot::new(&env.budget),
            frozen,
            trunk: version.trunk.clone(),
            hold: Arc::clone(&version.hold),
        };
        self.replace(version, new);
    }

    /// Publishes a new trunk; `flushed` is the memtable that it holds now, `orphans` whether it has
    /// let go of large values. Returns the version that it replaced. REQUIRES: `install`.
    pub(crate) fn publish(
        &self,
        trunk: Trunk,
        flushed: Option<&Arc<MemSlot>>,
        orphans: bool,
    ) -> Arc<Version> {
        let mut version = self.version.write();
        let frozen = version
            .frozen
            .iter()
            .filter(|slot| flushed.is_none_or(|flushed| !Arc::ptr_eq(slot, flushed)))
            .cloned()
            .collect();
        let hold = if orphans { version.hold.succeed() } else { Arc::clone(&version.hold) };
        let active = Arc::clone(&version.active);
        self.replace(&mut version, Version { active, frozen, trunk, hold })
    }
}

/// A handle to a tree. Cheap to clone, for any thread; keeps the tree's memory while it lives.
#[derive(Clone)]
pub struct Tree(pub(crate) Arc<TreeCore>);

impl Tree {
    /// The tree's id.
    #[must_use]
    pub fn id(&self) -> TreeId {
        self.0.id
    }

    /// The tree's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name.read().clone()
    }

    /// The options it was made with.
    #[must_use]
    pub fn options(&self) -> &TreeOptions {
        &self.0.options
    }

    /// Fails if the tree cannot take updates: it has no function, or is open without it.
    pub(crate) fn check_updates(&self) -> Result<()> {
        match (&self.0.update, &self.0.missing) {
            (None, _) => {
                Err(Error::invalid(format!("tree {:?} has no update function", self.name())))
            }
            (Some(_), Some(missing)) => Err(missing.clone()),
            (Some(_), None) => Ok(()),
        }
    }

    pub(crate) fn engine_id(&self) -> u64 {
        self.0.engine
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} {:?})", self.0.id, self.name())
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    /// Rules 6 and 10: what was logged again may have been promised where it was logged first, so
    /// the log keeps that place until the new one is durable, however often it is logged again.
    #[test]
    fn the_old_place_is_needed_until_the_new_one_is_durable() {
        let slot = MemSlot::new(&Budget::new(1 << 20));
        assert_eq!((slot.first_lsn(), slot.needed_from(Lsn(0))), (None, None));
        slot.logged(Lsn(100), Lsn(150));
        slot.logged(Lsn(300), Lsn(350));
        assert_eq!((slot.needed_from(Lsn(0)), slot.last_lsn()), (Some(Lsn(100)), Lsn(350)));

        slot.logged_again(Lsn(900), Lsn(950), Lsn(400));
        assert_eq!(slot.needed_from(Lsn(949)), Some(Lsn(100)));
        assert_eq!(slot.needed_from(Lsn(950)), Some(Lsn(900)));
        // A flush syncs the log up to here.
        assert_eq!((slot.first_lsn(), slot.last_lsn()), (Some(Lsn(900)), Lsn(950)));

        slot.logged_again(Lsn(2000), Lsn(2050), Lsn(949));
        assert_eq!(slot.needed_from(Lsn(2049)), Some(Lsn(100)), "900 was never durable");
        slot.logged_again(Lsn(3000), Lsn(3050), Lsn(2050));
        assert_eq!(slot.needed_from(Lsn(3049)), Some(Lsn(2000)));
        assert_eq!(slot.needed_from(Lsn(3050)), Some(Lsn(3000)));
    }
}
