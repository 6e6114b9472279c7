//! The queue of background work: knows which work is due and under way, and chooses the next task.
//!
//! A smaller priority number runs first: 0 tombstone compaction, 1 flushes, regroups and joins, 2
//! merges of runs, 3 rewrites of bases, 4 amortised merges and optimizes, 5 work that frees large
//! values, 6 work for an idle database, 7 packing of leaves ([`crate::priority`]). Work of priority
//! 5 begins only in an idle database too, unless a thread waits for that work; packing also begins
//! in a busy one. After each step of a job, the worker checks whether work of a smaller number
//! waits; if so, it parks the job (rule 3). The work of priority 4 gets at least a quarter of the
//! steps, whatever waits.
//!
//! Requests come before all priorities: hints of readers to be planned, searches for tombstone
//! runs, and probes for known-empty ranges. Maintenance of the log, the manifest and the free space
//! is next. Requests and maintenance are short, and under full load they would otherwise never run.
//! While other work waits, a probe does not follow a probe. After each step of a job, the worker
//! also serves one request if one is due. On a full disk, work that frees space comes before
//! maintenance.
//!
//! The queue knows which work is due, and not how to do it: it contains trees, plans and opaque
//! jobs.

mod holding;
mod pick;
mod progress;
mod state;
mod task;

use std::collections::BTreeSet;
use std::time::Duration;

use frondb_core::sync::atomic::{AtomicBool, Ordering};
use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::Planned;

use frondb_tree::tombstones::KeyRange;
use frondb_tree::{HintSink, StowingSink, TreeCore};

use crate::jobs::Running;
use state::{QueueState, SearchWhen};
pub use task::{Due, Next, Task};

/// The queue of one database. Any thread may use it.
#[derive(Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    /// Whether the next maintenance should stow trees. Set without the lock.
    stowing: AtomicBool,
}

impl Queue {
    /// Limits how many merges may be under way at the same time, parked ones included; 0 means no
    /// limit. Tombstone compactions, and all merges on a full disk, begin beyond the limit too.
    pub fn set_merges_max(&self, most: usize) {
        self.state.lock().merges_max = most;
        self.changed.notify_all();
    }

    /// Limits how many leaves may be packed at the same time while the database is not idle, parked
    /// jobs included. The reason is that a step of such a job takes a tenth of a second, in which
    /// its worker does nothing else.
    pub fn set_packing_max(&self, most: usize) {
        self.state.lock().packing_max = most;
        self.changed.notify_all();
    }

    /// Adds a flush of `tree`, which has a frozen memtable.
    pub fn add_flush(&self, tree: &Arc<TreeCore>) {
        let mut state = self.state.lock();
        state.flushes.insert(tree.id, Arc::clone(tree));
        self.changed.notify_all();
    }

    /// Adds a search of a tree's active memtable for tombstone runs.
    pub fn add_search(&self, tree: &Arc<TreeCore>) {
        self.state.lock().searches.insert(tree.id, (Arc::clone(tree), SearchWhen::Soon));
        self.changed.notify_all();
    }

    /// Adds a search that runs when the tombstone compaction of the tree has ended. Returns
    /// `false`, and adds nothing, if no such compaction is due or under way.
    pub fn add_search_after_compaction(&self, tree: &Arc<TreeCore>) -> bool {
        let mut state = self.state.lock();
        let compacts = state.has_tombstone_compaction(tree.id);
        if compacts {
            state.searches.insert(tree.id, (Arc::clone(tree), SearchWhen::Compacted));
        }
        compacts
    }

    /// Adds a probe of a tree. `range` has the first and the last key of a tombstone run. If a
    /// probe of the tree is due already, one probe covers both runs.
    pub fn add_probe(&self, tree: &Arc<TreeCore>, range: KeyRange) {
        let mut state = self.state.lock();
        let due = state.probes.remove(&tree.id).map(|(_, due)| due);
        let range = match due {
            Some((first, last)) => (range.0.min(first), range.1.max(last)),
            None => range,
        };
        state.probes.insert(tree.id, (Arc::clone(tree), range));
        self.changed.notify_all();
    }

    /// Replaces the plan of a node; `None` removes it.
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

