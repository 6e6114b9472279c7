//! [`TreeCore`]: one tree of an open database, with the version that readers take and the state
//! that installs change. [`Tree`] is the handle that callers hold.
//!
//! # One pointer (rule 2)
//! All that a reader needs (active memtable, frozen memtables, trunk) is in one immutable
//! [`Version`]. A reader takes the pointer to it once and sees every message exactly once, newer
//! messages before older ones. A freeze and an install each publish a new version.
//!
//! # Lock order
//! The commit lock, the edit latch of the manifest, [`TreeCore::install`], the lock of the version.
//! No thread does I/O while it holds one of the last two.

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
use crate::tombstones::{EmptyRanges, TombstoneSearch};
use crate::totals::{TreeFigures, TreeTotals};
use crate::version::Version;

/// State of a tree that only installs change, protected by [`TreeCore::install`].
#[derive(Default)]
pub struct InstallState {
    /// How many views the newest trunk has of each run. A run without a view is dead.
    pub views: HashMap<RunId, u32>,
    /// Nodes that a background job works on. No other job may take them.
    pub claimed: HashSet<NodeId>,
    /// Whether a memtable is being flushed.
    pub flushing: bool,
    /// Large values that runs refer to, keyed by their first extent.
    pub values: LargeValues,
    /// All messages of the tree up to this SeqNo are in runs.
    pub flushed: SeqNo,
}

/// What [`TreeCore::new`] makes a tree of.
pub struct TreeParts {
    /// The tree's id.
    pub id: TreeId,
    /// The number of the open database that the tree belongs to.
    pub engine: u64,
    /// The tree's name.
    pub name: String,
    /// The tree's options.
    pub options: TreeOptions,
    /// The tree's update function, or a stand-in that fails.
    pub update: Option<SharedUpdateFn>,
    /// Why `update` is a stand-in; `None` if it is the real function.
    pub missing: Option<Error>,
    /// The nodes with their runs.
    pub trunk: Trunk,
    /// The state of installs, which agrees with `trunk`.
    pub install: InstallState,
    /// Keeps the extents of large values that the first version refers to.
    pub hold: Arc<Hold>,
    /// Row and range locks of transactions.
    pub locks: Arc<LockTable>,
    /// The account that the tree's memtables are charged to.
    pub account: Arc<MemtableAccount>,
    /// The totals over all trees of the database.
    pub totals: Arc<TreeTotals>,
}

/// The shared state of a tree. Every method may be called from any thread.
pub struct TreeCore {
    /// The tree's id.
    pub id: TreeId,
    /// The number of the open database that the tree belongs to.
    pub engine: u64,
    /// The tree's name, which a rename changes.
    pub name: RwLock<String>,
    /// The tree's options, fixed when it was created.
    pub options: TreeOptions,
    /// The tree's update function, or a stand-in whose error says why the function is missing.
    pub update: Option<SharedUpdateFn>,
    /// Why `update` is a stand-in; `None` if it is the real function.
    missing: Option<Error>,
    version: RwLock<Arc<Version>>,
    /// Installs lock this before they lock the version.
    pub install: Mutex<InstallState>,
    dropped: AtomicBool,
    /// The bulk load that creates the tree; 0 once the load has committed, and for every tree that
    /// no load creates.
    bulk_load: AtomicU64,
    /// The account that the tree's memtables are charged to.
    account: Arc<MemtableAccount>,
    /// The totals over all trees, and whether this tree is in them. Changed under `version`.
    totals: Arc<TreeTotals>,
    counted: AtomicBool,
    /// Key and value bytes that a flush brings to nodes with data: a moving average.
    flush_raw_bytes: AtomicU64,
    /// Average bytes on disk of a large value, as of the last install.
    mean_value_bytes: AtomicU64,
    /// Whether the last flush appended more than nine tenths of its bytes behind all older data.
    sequential: AtomicBool,
    /// Row and range locks of transactions.
    pub locks: Arc<LockTable>,
    /// SeqNo of the newest commit with messages for the tree since the database was opened. Set
    /// before that commit becomes visible.
    newest_commit: AtomicU64,
    /// End of the log record that commits the last prepared transaction with writes to the tree,
    /// since the database was opened; 0 if there is none.
    prepared_end: AtomicU64,
    /// Decides when the active memtable is searched for tombstone runs.
    pub tombstone_search: TombstoneSearch,
    /// Key ranges that are known to have no entry.
    pub empty_ranges: EmptyRanges,
    /// Deletes that reads have stepped over (rule 15).
    pub(crate) tombstones_skipped: AtomicU64,
}

