//! The environment in which write sets write and read private runs.

use frondb_core::message::SharedUpdateFn;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize};
use frondb_run::{RunEnv, RunOptions};

/// The environment that all write sets of an engine share.
#[derive(Clone)]
pub struct SpillEnv {
    /// Where the runs are stored.
    pub runs: Arc<RunEnv>,
    /// The last run id assigned.
    pub run_ids: Arc<AtomicU64>,
    /// The budget that the indexes of write sets charge: not the engine's budget, which already
    /// includes the sum of all write sets.
    pub index_budget: Arc<frondb_core::budget::Budget>,
    /// Maximum number of private runs in a tree (rule 18). With a larger number runs are merged
    /// later, and so fewer times. May be changed at any time.
    pub runs_max: Arc<AtomicUsize>,
}

/// How to write the runs of one tree.
#[derive(Clone)]
pub struct TreeSpill {
    /// Encoding and filters.
    pub options: RunOptions,
    /// The tree's update function.
    pub update: Option<SharedUpdateFn>,
}
