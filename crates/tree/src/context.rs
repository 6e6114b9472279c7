//! [`ReadContext`]: the parts of the open database that a read uses besides its tree.

use frondb_core::budget::Budget;
use frondb_core::clock::{Nanos, SharedClock};
use frondb_core::latency::{Latency, is_sampled};
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::{Error, NodeId, Result, SeqNo};
use frondb_locks::{SeqOracle, Snapshots};
use frondb_run::RunEnv;

use crate::health::Health;
use crate::pins::Cursors;
use crate::snapshot::Snapshot;
use crate::tree::TreeCore;

/// The parts of the open database that a read uses besides its tree. An open database has one
/// context. Any thread may use it.
pub struct ReadContext {
    /// The number of the open database, which distinguishes the handles of several databases.
    pub engine: u64,
    /// The data files and the block cache, as runs use them.
    pub runs: Arc<RunEnv>,
    /// The memory budget of the database.
    pub budget: Arc<Budget>,
    /// Knows which commits are visible.
    pub oracle: Arc<SeqOracle>,
    /// The live snapshots.
    pub snapshots: Arc<Snapshots>,
    /// The open cursors with the versions that they pin.
    pub cursors: Cursors,
    /// The clock of the database.
    pub clock: SharedClock,
    /// Whether the database accepts calls.
    pub health: Arc<Health>,
    /// Counts reads, for statistics.
    pub counters: ReadCounters,
    /// Receives hints about nodes that are expensive to read.
    pub hints: Arc<dyn HintSink>,
}

impl ReadContext {
    /// Checks that `tree` can be read, and at the snapshot `at` if there is one. Returns the SeqNo
    /// of that snapshot.
    ///
    /// # Errors
    /// `Closed`; `NotFound` if the tree was dropped or is still being loaded; `Invalid` for a tree
    /// or snapshot of another database.
    pub fn check_read(&self, tree: &Arc<TreeCore>, at: Option<&Snapshot>) -> Result<Option<SeqNo>> {
        self.health.check_open()?;
        tree.check(self.engine)?;
        match at {
            Some(snapshot) if snapshot.engine_id() != self.engine => {
                Err(Error::invalid("the snapshot belongs to another open database"))
            }
            at => Ok(at.map(Snapshot::seq)),
        }
    }

    /// Returns a snapshot that sees every commit that is visible now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.snapshots.take(), self.engine)
    }

    /// Returns the time of the database's clock.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Returns the nanoseconds of the database's clock since `begun`.
    #[must_use]
    pub fn nanos_since(&self, begun: Nanos) -> u64 {
        self.now().since(begun).as_nanos() as u64
    }

    /// Returns the time at which a lookup begins; `None` unless this lookup is sampled for its
    /// latency.
    #[inline]
    pub(crate) fn begin_get(&self) -> Option<Nanos> {
        self.counters.times_next_get().then(|| self.now())
    }

    #[inline]
    pub(crate) fn end_get(&self, begun: Option<Nanos>) {
        if let Some(begun) = begun {
            self.counters.get_latency.add_sampled(self.nanos_since(begun));
        }
    }
}

/// Receives compaction hints from readers. A reader that finds a node expensive to read posts the
/// node and continues; background work later decides whether to compact it.
pub trait HintSink: Send + Sync {
    /// Called after a reader has changed the compaction hints of `node`, because a plan for the
    /// node may now be due, or if a flush of the active memtable is due
    /// ([`is_flush_paid`](crate::is_flush_paid)). Must return quickly: readers call it between two
    /// entries.
    fn post(&self, tree: &Arc<TreeCore>, node: NodeId);
}

/// Counts reads since the database was opened.
#[derive(Debug, Default)]
pub struct ReadCounters {
    /// Point lookups that found a value.
    gets: AtomicU64,
    /// Point lookups that found no value, and calls that only check whether a key exists.
    checks: AtomicU64,
    /// Seeks of cursors.
    seeks: AtomicU64,
    /// Deletes that cursors stepped over.
    tombstones_skipped: AtomicU64,
    /// Latencies of a sample of the lookups.
    pub get_latency: Latency,
    /// Latencies of a sample of the seeks.
    pub seek_latency: Latency,
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

    /// Counts a seek. Returns whether its latency is sampled.
    #[inline]
    pub(crate) fn add_seek(&self) -> bool {
        is_sampled(self.seeks.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns whether the latency of the next lookup is sampled.
    #[inline]
    fn times_next_get(&self) -> bool {
        is_sampled(self.gets())
    }

    pub(crate) fn add_tombstones(&self, skipped: u64) {
        self.tombstones_skipped.fetch_add(skipped, Ordering::Relaxed);
    }

    /// Returns the number of point lookups, with and without a result.
    #[must_use]
    pub fn gets(&self) -> u64 {
        self.gets.load(Ordering::Relaxed) + self.checks.load(Ordering::Relaxed)
    }

    /// Returns the number of seeks of cursors, `first` and `last` included.
    #[must_use]
    pub fn seeks(&self) -> u64 {
        self.seeks.load(Ordering::Relaxed)
    }

    /// Returns the number of deletes that cursors stepped over.
    #[must_use]
    pub fn tombstones_skipped(&self) -> u64 {
        self.tombstones_skipped.load(Ordering::Relaxed)
    }

    /// Returns about how many reads found an entry: lookups with a result, and all seeks.
    #[must_use]
    pub fn found(&self) -> u64 {
        self.gets.load(Ordering::Relaxed) + self.seeks.load(Ordering::Relaxed)
    }
}
