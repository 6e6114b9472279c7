//! [`Pass`]: goes through the leaves of a tree, requests work on leaves that are not consolidated,
//! and waits for the work. The workers do the work ([`crate::background::tasks`]).

use std::collections::{BTreeSet, HashMap};

use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_core::{NodeId, RunId, SeqNo};
use frondb_tree::{ReadContext, TreeCore, Version};
use frondb_trunk::{Key, Node, OptimizeScope, OptimizeStep};

use super::pace::Pace;
use super::report::{FailedLeaf, OptimizeOptions, OptimizeReport};
use crate::background::Background;
use crate::background::admission::CHECK_EVERY;
use crate::planning::replan;

/// Leaves for which work is requested at a time, so that no worker idles.
const AHEAD: usize = 4;

/// Most leaves that one call of `look` examines. A commit may wait for the install lock, which
/// `look` holds.
const LOOK_LEAVES: u64 = 256;

/// Most attempts at a node. Work on a node is requested again if the node has changed in the
/// meantime, or if its job was given up; a damaged node is not tried again.
const ATTEMPTS: u32 = 4;

/// Most leaves that a report names.
const FAILURES_NAMED: usize = 16;

/// The result of [`Pass::look`].
pub(super) enum Look {
    /// More leaves can be examined at once.
    More,
    /// Work is under way, or the next leaf is not due yet. The version is the one examined.
    Waits(Arc<Version>),
    /// All leaves of the part to optimize are consolidated or given up.
    End,
}

/// The work that was requested on a node.
#[derive(Clone, Copy)]
struct Request {
    attempts: u32,
    /// Number of flushes of the node before the first attempt.
    flushes: u64,
}

/// An optimize under way.
pub(super) struct Pass<'a> {
    background: &'a Background,
    reads: &'a ReadContext,
    tree: &'a Arc<TreeCore>,
    upto: SeqNo,
    last_run: RunId,
    /// The leaves below this key are done: consolidated or given up. `None` at the end of the tree.
    at: Option<Key>,
    /// The first key after the part to optimize; `None` for the whole tree.
    to: Option<Key>,
    /// The work that was requested for leaves that are not done yet, by node.
    requests: HashMap<NodeId, Request>,
    pace: Pace,
    report: OptimizeReport,
    /// Leaves that are not done yet.
    left: u64,
}

impl<'a> Pass<'a> {
    /// Creates a pass that begins at the first leaf. All messages up to `upto` are in runs. The
    /// pass tries again to read data that the device could not read earlier.
    pub(super) fn new(
        background: &'a Background,
        tree: &'a Arc<TreeCore>,
        options: OptimizeOptions,
        upto: SeqNo,
    ) -> Self {
        let last_run = RunId(background.jobs.ids.runs().load(Ordering::Relaxed));
        let version = tree.version();
        let trunk = &version.trunk;
        background.jobs.forget_unreadable(trunk);
        let to = if options.fraction < 1.0 { trunk.fraction_end(options.fraction) } else { None };
        Self {
            background,
            reads: &background.reads,
            tree,
            upto,
            last_run,
            at: Some(Key::from([])),
            left: trunk.leaves_between(b"", to.as_deref()),
            to,
            requests: HashMap::new(),
            pace: Pace::new(options.leaves_per_second, background.reads.now()),
            report: OptimizeReport {
                disk_bytes: (trunk.root.totals.disk_bytes, 0),
                ..OptimizeReport::default()
            },
        }
    }

