//! What happens when background work fails.
//!
//! For want of space, all work that writes is held back and tried again, and writers are told; a merge
//! for a damaged block, the node is left alone and everything else goes on; a sync, a flush, the log or
//! the manifest, or a panic in a user's function: the engine is poisoned.

use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind};
use frondb_tree::TreeCore;

use crate::background::Background;
use crate::counters::add;
use crate::jobs::Running;
use crate::jobs::flush::abandon;
use crate::planning::replan;

impl Background {
    /// A job failed: its output goes, its inputs are as they were.
    pub(crate) fn give_up(&self, job: Running, error: &Error) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => {
                self.fail(error);
                self.queue.end_flush(&tree, true);
            }
            Some(node) => {
                self.fail_merge(error);
                self.queue.end_plan(tree.id, node);
                self.plan_again(&tree, node, error);
            }
        }
    }

    /// The disk is full: a job that may not go on before there is space is begun anew then. It would
    /// keep what it has written, and its node from a job that frees space.
    pub(crate) fn requeue(&self, job: Running) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => self.queue.end_flush(&tree, true),
            Some(node) => {
                self.queue.end_plan(tree.id, node);
                replan(&self.jobs, &self.queue, &tree, &[node]);
            }
        }
    }

    /// Plans a node whose job failed again, unless it cannot succeed: a damaged block stays
    /// damaged, and trying for ever would use the disk up for nothing.
    pub(crate) fn plan_again(
        &self,
        tree: &Arc<TreeCore>,
        node: frondb_core::NodeId,
        error: &Error,
    ) {
        if error.kind() == ErrorKind::NoSpace {
            self.queue.add_failed(tree, node);
            if self.health().full().is_none() {
                // Another job found space since, and has not seen this one.
                self.plan_failed();
            }
        }
    }

    /// Notes a failure of background work that must go on: a flush, the log, the manifest.
    pub fn fail(&self, error: &Error) {
        add(&self.jobs.counters.job_failures, 1);
        if error.kind() == ErrorKind::NoSpace {
            for job in self.queue.hold(|| self.health().set_full(Some(error.clone()))) {
                self.requeue(job);
            }
        } else {
            self.health().poison(error);
            self.queue.stop();
        }
    }

    /// Notes a failure of a merge. Its inputs are as they were: a node that cannot be merged, for a
    /// damaged block, a sector that cannot be read, a message that fits no function, is left alone,
    /// and everything else goes on.
    pub(crate) fn fail_merge(&self, error: &Error) {
        match error.kind() {
            ErrorKind::NoSpace | ErrorKind::Poisoned | ErrorKind::Internal => self.fail(error),
            _ => {
                add(&self.jobs.counters.job_failures, 1);
                tracing::error!(%error, "background work could not merge a node; it stays as it is");
            }
        }
    }
}

/// Takes back what a job has done so far.
fn undo(job: Running) {
    match &job {
        Running::Flush(flush) => abandon(&flush.tree),
        Running::Merge(merge) => {
            merge.tree.install.lock().claimed.remove(&merge.planned.node);
        }
    }
}