/// What the planner needs to know that is not of the tree itself.
#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Bytes of all memtables at which the largest memtable is frozen.
    pub write_buffer_bytes: u64,
    /// SeqNo of the oldest live snapshot; `None` without one.
    pub oldest_snapshot: Option<SeqNo>,
    /// Maximum number of runs that one merge reads.
    pub inputs_max: usize,
}

impl TreeCore {
    /// Makes a tree. The totals do not count it before [`begin_count`](Self::begin_count).
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
            bulk_load: 0.into(),
            account: parts.account,
            totals: parts.totals,
            counted: false.into(),
            flush_raw_bytes: 0.into(),
            mean_value_bytes: mean_value_bytes.into(),
            sequential: false.into(),
            locks: parts.locks,
            newest_commit: 0.into(),
            prepared_end: 0.into(),
            tombstone_search: TombstoneSearch::default(),
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

    /// Whether the tree refuses calls: it was dropped, or the bulk load that creates it has not
    /// committed.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.was_dropped() || self.is_loading()
    }

    /// Whether the tree was dropped; `false` for a tree that is being loaded.
    #[must_use]
    pub fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Whether a bulk load creates the tree and has not committed.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.bulk_load() != 0
    }

    /// The bulk load that creates the tree; 0 if there is none, or if it has committed.
    #[must_use]
    pub fn bulk_load(&self) -> u64 {
        self.bulk_load.load(Ordering::Acquire)
    }

    /// Notes the bulk load that creates the tree: until it commits, the tree refuses calls.
    pub fn set_bulk_load(&self, load: u64) {
        self.bulk_load.store(load, Ordering::Release);
    }

    /// Notes that the bulk load has committed: the tree takes calls.
    pub fn finish_bulk_load(&self) {
        self.bulk_load.store(0, Ordering::Release);
    }

    /// Marks the tree as dropped. The caller then calls [`retire`](Self::retire).
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Adds the tree to the totals. The caller does so when it lists the tree.
    pub fn begin_count(&self) {
        let version = self.version.write();
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.totals.change(TreeFigures::default(), TreeFigures::of(&version));
        }
    }

    /// Removes a dropped tree from the totals and replaces its version by an empty one with
    /// `trunk`. Returns the version that the tree had. REQUIRES: the commit lock, `install`.
    pub fn retire(&self, trunk: Trunk) -> Arc<Version> {
        let mut version = self.version.write();
        if self.counted.swap(false, Ordering::Relaxed) {
            self.totals.change(TreeFigures::of(&version), TreeFigures::default());
        }
        let hold = version.hold.succeed();
        let active = MemSource::new(&self.account.budget);
        self.replace(&mut version, Version { active, frozen: Vec::new(), trunk, hold })
    }

    // --- Planning ---

    /// What the planner needs to know of the tree, whose newest trunk is `trunk`.
    #[must_use]
    pub fn plan_context(&self, trunk: &Trunk, limits: PlanLimits) -> Context {
        // A tree that uses a good part of the write buffer flushes at least this much. A smaller
        // flush, of a few deletes or of a small tree, says nothing about the best size of a leaf.
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

    /// Notes the size of a flush for the planner: `raw_bytes` in all, of which `appended` went
    /// behind all older data. Only the difference came to nodes that had data.
    pub fn note_flush(&self, raw_bytes: u64, appended: u64) {
        if appended < raw_bytes {
            // Appended data makes no slices.
            let brought = raw_bytes - appended;
            let seen = self.flush_raw_bytes.load(Ordering::Relaxed);
            let next = if seen == 0 { brought } else { (seen * 3 + brought) / 4 };
            self.flush_raw_bytes.store(next.max(1), Ordering::Relaxed);
        }
        self.sequential.store(appended * 10 > raw_bytes * 9, Ordering::Relaxed);
    }

    /// Whether the last flush appended more than nine tenths of its bytes behind all older data.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        self.sequential.load(Ordering::Relaxed)
    }

    /// Copies the mean size of a large value from `install`, for planners that do not hold the
    /// install lock. REQUIRES: the install lock.
    pub fn note_values(&self, install: &InstallState) {
        self.mean_value_bytes.store(install.values.mean_bytes(), Ordering::Relaxed);
    }

    // --- Commits ---

    /// Notes a commit with messages for the tree, before the commit becomes visible; `last` is its
    /// last SeqNo. REQUIRES: the commit lock.
    pub fn note_commit(&self, last: SeqNo) {
        self.newest_commit.store(last.get(), Ordering::Release);
    }

    /// SeqNo of the newest commit with messages for the tree since the database was opened.
    #[must_use]
    pub fn newest_commit(&self) -> SeqNo {
        SeqNo(self.newest_commit.load(Ordering::Acquire))
    }

    /// Notes the end of the log record that commits a prepared transaction with writes to the tree.
    pub fn note_prepared_commit(&self, end: frondb_core::Lsn) {
        self.prepared_end.store(end.get(), Ordering::Release);
    }

    /// End of the log record that commits the last prepared transaction with writes to the tree,
    /// since the database was opened; 0 if there is none.
    #[must_use]
    pub fn prepared_end(&self) -> frondb_core::Lsn {
        frondb_core::Lsn(self.prepared_end.load(Ordering::Acquire))
    }

    // --- Versions ---

    /// Replaces the active memtable. REQUIRES: no other thread uses the tree yet.
    pub fn set_active(&self, active: Arc<MemSource>) {
        let mut version = self.version.write();
        let (trunk, hold) = (version.trunk.clone(), Arc::clone(&version.hold));
        let frozen = version.frozen.clone();
        self.replace(&mut version, Version { active, frozen, trunk, hold });
    }

    /// Replaces the version, and with it the tree's share of the totals. Returns the old version.
    fn replace(&self, version: &mut Arc<Version>, new: Version) -> Arc<Version> {
        if self.counted.load(Ordering::Relaxed) {
            self.totals.change(TreeFigures::of(version), TreeFigures::of(&new));
        }
        std::mem::replace(version, Arc::new(new))
    }

    /// Freezes the active memtable and returns `true`; does nothing and returns `false` if the
    /// memtable is empty. REQUIRES: the commit lock.
    pub fn freeze(&self) -> bool {
        let _install = self.install.lock();
        let mut version = self.version.write();
        if version.active.is_empty() {
            return false;
        }
        self.freeze_under(&mut version, None);
        true
    }

    /// Attaches the runs of a commit: puts `source` above all sources of the tree, and a new active
    /// memtable above `source` (rule 18). The active memtable is replaced also when it is empty: a
    /// reader of the previous version would see later messages in it without seeing the runs.
    /// REQUIRES: the commit lock.
    pub fn attach(&self, source: Arc<MemSource>) {
        let _install = self.install.lock();
        let mut version = self.version.write();
        source.count_in(&self.account.frozen_bytes);
        self.freeze_under(&mut version, Some(source));
    }

    /// Publishes a version with a new active memtable, `above` below it, and below that the
    /// previous active memtable unless it is empty.
    fn freeze_under(&self, version: &mut Arc<Version>, above: Option<Arc<MemSource>>) {
        let mut frozen = Vec::with_capacity(version.frozen.len() + 2);
        frozen.extend(above);
        if !version.active.is_empty() {
            // Nothing more is inserted, so merges of its arrays that are under way stop.
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

    /// Publishes a new trunk. `flushed` is the source whose messages the trunk has now; the source
    /// leaves the version. `orphans` says that the tree no longer owns some large values, whose
    /// extents the old version must keep. Returns the replaced version. REQUIRES: `install`.
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
            // A reader may still hold its memory, but a writer cannot wait for it.
            flushed.count_in(&self.account.pinned_bytes);
        }
        old
    }

    /// Counts the memory of a dropped tree's source as pinned: it is not going to be flushed, and
    /// cursors may hold it for long, so writers must not wait for it.
    pub fn pin_source(&self, source: &MemSource) {
        source.count_in(&self.account.pinned_bytes);
    }
}