    /// Returns the number of leaves that are done, and the number of leaves in the part to
    /// optimize.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.report.leaves, self.report.leaves + self.left)
    }

    /// Returns the report on the leaves that are done.
    pub(super) fn report(&self) -> OptimizeReport {
        let after = self.tree.version().trunk.root.totals.disk_bytes;
        OptimizeReport { disk_bytes: (self.report.disk_bytes.0, after), ..self.report.clone() }
    }

    /// Counts consolidated leaves as done, and requests work on the next leaves that are not
    /// consolidated. `is_full` means that the disk is full; then a job that was given up does not
    /// count as an attempt.
    pub(super) fn look(&mut self, is_full: bool) -> Look {
        // Under this lock, a job first claims its node and withdraws the request; later it
        // publishes its result and releases the claim.
        let tree = self.tree;
        let install = tree.install.lock();
        let version = tree.version();
        let (mut ahead, mut wanted, mut looked) = (self.at.clone(), 0, 0);
        let mut nodes = Vec::new();
        while let Some(key) = ahead.filter(|key| self.is_inside(key) && wanted < AHEAD) {
            looked += 1;
            if looked > LOOK_LEAVES {
                break;
            }
            let step = self.step_at(&version, &install.claimed, &key);
            ahead = step.leaf.hi.clone();
            let Some(node) = step.next else {
                if wanted == 0 {
                    self.pass(&step);
                }
                continue;
            };
            let is_claimed = install.claimed.contains(&node.id);
            if self.is_given_up(node, is_claimed) {
                if wanted == 0 {
                    self.pass(&step);
                }
                continue;
            }
            wanted += 1;
            if !is_claimed && self.request(node, is_full) {
                nodes.push(node.id);
            }
        }
        drop(install);
        self.plan(&nodes);
        let is_left = self.at.clone().filter(|at| self.is_inside(at));
        self.left = is_left.map_or(0, |at| version.trunk.leaves_between(&at, self.to.as_deref()));
        match (self.left, wanted) {
            (0, _) => Look::End,
            (_, 0) => Look::More,
            _ => Look::Waits(version),
        }
    }

    /// Waits until the tree has a newer version than `seen`, a leaf is due, or [`CHECK_EVERY`] has
    /// passed.
    pub(super) fn wait(&self, seen: &Arc<Version>) {
        let background = self.background;
        let left = self.pace.left(self.reads.now());
        let most = if left.is_zero() { CHECK_EVERY } else { left.min(CHECK_EVERY) };
        if background.is_manual() {
            background.run_pending();
            if !left.is_zero() {
                self.reads.clock.sleep(most);
            }
            return;
        }
        background.wait_at_most(most, || !Arc::ptr_eq(&self.tree.version(), seen));
    }

    fn step_at<'v>(
        &self,
        version: &'v Version,
        claimed: &BTreeSet<NodeId>,
        key: &[u8],
    ) -> OptimizeStep<'v> {
        let is_worked_on = |node: &Node| {
            let Some(request) = self.requests.get(&node.id) else { return false };
            if !node.is_leaf() {
                return flushes_of(node) > request.flushes;
            }
            !node.is_optimize_requested() && !claimed.contains(&node.id)
        };
        version.trunk.optimize_at(
            key,
            &OptimizeScope {
                upto: self.upto,
                last_run: self.last_run,
                oldest_snapshot: self.reads.snapshots.oldest(),
                options: self.tree.options().trunk,
                is_worked_on: &is_worked_on,
            },
        )
    }

    /// Whether the key lies before the end of the part.
    fn is_inside(&self, key: &Key) -> bool {
        self.to.as_ref().is_none_or(|to| key < to)
    }

    /// Counts the leaf as done and continues after it.
    fn pass(&mut self, step: &OptimizeStep<'_>) {
        let is_failed = step.next.is_some();
        let is_requested = self.requests.remove(&step.leaf.id).is_some();
        if is_requested {
            step.leaf.withdraw_optimize();
        }
        self.report.leaves += 1;
        self.report.held += u64::from(step.is_held && !is_failed);
        self.report.failed += u64::from(is_failed);
        if let Some(node) = step.next.filter(|_| self.report.failures.len() < FAILURES_NAMED) {
            self.report.failures.push(failed_leaf(step.leaf, node));
        }
        self.report.rewritten += u64::from(is_requested && !is_failed);
        self.at = step.leaf.hi.clone();
    }

    /// Whether all attempts at the node have failed, or the node is known to be damaged.
    fn is_given_up(&self, node: &Node, is_claimed: bool) -> bool {
        if !is_claimed && node.damage().is_some() {
            return true;
        }
        let attempts = self.requests.get(&node.id).map_or(0, |request| request.attempts);
        attempts >= ATTEMPTS && !is_claimed && !node.is_optimize_requested()
    }

    /// Requests work on a node that no job has claimed, unless the node is a leaf that is not due
    /// yet. Returns whether the caller must plan the node. That includes a node with a pending
    /// request, because work that could not begin leaves no plan behind.
    fn request(&mut self, node: &Arc<Node>, is_full: bool) -> bool {
        let is_first = !self.requests.contains_key(&node.id);
        let is_requested = node.is_optimize_requested();
        let waits_for_pace = node.is_leaf() && is_first && !is_requested;
        if waits_for_pace && !self.pace.take(self.reads.now()) {
            return false;
        }
        let new = Request { attempts: 0, flushes: flushes_of(node) };
        let request = self.requests.entry(node.id).or_insert(new);
        if !is_requested {
            request.attempts += u32::from(is_first || !is_full);
            node.request_optimize();
        }
        true
    }

    fn plan(&self, nodes: &[NodeId]) {
        if !nodes.is_empty() {
            let background = self.background;
            replan(&background.jobs, &background.queue, self.tree, nodes);
        }
    }
}

impl Drop for Pass<'_> {
    /// Withdraws the requests whose work has not begun. Work that has begun is completed.
    fn drop(&mut self) {
        let install = self.tree.install.lock();
        let version = self.tree.version();
        let mut nodes = Vec::new();
        version.trunk.for_each(&mut |node| {
            if self.requests.contains_key(&node.id) && node.withdraw_optimize() {
                nodes.push(node.id);
            }
        });
        drop(install);
        self.plan(&nodes);
    }
}

/// Returns the report's entry for `leaf`. `node` is the node that failed: the leaf or a node above
/// it.
fn failed_leaf(leaf: &Node, node: &Node) -> FailedLeaf {
    let why = match node.why_jobs_fail() {
        Some(error) => error.to_string(),
        None => "other work was in its way; try again".into(),
    };
    FailedLeaf { lo: leaf.lo.to_vec(), hi: leaf.hi.as_deref().map(<[u8]>::to_vec), why }
}

fn flushes_of(node: &Node) -> u64 {
    node.hints.flushes.load(Ordering::Relaxed)
}
