//! [`TreeCore`]: one tree of an open database, with the version that readers take and the state
//! that installs change. Callers hold a handle to it, `frondb::Tree`.
//!
//! # One pointer (rule 2)
//! All that a reader needs (active memtable, frozen memtables, trunk) is in one immutable
//! [`Version`]. A reader takes the pointer to the version once and sees every message exactly once,
//! newer messages before older ones. A freeze and an install each publish a new version.
//!
//! # Lock order
//! First the commit lock, then the edit latch of the manifest, then [`TreeCore::install`], then the
//! lock of the version. No thread does I/O while it holds one of the last two, with two exceptions
//! under the install lock: a drop syncs its edit, and a large edit allocates room in the manifest.

pub(crate) mod planning;
mod state;
mod stowing;
mod versions;
mod view_counts;

use std::collections::BTreeSet;

use frondb_core::budget::{Budget, Part};
use frondb_core::message::SharedUpdateFn;
use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex, OnceLock, RwLock};
use frondb_core::{Error, NodeId, SeqNo, TreeId};
use frondb_locks::{LockManager, LockTable};
use frondb_records::TreeOptions;
use frondb_run::RunEnv;
use frondb_space::Hold;
use frondb_trunk::Trunk;

use crate::account::MemtableAccount;
use crate::large_values::LargeValues;
use crate::tombstones::{EmptyRanges, TombstoneSearch};
use crate::totals::{LOCK_TABLE_BYTES, TreeSizes, TreeTotals};
use crate::version::Version;

pub use state::State;
pub use view_counts::ViewCounts;

/// State of a tree that jobs change when they begin, are installed or end, protected by
/// [`TreeCore::install`].
#[derive(Default)]
pub struct InstallState {
    /// How many views the newest trunk has of each run. A run without a view is dead.
    pub views: ViewCounts,
    /// Nodes that a background job works on. No other job may take them.
    pub claimed: BTreeSet<NodeId>,
    /// Whether a job moves the oldest frozen source (a memtable or attached runs) into the trunk.
    pub flushing: bool,
    /// Large values that runs refer to, keyed by their first extent.
    pub values: LargeValues,
    /// All messages of the tree up to this SeqNo are in runs.
    pub flushed: SeqNo,
}

/// The parts of an open database that all its trees use.
pub struct TreeShared {
    /// The number of the open database.
    pub engine: u64,
    /// The environment that runs are read through.
    pub runs: Arc<RunEnv>,
    /// The row and range locks of transactions.
    pub lock_manager: Arc<LockManager>,
    /// The account that memtables are charged to.
    pub account: Arc<MemtableAccount>,
    /// The totals over all trees of the database.
    pub totals: Arc<TreeTotals>,
}

/// The parts from which [`TreeCore::new`] makes a tree.
pub struct TreeParts {
    /// The tree's id, which is never reused.
    pub id: TreeId,
    /// The tree's name.
    pub name: String,
    /// The tree's options.
    pub options: Arc<TreeOptions>,
    /// The tree's update function, or a stand-in that fails; `None` if it has none.
    pub update: Option<SharedUpdateFn>,
    /// Why `update` is a stand-in; `None` if it is the real function.
    pub missing: Option<Error>,
    /// The nodes with their runs.
    pub trunk: Trunk,
    /// The state of installs, which agrees with `trunk`.
    pub install: InstallState,
    /// The parts that all trees of the database use.
    pub shared: Arc<TreeShared>,
}

/// The update function of a tree.
struct Update {
    /// The function, or a stand-in whose error says why the function is missing.
    function: SharedUpdateFn,
    /// Why `function` is a stand-in; `None` if it is the real function.
    missing: Option<Error>,
}

