//! Freezing memtables.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::tombstones::TombstoneCheck;
use frondb_tree::{MemSource, TreeCore, is_flush_paid};

use super::Background;
use crate::background::admission::CHECK_EVERY;
use crate::jobs::flush::frees_space;

/// Range deletes above which a memtable is frozen. Its flush then leads to rewrites of the nodes
/// below, which free space.
const RANGE_DELETES_MAX: u64 = 1000;

/// Bytes of large values above which the memtable that refers to them is frozen. The messages alone
/// are small: without this limit, a write buffer would refer to gigabytes of large values before a
/// flush freed the overwritten and deleted ones.
const VALUE_BYTES_MAX: u64 = 64 << 20;

impl Background {
    /// Freezes memtables by rule 4: the largest of all trees, while the active memtables fill the
    /// write buffer.
    pub fn freeze_if_full(&self) {
        let buffer = self.shares.now().write_buffer_bytes();
        while self.account.active_bytes() >= buffer {
            match self.trees.largest() {
                Some(tree) if self.freeze(&tree) => {}
                _ => break,
            }
        }
    }

    /// Freezes the active memtable of a tree after a commit if the memtable is large for a
    /// sequential tree, is known to hold a tombstone run (rule 15), or has many range deletes or
    /// many bytes of large values. If the memtable may hold a tombstone run, requests a search for
    /// it.
    pub(crate) fn freeze_if_large(&self, tree: &Arc<TreeCore>, active: &Arc<MemSource>) {
        let memtable = &active.memtable;
        let early = tree.is_sequential() && memtable.bytes() >= self.sequential_bytes_max();
        let check = tree.tombstone_search.check(memtable);
        let tombstone_run = check == TombstoneCheck::Freeze;
        let many = memtable.range_delete_count() > RANGE_DELETES_MAX;
        let large = active.value_bytes() > VALUE_BYTES_MAX;
        if early || tombstone_run || many || large {
            if tombstone_run {
                self.wait_tombstone_compaction(tree);
            }
            self.freeze_source(tree, active);
        } else if matches!(check, TombstoneCheck::Search | TombstoneCheck::SearchAndWait) {
            self.queue.add_search(tree);
            if check == TombstoneCheck::SearchAndWait {
                self.wait_for(tree, || self.queue.wait_searched(tree.id, CHECK_EVERY));
            }
        }
    }

    /// Returns the size from which the memtable of a sequential tree is large: at most what a flush
    /// drains in half a second, so that a slow codec does not make commits wait longer.
    fn sequential_bytes_max(&self) -> u64 {
        let buffer = self.shares.now().write_buffer_bytes();
        let drained = self.pacing.half_second_bytes().unwrap_or(u64::MAX);
        drained.clamp((1 << 20).min(buffer / 8), buffer / 8)
    }

    /// Searches the active memtable of a tree for a tombstone run, and freezes the memtable if it
    /// holds one. While an earlier tombstone run of the tree is being compacted, the memtable is
    /// not frozen (rule 15); instead the next commit to the tree waits, and the search is repeated
    /// after the compaction.
    pub(crate) fn search_tombstone_runs(&self, tree: &Arc<TreeCore>) {
        let version = tree.version();
        if tree.is_dropped() || !tree.tombstone_search.search(&version) {
            return;
        }
        if self.queue.add_search_after_compaction(tree) {
            tree.tombstone_search.found_run();
        } else {
            self.freeze_source(tree, &version.active);
        }
    }

    /// Freezes the active memtable of a tree if scans have spent as much time on reading that
    /// memtable as its flush costs, and the cache has room for its data. On a full disk the
    /// memtable stays active: a frozen memtable that adds data would delay later memtables that
    /// free space.
    pub(crate) fn freeze_if_paid(&self, tree: &Arc<TreeCore>) {
        let active = Arc::clone(&tree.version().active);
        if is_flush_paid(&self.reads, &active.memtable) && self.health.full().is_none() {
            self.freeze_source(tree, &active);
        }
    }

    /// Waits until the earlier tombstone run of the tree is compacted, before the caller freezes
    /// another one. So a reader skips at most two tombstone runs (rule 15).
    fn wait_tombstone_compaction(&self, tree: &Arc<TreeCore>) {
        self.wait_for(tree, || self.queue.wait_compacted(tree.id, CHECK_EVERY));
    }

    /// Calls `is_done`, which waits for a short time itself, until it returns `true`. Gives up if
    /// the database is closed or poisoned, the disk is full or the tree is dropped. Without
    /// background threads, does the work that is due instead.
    pub(crate) fn wait_for(&self, tree: &TreeCore, is_done: impl Fn() -> bool) {
        if self.is_manual() {
            self.run_pending();
            return;
        }
        while !is_done() {
            if self.health.check().is_err() || self.health.full().is_some() || tree.is_dropped() {
                return;
            }
        }
    }

    /// Freezes the largest memtable that has mostly deletes, so that it is flushed although it is
    /// small. Does nothing while such a memtable is frozen already: many flushes of a few deletes
    /// each would fill the disk with metadata.
    pub fn freeze_deletes(&self) {
        let trees = self.trees.all();
        let open = || trees.iter().filter_map(|tree| Some((tree, tree.open_version()?)));
        if open().any(|(_, version)| frees_space(&version.frozen)) {
            return;
        }
        let deletes = open().filter(|(_, version)| version.active.frees_space());
        if let Some((tree, _)) = deletes.max_by_key(|(_, version)| version.active.memtable.bytes())
        {
            self.freeze(tree);
        }
    }

    /// Freezes as [`freeze`](Self::freeze) does, but only if `source` still is the active memtable.
    fn freeze_source(&self, tree: &Arc<TreeCore>, source: &Arc<MemSource>) {
        let froze = self
            .committer
            .exclusive(|_| Arc::ptr_eq(&tree.version().active, source) && tree.freeze());
        if froze {
            self.queue.add_flush(tree);
        }
    }

    /// Freezes the active memtable of a tree and requests its flush. Returns `false` if the
    /// memtable is empty.
    pub fn freeze(&self, tree: &Arc<TreeCore>) -> bool {
        let froze = self.committer.exclusive(|_| tree.freeze());
        if froze {
            self.queue.add_flush(tree);
        }
        froze
    }

    /// Freezes every active memtable of more than `above` bytes.
    pub fn freeze_all(&self, above: u64) {
        for tree in self.trees.all() {
            if tree.active_bytes() > above {
                self.freeze(&tree);
            }
        }
    }

    /// Requests flushes for the trees to which a commit attached runs.
    pub fn flush_attached(&self, trees: &[Arc<TreeCore>]) {
        trees.iter().for_each(|tree| self.queue.add_flush(tree));
        if self.is_manual() && !trees.is_empty() {
            self.run_pending();
        }
    }

    /// Freezes all memtables and waits until they are flushed.
    ///
    /// # Errors
    /// As [`wait_flushed`](Self::wait_flushed).
    pub fn flush(&self) -> Result<()> {
        self.freeze_all(0);
        self.wait_flushed()
    }
}
