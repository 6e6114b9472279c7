//! [`ReadContext`]: what reads take beside the tree that they read.

use frondb_core::NodeId;
use frondb_core::budget::Budget;
use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_locks::{SeqOracle, Snapshots};
use frondb_run::RunEnv;

use crate::cursor::Cursors;
use crate::health::Health;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;

/// What reads take beside the tree that they read. One for an open database; any thread may use it.
pub struct ReadContext {
    /// Tells handles of several open databases apart.
    pub engine: u64,
    /// Space and cache, as runs use them.
    pub runs: Arc<RunEnv>,
    /// The one memory budget.
    pub budget: Arc<Budget>,
    /// What is visible.
    pub oracle: Arc<SeqOracle>,
    /// Live snapshots.
    pub snapshots: Arc<Snapshots>,
    /// Cursors, and what they pin.
    pub cursors: Cursors,
    /// Time.
    pub clock: SharedClock,
    /// Whether the database takes calls.
    pub health: Arc<Health>,
    /// Counts reads.
    pub counters: ReadCounters,
    /// Takes what readers notice of the shape of a tree.
    pub hints: Arc<dyn HintSink>,
}

impl ReadContext {
    /// A snapshot of everything committed so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.snapshots.take(), self.engine)
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }
}

/// Takes hints of readers: a node has become worth planning anew, since reading it was expensive. A
/// reader posts and goes on; it plans nothing.
pub trait HintSink: Send + Sync {
    /// A reader has changed the compaction hints of this node of `tree`.
    fn post(&self, tree: &Arc<TreeCore>, node: NodeId);
}

/// Counts reads since the database was opened.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Point lookups that found a value.
    gets: AtomicU64,
    /// Point lookups that did not, or asked for existence only.
    checks: AtomicU64,
    /// Positionings of cursors.
    seeks: AtomicU64,
    /// Deletes that cursors stepped over.
    tombstones_skipped: AtomicU64,
}

impl ReadCounters {
    #[inline]
    pub(crate) fn add_gets(&self, found: u64, missed: u64) {
        if found > 0 {
            self.gets.fetch_add(found, Ordering::Relaxed);
        }
        if missed > 0 {
            self.checks.fetch_add(missed, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn add_seek(&self) {
        self.seeks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_tombstones(&self, skipped: u64) {
        self.tombstones_skipped.fetch_add(skipped, Ordering::Relaxed);
    }

    /// Point lookups.
    #[must_use]
    pub fn gets(&self) -> u64 {
        self.gets.load(Ordering::Relaxed) + self.checks.load(Ordering::Relaxed)
    }

    /// Positionings of cursors.
    #[must_use]
    pub fn seeks(&self) -> u64 {
        self.seeks.load(Ordering::Relaxed)
    }

    /// Deletes that cursors stepped over.
    #[must_use]
    pub fn tombstones_skipped(&self) -> u64 {
        self.tombstones_skipped.load(Ordering::Relaxed)
    }

    /// Reads that found something, about.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.gets.load(Ordering::Relaxed) + self.seeks.load(Ordering::Relaxed)
    }
}
