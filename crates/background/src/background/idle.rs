//! Idle maintenance: work that is done when there was no commit for the idle timeout.
//!
//! First, plans of the idle priority may run. When no work is due, a worker returns free space of
//! the files, unneeded segments of the log, and freed memory of the process.

use std::time::Duration;

use frondb_core::Result;
use frondb_core::clock::Nanos;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_space::Reclaim;
use frondb_tree::TreeCore;

use super::Background;
use crate::jobs::relocate::move_one;
use crate::planning::plan_all;

/// The idle timeout: the database is idle when it has had no commit for this long.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_millis(1000);

/// Bytes on disk. Idle maintenance does not flush the deletes of a smaller tree. Otherwise each of
/// perhaps tens of thousands of small trees would be rewritten for every deleted row.
const IDLE_FLUSH_BYTES: u64 = 1 << 20;

impl Background {
    /// Allows plans of the idle priority to run, and plans all trees that are not stowed. Does
    /// nothing if such plans are allowed already.
    pub fn begin_idle(&self) {
        if !self.queue.set_idle(true) {
            return;
        }
        // A stowed tree gets no new plans, even if snapshots have ended.
        for tree in self.trees.all().into_iter().filter(|tree| !tree.is_stowed()) {
            if hides_much(&tree) {
                // Merges can free the hidden data only after a flush, and without further writes
                // nothing else causes that flush.
                self.freeze(&tree);
            }
            // Find plans that became possible when a snapshot ended.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Plans the work that frees deleted large values, without waiting for the idle timeout.
    pub fn plan_values(&self) {
        let has_values = |tree: &Arc<TreeCore>| !tree.install.lock().values.is_empty();
        for tree in self.trees.all().into_iter().filter(has_values) {
            if hides_much(&tree) {
                self.freeze(&tree);
            }
            // Find plans that became possible when a snapshot ended.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Whether the last commit was at least the idle timeout ago.
    pub(crate) fn is_idle(&self) -> bool {
        let last = Nanos(self.last_commit.load(Ordering::Relaxed));
        self.reads.now().since(last) >= IDLE_TIMEOUT
    }

    /// Returns resources to the system that a busy database keeps for reuse: free space of the
    /// files, unneeded segments of the log, freed memory of the process.
    pub fn idle_maintenance(&self) {
        self.idle_work_done.store(true, Ordering::Release);
        self.reads.cursors.unpin_all_old(self.reads.now());
        // Call twice, because a call stows only trees that were not used since the previous call.
        self.stow_unused();
        self.stow_unused();
        let result = self.return_space();
        if let Err(error) = result.and_then(|()| self.return_log()) {
            self.fail(&error);
        }
        frondb_block::codec::trim_contexts();
        frondb_core::mem::trim();
    }

    /// Returns free space to the file system: moves runs away from the ends of mostly free files,
    /// then truncates files and punches holes. Stops at the next commit, except during a close.
    fn return_space(&self) -> Result<()> {
        while let Some(tail) = self.space.tail_move_wanted() {
            let goes_on = self.is_idle() || self.health.is_closed();
            if !goes_on
                || !self.edits.manifest.has_reserve()
                || !move_one(&self.jobs, &self.queue, tail)?
            {
                break;
            }
        }
        while self.space.reclaim_step(Reclaim::Idle)? {
            if !self.is_idle() && !self.health.is_closed() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the active memtable is worth a flush in an idle database: if it may hide many bytes of
/// large values, or if the tree is not small and the memtable has a range delete or deletes at
/// least a sixteenth of the entries on disk.
fn hides_much(tree: &TreeCore) -> bool {
    let Some(version) = tree.open_version() else { return false };
    let memtable = &version.active.memtable;
    let totals = version.trunk.root.totals;
    let part_of_all = |messages: u64| messages * 16 >= totals.entries;
    let ranges = memtable.range_delete_count() > 0;
    if memtable.is_empty() {
        return false;
    }
    let deletes_much = ranges || part_of_all(memtable.deletes());
    if deletes_much && totals.disk_bytes >= IDLE_FLUSH_BYTES {
        return true;
    }
    // Large values are outside of runs, so `disk_bytes` does not include them, and any message may
    // hide a large value.
    let value_bytes = version.active.value_bytes();
    let writes_much = ranges || part_of_all(memtable.len());
    value_bytes >= IDLE_FLUSH_BYTES || writes_much && tree.value_bytes() >= IDLE_FLUSH_BYTES
}
