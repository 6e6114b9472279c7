//! [`Task`], [`Next`] and [`Due`]: what the queue hands out and reports.

use frondb_core::NodeId;
use frondb_core::sync::Arc;
use frondb_trunk::plan::Planned;

use frondb_tree::TreeCore;
use frondb_tree::tombstones::KeyRange;

use crate::jobs::Running;

/// A piece of work for a worker.
pub enum Task {
    /// Flush the oldest frozen memtable of a tree.
    Flush(Arc<TreeCore>),
    /// Flush the oldest frozen memtables of several trees together, because they are small.
    FlushGroup(Vec<Arc<TreeCore>>),
    /// Begin the plan of a node.
    Plan(Arc<TreeCore>, Planned),
    /// Continue a parked job.
    Resume(Running),
    /// Plan nodes of a tree again, because readers posted hints for them.
    Replan(Arc<TreeCore>, Vec<NodeId>),
    /// Search the active memtable of a tree for tombstone runs.
    Search(Arc<TreeCore>),
    /// Probe a tree for a known-empty range around a tombstone run.
    Probe(Arc<TreeCore>, KeyRange),
    /// Maintain the log, the manifest and the free space.
    Maintenance,
}

/// The result of a wait for a task.
pub enum Next {
    /// A task to carry out.
    Task(Task),
    /// No task came within the timeout.
    Nothing,
    /// The queue is stopped.
    Stopped,
}

/// The work that is due, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// Jobs that commits are slowed down for: those that wait, parked ones included, and all
    /// flushes under way. Merges that workers are stepping do not count.
    pub debt_jobs: u64,
    /// Key and value bytes that merges among these jobs will read; jobs that have begun do not
    /// count.
    pub debt_bytes: u64,
    /// Jobs that free deleted large values and that commits are not slowed down for.
    pub values_jobs: u64,
    /// All jobs, counted like `debt_jobs`: also work for an idle database, and maintenance if it is
    /// due.
    pub jobs: u64,
    /// Tasks that workers are carrying out.
    pub running: u64,
    /// Trees with hints to be planned, a search or a probe to be made. Jobs may follow from them.
    pub requests: u64,
    /// Whether maintenance of the log, the manifest and the free space is due.
    pub maintenance: bool,
}

impl Due {
    /// Whether no work is left that commits are slowed down for or that may lead to such work, and
    /// none is running.
    pub fn is_settled(&self) -> bool {
        self.debt_jobs == 0 && self.running == 0 && self.requests == 0
    }
}
