//! Options, progress and results of a bulk load.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::TreeId;

/// The treatment of several entries of one key in a bulk load.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Duplicates {
    /// One entry wins: of several entries of one writer the last, of entries of several writers
    /// any.
    #[default]
    Replace,
    /// The load fails with `Exists`. Keys that a tree had before the load do not count as
    /// duplicates.
    Fail,
}

/// The options of a bulk load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkOptions {
    /// What to do with several entries of one key. Default `Replace`.
    pub duplicates: Duplicates,
    /// Bytes of memory for sorting, for all writers together. Default 0: a quarter of the memory
    /// budget, divided among the bulk loads and bulk statements in progress.
    pub memory_bytes: u64,
    /// The durability that `BulkLoad::finish` waits for. Default `Sync`.
    pub durability: Durability,
    /// How long `BulkLoad::finish` tries to lock trees on which transactions hold locks. Default 1
    /// minute.
    pub lock_timeout: Duration,
}

impl Default for BulkOptions {
    fn default() -> Self {
        let duplicates = Duplicates::default();
        let lock_timeout = Duration::from_secs(60);
        Self { duplicates, memory_bytes: 0, durability: Durability::Sync, lock_timeout }
    }
}

/// The progress of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkProgress {
    /// Entries merged so far, counted like `total`.
    pub done: u64,
    /// Entries to merge, counted once for each merge that reads them.
    pub total: u64,
}

/// The results of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkReport {
    /// Entries loaded, without duplicates.
    pub entries: u64,
    /// Entries that were dropped as duplicates; not included in `entries`.
    pub duplicates: u64,
    /// Key and value bytes loaded, without large values.
    pub raw_bytes: u64,
    /// Sorted runs that were written to disk because the memory for sorting was full.
    pub sorted_runs: u64,
}

/// A key with several entries in the load.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names and the types of its fields say it")]
pub struct Duplicate {
    pub tree: TreeId,
    pub key: Box<[u8]>,
}
