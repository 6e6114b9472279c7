//! The handles that the parts of an open engine share, and the engine's health.

use std::collections::BTreeMap;

use frondb_core::budget::Budget;
use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex, ProcessCounter, RwLock};
use frondb_core::{Error, Lsn, NodeId, Result, SeqNo};
use frondb_device::SharedDevice;
use frondb_locks::{LockManager, LockOptions, SeqOracle, Snapshots};
use frondb_manifest::Manifest;
use frondb_run::RunEnv;
use frondb_tree::{
    Health, HintSink, MemtableAccount, PlanLimits, ReadContext, ReadCounters, TreeCore, TreeTotals,
    Trees,
};
use frondb_trunk::job::JobEnv;
use frondb_wal::Wal;
use frondb_writeset::SpillEnv;

use crate::hook::Hook;
use crate::memory::Beside;
use crate::options::EngineOptions;
use crate::pending::PendingState;
use crate::prepared::PreparedSet;
use crate::stats::Counters;
use crate::throttle::Throttle;
use crate::transaction::{PreparedHold, Roster, Spares};

/// What the parts of one open engine share. Every field is safe to use from any thread.
pub struct Env {
    /// Tells handles of several open engines apart.
    pub(crate) id: u64,
    /// The database directory.
    pub(crate) device: SharedDevice,
    /// The log's directory.
    pub(crate) log_device: SharedDevice,
    /// Time.
    pub(crate) clock: SharedClock,
    /// The options it was opened with.
    pub(crate) options: EngineOptions,
    /// The one memory budget.
    pub(crate) budget: Arc<Budget>,
    /// Space and cache, as runs use them.
    pub(crate) runs: Arc<RunEnv>,
    /// The log.
    pub(crate) wal: Wal,
    /// The manifest.
    pub(crate) manifest: Manifest,
    /// Edits are appended with this held for reading, so that a snapshot of the manifest's state
    /// is taken, with it held for writing, between edits.
    pub(crate) gate: RwLock<()>,
    /// Held by who writes a snapshot of the manifest: a worker and a user may want to at once.
    /// Taken before `gate`.
    pub(crate) rotation: Mutex<()>,
    /// SeqNos.
    pub(crate) oracle: Arc<SeqOracle>,
    /// Live snapshots.
    pub(crate) snapshots: Arc<Snapshots>,
    /// Last run id given out.
    pub(crate) run_ids: Arc<AtomicU64>,
    /// Last node id given out.
    pub(crate) node_ids: AtomicU64,
    /// Last tree id given out.
    pub(crate) tree_ids: AtomicU32,
    /// Last transaction id given out.
    pub(crate) txn_ids: AtomicU64,
    /// Row and range locks.
    pub(crate) locks: Arc<LockManager>,
    /// What write sets need to spill.
    pub(crate) spill: SpillEnv,
    /// What transactions that have ended leave for others.
    pub(crate) spares: Spares,
    /// Which transactions there are.
    pub(crate) roster: Roster,
    /// Memory of all write sets, about.
    pub(crate) write_set_bytes: AtomicU64,
    /// What the manifest has of transactions that are not part of the trees yet. Its lock is a leaf.
    pub(crate) pending: Mutex<PendingState>,
    /// Prepared transactions.
    pub(crate) prepared: PreparedSet,
    /// Their locks and what is told of them, by number: a name can be another's by the time they are
    /// let go.
    pub(crate) prepared_locks: Mutex<BTreeMap<u64, PreparedHold>>,
    /// Who is told of commits.
    pub(crate) hook: Hook,
    /// What reads take.
    reads: Arc<ReadContext>,
    /// Trees by id.
    pub(crate) trees: Trees,
    /// Totals over those.
    pub(crate) totals: Arc<TreeTotals>,
    /// Memory of memtables.
    pub(crate) account: Arc<MemtableAccount>,
    /// Whether calls are taken.
    pub(crate) health: Arc<Health>,
    /// Messages of all records below are in their memtables.
    pub(crate) applied: AtomicU64,
    /// Where recovery would begin to read the log, as the manifest says durably.
    pub(crate) log_from: AtomicU64,
    /// How far the manifest knows the log to be durable, since it was last asked to note that.
    pub(crate) log_known: AtomicU64,
    /// When the last commit was, by the clock.
    pub(crate) last_commit: AtomicU64,
    /// How much background work may write.
    pub(crate) throttle: Throttle,
    /// Counters.
    pub(crate) counters: Counters,
    /// What the process takes beside what the parts charge. Held while the memory is changed.
    pub(crate) beside: Mutex<Beside>,
    /// How much the block allocator may keep idle.
    pub(crate) idle: Mutex<IdleMemory>,
}

