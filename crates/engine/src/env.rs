//! The handles that the parts of an open engine share, and the engine's health.

use frondb_background::{JobContext, LogPins};
use std::collections::BTreeMap;

use frondb_commit::{Committer, Edits, Ids, LargestIds, Log, PendingParts, PendingState};
use frondb_core::budget::Budget;
use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize};
use frondb_core::sync::{Arc, Mutex, ProcessCounter};
use frondb_core::{Error, Lsn, Result, SeqNo};
use frondb_device::SharedDevice;
use frondb_locks::{LockManager, LockOptions, SeqOracle, Snapshots};
use frondb_manifest::Manifest;
use frondb_run::RunEnv;
use frondb_tree::{
    Health, HintSink, MemoryShares, MemtableAccount, ReadContext, ReadCounters, TreeTotals, Trees,
};
use frondb_wal::Wal;
use frondb_writeset::SpillEnv;

use crate::memory::Beside;
use crate::options::EngineOptions;
use crate::prepared::{self, PreparedSet};
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
    pub(crate) log: Arc<Log>,
    /// The manifest.
    pub(crate) edits: Arc<Edits>,
    /// Parts of large commits.
    pub(crate) parts: PendingParts,
    /// Commits.
    pub(crate) committer: Arc<Committer>,
    /// SeqNos.
    pub(crate) oracle: Arc<SeqOracle>,
    /// Live snapshots.
    pub(crate) snapshots: Arc<Snapshots>,
    /// Numbers given out.
    pub(crate) ids: Arc<Ids>,
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
    /// Prepared transactions.
    pub(crate) prepared: PreparedSet,
    /// Their locks and what is told of them, by number: a name can be another's by the time they are
    /// let go.
    pub(crate) prepared_locks: Mutex<BTreeMap<u64, PreparedHold>>,
    /// What reads take.
    reads: Arc<ReadContext>,
    /// Trees by id.
    pub(crate) trees: Arc<Trees>,
    /// Totals over those.
    pub(crate) totals: Arc<TreeTotals>,
    /// Memory of memtables.
    pub(crate) account: Arc<MemtableAccount>,
    /// Whether calls are taken.
    pub(crate) health: Arc<Health>,
    /// What jobs take.
    pub(crate) jobs: Arc<JobContext>,
    /// Parts of large transactions written to disk before they commit, a count.
    pub(crate) spills: AtomicU64,
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
    pub(crate) fn new(parts: EnvParts, id: u64, largest: LargestIds, visible: SeqNo) -> Self {
        let oracle = Arc::new(SeqOracle::new(visible));
        let ids = Ids::behind(largest);
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
        let log = Log::new(parts.wal, parts.log_from, parts.log_known);
        let edits = Edits::new(parts.manifest, parts.pending, Arc::clone(&health));
        let trees: Arc<Trees> = Arc::default();
        let runs = parts.runs;
        let shares = MemoryShares::new(Arc::clone(&parts.budget), parts.options.memory_rules());
        let jobs = JobContext::new(
            Arc::clone(&reads),
            Arc::clone(&trees),
            Arc::clone(&ids),
            Arc::clone(&log),
            Arc::clone(&edits),
            shares,
            parts.options.background_bytes_per_second,
        );
        Self {
            jobs,
            id,
            locks: LockManager::new(lock_options, Arc::clone(&parts.budget)),
            spill: SpillEnv {
                runs: Arc::clone(&runs),
                run_ids: Arc::clone(ids.runs()),
                index_budget: Budget::new(u64::MAX),
                runs_max: Arc::new(AtomicUsize::new(memory.private_runs_max())),
            },
            spares: Spares::default(),
            roster: Roster::default(),
            write_set_bytes: AtomicU64::new(0),
            parts: PendingParts::new(
                Arc::clone(&edits),
                Arc::clone(&runs),
                Arc::clone(&trees),
                Arc::clone(&ids),
                Arc::clone(&health),
            ),
            committer: Arc::new(Committer::new(
                id,
                Arc::clone(&log),
                Arc::clone(&oracle),
                Arc::clone(&runs),
                Arc::clone(&account),
                Arc::clone(&health),
            )),
            log,
            edits,
            ids,
            snapshots,
            oracle,
            device: parts.device,
            log_device: parts.log_device,
            clock: parts.clock,
            options: parts.options,
            budget: parts.budget,
            runs,
            prepared: PreparedSet::default(),
            prepared_locks: Mutex::default(),
            reads,
            trees,
            totals: Arc::default(),
            account,
            health,
            spills: AtomicU64::new(0),
            beside: Mutex::new(parts.beside),
            idle: Mutex::new(IdleMemory::allow(memory.idle_bytes())),
        }
    }

    pub(crate) fn next_engine_id() -> u64 {
        ENGINES.next()
    }

    /// What reads take.
    pub(crate) fn reads(&self) -> &Arc<ReadContext> {
        &self.reads
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

    pub(crate) fn poison(&self, error: &Error) {
        self.health.poison(error);
    }

    pub(crate) fn poison_if_unknown(&self, error: &Error) {
        self.health.poison_if_unknown(error);
    }

    #[cfg(test)]
    pub(crate) fn set_full(&self, error: Option<Error>) {
        self.health.set_full(error);
    }

    pub(crate) fn full(&self) -> Option<Error> {
        self.health.full()
    }
}

impl LogPins for Env {
    fn needed_from(&self) -> Lsn {
        self.prepared.needed_from()
    }

    fn unpin(&self, limit: Lsn) -> Result<()> {
        prepared::move_to_manifest(self, &self.committer, limit)
    }
}
