//! One tree of an open database: its sources as readers see them, and what an install changes.
//!
//! # One pointer (rule 2)
//! What a reader needs (active memtable, frozen memtables, trunk) is one immutable [`Version`].
//! A reader takes the pointer once and sees every message exactly once, newer before older; a
//! freeze and an install each replace it as a whole.
//!
//! # Lock order
//! The commit lock, the latch of the manifest's edits, [`TreeCore::install`], the lock of the version.
//! Nothing does I/O under the last two.

use std::collections::{HashMap, HashSet};

use frondb_core::message::SharedUpdateFn;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, RwLock};
use frondb_core::{Error, ErrorKind, NodeId, Result, RunId, SeqNo, TreeId};
use frondb_locks::LockTable;
use frondb_records::TreeOptions;
use frondb_space::Hold;
use frondb_trunk::Trunk;
use frondb_trunk::plan::Context;

use crate::account::MemtableAccount;
use crate::large_values::LargeValues;
use crate::source::MemSource;
use crate::tombstones::EmptyRanges;
use crate::totals::{TreeFigures, TreeTotals};
use crate::version::Version;

/// State of a tree that only installs change, under [`TreeCore::install`].
#[derive(Default)]
pub struct InstallState {
    /// Views of each run in the newest trunk; a run without any is dead.
    pub views: HashMap<RunId, u32>,
    /// Nodes that a job works on.
    pub claimed: HashSet<NodeId>,
    /// Whether a memtable is being flushed.
    pub flushing: bool,
    /// Values in extents of their own that runs refer to, by their first extent.
    pub values: LargeValues,
    /// All messages up to this SeqNo are in runs.
    pub flushed: SeqNo,
}

/// What a tree is made of: see the fields of the same names of [`TreeCore`].
pub struct TreeParts {
    /// Its id.
    pub id: TreeId,
    /// The open database that it belongs to.
    pub engine: u64,
    /// Its name.
    pub name: String,
    /// Its options.
    pub options: TreeOptions,
    /// Its update function, or a stand-in.
    pub update: Option<SharedUpdateFn>,
    /// Why `update` is only a stand-in.
    pub missing: Option<Error>,
    /// Its nodes.
    pub trunk: Trunk,
    /// What installs know of it.
    pub install: InstallState,
    /// Keeps its large values.
    pub hold: Arc<Hold>,
    /// Row and range locks of transactions.
    pub locks: Arc<LockTable>,
    /// Where its memtables are charged.
    pub account: Arc<MemtableAccount>,
    /// The totals over all trees.
    pub totals: Arc<TreeTotals>,
}

/// The shared state of a tree. Every method may be called from any thread.
pub struct TreeCore {
    /// Its id.
    pub id: TreeId,
    /// The open database that it belongs to.
    pub engine: u64,
    /// Its name, which a rename changes.
    pub name: RwLock<String>,
    /// Its options.
    pub options: TreeOptions,
    /// Its update function, or a stand-in that says why there is none.
    pub update: Option<SharedUpdateFn>,
    /// Why `update` is only a stand-in.
    missing: Option<Error>,
    version: RwLock<Arc<Version>>,
    /// Taken by installs, before the lock of the version.
    pub install: Mutex<InstallState>,
    dropped: AtomicBool,
    /// The bulk load that the tree comes with; 0 once that has committed, and for every other tree.
    coming_with: AtomicU64,
    /// Where its memtables are charged.
    account: Arc<MemtableAccount>,
    /// The totals over all trees, and whether this one is in them. Changed under `version`.
    totals: Arc<TreeTotals>,
    counted: AtomicBool,
    /// Key and value bytes that a flush brings, smoothed.
    flush_raw_bytes: AtomicU64,
    /// Bytes on disk of a large value, on average, as of the last install.
    mean_value_bytes: AtomicU64,
    /// The last flush went right of all data.
    sequential: AtomicBool,
    /// Row and range locks of transactions.
    pub locks: Arc<LockTable>,
    /// SeqNo of the newest commit with messages for it, since the database was opened. Set before
    /// that commit becomes visible.
    newest_commit: AtomicU64,
    /// Where the log has the last commit of a prepared transaction that has written to it, since the
    /// database was opened; 0 if there is none.
    prepared_end: AtomicU64,
    /// Deletes that the active memtable had when it was last searched for a long tombstone run.
    pub(crate) tombstones_searched: AtomicU64,
    /// Ranges of keys that are known to have no entry.
    pub empty_ranges: EmptyRanges,
    /// Deletes that reads have stepped over; for rule 15's test and for status.
    pub(crate) tombstones_skipped: AtomicU64,
}

