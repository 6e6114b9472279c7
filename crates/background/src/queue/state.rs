//! What the queue knows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use frondb_core::sync::Arc;
use frondb_core::{NodeId, TreeId};
use frondb_trunk::plan::{PRIORITY_IDLE, PRIORITY_VALUES, Planned};

use frondb_tree::TreeCore;

use super::task::Due;
use crate::jobs::Running;
use crate::priority::{SCAN, TOMBSTONES};

/// Over how many steps, about, the shares of the ranks are kept.
const SHARE_STEPS: u64 = 1024;

#[derive(Default)]
pub(super) struct QueueState {
    pub(super) flushes: BTreeMap<TreeId, Arc<TreeCore>>,
    /// By priority, then tree and node.
    pub(super) plans: BTreeMap<(u8, TreeId, NodeId), (Arc<TreeCore>, Planned)>,
    pub(super) priorities: HashMap<(TreeId, NodeId), u8>,
    pub(super) parked: Vec<Running>,
    /// Nodes and trees that a job under way works on.
    pub(super) busy_nodes: HashSet<(TreeId, NodeId)>,
    pub(super) busy_flushes: BTreeSet<TreeId>,
    /// Trees with a leaf that is being cleaned at once.
    pub(super) compacting: Vec<TreeId>,
    pub(super) running: usize,
    pub(super) maintenance: bool,
    /// A worker is at the chores. Two at once would get in each other's way.
    pub(super) in_maintenance: bool,
    /// Steps made lately, and how many of them were of what scans paid for.
    pub(super) steps: u64,
    pub(super) scan_steps: u64,
    /// Nothing was written for a while: idle work may run.
    pub(super) idle: bool,
    /// Who wait for deleted large values to be given back.
    pub(super) values_wanted: usize,
    /// The disk is full: only what frees space runs, until the next try.
    pub(super) held: bool,
    /// Not even that found space: nothing that writes runs until the next try.
    pub(super) stuck: bool,
    /// Nodes that readers found expensive, to be planned anew.
    pub(super) hints: Vec<(Arc<TreeCore>, NodeId)>,
    /// Plans that failed for want of space; planned again at the next try.
    pub(super) failed: Vec<(Arc<TreeCore>, NodeId)>,
    /// Merges that may be under way, parked ones included; 0 for any number.
    pub(super) merges_max: usize,
    pub(super) stopped: bool,
}

impl QueueState {
    /// Whether a leaf of the tree is to be cleaned at once, or is being worked on for it, or may
    /// be found to be when the flush that is due or under way has ended.
    pub(super) fn has_tombstone_compaction(&self, tree: TreeId) -> bool {
        let range = (TOMBSTONES, tree, NodeId::MIN)..=(TOMBSTONES, tree, NodeId::MAX);
        self.flushes.contains_key(&tree)
            || self.busy_flushes.contains(&tree)
            || self.plans.range(range).next().is_some()
            || self.compacting.contains(&tree)
            || self.hints.iter().any(|(of, _)| of.id == tree)
    }

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

    pub(super) fn count_step(&mut self, priority: u8) {
        self.steps += 1;
        self.scan_steps += u64::from(priority == SCAN);
        if self.steps >= SHARE_STEPS {
            self.steps /= 2;
            self.scan_steps /= 2;
        }
    }

    pub(super) fn scan_is_short(&self) -> bool {
        self.scan_steps * 4 < self.steps
    }
}
