//! [`Transactions`]: handles of the parts of a database that all its transactions use, such as the
//! log, the locks and the data files.

use std::collections::BTreeMap;
use std::time::Duration;

use frondb_background::{Background, JobContext, Latencies};
use frondb_commit::{Calls, Committer, Durability, Ids, Log, PendingParts};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Lsn, Result};
use frondb_locks::LockManager;
use frondb_space::Space;
use frondb_tree::{Health, MemoryShares, ReadContext, Snapshot};

use crate::pool::Pool;
use crate::prepared::{self, Prepared};
use crate::registry::{Registry, TransactionInfo};
use crate::spilling::Spilling;

/// A handle that keeps the database open. Each transaction and bulk load has one while it exists.
pub type KeepOpen = Arc<dyn std::any::Any + Send + Sync>;

/// The shared context of all transactions of an open database. Any thread may use it.
pub struct Transactions {
    /// The parts of the database that reads use.
    pub reads: Arc<ReadContext>,
    /// Whether the database accepts calls.
    pub(crate) health: Arc<Health>,
    /// The data files, for large values.
    pub(crate) space: Arc<Space>,
    pub(crate) log: Arc<Log>,
    /// The division of the memory budget.
    pub(crate) shares: MemoryShares,
    /// The durations of commits and jobs.
    pub(crate) latencies: Arc<Latencies>,
    /// The context of background jobs, for the merges of a bulk load.
    pub(crate) jobs: Arc<JobContext>,
    /// Admits commits, and does the background work that they request.
    pub background: Arc<Background>,
    /// Logs commits and makes them visible.
    pub committer: Arc<Committer>,
    /// Makes the private runs of large commits pending in the manifest.
    pub parts: Arc<PendingParts>,
    /// Row and range locks.
    pub locks: Arc<LockManager>,
    /// Ids for transactions and runs.
    pub ids: Arc<Ids>,
    /// The calls in progress that may write.
    pub calls: Arc<Calls>,
    /// Writes large write sets to disk.
    pub spill: Spilling,
    /// Prepared transactions.
    pub prepared: Arc<Prepared>,
    /// Number of bulk loads and bulk statements in progress, which share the memory for sorting.
    pub(crate) loads: AtomicU64,
    /// Number of bulk statements that were finished.
    pub(crate) bulk_statements: AtomicU64,
    pub(crate) registry: Registry,
    pub(crate) pool: Pool,
}

impl Transactions {
    /// Creates a context without transactions. Clones the other handles from `background` and
    /// `prepared`.
    #[must_use]
    pub fn new(
        background: Arc<Background>,
        locks: Arc<LockManager>,
        spill: Spilling,
        prepared: Arc<Prepared>,
    ) -> Arc<Self> {
        let jobs = &background.jobs;
        Arc::new(Self {
            reads: Arc::clone(&jobs.reads),
            health: Arc::clone(&jobs.reads.health),
            space: Arc::clone(&jobs.reads.runs.space),
            log: Arc::clone(&jobs.log),
            shares: jobs.shares.clone(),
            latencies: Arc::clone(&jobs.latencies),
            jobs: Arc::clone(jobs),
            committer: Arc::clone(&prepared.committer),
            parts: Arc::clone(&prepared.parts),
            locks,
            ids: Arc::clone(&jobs.ids),
            calls: Calls::new(Arc::clone(&jobs.reads.health)),
            spill,
            loads: AtomicU64::new(0),
            bulk_statements: AtomicU64::new(0),
            registry: Registry::default(),
            pool: Pool::default(),
            prepared,
            background,
        })
    }

    /// Returns the number of bulk statements that were finished, whether or not their transactions
    /// committed.
    #[must_use]
    pub fn bulk_statements(&self) -> u64 {
        self.bulk_statements.load(Ordering::Relaxed)
    }

    /// Takes a snapshot of everything committed so far.
    ///
    /// # Errors
    /// `Closed`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.health.check_open()?;
        Ok(self.reads.snapshot())
    }

    /// Waits until the commit whose log record ends at `end` is as durable as `durability`
    /// requires. Also succeeds if the database was closed and the close made the commit durable.
    ///
    /// # Errors
    /// `Poisoned` if the disk failed; the commit may be lost then. `Closed`.
    pub fn wait_durable(&self, end: Lsn, durability: Durability) -> Result<()> {
        let health = &self.health;
        if durability == Durability::NoSync {
            return health.check_unpoisoned();
        }
        let _call = self.calls.begin_unchecked();
        if self.log.wal.durable_lsn() >= end {
            return health.check_unpoisoned();
        }
        health.check_open()?;
        self.make_durable(end, durability)
    }

    /// Waits as [`wait_durable`](Self::wait_durable) does. For a caller that already holds a guard
    /// of [`calls`](Self::calls).
    ///
    /// # Errors
    /// As [`Committer::make_durable`].
    pub fn make_durable(&self, end: Lsn, durability: Durability) -> Result<()> {
        if durability == Durability::NoSync {
            return self.committer.make_durable(end, durability);
        }
        let begun = self.reads.now();
        let result = self.committer.make_durable(end, durability);
        let waited = self.reads.now().since(begun).as_nanos() as u64;
        self.latencies.commit_sync.add(waited);
        result
    }

    /// Lists all active and prepared transactions, sorted by id. The list is not a consistent
    /// snapshot, because transactions continue during the call. Takes O(transactions), and waits
    /// for no call of a transaction.
    #[must_use]
    pub fn list(&self) -> Vec<TransactionInfo> {
        let now = self.reads.now();
        let mut waits: BTreeMap<u64, Duration> = self.locks.waiting().into_iter().collect();
        let mut names = prepared::names(&self.prepared);
        let entries = self.registry.all();
        let mut infos: Vec<TransactionInfo> =
            entries.iter().filter_map(|entry| entry.read(now)).collect();
        infos.sort_unstable_by_key(|info| info.transaction);
        for info in &mut infos {
            info.waited = waits.remove(&info.transaction);
            info.xid = names.remove(&info.transaction).map(Vec::from);
        }
        infos
    }
}
