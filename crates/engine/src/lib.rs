//! Layer 5: what ties the parts together into one database.
//!
//! ```text
//!  Engine -> commit -> WAL, memtables        background: flush, merge, rewrite, checkpoint
//!         -> reader, cursor -> versions      recovery: manifest, then WAL
//! ```
//!
//! No part here owns the whole database: each takes the handles it needs from [`Env`].
//! `docs/design/` has a page for each: wal-and-commit, recovery, background-work, cursors.

mod batch_locks;
mod bulk;
mod catalog;
mod engine;
mod env;
mod files;
mod maintenance;
mod memory;
mod options;
mod period;
mod prepared;
mod quiesce;
mod recovery;
mod replay;
mod stats;
mod survey;
mod transaction;
mod two_phase;

pub use bulk::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates,
};
pub use engine::{Engine, LOG_DIR, TreeInfo};
pub use env::Env;
pub use files::{FileInfo, FileKind};
pub use frondb_commit::{Batch, CommitHook, CommitInfo, Durability};
pub use frondb_locks::{
    Canceller, DeadlockInfo, LockInfo, LockMode, Locked, WaitHook, WaitInfo, WaitNotice,
};
pub use frondb_manifest::SUPER_FILE;
pub use frondb_records::TreeOptions;
pub use frondb_tree::estimate::{FirstEntries, RangeEstimate, RangeMessages};
pub use frondb_tree::{Cursor, CursorOptions, DamagedRange, Snapshot, Tree, VerifyReport};
pub use options::{EngineOptions, UpdateFns};
pub use recovery::{Damage, Recovery};
pub use stats::{EngineStats, TreeStats};
pub use transaction::{
    Committing, Isolation, ReadLock, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions, TransactionInfo, TransactionOptions, Wait,
};

#[doc(hidden)]
pub mod private;