    /// Removes the waiting work of a dropped tree, parked jobs included: they would keep the space
    /// of their inputs and output, on a full disk for as long as it is full.
    pub fn forget(&self, tree: TreeId) {
        let mut state = self.state.lock();
        state.hints.remove(&tree);
        state.searches.remove(&tree);
        state.probes.remove(&tree);
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
                Running::Merge(job) => {
                    state.busy_nodes.remove(&(tree, job.planned.node));
                    state.packing.remove(&(tree, job.planned.node));
                }
            }
        }
        self.changed.notify_all();
        drop(state);
        // Drop the jobs without the lock, because that frees their output.
        drop(gone);
    }

    /// Requests maintenance of the log, the manifest and the free space.
    pub fn add_maintenance(&self) {
        let mut state = self.state.lock();
        if !state.maintenance {
            state.maintenance = true;
            self.changed.notify_all();
        }
    }

    /// Takes the request to stow trees: returns whether there is one, and removes it.
    pub(crate) fn take_stowing(&self) -> bool {
        self.stowing.swap(false, Ordering::Relaxed)
    }

    /// Takes the next task that may run now, if any.
    pub fn try_next(&self) -> Option<Task> {
        let mut state = self.state.lock();
        state.maintenance |= self.stowing.load(Ordering::Relaxed);
        state.next()
    }

    /// Waits for the next task, at most for the time that `idle_timeout` returns; `None` means no
    /// limit. `idle_timeout` is called again after every change of the queue, with the queue
    /// locked. A thread that calls [`wake`](Self::wake) must first change what `idle_timeout`
    /// reads.
    pub fn next(&self, idle_timeout: &mut dyn FnMut() -> Option<Duration>) -> Next {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Next::Stopped;
            }
            state.maintenance |= self.stowing.load(Ordering::Relaxed);
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

    /// Sets whether work for an idle database may run. Returns whether the setting has changed.
    pub fn set_idle(&self, idle: bool) -> bool {
        let mut state = self.state.lock();
        let changed = state.idle != idle;
        if changed {
            state.idle = idle;
            self.changed.notify_all();
        }
        changed
    }

    /// Lets jobs that free large values run in a busy database too, until the returned guard is
    /// dropped. For a thread that waits for such jobs.
    pub fn let_value_jobs_run(&self) -> ValueJobs<'_> {
        self.state.lock().value_waits += 1;
        self.changed.notify_all();
        ValueJobs(self)
    }

    /// Waits until no tombstone compaction of the tree is due or under way; `false` if `timeout`
    /// passed without any change, or the queue is stopped.
    pub fn wait_compacted(&self, tree: TreeId, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| state.has_tombstone_compaction(tree))
    }

    /// Waits until no search of the tree's memtable waits for a worker or is under way; `false` if
    /// `timeout` passed without any change, or the queue is stopped.
    pub fn wait_searched(&self, tree: TreeId, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| state.has_search(tree))
    }

    /// Waits until no probe of the tree waits for a worker or is under way; `false` if `timeout`
    /// passed without any change, or the queue is stopped.
    pub fn wait_probed(&self, tree: TreeId, timeout: Duration) -> bool {
        self.wait_while(timeout, |state| state.has_probe(tree))
    }

    fn wait_while(&self, timeout: Duration, mut is_due: impl FnMut(&QueueState) -> bool) -> bool {
        let mut state = self.state.lock();
        while is_due(&state) {
            if state.stopped || self.changed.wait_for(&mut state, timeout).timed_out() {
                return false;
            }
        }
        true
    }

    /// Wakes waiting workers, so that they check what is due by time.
    pub fn wake(&self) {
        let _state = self.state.lock();
        self.changed.notify_all();
    }

    /// Stops all workers after their current step.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Removes the parked jobs, for the caller to drop.
    pub fn take_parked(&self) -> Vec<Running> {
        std::mem::take(&mut self.state.lock().parked)
    }

    /// Counts the work that is due.
    pub fn due(&self) -> Due {
        let state = self.state.lock();
        state.due()
    }

    /// Waits until `done` returns `true`. `done` is called after every change of the queue, with
    /// the queue locked. Returns `false` if `timeout` passed without any change, or the queue is
    /// stopped.
    pub fn wait_until(&self, timeout: Duration, done: &mut dyn FnMut(&Due) -> bool) -> bool {
        self.wait_while(timeout, |state| !done(&state.due()))
    }
}

/// A guard. While it exists, jobs that free large values may run: see
/// [`Queue::let_value_jobs_run`].
#[must_use = "the jobs run only until it is dropped"]
pub struct ValueJobs<'a>(&'a Queue);

impl Drop for ValueJobs<'_> {
    fn drop(&mut self) {
        self.0.state.lock().value_waits -= 1;
        self.0.changed.notify_all();
    }
}

impl HintSink for Queue {
    fn post(&self, tree: &Arc<TreeCore>, node: NodeId) {
        let mut state = self.state.lock();
        let (_, nodes) =
            state.hints.entry(tree.id).or_insert_with(|| (Arc::clone(tree), BTreeSet::new()));
        if nodes.insert(node) {
            self.changed.notify_all();
        }
    }
}

impl StowingSink for Queue {
    fn request_stowing(&self) {
        self.stowing.store(true, Ordering::Relaxed);
        // A worker that is about to wait may miss this notification, because this thread does not
        // take the lock. Then the next change of the queue wakes the worker.
        self.changed.notify_all();
    }
}