/// What the planner needs to know beside the tree itself.
#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Memtable bytes at which the largest memtable is frozen.
    pub write_buffer_bytes: u64,
    /// The oldest live snapshot.
    pub oldest_snapshot: Option<SeqNo>,
    /// Most runs that one merge reads.
    pub inputs_max: usize,
}

impl TreeCore {
    /// A tree that no thread uses yet, and that is in no totals.
    #[must_use]
    pub fn new(parts: TreeParts) -> Arc<Self> {
        let mean_value_bytes = parts.install.values.mean_bytes();
        let version = Version {
            active: MemSource::new(&parts.account.budget),
            frozen: Vec::new(),
            trunk: parts.trunk,
            hold: parts.hold,
        };
        Arc::new(Self {
            id: parts.id,
            engine: parts.engine,
            name: RwLock::new(parts.name),
            options: parts.options,
            update: parts.update,
            missing: parts.missing,
            version: RwLock::new(Arc::new(version)),
            install: Mutex::new(parts.install),
            dropped: false.into(),
            coming_with: 0.into(),
            account: parts.account,
            totals: parts.totals,
            counted: false.into(),
            flush_raw_bytes: 0.into(),
            mean_value_bytes: mean_value_bytes.into(),
            sequential: false.into(),
            locks: parts.locks,
            newest_commit: 0.into(),
            prepared_end: 0.into(),
            tombstones_searched: 0.into(),
            empty_ranges: EmptyRanges::default(),
            tombstones_skipped: 0.into(),
        })
    }

    /// The newest version.
    #[must_use]
    pub fn version(&self) -> Arc<Version> {
        Arc::clone(&self.version.read())
    }

