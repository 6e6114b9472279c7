//! The queue of background work: what is due, what is under way, what comes next.
//!
//! Work comes in ranks, smaller first: 0 a leaf to be cleaned at once, 1 flushes, 2 merges of
//! runs, 3 base rewrites, 4 what scans paid for, 6 what is done only when nothing is written. A
//! worker runs one step of a job at a time and asks between steps whether something of a smaller
//! priority waits; then the job is parked (rule 3). Work that scans paid for gets at least a quarter
//! of the steps whatever its priority. The chores (log, manifest, space) come before all else: they
//! are short, and under full load there would be no other time for them.
//!
//! The queue knows what to do and not how: it holds trees, plans and opaque jobs.

mod pick;
mod state;
mod task;

use std::time::Duration;

use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::Planned;

use frondb_tree::{HintSink, TreeCore};

use crate::jobs::Running;
use crate::priority::SCAN;
use state::QueueState;
pub use task::{Due, Next, Task};

/// The queue. One for an engine.
#[derive(Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

impl Queue {
    /// How many merges may be under way at once, parked ones included.
    pub fn set_merges_max(&self, most: usize) {
        self.state.lock().merges_max = most;
        self.changed.notify_all();
    }

    /// A tree has a frozen memtable.
    pub fn add_flush(&self, tree: &Arc<TreeCore>) {
        let mut state = self.state.lock();
        state.flushes.insert(tree.id, Arc::clone(tree));
        self.changed.notify_all();
    }

    /// Replaces what is planned for a node.
    pub fn set_plan(&self, tree: &Arc<TreeCore>, node: NodeId, planned: Option<Planned>) {
        let mut state = self.state.lock();
        if let Some(priority) = state.priorities.remove(&(tree.id, node)) {
            state.plans.remove(&(priority, tree.id, node));
        }
        if let Some(planned) = planned {
            state.priorities.insert((tree.id, node), planned.priority);
            state.plans.insert((planned.priority, tree.id, node), (Arc::clone(tree), planned));
            self.changed.notify_all();
        }
    }

    /// Forgets all that is planned for a tree that was dropped, and its parked jobs: they would
    /// keep what they read and wrote, on a full disk for as long as it is full.
    pub fn forget(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.hints.retain(|(of, _)| of.id != tree);
        state.flushes.remove(&tree);
        state.priorities.retain(|key, _| key.0 != tree);
        state.plans.retain(|key, _| key.1 != tree);
        let parked = std::mem::take(&mut state.parked);
        let (gone, parked): (Vec<_>, Vec<_>) =
            parked.into_iter().partition(|job| job.tree().id == tree);
        state.parked = parked;
        for job in &gone {
            match job {
                Running::Flush(_) => drop(state.busy_flushes.remove(&tree)),
                Running::Merge(job) => drop(state.busy_nodes.remove(&(tree, job.planned.node))),
            }
        }
        self.changed.notify_all();
        drop(state);
        // Their output is given back, without the lock.
        drop(gone);
    }

    /// The hints of readers that were posted since this was last called, to be planned.
    pub fn take_hints(&self) -> Vec<(Arc<TreeCore>, NodeId)> {
        std::mem::take(&mut self.state.lock().hints)
    }

    /// Asks for the chores.
    pub fn add_maintenance(&self) {
        let mut state = self.state.lock();
        if !state.maintenance {
            state.maintenance = true;
            self.changed.notify_all();
        }
    }