/// The parts an [`Env`] is made of.
pub(crate) struct EnvParts {
    pub(crate) beside: Beside,
    pub(crate) device: SharedDevice,
    pub(crate) log_device: SharedDevice,
    pub(crate) clock: SharedClock,
    pub(crate) options: EngineOptions,
    pub(crate) budget: Arc<Budget>,
    pub(crate) runs: Arc<RunEnv>,
    pub(crate) wal: Wal,
    pub(crate) log_from: Lsn,
    pub(crate) log_known: Lsn,
    pub(crate) manifest: Manifest,
    pub(crate) pending: PendingState,
    pub(crate) hints: Arc<dyn HintSink>,
}

/// Ids of engines in this process.
static ENGINES: ProcessCounter = ProcessCounter::new(1);

impl Env {
    pub(crate) fn new(parts: EnvParts, id: u64, ids: &Ids, visible: SeqNo) -> Self {
        let oracle = Arc::new(SeqOracle::new(visible));
        let run_ids = Arc::new(AtomicU64::new(ids.run));
        let memory = parts.options.memory();
        let lock_options =
            LockOptions { bytes_max: memory.lock_bytes(), clock: Arc::clone(&parts.clock) };
        let snapshots = Snapshots::new(Arc::clone(&oracle), Arc::clone(&parts.clock));
        let health = Arc::new(Health::new(parts.options.read_only));
        let reads = Arc::new(ReadContext {
            engine: id,
            runs: Arc::clone(&parts.runs),
            budget: Arc::clone(&parts.budget),
            oracle: Arc::clone(&oracle),
            snapshots: Arc::clone(&snapshots),
            cursors: frondb_tree::Cursors::default(),
            clock: Arc::clone(&parts.clock),
            health: Arc::clone(&health),
            counters: ReadCounters::default(),
            hints: parts.hints,
        });
        let account = MemtableAccount::new(Arc::clone(&parts.budget));
        Self {
            id,
            locks: LockManager::new(lock_options, Arc::clone(&parts.budget)),
            spill: SpillEnv {
                runs: Arc::clone(&parts.runs),
                run_ids: Arc::clone(&run_ids),
                index_budget: Budget::new(u64::MAX),
                runs_max: Arc::new(AtomicUsize::new(memory.private_runs_max())),
            },
            spares: Spares::default(),
            roster: Roster::default(),
            write_set_bytes: AtomicU64::new(0),
            snapshots,
            oracle,
            device: parts.device,
            log_device: parts.log_device,
            throttle: Throttle::new(parts.options.background_bytes_per_second),
            clock: parts.clock,
            options: parts.options,
            budget: parts.budget,
            runs: parts.runs,
            applied: AtomicU64::new(parts.wal.end_lsn().get()),
            log_from: AtomicU64::new(parts.log_from.get()),
            log_known: AtomicU64::new(parts.log_known.get()),
            wal: parts.wal,
            manifest: parts.manifest,
            gate: RwLock::new(()),
            rotation: Mutex::new(()),
            run_ids,
            node_ids: AtomicU64::new(ids.node),
            tree_ids: AtomicU32::new(ids.tree),
            txn_ids: AtomicU64::new(ids.txn),
            pending: Mutex::new(parts.pending),
            prepared: PreparedSet::default(),
            prepared_locks: Mutex::default(),
            hook: Hook::default(),
            reads,
            trees: Trees::default(),
            totals: Arc::default(),
            account,
            health,
            last_commit: AtomicU64::new(0),
            counters: Counters::default(),
            beside: Mutex::new(parts.beside),
            idle: Mutex::new(IdleMemory::allow(memory.idle_bytes())),
        }
    }