    /// Bytes on disk of the large values that runs refer to.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.install.lock().values.bytes()
    }

    // --- Life ---

    /// Whether the tree takes no calls: it was dropped, or the load that makes it has not committed.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.was_dropped() || self.is_coming()
    }

    /// Whether the tree was dropped.
    #[must_use]
    pub fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Whether the bulk load that makes the tree has not committed.
    #[must_use]
    pub fn is_coming(&self) -> bool {
        self.coming_with() != 0
    }

    /// The bulk load that the tree comes with; 0 if there is none, or it has committed.
    #[must_use]
    pub fn coming_with(&self) -> u64 {
        self.coming_with.load(Ordering::Acquire)
    }

    /// Notes the bulk load that the tree comes with.
    pub fn comes_with(&self, load: u64) {
        self.coming_with.store(load, Ordering::Release);
    }

    /// The bulk load that the tree comes with has committed.
    pub fn has_come(&self) {
        self.coming_with.store(0, Ordering::Release);
    }

    /// Marks the tree as dropped; [`end`](Self::end) follows.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Adds the tree to the totals: it is listed from now on.
    pub fn begin_count(&self) {
        let version = self.version.write();
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.totals.change(TreeFigures::default(), TreeFigures::of(&version));
        }
    }

    /// Takes a dropped tree out of the totals and leaves it empty, with `trunk`, for threads that ask
    /// from now on. Returns the version that it had. REQUIRES: the commit lock, `install`.
    pub fn end(&self, trunk: Trunk) -> Arc<Version> {
        let mut version = self.version.write();
        if self.counted.swap(false, Ordering::Relaxed) {
            self.totals.change(TreeFigures::of(&version), TreeFigures::default());
        }
        let hold = version.hold.succeed();
        let active = MemSource::new(&self.account.budget);
        self.replace(&mut version, Version { active, frozen: Vec::new(), trunk, hold })
    }

    // --- Planning ---

    /// What the planner needs to know of the tree.
    #[must_use]
    pub fn plan_context(&self, trunk: &Trunk, limits: PlanLimits) -> Context {
        // A tree that gets a share of the write buffer flushes about this much; smaller flushes (of
        // a few deletes, of a small tree) say nothing about how its leaves should be cut.
        let least = limits.write_buffer_bytes / 8;
        Context {
            options: self.options.trunk,
            tree_raw_bytes: trunk.root.totals.raw_bytes,
            flush_raw_bytes: self.flush_raw_bytes.load(Ordering::Relaxed).max(least),
            value_bytes: self.mean_value_bytes.load(Ordering::Relaxed),
            height: trunk.height(),
            oldest_snapshot: limits.oldest_snapshot,
            inputs_max: limits.inputs_max,
        }
    }

    /// Notes how much a flush brought to nodes and leaves that had data, and whether most of it went
    /// right of all data.
    pub fn note_flush(&self, raw_bytes: u64, appended: u64) {
        if appended < raw_bytes {
            // What was appended made no slices.
            let brought = raw_bytes - appended;
            let seen = self.flush_raw_bytes.load(Ordering::Relaxed);
            let next = if seen == 0 { brought } else { (seen * 3 + brought) / 4 };
            self.flush_raw_bytes.store(next.max(1), Ordering::Relaxed);
        }
        self.sequential.store(appended * 10 > raw_bytes * 9, Ordering::Relaxed);
    }

    /// Whether the last flush went right of all data.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        self.sequential.load(Ordering::Relaxed)
    }

    /// Notes what `install` has as the mean size of a large value. REQUIRES: the install lock.
    pub fn note_values(&self, install: &InstallState) {
        self.mean_value_bytes.store(install.values.mean_bytes(), Ordering::Relaxed);
    }

    // --- Commits ---

    /// Notes a commit with messages for the tree, before it becomes visible. REQUIRES: the commit lock.
    pub fn note_commit(&self, last: SeqNo) {
        self.newest_commit.store(last.get(), Ordering::Release);
    }

    /// SeqNo of the newest commit with messages for the tree since the database was opened.
    #[must_use]
    pub fn newest_commit(&self) -> SeqNo {
        SeqNo(self.newest_commit.load(Ordering::Acquire))
    }

    /// Notes where the log has the commit of a prepared transaction that has written to the tree.
    pub fn note_prepared_commit(&self, end: frondb_core::Lsn) {
        self.prepared_end.store(end.get(), Ordering::Release);
    }

    /// Where the log has the last commit of a prepared transaction that has written to the tree, since
    /// the database was opened; 0 if there is none.
    #[must_use]
    pub fn prepared_end(&self) -> frondb_core::Lsn {
        frondb_core::Lsn(self.prepared_end.load(Ordering::Acquire))
    }

    // --- Versions ---

    /// Takes another active memtable. REQUIRES: no other thread uses the tree yet.
    pub fn set_active(&self, active: Arc<MemSource>) {
        let mut version = self.version.write();
        let (trunk, hold) = (version.trunk.clone(), Arc::clone(&version.hold));
        let frozen = version.frozen.clone();
        self.replace(&mut version, Version { active, frozen, trunk, hold });
    }

    /// Replaces the version, and with it the tree's share of the totals. Returns the old one.
    fn replace(&self, version: &mut Arc<Version>, new: Version) -> Arc<Version> {
        if self.counted.load(Ordering::Relaxed) {
            self.totals.change(TreeFigures::of(version), TreeFigures::of(&new));
        }
        std::mem::replace(version, Arc::new(new))
    }

    /// Freezes the active memtable, if it has anything. REQUIRES: the commit lock.
    pub fn freeze(&self) -> bool {
        let _install = self.install.lock();
        let mut version = self.version.write();
        if version.active.is_empty() {
            return false;
        }
        self.freeze_under(&mut version, None);
        true
    }

    /// Puts the runs of a commit above all that the tree has, and a new active memtable above them
    /// (rule 18). A new one in any case: a reader that has the version of before would see what
    /// comes into the old one, and not the runs. REQUIRES: the commit lock.
    pub fn attach(&self, source: Arc<MemSource>) {
        let _install = self.install.lock();
        let mut version = self.version.write();
        source.count_in(&self.account.frozen_bytes);
        self.freeze_under(&mut version, Some(source));
    }

    /// Freezes the active memtable, if it has anything, below `above`.
    fn freeze_under(&self, version: &mut Arc<Version>, above: Option<Arc<MemSource>>) {
        // Nothing more is inserted: merges of its arrays that are under way would be for nothing.
        let mut frozen = Vec::with_capacity(version.frozen.len() + 2);
        frozen.extend(above);
        if !version.active.is_empty() {
            version.active.memtable.seal();
            version.active.count_in(&self.account.frozen_bytes);
            frozen.push(Arc::clone(&version.active));
        }
        frozen.extend(version.frozen.iter().cloned());
        let new = Version {
            active: MemSource::new(&self.account.budget),
            frozen,
            trunk: version.trunk.clone(),
            hold: Arc::clone(&version.hold),
        };
        self.replace(version, new);
    }

    /// Publishes a new trunk; `flushed` is the source that it holds now, `orphans` says whether the tree
    /// has let go of large values. Returns the version that it replaced. REQUIRES: `install`.
    pub fn publish(
        &self,
        trunk: Trunk,
        flushed: Option<&Arc<MemSource>>,
        orphans: bool,
    ) -> Arc<Version> {
        let mut version = self.version.write();
        let frozen = version
            .frozen
            .iter()
            .filter(|source| flushed.is_none_or(|flushed| !Arc::ptr_eq(source, flushed)))
            .cloned()
            .collect();
        let hold = if orphans { version.hold.succeed() } else { Arc::clone(&version.hold) };
        let active = Arc::clone(&version.active);
        let old = self.replace(&mut version, Version { active, frozen, trunk, hold });
        drop(version);
        if let Some(flushed) = flushed {
            // A reader may still hold it, but no writer waits for it.
            flushed.count_in(&self.account.pinned_bytes);
        }
        old
    }

    /// Says of a source of a dropped tree that no writer waits for its flush any more: cursors may hold
    /// it for long.
    pub fn pin_source(&self, source: &MemSource) {
        source.count_in(&self.account.pinned_bytes);
    }
}

