//! The calls with which workers report the progress and the end of their tasks.

use frondb_core::sync::Arc;
use frondb_core::{NodeId, TreeId};
use frondb_tree::TreeCore;

use super::{Queue, Task};
use crate::jobs::Running;
use crate::priority::SCAN;

impl Queue {
    /// Counts a step of a job with this priority. Returns whether the job should be parked.
    pub fn stepped(&self, priority: u8) -> bool {
        let mut state = self.state.lock();
        state.count_step(priority);
        if priority == SCAN && state.scan_is_short() {
            return state.stopped;
        }
        state.stopped || state.waiting_priority().is_some_and(|waiting| waiting < priority)
    }

    /// Counts the last step of a job. Most jobs of small nodes have only this step.
    pub fn stepped_last(&self, priority: u8) {
        self.state.lock().count_step(priority);
    }

    /// Parks a job. Returns the job if it may not continue on the full disk; the worker must end it
    /// then, like the jobs that [`hold`](Self::hold) returns.
    pub fn park(&self, job: Running) -> Option<Running> {
        let mut state = self.state.lock();
        if !state.may_resume(&job) {
            return Some(job);
        }
        state.running -= 1;
        state.parked.push(job);
        self.changed.notify_all();
        None
    }

    /// Ends a flush of `tree` that made nothing durable. `more` means that the tree has a frozen
    /// memtable to flush.
    pub fn end_flush(&self, tree: &Arc<TreeCore>, more: bool) {
        self.state.lock().end_flush(tree, more);
        self.changed.notify_all();
    }

    /// Ends a flush after which the log can be trimmed, and requests maintenance under the same
    /// lock. Otherwise a commit that waits for a shorter log could find nothing due for a moment,
    /// and continue although the log is too long (rule 10).
    pub fn end_flush_with_maintenance(&self, tree: &Arc<TreeCore>, more: bool) {
        let mut state = self.state.lock();
        state.end_flush(tree, more);
        state.maintenance = true;
        self.changed.notify_all();
    }

    /// Ends the flushes of a group as
    /// [`end_flush_with_maintenance`](Self::end_flush_with_maintenance) does.
    pub fn end_flush_group(&self, ended: &[(Arc<TreeCore>, bool)]) {
        let mut state = self.state.lock();
        ended.iter().for_each(|(tree, more)| state.end_flush(tree, *more));
        state.maintenance = true;
        self.changed.notify_all();
    }

    /// Takes the next request of a reader or a commit, for a worker to serve between two steps of a
    /// job. The request counts as running, as a task of [`try_next`](Self::try_next) does.
    pub fn next_request(&self) -> Option<Task> {
        let mut state = self.state.lock();
        if state.stopped {
            return None;
        }
        let task = state.take_request()?;
        state.running += 1;
        Some(task)
    }

    /// Ends the planning of a tree's hints.
    pub fn end_replan(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.running -= 1;
        if let Some(at) = state.replanning.iter().position(|of| *of == tree) {
            state.replanning.swap_remove(at);
        }
        self.changed.notify_all();
    }

    /// Ends the search of a tree's memtable.
    pub fn end_search(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.running -= 1;
        if let Some(at) = state.searching.iter().position(|of| *of == tree) {
            state.searching.swap_remove(at);
        }
        self.changed.notify_all();
    }

    /// Ends the probe of a tree.
    pub fn end_probe(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.probing.remove(&tree);
        self.changed.notify_all();
    }

    /// Ends the work on a node.
    pub fn end_plan(&self, tree: TreeId, node: NodeId) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.busy_nodes.remove(&(tree, node));
        state.packing.remove(&(tree, node));
        state.compacting.remove(&(tree, node));
        self.changed.notify_all();
    }

    /// Ends maintenance.
    pub fn end_maintenance(&self) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.in_maintenance = false;
        self.changed.notify_all();
    }
}
