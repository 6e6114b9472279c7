//! [`Sums`]: what the rows of the statistics read besides the parts of a database.

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

/// Sums of a part that serve several statistics of a report. The time to compute them does not
/// depend on the number of trees.
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
        let runs = &parts.reads.runs;
        Self {
            totals: parts.catalog.totals(),
            cache: runs.cache.stats(),
            rows: runs.rows.stats(),
            ages: parts.reads.snapshots.ages(),
            locks: parts.locks.counts(),
            wal: parts.log.wal.stats(),
            written: parts.edits.wear.since_open(),
            space: runs.space.stats(),
            due: parts.background.queue.due(),
            jobs: parts.jobs.stats(),
        }
    }
}

/// The value of a counter.
pub(super) fn loaded(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

/// The age of the oldest one in milliseconds; 0 without any.
pub(super) fn millis(age: Option<Duration>) -> u64 {
    age.map_or(0, |age| age.as_millis() as u64)
}
