//! What is done when nothing is written.

use std::time::Duration;

use frondb_core::Result;
use frondb_core::clock::Nanos;
use frondb_core::sync::Arc;
use frondb_core::sync::atomic::Ordering;
use frondb_space::Reclaim;
use frondb_tree::TreeCore;

use crate::background::Background;
use crate::jobs::relocate::move_one;
use crate::planning::plan_all;

/// After this long without a commit, idle work is done.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_millis(1000);

/// A tree must have more than this on disk for its deletes to be flushed before their time: tens of
/// thousands of small trees should not be written again for every row that goes.
const IDLE_FLUSH_BYTES: u64 = 1 << 20;

impl Background {
    /// Lets idle work in, if it was not.
    pub fn begin_idle(&self) {
        if !self.queue.set_idle(true) {
            return;
        }
        for tree in self.jobs.trees.all() {
            if hides_much(&tree) {
                // Space comes back although nothing more is written.
                self.freeze(&tree);
            }
            // What only the end of a snapshot made possible is found now.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Finds what gives back deleted large values, as idle work does.
    pub fn plan_values(&self) {
        let has_values = |tree: &Arc<TreeCore>| !tree.install.lock().values.is_empty();
        for tree in self.jobs.trees.all().into_iter().filter(has_values) {
            if hides_much(&tree) {
                self.freeze(&tree);
            }
            // What only the end of a snapshot made possible.
            plan_all(&self.jobs, &self.queue, &tree);
        }
    }

    /// Whether nothing was committed for a while.
    pub(crate) fn is_idle(&self) -> bool {
        let last = Nanos(self.last_commit.load(Ordering::Relaxed));
        self.jobs.now().since(last) >= IDLE_TIMEOUT
    }

    /// Gives back what a busy engine keeps: free space, spare segments, freed memory.
    pub fn idle_maintenance(&self) {
        self.idle_work_done.store(true, Ordering::Release);
        self.jobs.reads.cursors.unpin_all_old(self.jobs.now());
        let result = self.return_space();
        if let Err(error) = result.and_then(|()| self.jobs.log.wal.trim_spares()) {
            self.fail(&error);
        }
        frondb_core::mem::trim();
    }

    fn return_space(&self) -> Result<()> {
        while let Some(tail) = self.jobs.reads.runs.space.tail_move_wanted() {
            let goes_on = self.is_idle() || self.health().is_closed();
            if !goes_on
                || !self.jobs.edits.manifest.has_reserve()
                || !move_one(&self.jobs, &self.queue, tail)?
            {
                break;
            }
        }
        while self.jobs.reads.runs.space.reclaim_step(Reclaim::Idle)? {
            if !self.is_idle() && !self.health().is_closed() {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the active memtable hides a good part of what is on disk.
fn hides_much(tree: &TreeCore) -> bool {
    let version = tree.version();
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
    // Large values have their bytes elsewhere, and any message may be one that hides one.
    let in_memtable = version.active.value_bytes();
    let writes_much = ranges || part_of_all(memtable.len());
    in_memtable >= IDLE_FLUSH_BYTES || writes_much && tree.value_bytes() >= IDLE_FLUSH_BYTES
}
