//! [`LockManager`]: the locks of all trees of an engine.
//!
//! ```text
//!   LockManager -- graph (waits only)
//!     |-- LockTable tree 1     state: rows, ranges, waiters      own mutex
//!     `-- LockTable tree 2     ...                               own mutex
//!   Locker (a transaction) -- what it holds in each table        no mutex: one thread
//! ```
//!
//! A lock that need not wait touches its table and nothing else. Who must wait, or lets go of what
//! another waits for, takes the graph's mutex as well.
//!
//! LOCK order: list of tables, a table's state, graph. No two tables' states at once.

use std::time::Duration;

use frondb_core::TreeId;
use frondb_core::budget::Budget;
use frondb_core::clock::{SharedClock, SystemClock};
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::sync::{Arc, Mutex};

use crate::graph::Graph;
use crate::locker::Locker;
use crate::table::LockTable;
use crate::watch::{WaitHook, Watch};

/// What a lock manager is told.
#[derive(Clone, Debug)]
pub struct LockOptions {
    /// Bytes for all locks together. More allows more row locks before they become range locks,
    /// which lock rows between them as well; a row lock of a key up to 24 bytes counts as 184 bytes, and
    /// as three to ten where a transaction has so many that they are packed. A single transaction has a
    /// quarter of it.
    pub bytes_max: u64,
    /// Tells how long somebody waits, for the status.
    pub clock: SharedClock,
}

impl Default for LockOptions {
    /// 64 MiB: two million rows in one transaction, of which 90,000 are not packed.
    fn default() -> Self {
        Self { bytes_max: 64 << 20, clock: SystemClock::shared() }
    }
}

/// How long a request may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockWait {
    /// That long, then it fails with `LockTimeout`.
    Upto(Duration),
    /// Until it is granted, cancelled or the victim of a deadlock.
    Forever,
    /// Not at all: it fails with `Busy`. Who skips locked rows asks so and skips.
    NoWait,
}

/// What a request that succeeded found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Acquired {
    /// It had to wait: what was read before may be out of date.
    pub waited: bool,
    /// The locker held this lock, or more, already. Who gives rows up again
    /// ([`Locker::unlock_row`]) must not give up these.
    pub was_held: bool,
}

/// The locks of all trees of an engine. See the module's head. Any thread may call anything.
pub struct LockManager {
    /// Bytes for all locks together.
    pub(crate) bytes_max: AtomicU64,
    pub(crate) clock: SharedClock,
    pub(crate) budget: Arc<Budget>,
    tables: Mutex<Vec<Arc<LockTable>>>,
    pub(crate) graph: Mutex<Graph>,
    pub(crate) counters: Counters,
    pub(crate) watch: Watch,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) waits: AtomicU64,
    pub(crate) deadlocks: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) escalations: AtomicU64,
    pub(crate) waited_ns: AtomicU64,
    /// Charged to the budget by all lockers.
    pub(crate) bytes: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

impl LockManager {
    /// A manager without tables. It has no threads of its own.
    #[must_use]
    pub fn new(options: LockOptions, budget: Arc<Budget>) -> Arc<Self> {
        Arc::new(Self {
            bytes_max: AtomicU64::new(options.bytes_max),
            clock: options.clock,
            budget,
            tables: Mutex::new(Vec::new()),
            graph: Mutex::new(Graph::default()),
            counters: Counters::default(),
            watch: Watch::default(),
        })
    }

    /// A table for the locks of `tree`. The engine makes one and keeps it with the tree; a second
    /// one for the same tree would know nothing of the first one's locks. When all others have
    /// dropped it, it is forgotten.
    #[must_use]
    pub fn table(self: &Arc<Self>, tree: TreeId) -> Arc<LockTable> {
        let table = LockTable::new(tree);
        let mut tables = self.tables.lock();
        // Looked through only when it has doubled: many trees are made one after the other.
        if tables.len() == tables.capacity() {
            tables.retain(|table| Arc::strong_count(table) > 1);
            let room = tables.len().max(16);
            tables.reserve_exact(room);
        }
        tables.push(Arc::clone(&table));
        table
    }

    /// Changes how many bytes all locks together may have. Who has too many then gives some up when it
    /// locks the next time.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Tells `hook` of every wait that begins from now on, and of those that get longer; `None` for nobody.
    /// It is called by the thread that waits, before it sleeps. What it may not do is ask for a lock of
    /// the transaction that waits.
    pub fn set_wait_hook(&self, hook: Option<WaitHook>) {
        self.watch.set(hook);
    }

    /// A locker for the transaction `id`. Ids ascend with the age of transactions (among equals
    /// the youngest is a deadlock's victim) and no two live lockers have the same.
    ///
    /// Cheap: it takes no lock and allocates nothing.
    #[must_use]
    pub fn locker(self: &Arc<Self>, id: u64) -> Locker {
        Locker::new(Arc::clone(self), id)
    }

    /// The tables there are.
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
