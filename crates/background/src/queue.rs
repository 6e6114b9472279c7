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

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use frondb_core::sync::{Arc, Condvar, Mutex};
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::{PRIORITY_IDLE, PRIORITY_VALUES, Planned};

use frondb_tree::{HintSink, TreeCore};

use crate::jobs::Running;
use crate::jobs::flush::{GROUP_BYTES, GROUP_TREES, frees_space, small_flush_bytes};
use crate::priority::{FLUSH, SCAN, TOMBSTONES};

/// Over how many steps, about, the shares of the ranks are kept.
const SHARE_STEPS: u64 = 1024;

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

#[derive(Default)]
struct QueueState {
    flushes: BTreeMap<TreeId, Arc<TreeCore>>,
    /// By priority, then tree and node.
    plans: BTreeMap<(u8, TreeId, NodeId), (Arc<TreeCore>, Planned)>,
    priorities: HashMap<(TreeId, NodeId), u8>,
    parked: Vec<Running>,
    /// Nodes and trees that a job under way works on.
    busy_nodes: HashSet<(TreeId, NodeId)>,
    busy_flushes: BTreeSet<TreeId>,
    /// Trees with a leaf that is being cleaned at once.
    compacting: Vec<TreeId>,
    running: usize,
    maintenance: bool,
    /// A worker is at the chores. Two at once would get in each other's way.
    in_maintenance: bool,
    /// Steps made lately, and how many of them were of what scans paid for.
    steps: u64,
    scan_steps: u64,
    /// Nothing was written for a while: idle work may run.
    idle: bool,
    /// Who wait for deleted large values to be given back.
    values_wanted: usize,
    /// The disk is full: only what frees space runs, until the next try.
    held: bool,
    /// Not even that found space: nothing that writes runs until the next try.
    stuck: bool,
    /// Nodes that readers found expensive, to be planned anew.
    hints: Vec<(Arc<TreeCore>, NodeId)>,
    /// Plans that failed for want of space; planned again at the next try.
    failed: Vec<(Arc<TreeCore>, NodeId)>,
    /// Merges that may be under way, parked ones included; 0 for any number.
    merges_max: usize,
    stopped: bool,
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

impl QueueState {
    /// Whether a leaf of the tree is to be cleaned at once, or is being worked on for it, or may
    /// be found to be when the flush that is due or under way has ended.
    fn has_tombstone_compaction(&self, tree: TreeId) -> bool {
        let range = (TOMBSTONES, tree, NodeId::MIN)..=(TOMBSTONES, tree, NodeId::MAX);
        self.flushes.contains_key(&tree)
            || self.busy_flushes.contains(&tree)
            || self.plans.range(range).next().is_some()
            || self.compacting.contains(&tree)
            || self.hints.iter().any(|(of, _)| of.id == tree)
    }

    fn end_flush(&mut self, tree: &Arc<TreeCore>, more: bool) {
        self.running -= 1;
        self.busy_flushes.remove(&tree.id);
        if more {
            self.flushes.insert(tree.id, Arc::clone(tree));
        }
    }

    fn due(&self) -> Due {
        let debts = self.plans.values().filter(|(_, planned)| planned.is_debt());
        let (mut debt_jobs, mut debt_bytes) = (0, 0);
        for (_, planned) in debts {
            debt_jobs += 1;
            debt_bytes += planned.work_bytes;
        }
        let parked = self.parked.iter().filter(|job| job.is_debt()).count() as u64;
        let flushes = (self.flushes.len() + self.busy_flushes.len()) as u64;
        let values =
            (PRIORITY_VALUES, TreeId::MIN, NodeId::MIN)..(PRIORITY_IDLE, TreeId::MIN, NodeId::MIN);
        let of_values = self.parked.iter().filter(|job| job.priority() == PRIORITY_VALUES).count();
        Due {
            values_jobs: (self.plans.range(values).count() + of_values) as u64,
            debt_jobs: debt_jobs + parked + flushes,
            debt_bytes,
            jobs: (self.plans.len() + self.parked.len()) as u64
                + flushes
                + u64::from(self.maintenance),
            // What a hint leads to is not known yet.
            running: (self.running + self.hints.len()) as u64,
            maintenance: self.maintenance,
        }
    }

    fn count_step(&mut self, priority: u8) {
        self.steps += 1;
        self.scan_steps += u64::from(priority == SCAN);
        if self.steps >= SHARE_STEPS {
            self.steps /= 2;
            self.scan_steps /= 2;
        }
    }

    fn scan_is_short(&self) -> bool {
        self.scan_steps * 4 < self.steps
    }

    /// The smallest priority of what waits and may run.
    fn waiting_priority(&self) -> Option<u8> {
        let flush = self.first_flush().map(|_| FLUSH);
        let parked = self.parked.iter().filter(|job| self.may_resume(job));
        let parked = parked.map(|job| job.priority()).min();
        let plan = self.first_plan(TOMBSTONES).map(|key| key.0);
        [flush, parked, plan].into_iter().flatten().min()
    }

    fn may_resume(&self, job: &Running) -> bool {
        !self.held || job.frees_space()
    }

