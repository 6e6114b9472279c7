//! Options, progress and results of a bulk load.

use std::time::Duration;

use frondb_commit::Durability;
use frondb_core::TreeId;

/// What a load does with duplicate keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Duplicates {
    /// The last entry of a writer wins; between several writers any entry may win.
    #[default]
    Replace,
    /// The load fails with `Exists`. Keys that a tree had before the load are no duplicates.
    Fail,
}

/// The options of a bulk load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkOptions {
    /// What to do with duplicate keys. Default `Replace`.
    pub duplicates: Duplicates,
    /// Memory for sorting in all writers together, bytes. Default 0: a quarter of the memory
    /// budget.
    pub memory_bytes: u64,
    /// The durability that `BulkLoad::finish` waits for. Default `Sync`.
    pub durability: Durability,
    /// How long `BulkLoad::finish` tries to lock trees on which transactions hold locks.
    /// Default one minute.
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
    /// Entries merged so far.
    pub done: u64,
    /// Entries to merge in all passes.
    pub total: u64,
}

/// The results of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BulkReport {
    /// Entries loaded, without duplicates.
    pub entries: u64,
    /// Duplicate entries that were dropped; not counted in `entries`.
    pub duplicates: u64,
    /// Bytes of loaded keys and values, without large values.
    pub raw_bytes: u64,
    /// Sorted runs written to the disk because the memory for sorting was full.
    pub sorted_runs: u64,
}

/// A duplicate key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Duplicate {
    /// The tree.
    pub tree: TreeId,
    /// The key.
    pub key: Box<[u8]>,
}