/// The shared state of a tree. Every method may be called from any thread.
pub struct TreeCore {
    /// The tree's id, which is never reused.
    pub id: TreeId,
    /// The tree's name, which a rename changes.
    pub name: RwLock<String>,
    /// The tree's options. A job reads them once, when it begins.
    options: RwLock<Arc<TreeOptions>>,
    /// `None` for most trees: they have no update function.
    update: Option<Box<Update>>,
    /// The newest version, open or stowed.
    state: RwLock<State>,
    /// Whether the version was read since the last [`TreeCore::stow_unused`].
    used: AtomicBool,
    /// Installs lock this before they lock the version.
    pub install: Mutex<InstallState>,
    shared: Arc<TreeShared>,
    dropped: AtomicBool,
    /// The bulk load that creates the tree; 0 once the load has committed, and for every tree that
    /// no load creates.
    bulk_load: AtomicU64,
    /// Whether this tree is in the totals over all trees. Changed under `state`.
    counted: AtomicBool,
    /// Key and value bytes that a flush brings to nodes with data, as a moving average over the
    /// flushes that bring any; 0 before the first.
    flush_raw_bytes: AtomicU64,
    /// Average bytes of a large value on disk, as of the last install.
    mean_value_bytes: AtomicU64,
    /// Whether more than 9/10 of the bytes of the last flush have larger keys than all older data.
    sequential: AtomicBool,
    /// Row and range locks of transactions, created at the first request.
    locks: OnceLock<Arc<LockTable>>,
    /// Last SeqNo of the newest commit with messages for the tree since the database was opened; 0
    /// if there is none. Set before that commit becomes visible.
    newest_commit: AtomicU64,
    /// End of the log record that commits the last prepared transaction with writes to the tree,
    /// since the database was opened; 0 if there is none.
    prepared_end: AtomicU64,
    /// Decides when the active memtable is searched for tombstone runs.
    pub tombstone_search: TombstoneSearch,
    /// Key ranges that are known to have no entry.
    pub empty_ranges: EmptyRanges,
}

impl TreeCore {
    /// Makes a tree. The totals do not count it before [`begin_count`](Self::begin_count).
    #[must_use]
    pub fn new(parts: TreeParts) -> Arc<Self> {
        let mean_value_bytes = parts.install.values.mean_bytes();
        let version = Version {
            active: Arc::clone(&parts.shared.account.empty),
            frozen: Vec::new(),
            trunk: parts.trunk,
            hold: Hold::new(&parts.shared.runs.space),
            flushes: 0,
        };
        Arc::new(Self {
            id: parts.id,
            name: RwLock::new(parts.name),
            options: RwLock::new(parts.options),
            update: parts
                .update
                .map(|function| Box::new(Update { function, missing: parts.missing })),
            state: RwLock::new(State::Open(Arc::new(version))),
            used: true.into(),
            install: Mutex::new(parts.install),
            shared: parts.shared,
            dropped: false.into(),
            bulk_load: 0.into(),
            counted: false.into(),
            flush_raw_bytes: 0.into(),
            mean_value_bytes: mean_value_bytes.into(),
            sequential: false.into(),
            locks: OnceLock::new(),
            newest_commit: 0.into(),
            prepared_end: 0.into(),
            tombstone_search: TombstoneSearch::default(),
            empty_ranges: EmptyRanges::default(),
        })
    }

    /// Returns the number of the open database that the tree belongs to.
    #[must_use]
    pub fn engine(&self) -> u64 {
        self.shared.engine
    }

    /// Returns the tree's update function, or a stand-in whose error says why the function is
    /// missing; `None` if the tree has no update function.
    #[must_use]
    pub fn update(&self) -> Option<&SharedUpdateFn> {
        self.update.as_ref().map(|update| &update.function)
    }

    /// Returns why the update function is a stand-in; `None` if it is the real function, or if the
    /// tree has none.
    pub(crate) fn missing(&self) -> Option<&Error> {
        self.update.as_ref()?.missing.as_ref()
    }

    /// Returns the row and range locks of transactions.
    #[inline]
    #[must_use]
    pub fn locks(&self) -> &Arc<LockTable> {
        self.locks.get().unwrap_or_else(|| self.make_locks())
    }

    #[cold]
    fn make_locks(&self) -> &Arc<LockTable> {
        // Created before the cell is locked, because creating it takes another lock. If two threads
        // race, the second drops its table, and the manager forgets that table.
        let (table, mut is_first) = (self.shared.lock_manager.table(self.id), false);
        let table = self.locks.get_or_init(|| {
            is_first = true;
            table
        });
        if is_first {
            self.budget().count(Part::Trunk, LOCK_TABLE_BYTES);
        }
        table
    }

    /// Returns the number of bytes of the large values that runs refer to, on disk.
    #[must_use]
    pub fn value_bytes(&self) -> u64 {
        self.install.lock().values.bytes()
    }

    // --- Life ---

    /// Returns whether the tree refuses calls: it was dropped, or the bulk load that creates it has
    /// not committed.
    #[must_use]
    pub fn is_dropped(&self) -> bool {
        self.was_dropped() || self.is_loading()
    }

    /// Returns the tree's options at this moment.
    #[must_use]
    pub fn options(&self) -> Arc<TreeOptions> {
        Arc::clone(&self.options.read())
    }

    /// Sets the tree's options. REQUIRES: the manifest has them, and the edit latch is held.
    pub fn set_options(&self, options: TreeOptions) {
        *self.options.write() = Arc::new(options);
    }

