//! Reads: gets, cursors, snapshots, estimates, and the checks of all data of a tree.

use frondb_core::Result;
use frondb_core::sync::Arc;
use frondb_tree::estimate::{
    FirstEntries, Precision, RangeEstimate, RangeMessages, count_first, estimate, range_messages,
    split_keys,
};
use frondb_tree::{
    Cursor, CursorOptions, DamagedRange, Snapshot, Tree, VerifyReport, damaged_ranges, get,
    multi_get, verify_tree,
};

use super::Engine;

impl Engine {
    /// The value of `key`: the newest committed one, or the one at snapshot `at`.
    ///
    /// # Errors
    /// `Invalid` for a tree or snapshot of another database; `NotFound` if the tree was dropped;
    /// `Corruption`, `Io`, `Closed`.
    pub fn get(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<Option<Vec<u8>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::get(&self.txns.reads, tree.core(), key, seq))
    }

    /// As [`get`](Self::get), into memory of the caller; see [`get::get_into`].
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_into(
        &self,
        tree: &Tree,
        key: &[u8],
        at: Option<&Snapshot>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::get_into(&self.txns.reads, tree.core(), key, seq, value))
    }

    /// Whether `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn exists(&self, tree: &Tree, key: &[u8], at: Option<&Snapshot>) -> Result<bool> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| get::exists(&self.txns.reads, tree.core(), key, seq))
    }

    /// The values of several keys at one point in time, in the order of `keys`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn multi_get(
        &self,
        tree: &Tree,
        keys: &[&[u8]],
        at: Option<&Snapshot>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let seq = self.check_read(tree, at)?;
        self.health().while_open(|| multi_get(&self.txns.reads, tree.core(), keys, seq))
    }

    /// A cursor over a tree, not yet positioned.
    pub fn cursor(&self, tree: &Tree, options: CursorOptions) -> Result<Cursor> {
        self.check_read(tree, options.snapshot.as_ref())?;
        Ok(Cursor::new(Arc::clone(&self.txns.reads), Arc::clone(tree.core()), options))
    }

    /// A snapshot of everything committed so far.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.txns.snapshot()
    }

    /// An estimate of the contents of `[lo, hi)`, in O(height).
    pub fn estimate(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeEstimate> {
        self.check_read(tree, None)?;
        self.health().while_open(|| {
            // Take the version before the visible SeqNo, as every read does.
            let version = tree.core().version();
            estimate(&version, self.txns.reads.oracle.visible(), lo, hi)
        })
    }

    /// Counts the entries among the first `max_keys` keys of `[lo, hi)`.
    pub fn count_first(
        &self,
        tree: &Tree,
        lo: &[u8],
        hi: Option<&[u8]>,
        max_keys: u64,
        precision: Precision,
    ) -> Result<FirstEntries> {
        self.check_read(tree, None)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(FirstEntries::none());
        }
        self.health().while_open(|| {
            let version = tree.core().version();
            count_first(&version, self.txns.reads.oracle.visible(), lo, hi, max_keys, precision)
        })
    }

    /// The approximate number of messages in `[lo, hi)`, obsolete ones included, from counters
    /// alone.
    pub fn messages(&self, tree: &Tree, lo: &[u8], hi: Option<&[u8]>) -> Result<RangeMessages> {
        self.check_read(tree, None)?;
        if hi.is_some_and(|hi| hi <= lo) {
            return Ok(RangeMessages::default());
        }
        self.health().while_open(|| range_messages(&tree.core().version(), lo, hi))
    }

    /// Up to `parts - 1` keys that cut a tree into parts with about the same number of messages
    /// each, in O(parts * height).
    pub fn split_keys(&self, tree: &Tree, parts: usize) -> Result<Vec<Vec<u8>>> {
        self.check_read(tree, None)?;
        self.health().while_open(|| split_keys(&tree.core().version(), parts))
    }

    /// Reads and checks all data of a tree; see [`verify_tree`]. `progress` gets the bytes done
    /// and the total, and cancels the check by returning false.
    pub fn verify_tree(
        &self,
        tree: &Tree,
        progress: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<VerifyReport> {
        self.check_read(tree, None)?;
        self.health().while_open(|| verify_tree(&self.txns.reads, tree.core(), progress))
    }

    /// Reads all data of a tree and returns its damaged ranges, sorted by first key; they may
    /// overlap. `progress` gets the bytes done and the total.
    ///
    /// # Errors
    /// `Closed`; `NotFound` if the tree was dropped.
    pub fn damaged_ranges(
        &self,
        tree: &Tree,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<DamagedRange>> {
        damaged_ranges(&self.txns.reads, tree, progress)
    }
}
