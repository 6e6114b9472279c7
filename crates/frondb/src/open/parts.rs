//! [`Parts`]: the parts of a database. Opening a database constructs each part with the handles
//! that the part needs.

use frondb_background::{Background, JobContext, LogPins, Queue, Throttle};
use frondb_catalog::{Catalog, CatalogParts};
use frondb_commit::{
    Committer, Edits, Ids, LargestIds, Log, PendingParts, PendingState, WearMeter,
};
use frondb_core::budget::Budget;
use frondb_core::clock::SharedClock;
use frondb_core::events::Events;
use frondb_core::sync::atomic::AtomicUsize;
use frondb_core::sync::{Arc, ProcessCounter, Weak};
use frondb_core::{Lsn, SeqNo};
use frondb_locks::{LockManager, LockOptions, SeqOracle, Snapshots};
use frondb_manifest::Manifest;
use frondb_run::RunEnv;
use frondb_tree::{
    Cursors, Health, HintSink, MemoryShares, MemtableAccount, ReadContext, ReadCounters,
    StowingSink, TreeTotals, Trees,
};
use frondb_txn::{Prepared, Spilling, Transactions};
use frondb_wal::Wal;
use frondb_writeset::SpillEnv;

use crate::options::Options;

/// The results of recovery before it builds the trees: the opened manifest and log, and their
/// contents.
pub(crate) struct LogAndManifest {
    pub(crate) wal: Wal,
    /// The position from which recovery needs the log.
    pub(crate) log_from: Lsn,
    /// The position up to which the log is durable according to the manifest.
    pub(crate) log_known: Lsn,
    pub(crate) manifest: Manifest,
    pub(crate) wear: Arc<WearMeter>,
    pub(crate) pending: PendingState,
    pub(crate) largest: LargestIds,
    /// The largest SeqNo in the manifest and the log.
    pub(crate) last: SeqNo,
}

/// The parts of a database, each with the handles that it needs. Recovery adds the trees.
pub(crate) struct Parts {
    /// The context of reads: snapshots, cache, health, clock.
    pub(crate) reads: Arc<ReadContext>,
    /// The data files and the block cache.
    pub(crate) runs: Arc<RunEnv>,
    /// The memory budget.
    pub(crate) budget: Arc<Budget>,
    /// Whether the database accepts calls.
    pub(crate) health: Arc<Health>,
    /// The listener of the application.
    pub(crate) events: Arc<Events>,
    /// The trees by their ids, stowed ones included.
    pub(crate) trees: Arc<Trees>,
    /// The trees by their names.
    pub(crate) catalog: Arc<Catalog>,
    /// The write-ahead log.
    pub(crate) wal: Arc<Wal>,
    /// Which part of the write-ahead log recovery needs, with the log itself.
    pub(crate) log: Arc<Log>,
    /// The manifest and its edits.
    pub(crate) edits: Arc<Edits>,
    /// Counts what the database writes to its files.
    pub(crate) wear: Arc<WearMeter>,
    /// Logs commits and makes them visible to readers.
    pub(crate) committer: Arc<Committer>,
    /// The accounted memory of all memtables.
    pub(crate) account: Arc<MemtableAccount>,
    /// The division of the memory budget.
    pub(crate) shares: MemoryShares,
    /// The handles that background jobs use.
    pub(crate) jobs: Arc<JobContext>,
    /// The rate limit on the writes of background jobs.
    pub(crate) throttle: Arc<Throttle>,
    /// The background work that is due.
    pub(crate) queue: Arc<Queue>,
    /// Flushes and merges, and the admission of commits.
    pub(crate) background: Arc<Background>,
    /// Row and range locks.
    pub(crate) locks: Arc<LockManager>,
    pub(crate) prepared: Arc<Prepared>,
    /// Transactions and bulk loads.
    pub(crate) txns: Arc<Transactions>,
}

/// Ids that distinguish the databases open in this process.
static ENGINES: ProcessCounter = ProcessCounter::new(1);

