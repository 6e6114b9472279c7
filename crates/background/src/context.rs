//! [`JobContext`]: the handles that flushes, merges and the other jobs get besides their tree.

use std::collections::HashSet;

use frondb_commit::{Edits, Ids, Log};
use frondb_core::events::Events;
use frondb_core::sync::{Arc, Mutex};
use frondb_core::wear::WriteCause;
use frondb_core::{Error, ErrorKind, Result, RunId, TreeId};
use frondb_space::Space;
use frondb_tree::{Health, MemoryShares, PlanLimits, ReadContext, TreeCore, Trees};
use frondb_trunk::job::{JobEnv, Packing};

use crate::counters::{BackgroundStats, JobCounters, Latencies};
use crate::dictionaries::Dictionaries;
use crate::throttle::Throttle;

/// The handles that jobs get besides their tree. One for each open database; any thread may use it.
pub struct JobContext {
    /// The handles that reads get: cache, snapshots, clock.
    pub reads: Arc<ReadContext>,
    /// Whether the database accepts calls.
    pub(crate) health: Arc<Health>,
    /// The data files.
    pub(crate) space: Arc<Space>,
    /// The listener of the application.
    pub(crate) events: Arc<Events>,
    /// The trees of the database by id, stowed ones included.
    pub trees: Arc<Trees>,
    /// Gives out ids of runs and nodes.
    pub ids: Arc<Ids>,
    /// The log, which a flush syncs.
    pub log: Arc<Log>,
    /// The manifest.
    pub edits: Arc<Edits>,
    /// How the memory budget is divided among write buffer, cache and merges.
    pub shares: MemoryShares,
    /// The rate limit on the writes of jobs.
    pub throttle: Arc<Throttle>,
    /// The current dictionary of each tree.
    pub(crate) dictionaries: Dictionaries,
    /// Trees in which background work has found damage.
    pub(crate) damaged: Mutex<HashSet<TreeId>>,
    /// Runs that could not be read when background work tried to move them.
    pub(crate) unmovable: Mutex<HashSet<RunId>>,
    pub(crate) counters: Arc<JobCounters>,
    /// The durations of commits and jobs.
    pub latencies: Arc<Latencies>,
}

impl JobContext {
    /// Creates the handles for the jobs of an open database. Jobs write at most `bytes_per_second`;
    /// 0 means no limit.
    #[must_use]
    pub fn new(
        reads: Arc<ReadContext>,
        trees: Arc<Trees>,
        ids: Arc<Ids>,
        log: Arc<Log>,
        edits: Arc<Edits>,
        shares: MemoryShares,
        bytes_per_second: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            health: Arc::clone(&reads.health),
            space: Arc::clone(&reads.runs.space),
            events: Arc::clone(&reads.runs.events),
            reads,
            trees,
            ids,
            log,
            edits,
            shares,
            throttle: Arc::new(Throttle::new(bytes_per_second)),
            dictionaries: Dictionaries::default(),
            damaged: Mutex::default(),
            unmovable: Mutex::default(),
            counters: Arc::default(),
            latencies: Arc::default(),
        })
    }

    /// Returns the handles that a job of `tree` passes on to the trunk. The job's writes are
    /// counted under `cause`. With `frees_space`, the job may use the reserve on a full disk
    /// (rule 25).
    #[must_use]
    pub fn job_env(&self, cause: WriteCause, tree: &TreeCore, frees_space: bool) -> JobEnv {
        JobEnv {
            cause,
            reserved: frees_space && self.health.full().is_some(),
            reads: self.reads.counters.found(),
            tree: tree.id,
            options: tree.options().trunk,
            run_env: Arc::clone(&self.reads.runs),
            run_ids: Arc::clone(self.ids.runs()),
            update: tree.update().cloned(),
            packing: Packing::Quick,
        }
    }

    /// Returns the limits that the planner needs besides the tree.
    #[must_use]
    pub fn plan_limits(&self) -> PlanLimits {
        PlanLimits {
            write_buffer_bytes: self.shares.now().write_buffer_bytes(),
            oldest_snapshot: self.reads.snapshots.oldest(),
            inputs_max: frondb_run::merge_inputs_max(self.reads.budget.total()),
        }
    }

    /// Reserves space in the manifest for `bytes` of an install's edit. An edit that found the disk
    /// full when it is written would poison the database, because an install cannot be undone.
    ///
    /// # Errors
    /// `NoSpace` if the manifest cannot grow; errors of the device.
    pub(crate) fn reserve_edit(&self, bytes: u64) -> Result<()> {
        if self.edits.manifest.make_room(bytes)? {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::NoSpace,
            "the disk is full: the manifest cannot grow for the next edit",
        ))
    }

    /// Returns the counts of the work of background jobs.
    #[must_use]
    pub fn stats(&self) -> BackgroundStats {
        self.counters.read()
    }
}