/// A handle to a tree. Cheap to clone, for any thread; keeps the tree's memory while it lives.
#[derive(Clone)]
pub struct Tree(Arc<TreeCore>);

impl Tree {
    /// A handle to this tree.
    #[must_use]
    pub fn new(core: Arc<TreeCore>) -> Self {
        Self(core)
    }

    /// What the handle stands for.
    #[inline]
    #[must_use]
    pub fn core(&self) -> &Arc<TreeCore> {
        &self.0
    }

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
    ///
    /// # Errors
    /// `Invalid`, saying which function is missing.
    pub fn check_updates(&self) -> Result<()> {
        match (&self.0.update, &self.0.missing) {
            (None, _) => {
                Err(Error::invalid(format!("tree {:?} has no update function", self.name())))
            }
            (Some(_), Some(missing)) => Err(missing.clone()),
            (Some(_), None) => Ok(()),
        }
    }

    /// Fails if the tree belongs to another database than `engine`, was dropped, or is still being
    /// loaded.
    ///
    /// # Errors
    /// `Invalid`, `NotFound`.
    pub fn check(&self, engine: u64) -> Result<()> {
        if self.0.engine != engine {
            return Err(Error::invalid(format!(
                "tree {:?} belongs to another open database",
                self.name()
            )));
        }
        let not_found =
            |why: &str| Error::new(ErrorKind::NotFound, format!("tree {:?} {why}", self.name()));
        if self.0.is_coming() {
            return Err(not_found("exists when its bulk load is finished"));
        }
        if self.0.is_dropped() {
            return Err(not_found("was dropped"));
        }
        Ok(())
    }

    /// The open database that it belongs to.
    #[must_use]
    pub fn engine_id(&self) -> u64 {
        self.0.engine
    }
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree({} {:?})", self.0.id, self.name())
    }
}
