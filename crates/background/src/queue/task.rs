//! [`Task`], [`Next`] and [`Due`]: the tasks that the queue hands out, and the counts of due work.

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

/// Counts of the work that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// Jobs for which commits are slowed down: waiting jobs, parked ones included, and all flushes
    /// under way. Merges that a worker is stepping do not count.
    pub debt_jobs: u64,
    /// Key and value bytes that the merges among these jobs will read. Jobs that have begun do not
    /// count.
    pub debt_bytes: u64,
    /// Jobs that free deleted large values. Commits are not slowed down for them.
    pub values_jobs: u64,
    /// All waiting jobs, parked ones included, all flushes under way, and maintenance if it is due.
    pub jobs: u64,
    /// Tasks that workers are carrying out.
    pub running: u64,
    /// Waiting requests: trees with hints to be planned, searches and probes. A request may lead to
    /// jobs.
    pub requests: u64,
    /// Whether maintenance of the log, the manifest and the free space is due.
    pub maintenance: bool,
}

impl Due {
    /// Whether no task is running, and no work waits for which commits are slowed down or that may
    /// lead to such work.
    pub fn is_settled(&self) -> bool {
        self.debt_jobs == 0 && self.running == 0 && self.requests == 0
    }
}