    pub(crate) fn next_engine_id() -> u64 {
        ENGINES.next()
    }

    pub(crate) fn next_node_id(&self) -> NodeId {
        NodeId(self.node_ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// An id for a transaction that is about to write its first record or pending part.
    pub(crate) fn next_txn(&self) -> u64 {
        self.txn_ids.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// `frees_space`: on a full disk the job may use the reserve (rule 25).
    pub(crate) fn job_env(&self, tree: &TreeCore, frees_space: bool) -> JobEnv {
        JobEnv {
            reserved: frees_space && self.full().is_some(),
            reads: self.reads.counters.found(),
            tree: tree.id,
            options: tree.options.trunk,
            run_env: Arc::clone(&self.runs),
            run_ids: Arc::clone(&self.run_ids),
            update: tree.update.clone(),
        }
    }

    /// What reads take.
    pub(crate) fn reads(&self) -> &Arc<ReadContext> {
        &self.reads
    }

    /// What the planner needs to know beside a tree.
    pub(crate) fn plan_limits(&self) -> PlanLimits {
        PlanLimits {
            write_buffer_bytes: self.memory().write_buffer_bytes(),
            oldest_snapshot: self.snapshots.oldest(),
            inputs_max: frondb_run::merge_inputs_max(self.budget.total()),
        }
    }

    /// Bytes of log that recovery would read.
    pub(crate) fn log_bytes(&self) -> u64 {
        let end = self.applied.load(Ordering::Acquire);
        end.saturating_sub(self.log_from.load(Ordering::Acquire))
    }

    /// Where the log begins that some memtable or prepared transaction still needs.
    pub(crate) fn log_start(&self) -> Lsn {
        // Read before the trees: a record behind this is not noted in its memtable yet.
        let mut start = self.applied.load(Ordering::Acquire);
        // Likewise: one that commits is noted in its trees before it is prepared no more.
        start = start.min(self.prepared.needed_from().get());
        let durable = self.wal.durable_lsn();
        self.trees.for_each(|tree| {
            for source in tree.version().sources() {
                if let Some(lsn) = source.needed_from(durable) {
                    start = start.min(lsn.get());
                }
            }
        });
        Lsn(start)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    // --- Health ---

    pub(crate) fn check(&self) -> Result<()> {
        self.health.check()
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        self.health.check_open()
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        self.health.check_writable()
    }

    pub(crate) fn while_open<T>(&self, read: impl FnOnce() -> Result<T>) -> Result<T> {
        self.health.while_open(read)
    }

    pub(crate) fn check_health(&self) -> Result<()> {
        self.health.check_unpoisoned()
    }

    pub(crate) fn set_closed(&self) -> bool {
        self.health.set_closed()
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.health.is_closed()
    }

    pub(crate) fn poison(&self, error: &Error) {
        self.health.poison(error);
    }

    pub(crate) fn poison_if_unknown(&self, error: &Error) {
        self.health.poison_if_unknown(error);
    }

    pub(crate) fn set_full(&self, error: Option<Error>) {
        self.health.set_full(error);
    }

    pub(crate) fn full(&self) -> Option<Error> {
        self.health.full()
    }
}

/// Largest numbers given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ids {
    pub(crate) tree: u32,
    pub(crate) run: u64,
    pub(crate) node: u64,
    /// Of transactions: the log says it, too.
    pub(crate) txn: u64,
}
