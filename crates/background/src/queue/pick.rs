//! Chooses the next task.

use frondb_core::sync::Arc;
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::{PRIORITY_IDLE, PRIORITY_PACK, PRIORITY_VALUES, Planned};

use frondb_tree::TreeCore;

use super::state::{QueueState, SearchWhen};
use super::task::Task;
use crate::jobs::Running;
use crate::jobs::flush::{GROUP_BYTES, GROUP_TREES, frees_space, small_flush_bytes};
use crate::priority::{FLUSH, SCAN, TOMBSTONES};

impl QueueState {
    /// Takes the next task that may run now, and counts it as running.
    pub(super) fn next(&mut self) -> Option<Task> {
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

    /// Returns the smallest priority number of the work that waits and may run.
    pub(super) fn waiting_priority(&self) -> Option<u8> {
        let flush = self.first_flush().map(|_| FLUSH);
        let parked = self.parked.iter().filter(|job| self.may_resume(job));
        let parked = parked.map(|job| job.priority()).min();
        let plan = self.first_plan(TOMBSTONES).map(|key| key.0);
        [flush, parked, plan].into_iter().flatten().min()
    }

    /// Whether a parked job may continue: on a full disk, only if it frees space.
    pub(super) fn may_resume(&self, job: &Running) -> bool {
        !self.held || job.frees_space()
    }

    /// Takes a request of a reader or a commit: to plan the nodes of a tree with hints, to search
    /// for tombstone runs, or to probe.
    pub(super) fn take_request(&mut self) -> Option<Task> {
        if let Some((id, (tree, nodes))) = self.hints.pop_first() {
            self.replanning.push(id);
            return Some(Task::Replan(tree, nodes.into_iter().collect()));
        }
        let mut searches = self.searches.iter();
        let may_run = |(id, (_, when)): &(&TreeId, &(_, SearchWhen))| match when {
            SearchWhen::Soon => true,
            SearchWhen::Compacted => !self.has_tombstone_compaction(**id),
        };
        if let Some(id) = searches.find(may_run).map(|(id, _)| *id) {
            self.searching.push(id);
            return self.searches.remove(&id).map(|(tree, _)| Task::Search(tree));
        }
        let mut trees = self.probes.keys();
        let id = *trees.find(|id| !self.probing.contains(id))?;
        let (tree, range) = self.probes.remove(&id)?;
        self.probing.insert(id);
        Some(Task::Probe(tree, range))
    }

    /// Chooses the next task, without counting it as running. Requests come first; but two probes
    /// do not follow each other while other work waits, because a stream of deletes makes probes
    /// due all the time.
    fn pick(&mut self) -> Option<Task> {
        if std::mem::take(&mut self.probed_last)
            && let Some(task) = self.pick_work()
        {
            return Some(task);
        }
        // Requests write nothing, so they are also served on a full disk.
        if let Some(task) = self.take_request() {
            self.probed_last = matches!(task, Task::Probe(..));
            return Some(task);
        }
        self.pick_work()
    }

    /// Chooses the next task that is not a request.
    fn pick_work(&mut self) -> Option<Task> {
        if self.stuck {
            return None;
        }
        if self.held {
            // Work that frees space comes before maintenance, which takes some space.
            let priority = self.waiting_priority();
            return priority
                .and_then(|priority| self.pick_priority(priority))
                .or_else(|| self.pick_maintenance());
        }
        // Maintenance is short. It comes first, because under full load other work always waits.
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

    /// Chooses an amortised merge or work of an optimize; a parked job first.
    fn pick_scan(&mut self) -> Option<Task> {
        if let Some(at) = self.parked.iter().position(|job| job.priority() == SCAN) {
            return Some(Task::Resume(self.parked.swap_remove(at)));
        }
        let key = self.first_plan(SCAN).filter(|key| key.0 == SCAN)?;
        self.take_plan(key)
    }

    /// Chooses work of this priority: a parked job first, then a flush, then a plan.
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

    /// Returns the first tree whose oldest frozen memtable may be flushed now.
    fn first_flush(&self) -> Option<TreeId> {
        // A flush of attached runs takes no space, so it may run on a full disk.
        let frees = |tree: &Arc<TreeCore>| {
            let Some(version) = tree.open_version() else { return false };
            let has_runs = version.frozen.last().is_some_and(|source| source.attached().is_some());
            has_runs || frees_space(&version.frozen)
        };
        let mut flushes = self.flushes.iter();
        flushes
            .find(|(id, tree)| !self.busy_flushes.contains(id) && (!self.held || frees(tree)))
            .map(|(id, _)| *id)
    }

    /// Returns the first plan that may run now, of priority `from` or a larger number.
    fn first_plan(&self, from: u8) -> Option<(u8, TreeId, NodeId)> {
        let start = (from, TreeId::MIN, NodeId::MIN);
        // At the limit, only tombstone compaction may begin; merges under way continue, whatever
        // their priority. The limit does not hold on a full disk, where jobs that may not continue
        // are ended instead of parked.
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
        let let_in = match (self.idle, self.value_waits) {
            (true, _) => u8::MAX,
            (false, 0) => PRIORITY_VALUES,
            (false, _) => PRIORITY_IDLE,
        };
        let packs = self.packing_max == 0 || self.packing.len() < self.packing_max;
        let may_run = |key: &(u8, TreeId, NodeId), planned: &Planned| {
            let is_let_in = key.0 < let_in || key.0 == PRIORITY_PACK && packs;
            !self.busy_nodes.contains(&(key.1, key.2))
                && if self.held { planned.frees_space } else { is_let_in }
        };
        let mut plans = self.plans.range(start..);
        plans.find(|(key, (_, planned))| may_run(key, planned)).map(|(key, _)| *key)
    }

    /// Takes the flush of a tree. If the tree's memtable is small, also takes the flushes of small
    /// memtables of trees with larger ids.
    fn take_flush(&mut self, first: TreeId) -> Option<Task> {
        let mut group = Vec::new();
        let mut bytes = self.flushes.get(&first).and_then(|tree| small_flush_bytes(tree));
        if self.held {
            // On a full disk, form no group: only the first tree was checked for freeing space.
            bytes = None;
        }
        if let Some(sum) = &mut bytes {
            let others = self.flushes.range(first..).skip(1).take(GROUP_TREES - 1);
            for (id, tree) in others.filter(|(id, _)| !self.busy_flushes.contains(id)) {
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
        let rest = group.into_iter().filter_map(take);
        Some(Task::FlushGroup(std::iter::once(first).chain(rest).collect()))
    }

    /// Takes a plan, and marks its node as busy in the queue.
    fn take_plan(&mut self, key: (u8, TreeId, NodeId)) -> Option<Task> {
        let (tree, planned) = self.plans.remove(&key)?;
        self.priorities.remove(&(key.1, key.2));
        self.busy_nodes.insert((key.1, key.2));
        if key.0 == TOMBSTONES {
            self.compacting.insert((key.1, key.2));
        }
        if key.0 == PRIORITY_PACK {
            self.packing.insert((key.1, key.2));
        }
        Some(Task::Plan(tree, planned))
    }
}
