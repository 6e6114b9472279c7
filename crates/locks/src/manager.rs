//! [`LockManager`]: the locks of all trees of an engine.
//!
//! ```text
//!   LockManager -- graph (waits only)
//!     |-- LockTable tree 1     state: rows, ranges, waiters      own mutex
//!     `-- LockTable tree 2     ...                               own mutex
//!   Locker (a transaction) -- its locks in each table            no mutex: one thread
//! ```
//!
//! In a table without waiters, a release, and a request that need not wait, use only that table.
//! Otherwise a locker also takes the graph's mutex.
//!
//! LOCK order: list of tables, a table's state, graph, last deadlock. No thread holds the states of
//! two tables at once.

use frondb_core::TreeId;
use frondb_core::budget::Budget;
use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};

use crate::deadlock::LastDeadlock;
use crate::graph::Graph;
use crate::table::LockTable;
use crate::wait_hook::{HookSlot, WaitHook};

/// Options of a lock manager.
#[derive(Clone, Debug)]
pub struct LockOptions {
    /// Limit for all locks together, in bytes. A larger limit allows more row locks before they
    /// become range locks, which also lock the keys between. A row lock of a key up to 24 bytes
    /// counts as 184 bytes, or, in a transaction with so many row locks that they are packed, as 3
    /// to 10 bytes. A single transaction may use a quarter of what the others leave of `bytes_max`.
    pub bytes_max: u64,
    /// The clock that measures how long transactions wait, for the status.
    pub clock: SharedClock,
}

impl Default for LockOptions {
    /// Returns a limit of 64 MiB: one transaction can lock some two million rows before they become
    /// ranges, and 90,000 rows before they are packed.
    fn default() -> Self {
        Self { bytes_max: 64 << 20, clock: SystemClock::shared() }
    }
}

/// The locks of all trees of an engine. See the module documentation. Any thread may call any
/// method.
pub struct LockManager {
    /// Limit for all locks together, in bytes.
    pub(crate) bytes_max: AtomicU64,
    pub(crate) clock: SharedClock,
    pub(crate) budget: Arc<Budget>,
    tables: Mutex<Vec<Arc<LockTable>>>,
    pub(crate) graph: Mutex<Graph>,
    /// The most recent deadlock, for the status.
    pub(crate) last_deadlock: Mutex<Option<LastDeadlock>>,
    pub(crate) counters: Counters,
    pub(crate) wait_hook: HookSlot,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) waits: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) escalations: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    /// Bytes that all lockers have charged to the budget.
    pub(crate) bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl LockManager {
    /// Creates a manager without tables. It has no threads of its own.
    #[must_use]
    pub fn new(options: LockOptions, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: AtomicU64::new(options.bytes_max),
            clock: options.clock,
            budget,
            tables: Mutex::new(Vec::new()),
            graph: Mutex::new(Graph::default()),
            last_deadlock: Mutex::new(None),
            counters: Counters::default(),
            wait_hook: HookSlot::default(),
        })
    }

    /// Creates the table for the locks of `tree`. The engine calls this once for a tree and keeps
    /// the table with the tree, because a second table would not see the locks of the first. The
    /// manager forgets the table once all other references to it have been dropped.
    #[must_use]
    pub fn table(self: &Arc<Self>, tree: TreeId) -> Arc<LockTable> {
        let table = LockTable::new(tree);
        let mut tables = self.tables.lock();
        // Remove dropped tables only when the list is full, because programs may create many trees
        // in a row.
        if tables.len() == tables.capacity() {
            tables.retain(|table| Arc::strong_count(table) > 1);
            let room = tables.len().max(16);
            tables.reserve_exact(room);
        }
        tables.push(Arc::clone(&table));
        table
    }

    /// Changes the limit for all locks together, in bytes. A locker that is above its new share
    /// does not pack or join its locks at once, but when they take more memory.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Makes the manager call `hook` for every wait that begins from now on, and for every wait
    /// that gets more blockers; `None` removes the hook. The waiting thread calls the hook before
    /// it sleeps. The hook must not request a lock for the waiting transaction.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.wait_hook.set(hook);
    }

    /// Returns the tables in use, and forgets the others.
    pub(crate) fn tables(&self) -> Vec<Arc<LockTable>> {
        let mut tables = self.tables.lock();
        tables.retain(|table| Arc::strong_count(table) > 1);
        tables.clone()
    }
}

impl std::fmt::Debug for LockManager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LockManager({:?})", self.stats())
    }
}
