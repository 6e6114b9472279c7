//! Handles failures of background work.
//!
//! - The disk is full: work that frees no space waits and is tried again. If the work that still
//!   runs finds no space either, all work that writes waits for the next attempt. Meanwhile commits
//!   with puts fail with `NoSpace`.
//! - A merge reads a damaged block: the block's run is not merged in that node any more, and all
//!   other work continues ([`crate::damage`]).
//! - A sync, a flush, or a write of the log or the manifest fails for another reason, or a user's
//!   function panics: the database is poisoned.

use frondb_core::events::Event;
use frondb_core::sync::Arc;
use frondb_core::{Error, ErrorKind};
use frondb_tree::TreeCore;

use super::Background;
use crate::counters::add;
use crate::jobs::Running;
use crate::jobs::flush::abandon;
use crate::planning::replan;

impl Background {
    /// Ends a job that failed: its output is discarded, its inputs are unchanged.
    pub(crate) fn give_up(&self, job: Running, error: &Error) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => {
                self.pacing.abandoned();
                self.fail(error);
                self.queue.end_flush(&tree, true);
            }
            Some(node) => {
                let is_damage = self.fail_merge(&tree, node, error);
                self.queue.end_plan(tree.id, node);
                self.plan_again(&tree, node, error, is_damage);
            }
        }
    }

    /// Ends a job that may not continue on a full disk, and makes its work due again. A job that
    /// only paused would keep the space of its output, and its claim would exclude a job on the
    /// same node that frees space.
    pub(crate) fn requeue(&self, job: Running) {
        let (tree, node) = (Arc::clone(job.tree()), job.node());
        undo(job);
        match node {
            None => {
                self.pacing.abandoned();
                self.queue.end_flush(&tree, true);
            }
            Some(node) => {
                self.queue.end_plan(tree.id, node);
                replan(&self.jobs, &self.queue, &tree, &[node]);
            }
        }
    }

    /// Schedules another attempt at the node if its job failed because the disk was full. Other
    /// errors are final: a damaged block stays damaged, and endless attempts would fill the disk.
    /// `is_damage` means that the error has shown new damage; then plans the work on the node that
    /// does not read the damaged run.
    pub(crate) fn plan_again(
        &self,
        tree: &Arc<TreeCore>,
        node: frondb_core::NodeId,
        error: &Error,
        is_damage: bool,
    ) {
        // An optimize that waits for the node must see that its request was not carried out.
        if let Some(found) = tree.version().trunk.find(node) {
            found.withdraw_optimize();
        }
        if error.kind() == ErrorKind::NoSpace {
            self.queue.add_failed(tree, node);
            if self.health.full().is_none() {
                // Another job found space before this node was noted, so that job did not plan this
                // node again.
                self.plan_failed();
            }
        } else if is_damage {
            replan(&self.jobs, &self.queue, tree, &[node]);
        }
    }

    /// Counts the failure of a flush, the log or the manifest, and reports it to the listener. If
    /// the disk is full, holds back the work that frees no space, and after a second failure all
    /// work that writes ([`hold`](crate::Queue::hold)). Any other error poisons the database.
    pub fn fail(&self, error: &Error) {
        add(&self.counters.job_failures, 1);
        self.events.tell(Event::JobFailed(error));
        if error.kind() == ErrorKind::NoSpace {
            self.give_up_backup();
            for job in self.queue.hold(|| self.health.set_full(Some(error.clone()))) {
                self.requeue(job);
            }
            self.health.tell_full();
        } else {
            self.health.poison(error);
            self.queue.stop();
        }
    }

    /// Counts the failure of a merge, whose inputs are unchanged. A node that cannot be merged (a
    /// damaged block, an unreadable sector, a message that the update function rejects) stays as it
    /// is, and all other work continues. Other failures are treated as in [`fail`](Self::fail).
    /// Returns whether the error shows new damage.
    pub(crate) fn fail_merge(
        &self,
        tree: &TreeCore,
        node: frondb_core::NodeId,
        error: &Error,
    ) -> bool {
        match error.kind() {
            ErrorKind::NoSpace | ErrorKind::Poisoned | ErrorKind::Internal => {
                self.fail(error);
                false
            }
            _ => self.jobs.note_failed_merge(tree, node, error),
        }
    }
}

/// Releases the claim of a job on its node or on its tree's flush, and frees the job's output.
fn undo(job: Running) {
    match &job {
        Running::Flush(flush) => abandon(&flush.tree),
        Running::Merge(merge) => {
            merge.tree.install.lock().claimed.remove(&merge.planned.node);
        }
    }
}
