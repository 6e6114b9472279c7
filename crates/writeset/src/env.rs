//! [`SpillEnv`] and [`TreeSpill`]: the handles and parameters with which write sets write private
//! runs.

use frondb_core::message::SharedUpdateFn;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, AtomicUsize};
use frondb_run::{RunEnv, RunOptions};

/// The handles that all write sets of an engine share.
#[derive(Clone)]
pub struct SpillEnv {
    /// The handles for writing and reading runs.
    pub runs: Arc<RunEnv>,
    /// The last run id assigned.
    pub run_ids: Arc<AtomicU64>,
    /// The budget that the indexes of write sets charge. It is not the engine's budget, which
    /// already includes the memory of all write sets.
    pub index_budget: Arc<frondb_core::budget::Budget>,
    /// Maximum number of private runs of a write set in one tree, base runs not counted (rule 18).
    /// The larger it is, the later and the less often runs are merged. May be changed at any time.
    pub runs_max: Arc<AtomicUsize>,
}

/// The parameters for writing the private runs of one tree.
#[derive(Clone)]
pub struct TreeSpill {
    /// Encoding and filters.
    pub options: RunOptions,
    /// The tree's update function.
    pub update: Option<SharedUpdateFn>,
}