    /// The next task, if there is one that may run now.
    pub fn try_next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        state.next()
    }

    /// Waits for the next task, for as long as `patience` says, `None` for ever. It is asked again,
    /// under the queue's lock, whenever something has changed: what [`wake`](Self::wake) is called
    /// for must have happened before.
    pub fn next(&self, idle_timeout: &mut dyn FnMut() -> Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Next::Stopped;
            }
            if !state.hints.is_empty() {
                return Next::Hints;
            }
            if let Some(task) = state.next() {
                return Next::Task(task);
            }
            match idle_timeout() {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => return Next::Nothing,
                Some(timeout) => {
                    if self.changed.wait_for(&mut state, timeout).timed_out() {
                        return Next::Nothing;
                    }
                }
            }
        }
    }

    /// A step of `priority` was made. Returns whether the job should be parked.
    pub fn stepped(&self, priority: u8) -> bool {
        let mut state = self.state.lock();
        state.count_step(priority);
        if priority == SCAN && state.scan_is_short() {
            return state.stopped;
        }
        state.stopped || state.waiting_priority().is_some_and(|waiting| waiting < priority)
    }

    /// A job goes back to the queue; or to its worker, if it may not go on before there is space: it is
    /// to end then, as those that [`hold`](Self::hold) returns.
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

    /// A flush of `tree` is over that made nothing durable; `more` says whether it has another frozen
    /// memtable.
    pub fn end_flush(&self, tree: &Arc<TreeCore>, more: bool) {
        self.state.lock().end_flush(tree, more);
        self.changed.notify_all();
    }

    /// The same of one behind which the log may be shorter: the chores are due in the same step. A
    /// commit that waits for a shorter log would else find nothing due in between, and go on (rule 10).
    pub fn end_flush_with_maintenance(&self, tree: &Arc<TreeCore>, more: bool) {
        let mut state = self.state.lock();
        state.end_flush(tree, more);
        state.maintenance = true;
        self.changed.notify_all();
    }

    /// The same of the flushes of a group.
    pub fn end_flush_group(&self, ended: &[(Arc<TreeCore>, bool)]) {
        let mut state = self.state.lock();
        ended.iter().for_each(|(tree, more)| state.end_flush(tree, *more));
        state.maintenance = true;
        self.changed.notify_all();
    }

    /// The work on a node is over.
    pub fn end_plan(&self, tree: TreeId, node: NodeId) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.busy_nodes.remove(&(tree, node));
        if let Some(at) = state.compacting.iter().position(|of| *of == tree) {
            // Another leaf's work may end first; then the wait ends a little early.
            state.compacting.swap_remove(at);
        }
        self.changed.notify_all();
    }

    /// The chores are done.
    pub fn end_maintenance(&self) {
        let mut state = self.state.lock();
        state.running -= 1;
        state.in_maintenance = false;
        self.changed.notify_all();
    }

    /// Some work found no space: holds back all that does not free any, and if that fails as well,
    /// all that writes. Without it, a flush that cannot succeed would be tried without a pause.
    /// `note` notes that the disk is full in the same step: if another job could find space between
    /// the two, nobody would know of a full disk any more, and what is held back would stay so.
    /// Returns the parked jobs that may not go on; they are to end as those that run.
    pub fn hold(&self, note: impl FnOnce()) -> Vec<Running> {
        let mut state = self.state.lock();
        note();
        state.stuck = state.held;
        state.held = true;
        let parked = std::mem::take(&mut state.parked);
        let (parked, waiting): (Vec<_>, Vec<_>) =
            parked.into_iter().partition(Running::frees_space);
        state.parked = parked;
        state.running += waiting.len();
        self.changed.notify_all();
        waiting
    }

    /// Lets what was held back go on; `note` notes, in the same step, what is known of the disk now.
    pub fn release(&self, note: impl FnOnce()) {
        let mut state = self.state.lock();
        note();
        (state.held, state.stuck) = (false, false);
        self.changed.notify_all();
    }

    /// A plan failed for want of space.
    pub fn add_failed(&self, tree: &Arc<TreeCore>, node: NodeId) {
        self.state.lock().failed.push((Arc::clone(tree), node));
    }

    /// The plans that failed for want of space since they were last asked for.
    pub fn take_failed(&self) -> Vec<(Arc<TreeCore>, NodeId)> {
        std::mem::take(&mut self.state.lock().failed)
    }

    /// Whether idle work may run. Returns whether that is a change.
    pub fn set_idle(&self, idle: bool) -> bool {
        let mut state = self.state.lock();
        let changed = state.idle != idle;
        if changed {
            state.idle = idle;
            self.changed.notify_all();
        }
        changed
    }

    /// Somebody waits for deleted large values, or (`false`) does no more.
    pub fn want_values(&self, begins: bool) {
        let mut state = self.state.lock();
        match begins {
            true => state.values_wanted += 1,
            false => state.values_wanted -= 1,
        }
        self.changed.notify_all();
    }

    /// Waits until nothing of the tree is to be cleaned at once, or `patience` is over. Returns
    /// which it was.
    pub fn wait_compacted(&self, tree: TreeId, timeout: Duration) -> bool {
        let mut state = self.state.lock();
        while state.has_tombstone_compaction(tree) {
            if state.stopped || self.changed.wait_for(&mut state, timeout).timed_out() {
                return false;
            }
        }
        true
    }

    /// Lets waiting workers look around.
    pub fn wake(&self) {
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Stops all workers at their next step.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Takes back the jobs that were parked, for dropping them.
    pub fn take_parked(&self) -> Vec<Running> {
        std::mem::take(&mut self.state.lock().parked)
    }

    /// What is due.
    pub fn due(&self) -> Due {
        let state = self.state.lock();
        state.due()
    }

    /// Waits until `done` says so, looked at after every change, at most `patience`.
    pub fn wait_until(&self, timeout: Duration, done: &mut dyn FnMut(&Due) -> bool) -> bool {
        let mut state = self.state.lock();
        loop {
            if done(&state.due()) {
                return true;
            }
            if state.stopped || self.changed.wait_for(&mut state, timeout).timed_out() {
                return false;
            }
        }
    }
}

impl HintSink for Queue {
    fn post(&self, tree: &Arc<TreeCore>, node: NodeId) {
        let mut state = self.state.lock();
        if !state.hints.iter().any(|(of, known)| of.id == tree.id && *known == node) {
            state.hints.push((Arc::clone(tree), node));
            self.changed.notify_all();
        }
    }
}
