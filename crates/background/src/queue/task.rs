//! What the queue hands out and reports.

use frondb_core::sync::Arc;
use frondb_trunk::plan::Planned;

use frondb_tree::TreeCore;

use crate::jobs::Running;

/// Something to do.
pub enum Task {
    /// Flush the oldest frozen memtable of a tree.
    Flush(Arc<TreeCore>),
    /// The same of several trees, whose oldest memtables are small: together.
    FlushGroup(Vec<Arc<TreeCore>>),
    /// Begin what was planned for a node.
    Plan(Arc<TreeCore>, Planned),
    /// Go on with a job.
    Resume(Running),
    /// Look after the space, the log and the manifest.
    Maintenance,
}

/// What waiting for a task gave.
pub enum Next {
    /// A task to do.
    Task(Task),
    /// Readers have posted hints: see [`Queue::take_hints`].
    Hints,
    /// Nothing was due for as long as was to be waited.
    Nothing,
    /// No more work is to be done.
    Stopped,
}

/// What is due, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// Jobs that writers owe, begun or not.
    pub debt_jobs: u64,
    /// Bytes those not begun will read.
    pub debt_bytes: u64,
    /// Jobs that give back deleted large values and that nobody owes.
    pub values_jobs: u64,
    /// All jobs, idle work included.
    pub jobs: u64,
    /// Jobs a worker is at.
    pub running: u64,
    /// Whether the log, the manifest and the space are to be looked after.
    pub maintenance: bool,
}

impl Due {
    /// Whether writers owe nothing.
    pub fn is_settled(&self) -> bool {
        self.debt_jobs == 0 && self.running == 0
    }
}