/// A handle to a tree. Cheap to clone and usable by any thread. It keeps the tree's memory.
#[derive(Clone)]
pub struct Tree(Arc<TreeCore>);

impl Tree {
    /// A handle to this tree.
    #[must_use]
    pub fn new(core: Arc<TreeCore>) -> Self {
        Self(core)
    }

    /// The shared state of the tree.
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

    /// The options that the tree was created with.
    #[must_use]
    pub fn options(&self) -> &TreeOptions {
        &self.0.options
    }

    /// Fails if the tree cannot take updates: it was created without an update function, or the
    /// database was opened without that function.
    ///
    /// # Errors
    /// `Invalid`, naming the missing function.
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
    /// `Invalid` for a tree of another database, else `NotFound`.
    pub fn check(&self, engine: u64) -> Result<()> {
        if self.0.engine != engine {
            return Err(Error::invalid(format!(
                "tree {:?} belongs to another open database",
                self.name()
            )));
        }
        let not_found =
            |why: &str| Error::new(ErrorKind::NotFound, format!("tree {:?} {why}", self.name()));
        if self.0.is_loading() {
            return Err(not_found("is not ready: its bulk load has not committed"));
        }
        if self.0.is_dropped() {
            return Err(not_found("was dropped"));
        }
        Ok(())
    }

    /// The number of the open database that the tree belongs to.
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
