//! Layer 10: an open database, made of the parts that the layers below provide.
//!
//! ```text
//!  Engine -> txn -> background, catalog -> commit, tree     calls of the user
//!  open   -> recovery: manifest, then log -> parts          each part gets the handles it needs
//! ```
//!
//! [`Engine`] opens, closes and exposes the database; the crate also has recovery and statistics.
//! No type below [`Engine`] holds the whole database. `docs/design/` describes the parts in
//! wal-and-commit, recovery, background-work, cursors and transactions.

mod backup;
mod damage;
mod engine;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod layout;
mod manifest_state;
mod memory;
mod options;
mod parts;
mod period;
mod process_memory;
mod recovery;
mod replay;
mod stats;
mod survey;
mod transactions;
mod wear;

pub use backup::{
    Backup, BackupContents, BackupOptions, BackupReport, RestoreReport, restore, verify_backup,
};
pub use damage::Damage;
pub use engine::{Engine, TreeInfo};
pub use files::{FileInfo, FileKind};
pub use frondb_background::{FailedLeaf, OptimizeOptions, OptimizeReport};
pub use frondb_catalog::UpdateFns;
pub use frondb_commit::{Batch, CommitHook, CommitInfo, Durability};
pub use frondb_locks::{
    Canceller, DeadlockInfo, LockInfo, LockMode, Locked, WaitHook, WaitInfo, WaitNotice,
};
pub use frondb_manifest::SUPER_FILE;
pub use frondb_records::TreeOptions;
pub use frondb_tree::estimate::{FirstEntries, Precision, RangeEstimate, RangeMessages};
pub use frondb_tree::{Cursor, CursorOptions, DamagedRange, Snapshot, Tree, VerifyReport};
pub use frondb_txn::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkStatement, BulkWriter, Committing,
    Duplicate, Duplicates, Isolation, ReadLock, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions, TransactionInfo, TransactionOptions, Wait,
};
pub use layout::LOG_DIR;
pub use options::EngineOptions;
pub use recovery::Recovery;
pub use stats::{EngineStats, Latencies, TreeStats};

#[cfg(all(test, not(shuttle)))]
#[path = "../tests/attach/mod.rs"]
mod attach_tests;

#[cfg(all(test, not(shuttle)))]
#[path = "../tests/rules/mod.rs"]
mod rule_tests;