    /// Returns whether the tree was dropped; `false` for a tree that is being loaded.
    #[must_use]
    pub fn was_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// Returns whether a bulk load creates the tree and has not committed.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.bulk_load() != 0
    }

    /// Returns the bulk load that creates the tree; 0 if there is none, or if it has committed.
    #[must_use]
    pub fn bulk_load(&self) -> u64 {
        self.bulk_load.load(Ordering::Acquire)
    }

    /// Sets the bulk load that creates the tree: until it commits, the tree refuses calls.
    pub fn set_bulk_load(&self, load: u64) {
        self.bulk_load.store(load, Ordering::Release);
    }

    /// Records that the bulk load has committed: from now on the tree accepts calls.
    pub fn finish_bulk_load(&self) {
        self.bulk_load.store(0, Ordering::Release);
    }

    /// Marks the tree as dropped. The caller then calls [`retire`](Self::retire).
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// Adds the tree to the totals. The caller does so when it lists the tree.
    pub fn begin_count(&self) {
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.change_sizes(TreeSizes::default(), TreeSizes::of(version));
        }
    }

    /// Returns the account that the tree's memtables are charged to.
    fn account(&self) -> &MemtableAccount {
        &self.shared.account
    }

    fn budget(&self) -> &Budget {
        &self.account().budget
    }

    /// Changes the tree's share of the totals, and its charge to the budget. REQUIRES: the lock of
    /// the version, except in the drop of the tree.
    fn change_sizes(&self, old: TreeSizes, new: TreeSizes) {
        self.shared.totals.change(old, new);
        self.recharge(old.memory_bytes(), new.memory_bytes());
    }

    /// Changes the tree's charge to the budget from `old` to `new` bytes.
    fn recharge(&self, old: u64, new: u64) {
        if new >= old {
            self.budget().count(Part::Trunk, new - old);
        } else {
            self.budget().uncount(Part::Trunk, old - new);
        }
    }

    /// Removes a dropped tree from the totals and replaces its version by an empty one with
    /// `trunk`. Returns the version that the tree had. REQUIRES: `install`, and the commit lock
    /// unless no other thread has written to the tree.
    pub fn retire(&self, trunk: Trunk) -> Arc<Version> {
        let mut state = self.state.write();
        let version = self.opened(&mut state);
        if self.counted.swap(false, Ordering::Relaxed) {
            self.change_sizes(TreeSizes::of(version), TreeSizes::default());
        }
        let hold = version.hold.successor();
        let (active, flushes) = (Arc::clone(&self.account().empty), version.flushes);
        self.replace(version, Version { active, frozen: Vec::new(), trunk, hold, flushes })
    }

    // --- Commits ---

    /// Records a commit with messages for the tree, before the commit becomes visible; `last` is
    /// its last SeqNo. REQUIRES: the commit lock.
    pub fn note_commit(&self, last: SeqNo) {
        self.newest_commit.store(last.get(), Ordering::Release);
    }

    /// Returns the last SeqNo of the newest commit with messages for the tree since the database
    /// was opened; 0 if there is none.
    #[must_use]
    pub fn newest_commit(&self) -> SeqNo {
        SeqNo(self.newest_commit.load(Ordering::Acquire))
    }

    /// Records the end of the log record that commits a prepared transaction with writes to the
    /// tree.
    pub fn note_prepared_commit(&self, end: frondb_core::Lsn) {
        self.prepared_end.store(end.get(), Ordering::Release);
    }

    /// Returns the end of the log record that commits the last prepared transaction with writes to
    /// the tree, since the database was opened; 0 if there is none.
    #[must_use]
    pub fn prepared_end(&self) -> frondb_core::Lsn {
        frondb_core::Lsn(self.prepared_end.load(Ordering::Acquire))
    }
}

impl Drop for TreeCore {
    /// Ends the charges of the tree, and if the tree was not dropped, the charges of its version.
    fn drop(&mut self) {
        if self.counted.swap(false, Ordering::Relaxed) {
            match &*self.state.read() {
                State::Open(version) => {
                    self.change_sizes(TreeSizes::of(version), TreeSizes::default());
                }
                // The totals stay as they are: a stowed tree is listed until the database closes,
                // and then nothing reads them any more.
                State::Stowed(stowed) => {
                    self.recharge(TreeSizes::stowed_bytes(stowed.bytes()), 0);
                }
            }
        }
        if self.locks.get().is_some() {
            self.budget().uncount(Part::Trunk, LOCK_TABLE_BYTES);
        }
    }
}
