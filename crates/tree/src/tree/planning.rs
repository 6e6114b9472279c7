//! Inputs of the background planner that come from a tree.

use frondb_core::SeqNo;
use frondb_core::sync::atomic::Ordering;
use frondb_trunk::Trunk;
use frondb_trunk::plan::Context;

use super::{InstallState, TreeCore};

/// The inputs of the planner that do not belong to the tree itself.
#[derive(Clone, Copy, Debug)]
pub struct PlanLimits {
    /// Bytes of all memtables at which the largest memtable is frozen.
    pub write_buffer_bytes: u64,
    /// SeqNo of the oldest live snapshot; `None` without one.
    pub oldest_snapshot: Option<SeqNo>,
    /// Maximum number of runs that one merge reads.
    pub inputs_max: usize,
}

impl TreeCore {
    /// Returns the planner's context for the tree, whose newest trunk is `trunk`.
    #[must_use]
    pub fn plan_context(&self, trunk: &Trunk, limits: PlanLimits) -> Context {
        // A tree that uses a large part of the write buffer flushes at least this much. A smaller
        // flush, of a few deletes or of a small tree, does not show the best size of a leaf.
        let least = limits.write_buffer_bytes / 8;
        // 0: no flush has brought messages to nodes with data, so the size of slices is unknown.
        // Assume the most that such a flush brings, the write buffer.
        let flush = match self.flush_raw_bytes.load(Ordering::Relaxed) {
            0 => limits.write_buffer_bytes,
            bytes => bytes.max(least),
        };
        Context {
            options: self.options().trunk,
            tree_raw_bytes: trunk.root.totals.raw_bytes,
            flush_raw_bytes: flush,
            value_bytes: self.mean_value_bytes.load(Ordering::Relaxed),
            height: trunk.height(),
            oldest_snapshot: limits.oldest_snapshot,
            inputs_max: limits.inputs_max,
        }
    }

    /// Records the size of a flush for the planner: `raw_bytes` in total, of which `appended` have
    /// larger keys than all older data. Only the difference went to nodes with data.
    pub fn note_flush(&self, raw_bytes: u64, appended: u64) {
        if appended < raw_bytes {
            // Appended data makes no slices.
            let brought = raw_bytes - appended;
            let seen = self.flush_raw_bytes.load(Ordering::Relaxed);
            let next = if seen == 0 { brought } else { (seen * 3 + brought) / 4 };
            self.flush_raw_bytes.store(next.max(1), Ordering::Relaxed);
        }
        self.sequential.store(appended * 10 > raw_bytes * 9, Ordering::Relaxed);
    }

    /// Returns whether more than 9/10 of the bytes of the last flush have larger keys than all
    /// older data.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        self.sequential.load(Ordering::Relaxed)
    }

    /// Copies the mean size of a large value from `install`, for planners that do not hold the
    /// install lock. REQUIRES: the install lock.
    pub fn note_values(&self, install: &InstallState) {
        self.mean_value_bytes.store(install.values.mean_bytes(), Ordering::Relaxed);
    }
}
