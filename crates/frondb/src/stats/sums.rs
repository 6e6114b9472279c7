//! [`Sums`]: values of the parts of a database from which several statistics are taken.

use std::time::Duration;

use frondb_background::{BackgroundStats, Due};
use frondb_cache::RowStats;
use frondb_core::SeqNo;
use frondb_core::sync::atomic::{AtomicU64, Ordering};
use frondb_core::wear::WriteSums;
use frondb_locks::LockCounts;
use frondb_tree::TreeSizes;
use frondb_wal::WalStats;

use crate::open::parts::Parts;

/// Values that are read once for a report and serve several statistics. The time to read them does
/// not depend on the number of trees.
pub(super) struct Sums {
    pub(super) totals: TreeSizes,
    pub(super) cache: frondb_cache::Stats,
    pub(super) rows: RowStats,
    pub(super) ages: Vec<(SeqNo, Duration)>,
    pub(super) locks: LockCounts,
    pub(super) wal: WalStats,
    pub(super) written: WriteSums,
    pub(super) space: frondb_space::Stats,
    pub(super) due: Due,
    pub(super) jobs: BackgroundStats,
}

impl Sums {
    pub(super) fn of(parts: &Parts) -> Self {
        let runs = &parts.runs;
        Self {
            totals: parts.catalog.totals(),
            cache: runs.cache.stats(),
            rows: runs.rows.stats(),
            ages: parts.reads.snapshots.ages(),
            locks: parts.locks.counts(),
            wal: parts.wal.stats(),
            written: parts.wear.since_open(),
            space: runs.space.stats(),
            due: parts.queue.due(),
            jobs: parts.jobs.stats(),
        }
    }
}

pub(super) fn loaded(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// Converts an age to milliseconds; `None` is 0.
pub(super) fn millis(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| age.as_millis() as u64)
}
