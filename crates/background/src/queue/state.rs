//! [`QueueState`]: the work that is due and the work under way. The lock of the queue protects it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use frondb_core::sync::Arc;
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::{PRIORITY_IDLE, PRIORITY_VALUES, Planned};

use frondb_tree::TreeCore;
use frondb_tree::tombstones::KeyRange;

use super::task::Due;
use crate::jobs::Running;
use crate::priority::{SCAN, TOMBSTONES};

/// Steps after which the counts of steps are halved, so that they reflect recent work.
const SHARE_STEPS: u64 = 1024;

/// The time at which a memtable is searched for tombstone runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchWhen {
    /// As soon as a worker is free.
    Soon,
    /// Not before the tree's tombstone compaction has ended.
    Compacted,
}

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) flushes: BTreeMap<TreeId, Arc<TreeCore>>,
    /// Plans by priority, tree and node.
    pub(super) plans: BTreeMap<(u8, TreeId, NodeId), (Arc<TreeCore>, Planned)>,
    pub(super) priorities: HashMap<(TreeId, NodeId), u8>,
    pub(super) parked: Vec<Running>,
    /// Nodes on which a running or parked job works.
    pub(super) busy_nodes: HashSet<(TreeId, NodeId)>,
    /// Trees whose memtable is being flushed; `flushes` has those whose flush is due.
    pub(super) busy_flushes: BTreeSet<TreeId>,
    /// Nodes with a tombstone compaction under way, parked ones included.
    pub(super) compacting: BTreeSet<(TreeId, NodeId)>,
    pub(super) running: usize,
    pub(super) maintenance: bool,
    /// Whether a worker does maintenance. Only one does at a time.
    pub(super) in_maintenance: bool,
    /// Number of recent steps; `scan_steps` counts the steps with the priority [`SCAN`] among them.
    pub(super) steps: u64,
    pub(super) scan_steps: u64,
    /// Whether work for an idle database may run.
    pub(super) idle: bool,
    /// Threads that wait until deleted large values are freed.
    pub(super) value_waits: usize,
    /// Whether the disk is full: until the next attempt, only work that frees space runs.
    pub(super) held: bool,
    /// Whether even work that frees space found no space: until the next attempt, no work that
    /// writes runs.
    pub(super) stuck: bool,
    /// Number of attempts since the hold in which only work that frees space could run.
    pub(super) alone: u32,
    /// Trees whose active memtables are to be searched for tombstone runs.
    pub(super) searches: BTreeMap<TreeId, (Arc<TreeCore>, SearchWhen)>,
    /// Trees whose memtables workers are searching now, one entry for each worker.
    pub(super) searching: Vec<TreeId>,
    /// Tombstone runs to be probed, one key range for each tree.
    pub(super) probes: BTreeMap<TreeId, (Arc<TreeCore>, KeyRange)>,
    /// Whether the last task was a probe. If so, other work that waits comes before the next probe.
    pub(super) probed_last: bool,
    /// Trees that a worker probes. A tree has one probe at a time.
    pub(super) probing: BTreeSet<TreeId>,
    /// Nodes for which readers posted hints, to be planned again.
    pub(super) hints: BTreeMap<TreeId, (Arc<TreeCore>, BTreeSet<NodeId>)>,
    /// Trees whose hints workers are planning now, one entry for each worker.
    pub(super) replanning: Vec<TreeId>,
    /// Nodes whose plans failed because the disk was full; they are planned again at the next
    /// attempt.
    pub(super) failed: Vec<(Arc<TreeCore>, NodeId)>,
    /// Leaves that are being packed, parked jobs included. `packing_max` limits their number while
    /// the database is not idle; 0 means no limit.
    pub(super) packing: HashSet<(TreeId, NodeId)>,
    pub(super) packing_max: usize,
    /// Limit on merges under way, parked ones included; 0 means no limit.
    pub(super) merges_max: usize,
    pub(super) stopped: bool,
}

impl QueueState {
    /// Whether a tombstone compaction of the tree is due or under way, or may follow from a flush
    /// of the tree or a hint for one of its nodes.
    pub(super) fn has_tombstone_compaction(&self, tree: TreeId) -> bool {
        let range = (TOMBSTONES, tree, NodeId::MIN)..=(TOMBSTONES, tree, NodeId::MAX);
        self.flushes.contains_key(&tree)
            || self.busy_flushes.contains(&tree)
            || self.plans.range(range).next().is_some()
            || self.compacting.range((tree, NodeId::MIN)..=(tree, NodeId::MAX)).next().is_some()
            || self.hints.contains_key(&tree)
            || self.replanning.contains(&tree)
    }

    /// Whether a search of the tree's memtable waits for a worker, or is under way.
    pub(super) fn has_search(&self, tree: TreeId) -> bool {
        self.searching.contains(&tree)
            || self.searches.get(&tree).is_some_and(|(_, when)| *when == SearchWhen::Soon)
    }

    /// Whether a probe of the tree waits for a worker or is under way.
    pub(super) fn has_probe(&self, tree: TreeId) -> bool {
        self.probes.contains_key(&tree) || self.probing.contains(&tree)
    }

    /// Ends a flush; with `more`, the next flush of the tree is due.
    pub(super) fn end_flush(&mut self, tree: &Arc<TreeCore>, more: bool) {
        self.running -= 1;
        self.busy_flushes.remove(&tree.id);
        if more {
            self.flushes.insert(tree.id, Arc::clone(tree));
        }
    }

    pub(super) fn due(&self) -> Due {
        let debts = self.plans.values().filter(|(_, planned)| planned.is_debt());
        let (mut debt_jobs, mut debt_bytes) = (0, 0);
        for (_, planned) in debts {
            debt_jobs += 1;
            debt_bytes += planned.work_bytes;
        }
        // A parked flush is not counted again: its tree is in `busy_flushes`.
        let parked = || self.parked.iter().filter(|job| matches!(job, Running::Merge(_)));
        let parked_debts = parked().filter(|job| job.is_debt()).count() as u64;
        let flushes = (self.flushes.len() + self.busy_flushes.len()) as u64;
        let values =
            (PRIORITY_VALUES, TreeId::MIN, NodeId::MIN)..(PRIORITY_IDLE, TreeId::MIN, NodeId::MIN);
        let of_values = self.parked.iter().filter(|job| job.priority() == PRIORITY_VALUES).count();
        Due {
            values_jobs: (self.plans.range(values).count() + of_values) as u64,
            debt_jobs: debt_jobs + parked_debts + flushes,
            debt_bytes,
            jobs: (self.plans.len() + parked().count()) as u64
                + flushes
                + u64::from(self.maintenance),
            running: self.running as u64,
            requests: (self.hints.len() + self.searches.len() + self.probes.len()) as u64,
            maintenance: self.maintenance,
        }
    }

    pub(super) fn count_step(&mut self, priority: u8) {
        self.steps += 1;
        self.scan_steps += u64::from(priority == SCAN);
        if self.steps >= SHARE_STEPS {
            self.steps /= 2;
            self.scan_steps /= 2;
        }
    }

    /// Whether amortised merges and optimizes got less than a quarter of the recent steps.
    pub(super) fn scan_is_short(&self) -> bool {
        self.scan_steps * 4 < self.steps
    }
}
