//! The handles that the parts of an open engine share, and the engine's health.

use std::collections::BTreeMap;

use frondb_core::budget::Budget;
use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::mem::IdleMemory;
use frondb_core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use frondb_core::sync::{Arc, Mutex, ProcessCounter, RwLock};
use frondb_core::{Error, ErrorKind, Lsn, NodeId, Result, SeqNo, TreeId};
use frondb_device::SharedDevice;
use frondb_locks::{LockManager, LockOptions, SeqOracle, Snapshots};
use frondb_manifest::Manifest;
use frondb_run::RunEnv;
use frondb_trunk::job::JobEnv;
use frondb_wal::Wal;
use frondb_writeset::SpillEnv;

use crate::hook::Hook;
use crate::memory::Beside;
use crate::options::EngineOptions;
use crate::pending::PendingState;
use crate::pins::Cursors;
use crate::prepared::PreparedSet;
use crate::stats::Counters;
use crate::sums::TreeSums;
use crate::throttle::Throttle;
use crate::transaction::{PreparedHold, Roster, Spares};
use crate::tree::{Tree, TreeCore};

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
    /// Cursors, and what they pin.
    pub(crate) cursors: Cursors,
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
    /// Trees by id.
    pub(crate) trees: RwLock<BTreeMap<TreeId, Arc<TreeCore>>>,
    /// Sums over those.
    pub(crate) sums: Arc<TreeSums>,
    /// Messages of all records below are in their memtables.
    pub(crate) applied: AtomicU64,
    /// Where recovery would begin to read the log, as the manifest says durably.
    pub(crate) log_from: AtomicU64,
    /// How far the manifest knows the log to be durable, since it was last asked to note that.
    pub(crate) log_known: AtomicU64,
    /// Memory of memtables that are frozen and not flushed yet.
    pub(crate) frozen_bytes: Arc<AtomicU64>,
    /// Memory of memtables that are flushed and that some reader still holds: nothing that a
    /// writer could wait for.
    pub(crate) pinned_bytes: Arc<AtomicU64>,
    /// When the last commit was, by the clock.
    pub(crate) last_commit: AtomicU64,
    /// How much background work may write.
    pub(crate) throttle: Throttle,
    /// Counters.
    pub(crate) counters: Counters,
    health: Health,
    /// What the process takes beside what the parts charge. Held while the memory is changed.
    pub(crate) beside: Mutex<Beside>,
    /// How much the block allocator may keep idle.
    pub(crate) idle: Mutex<IdleMemory>,
}

#[derive(Default)]
struct Health {
    closed: AtomicBool,
    poisoned: AtomicBool,
    poison: Mutex<Option<Error>>,
    full: Mutex<Option<Error>>,
    is_full: AtomicBool,
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
            cursors: Cursors::default(),
            snapshots: Snapshots::new(Arc::clone(&oracle), Arc::clone(&parts.clock)),
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
            trees: RwLock::new(BTreeMap::new()),
            sums: Arc::default(),
            frozen_bytes: Arc::default(),
            pinned_bytes: Arc::default(),
            last_commit: AtomicU64::new(0),
            counters: Counters::default(),
            health: Health::default(),
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
            reads: self.counters.found(),
            tree: tree.id,
            options: tree.options.trunk,
            run_env: Arc::clone(&self.runs),
            run_ids: Arc::clone(&self.run_ids),
            update: tree.update.clone(),
        }
    }

    /// All trees.
    pub(crate) fn all_trees(&self) -> Vec<Arc<TreeCore>> {
        self.trees.read().values().cloned().collect()
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
        for tree in self.trees.read().values() {
            for slot in tree.version().slots() {
                if let Some(lsn) = slot.needed_from(durable) {
                    start = start.min(lsn.get());
                }
            }
        }
        Lsn(start)
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    // --- Health ---

    /// Fails if the engine was closed or is poisoned.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_open()?;
        self.check_health()
    }

    /// Fails if the engine was closed. A poisoned engine can still be read.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.health.closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, "the database was closed"));
        }
        Ok(())
    }

    /// Fails if the database was opened without the right to write.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::invalid("the database was opened read-only"));
        }
        Ok(())
    }

    /// What `read` returns, unless the engine was closed meanwhile: another process may own the
    /// files then. The flag is set before the directory's lock goes, so looking afterwards is
    /// enough.
    pub(crate) fn while_open<T>(&self, read: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let result = read(self);
        self.check_open().and(result)
    }

    /// Fails if the engine is poisoned.
    pub(crate) fn check_health(&self) -> Result<()> {
        if self.health.poisoned.load(Ordering::Acquire) {
            let poison = self.health.poison.lock().clone();
            return Err(poison.unwrap_or_else(|| Error::internal("poisoned without a cause")));
        }
        Ok(())
    }

    /// Fails if the tree belongs to another engine or was dropped.
    pub(crate) fn check_tree(&self, tree: &Tree) -> Result<()> {
        if tree.0.engine != self.id {
            return Err(Error::invalid(format!(
                "tree {:?} belongs to another open database",
                tree.name()
            )));
        }
        if tree.0.is_coming() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("tree {:?} exists when its bulk load is finished", tree.name()),
            ));
        }
        if tree.0.is_dropped() {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("tree {:?} was dropped", tree.name()),
            ));
        }
        Ok(())
    }

    pub(crate) fn set_closed(&self) -> bool {
        !self.health.closed.swap(true, Ordering::AcqRel)
    }

    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.health.closed.load(Ordering::Acquire)
    }

    /// Nothing is written any more: what is durable is not known.
    pub(crate) fn poison(&self, error: &Error) {
        let mut poison = self.health.poison.lock();
        if poison.is_none() {
            tracing::error!(%error, "the engine is poisoned; close and reopen it");
            *poison = Some(error.clone().with_kind(ErrorKind::Poisoned));
            self.health.poisoned.store(true, Ordering::Release);
        }
    }

    /// Poisons the engine if a part that it is made of is poisoned: a sync of it has failed.
    pub(crate) fn poison_if_unknown(&self, error: &Error) {
        if error.kind() == ErrorKind::Poisoned {
            self.poison(error);
        }
    }

    /// Notes that background work fails for want of space (`None`: no longer).
    pub(crate) fn set_full(&self, error: Option<Error>) {
        let mut full = self.health.full.lock();
        if let (Some(error), None) = (&error, &*full) {
            tracing::warn!(%error, "the disk is full; writes fail until space is freed");
        }
        self.health.is_full.store(error.is_some(), Ordering::Release);
        *full = error;
    }

    /// The error of background work that fails for want of space.
    pub(crate) fn full(&self) -> Option<Error> {
        if self.health.is_full.load(Ordering::Acquire) {
            self.health.full.lock().clone()
        } else {
            None
        }
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