    fn first_plan(&self, from: u8) -> Option<(u8, TreeId, NodeId)> {
        let start = (from, TreeId::MIN, NodeId::MIN);
        // Those under way go on, and end, whatever their priority. On a full disk none of them is parked that may
        // not go on.
        let is_enough = self.merges_max > 0 && self.busy_nodes.len() >= self.merges_max;
        if is_enough && !self.held {
            if from > TOMBSTONES {
                return None;
            }
            let end = (TOMBSTONES + 1, TreeId::MIN, NodeId::MIN);
            let mut plans = self.plans.range(start..end);
            let free = plans.find(|(key, _)| !self.busy_nodes.contains(&(key.1, key.2)));
            return free.map(|(key, _)| *key);
        }
        let let_in = match (self.idle, self.values_wanted) {
            (true, _) => u8::MAX,
            (false, 0) => PRIORITY_VALUES,
            (false, _) => PRIORITY_IDLE,
        };
        let may_run = |key: &(u8, TreeId, NodeId), planned: &Planned| {
            !self.busy_nodes.contains(&(key.1, key.2))
                && if self.held { planned.frees_space } else { key.0 < let_in }
        };
        let mut plans = self.plans.range(start..);
        plans.find(|(key, (_, planned))| may_run(key, planned)).map(|(key, _)| *key)
    }

    /// The tree whose oldest memtable may be flushed now.
    fn first_flush(&self) -> Option<TreeId> {
        // What has its runs already takes no space either.
        let frees = |tree: &Arc<TreeCore>| {
            let version = tree.version();
            let has_runs = version.frozen.last().is_some_and(|source| source.attached().is_some());
            has_runs || frees_space(&version.frozen)
        };
        let mut flushes = self.flushes.iter();
        flushes
            .find(|(id, tree)| !self.busy_flushes.contains(id) && (!self.held || frees(tree)))
            .map(|(id, _)| *id)
    }

    fn next(&mut self) -> Option<Task> {
        if self.stopped {
            return None;
        }
        let task = self.pick()?;
        self.running += match &task {
            Task::FlushGroup(trees) => trees.len(),
            _ => 1,
        };
        Some(task)
    }

    fn pick(&mut self) -> Option<Task> {
        if self.stuck {
            return None;
        }
        if self.held {
            // First what frees space; the chores take some.
            let priority = self.waiting_priority();
            return priority
                .and_then(|priority| self.pick_priority(priority))
                .or_else(|| self.pick_maintenance());
        }
        // Short, and under full load something else is always waiting.
        if let Some(task) = self.pick_maintenance() {
            return Some(task);
        }
        if self.scan_is_short()
            && let Some(task) = self.pick_scan()
        {
            return Some(task);
        }
        self.pick_priority(self.waiting_priority()?)
    }

    fn pick_maintenance(&mut self) -> Option<Task> {
        if !self.maintenance || self.in_maintenance {
            return None;
        }
        (self.maintenance, self.in_maintenance) = (false, true);
        Some(Task::Maintenance)
    }

    fn pick_scan(&mut self) -> Option<Task> {
        if let Some(at) = self.parked.iter().position(|job| job.priority() == SCAN) {
            return Some(Task::Resume(self.parked.swap_remove(at)));
        }
        let key = self.first_plan(SCAN).filter(|key| key.0 == SCAN)?;
        self.take_plan(key)
    }

    fn pick_priority(&mut self, priority: u8) -> Option<Task> {
        let mut parked = self.parked.iter();
        if let Some(at) = parked.position(|job| job.priority() == priority && self.may_resume(job))
        {
            return Some(Task::Resume(self.parked.swap_remove(at)));
        }
        if priority == FLUSH
            && let Some(id) = self.first_flush()
        {
            return self.take_flush(id);
        }
        let key = self.first_plan(priority)?;
        self.take_plan(key)
    }

    /// Takes the flush of a tree; if its memtable is small, with those of trees behind it.
    fn take_flush(&mut self, first: TreeId) -> Option<Task> {
        let mut group = Vec::new();
        let mut bytes = self.flushes.get(&first).and_then(|tree| small_flush_bytes(tree));
        if self.held {
            // What may run now is told for each.
            bytes = None;
        }
        if let Some(sum) = &mut bytes {
            let behind = self.flushes.range(first..).skip(1).take(GROUP_TREES - 1);
            for (id, tree) in behind.filter(|(id, _)| !self.busy_flushes.contains(id)) {
                let Some(more) = small_flush_bytes(tree) else { continue };
                if *sum + more > GROUP_BYTES {
                    break;
                }
                *sum += more;
                group.push(*id);
            }
        }
        let mut take = |id: TreeId| {
            self.busy_flushes.insert(id);
            self.flushes.remove(&id)
        };
        let first = take(first)?;
        if group.is_empty() {
            return Some(Task::Flush(first));
        }
        let others = group.into_iter().filter_map(take);
        Some(Task::FlushGroup(std::iter::once(first).chain(others).collect()))
    }

    fn take_plan(&mut self, key: (u8, TreeId, NodeId)) -> Option<Task> {
        let (tree, planned) = self.plans.remove(&key)?;
        self.priorities.remove(&(key.1, key.2));
        self.busy_nodes.insert((key.1, key.2));
        if key.0 == TOMBSTONES {
            self.compacting.push(key.1);
        }
        Some(Task::Plan(tree, planned))
    }
}
