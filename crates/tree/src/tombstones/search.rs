//! [`TombstoneSearch`]: when a tree's active memtable is searched for tombstone runs (rule 15).
//!
//! A commit checks counters, and requests a search if, by these counters, the memtable may hold a
//! tombstone run. A worker searches, because a search visits leaves and may read block indexes, and
//! freezes the memtable if it holds a run. A commit waits only in two cases: the memtable must be
//! frozen while an earlier run of the tree is still being compacted, or an earlier search is
//! overdue.

use frondb_core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use frondb_memtable::Memtable;
use frondb_trunk::plan::{TOMBSTONE_RUN, TRUNCATION_RUN};

use super::runs::TombstoneRuns;
use crate::version::Version;

/// Minimum number of deletes that are inserted into a memtable between two searches.
const SEARCH_EVERY: u64 = TRUNCATION_RUN / 4;

/// Number of deletes that a memtable may receive while a search of it waits for a worker.
const UNSEARCHED_MAX: u64 = TOMBSTONE_RUN / 4;

/// What a commit has to do about the deletes in the active memtable of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TombstoneCheck {
    /// Nothing: the memtable holds no tombstone run, or has got few deletes since the last request
    /// of a search.
    Nothing,
    /// Request a search, because the memtable may hold a tombstone run.
    Search,
    /// Request a search and wait for it: the previous request is overdue, and without a wait the
    /// memtable could get more deletes than rule 15 lets a reader step over.
    SearchAndWait,
    /// Freeze the memtable, so that it is flushed immediately.
    Freeze,
}

/// Records when the active memtable of a tree was last searched for tombstone runs, and the result.
#[derive(Default, Debug)]
pub struct TombstoneSearch {
    /// Number of deletes in the active memtable when a search was last requested.
    requested: AtomicU64,
    /// Number of deletes in the active memtable when the search that has not ended was first
    /// requested; 0 if there is none.
    waiting_since: AtomicU64,
    /// Whether a search found a tombstone run and left the memtable to be frozen later.
    found: AtomicBool,
}

impl TombstoneSearch {
    /// Checks the active memtable of a tree by its counters alone. Cheap enough to call after every
    /// commit: reads nothing from disk and visits no node.
    pub fn check(&self, memtable: &Memtable) -> TombstoneCheck {
        if memtable.hidden() > TOMBSTONE_RUN && memtable.len() > TOMBSTONE_RUN {
            // Messages that a range delete hides cost a reader nothing in runs, where it skips them
            // without reading, but in the range delete's own memtable it steps over each of them.
            return TombstoneCheck::Freeze;
        }
        let shortest = if mostly_deletes(memtable) { TRUNCATION_RUN } else { TOMBSTONE_RUN };
        // An upper bound of the length: the memtable has no information about the leaves.
        if memtable.tombstone_run() <= shortest {
            // The values recorded for an older memtable do not apply to a new one.
            self.requested.store(0, Ordering::Relaxed);
            self.waiting_since.store(0, Ordering::Relaxed);
            self.found.store(false, Ordering::Relaxed);
            return TombstoneCheck::Nothing;
        }
        if self.found.load(Ordering::Relaxed) {
            return TombstoneCheck::Freeze;
        }
        let (deletes, requested) = (memtable.deletes(), self.requested.load(Ordering::Relaxed));
        // A search visits all leaves, so the interval grows with the number of deletes.
        let interval = (requested / 8).clamp(SEARCH_EVERY, TOMBSTONE_RUN / 4);
        if deletes.saturating_sub(requested) < interval {
            return TombstoneCheck::Nothing;
        }
        self.requested.store(deletes, Ordering::Relaxed);
        let since = self.waiting_since.load(Ordering::Relaxed);
        if since == 0 {
            self.waiting_since.store(deletes, Ordering::Relaxed);
        } else if deletes.saturating_sub(since) > UNSEARCHED_MAX {
            return TombstoneCheck::SearchAndWait;
        }
        TombstoneCheck::Search
    }

    /// Searches the active memtable of a version. Returns whether the memtable should be flushed
    /// immediately because of a tombstone run. May read block indexes from disk, so the caller must
    /// hold no lock, and a commit never calls it.
    pub fn search(&self, version: &Version) -> bool {
        let memtable = &version.active.memtable;
        let found = TombstoneRuns::find(&version.trunk.root, memtable);
        self.waiting_since.store(0, Ordering::Relaxed);
        found.should_flush(mostly_deletes(memtable))
    }

    /// Notes that the active memtable holds a tombstone run and cannot be frozen yet. The next
    /// commit waits until the memtable can be frozen.
    pub fn found_run(&self) {
        self.found.store(true, Ordering::Relaxed);
    }
}

/// Returns whether at least three of four messages are deletes. Otherwise an early flush would
/// write the other messages in small runs too: where rows are inserted at one end and deleted at
/// the other, the base would fill with such runs.
fn mostly_deletes(memtable: &Memtable) -> bool {
    memtable.deletes() * 4 >= memtable.len() * 3
}

#[cfg(test)]
mod tests {
    use frondb_core::budget::Budget;

    use super::super::testing::delete;
    use super::*;

    /// Returns a memtable with this many deletes.
    fn memtable(deletes: u64) -> Memtable {
        let memtable = Memtable::new(Budget::new(1 << 30));
        delete(&memtable, deletes);
        memtable
    }

    #[test]
    fn a_search_is_requested_again_after_some_deletes() {
        let search = TombstoneSearch::default();
        let memtable = memtable(TRUNCATION_RUN);
        assert_eq!(search.check(&memtable), TombstoneCheck::Nothing, "the run is too short");
        delete(&memtable, 1);
        assert_eq!(search.check(&memtable), TombstoneCheck::Search);
        assert_eq!(search.check(&memtable), TombstoneCheck::Nothing);
        delete(&memtable, SEARCH_EVERY - 1);
        assert_eq!(search.check(&memtable), TombstoneCheck::Nothing);
        delete(&memtable, 1);
        assert_eq!(search.check(&memtable), TombstoneCheck::Search);
    }

    #[test]
    fn a_commit_waits_for_an_overdue_search() {
        let search = TombstoneSearch::default();
        // However large a commit is, the search that it requests is the first.
        let memtable = memtable(3 * TOMBSTONE_RUN);
        assert_eq!(search.check(&memtable), TombstoneCheck::Search);
        search.waiting_since.store(0, Ordering::Relaxed);
        delete(&memtable, UNSEARCHED_MAX);
        assert_eq!(search.check(&memtable), TombstoneCheck::Search, "the first one has ended");
        delete(&memtable, UNSEARCHED_MAX);
        assert_eq!(search.check(&memtable), TombstoneCheck::Search, "not yet overdue");
        delete(&memtable, UNSEARCHED_MAX);
        assert_eq!(search.check(&memtable), TombstoneCheck::SearchAndWait);
    }

    #[test]
    fn a_run_that_was_found_is_frozen_by_the_next_commit() {
        let search = TombstoneSearch::default();
        search.found_run();
        let full = memtable(TRUNCATION_RUN + 1);
        assert_eq!(search.check(&full), TombstoneCheck::Freeze);
        assert_eq!(search.check(&memtable(1)), TombstoneCheck::Nothing, "a new memtable");
        assert_eq!(search.check(&full), TombstoneCheck::Search);
    }
}