impl Parts {
    pub(crate) fn new(
        options: &Options,
        runs: Arc<RunEnv>,
        budget: Arc<Budget>,
        clock: SharedClock,
        files: LogAndManifest,
    ) -> Self {
        let LogAndManifest { wal, log_from, log_known, manifest, wear, pending, largest, last } =
            files;
        let queue = Arc::new(Queue::default());
        let health = Arc::new(Health::new(options.read_only, Arc::clone(&runs.events)));
        let oracle = Arc::new(SeqOracle::new(last));
        let snapshots = Snapshots::new(Arc::clone(&oracle), Arc::clone(&clock));
        let bytes_max = options.memory().lock_bytes();
        let lock_options = LockOptions { bytes_max, clock: Arc::clone(&clock) };
        let locks = LockManager::new(lock_options, Arc::clone(&budget));
        let shares = MemoryShares::new(Arc::clone(&budget), options.memory_rules());
        let reads = Arc::new(ReadContext {
            engine: ENGINES.next(),
            runs: Arc::clone(&runs),
            budget: Arc::clone(&budget),
            oracle: Arc::clone(&oracle),
            snapshots,
            cursors: Cursors::default(),
            clock,
            health: Arc::clone(&health),
            counters: ReadCounters::default(),
            hints: Arc::clone(&queue) as Arc<dyn HintSink>,
        });
        let (trees, ids): (Arc<Trees>, _) = (Arc::default(), Ids::after(largest));
        let wal = Arc::new(wal);
        let log = Log::new(Arc::clone(&wal), log_from, log_known);
        let edits = Edits::new(manifest, pending, Arc::clone(&health), Arc::clone(&wear));
        let jobs = JobContext::new(
            Arc::clone(&reads),
            Arc::clone(&trees),
            Arc::clone(&ids),
            Arc::clone(&log),
            Arc::clone(&edits),
            shares.clone(),
            options.background_bytes_per_second,
        );
        let pending = Arc::new(PendingParts::new(
            Arc::clone(&edits),
            Arc::clone(&runs),
            Arc::clone(&trees),
            Arc::clone(&ids),
            Arc::clone(&health),
        ));
        let account = MemtableAccount::new(Arc::clone(&budget));
        let committer = Arc::new(Committer::new(
            reads.engine,
            Arc::clone(&log),
            oracle,
            Arc::clone(&runs),
            Arc::clone(&account),
            Arc::clone(&health),
        ));
        let catalog = Catalog::new(CatalogParts {
            trees: Arc::clone(&trees),
            edits: Arc::clone(&edits),
            ids: Arc::clone(&ids),
            reads: Arc::clone(&reads),
            locks: Arc::clone(&locks),
            account: Arc::clone(&account),
            totals: TreeTotals::new(Arc::downgrade(&queue) as Weak<dyn StowingSink>),
            update_fns: options.update_fns.clone(),
        });
        let prepared = Prepared::new(Arc::clone(&jobs), Arc::clone(&committer), pending);
        queue.set_packing_max((options.background_threads / 2).max(1));
        let background = Background::new(
            Arc::clone(&jobs),
            Arc::clone(&queue),
            Arc::clone(&committer),
            Arc::clone(&account),
            Arc::clone(&prepared) as Arc<dyn LogPins>,
            options.checkpoint_period,
            options.background_threads == 0,
        );
        let spill = Spilling::new(SpillEnv {
            runs: Arc::clone(&runs),
            run_ids: Arc::clone(ids.runs()),
            index_budget: Budget::new(u64::MAX),
            runs_max: Arc::new(AtomicUsize::new(options.memory().private_runs_max())),
        });
        let txns = Transactions::new(
            Arc::clone(&background),
            Arc::clone(&locks),
            spill,
            Arc::clone(&prepared),
        );
        Self {
            events: Arc::clone(&runs.events),
            reads,
            runs,
            budget,
            health,
            trees,
            catalog,
            wal,
            log,
            edits,
            wear,
            committer,
            account,
            shares,
            throttle: Arc::clone(&jobs.throttle),
            queue,
            jobs,
            background,
            locks,
            prepared,
            txns,
        }
    }
}
