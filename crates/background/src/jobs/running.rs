//! [`Running`]: a flush or a merge between two of its steps.

use frondb_core::sync::Arc;
use frondb_core::{NodeId, Result};
use frondb_tree::TreeCore;

use crate::jobs::flush::FlushJob;
use crate::jobs::merge::MergeJob;
use crate::priority::FLUSH;

/// A job under way. It belongs to one worker, or to the queue while it is parked.
pub enum Running {
    /// The flush of a memtable.
    Flush(Box<FlushJob>),
    /// Any job on the runs of a node: a merge, a rewrite, a flush to the children.
    Merge(Box<MergeJob>),
}

impl Running {
    /// Returns the job's priority; a smaller number runs first ([`crate::priority`]).
    pub fn priority(&self) -> u8 {
        match self {
            Self::Flush(_) => FLUSH,
            Self::Merge(job) => job.planned.priority,
        }
    }

    /// Whether commits are slowed down while the job waits for a worker.
    pub fn is_debt(&self) -> bool {
        match self {
            Self::Flush(_) => true,
            Self::Merge(job) => job.planned.is_debt(),
        }
    }

    /// Whether the job may continue while the disk is full: it began on a full disk, and may use
    /// the reserve because it frees space.
    pub fn frees_space(&self) -> bool {
        match self {
            Self::Flush(job) => job.reserved,
            Self::Merge(job) => job.reserved,
        }
    }

    /// Runs one step. Returns `true` when all output is written.
    pub fn step(&mut self) -> Result<bool> {
        match self {
            Self::Flush(job) => job.step(),
            Self::Merge(job) => job.job.step(),
        }
    }

    /// Returns the bytes that the steps of the job have written so far.
    pub fn bytes_written(&self) -> u64 {
        match self {
            Self::Flush(job) => job.bytes_written(),
            Self::Merge(job) => job.job.bytes_written(),
        }
    }

    /// Returns the node on which the job works; `None` for the flush of a memtable.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::Flush(_) => None,
            Self::Merge(job) => Some(job.planned.node),
        }
    }

    /// Returns the tree on which the job works.
    pub fn tree(&self) -> &Arc<TreeCore> {
        match self {
            Self::Flush(job) => &job.tree,
            Self::Merge(job) => &job.tree,
        }
    }
}
