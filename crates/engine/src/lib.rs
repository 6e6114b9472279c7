//! Layer 5: what ties the parts together into one database.
//!
//! ```text
//!  Engine -> commit -> WAL, memtables        background: flush, merge, rewrite, checkpoint
//!         -> reader, cursor -> versions      recovery: manifest, then WAL
//! ```
//!
//! No part here owns the whole database: each takes the handles it needs from [`Env`].
//! `docs/design/` has a page for each: wal-and-commit, recovery, background-work, cursors.

mod admission;
mod attach;
mod background;
mod batch;
mod batch_locks;
mod blob;
mod bulk;
mod catalog;
mod checkpoint;
mod commit;
mod cursor;
mod engine;
mod env;
mod estimate;
mod files;
mod flush;
mod flush_group;
mod hook;
mod large_values;
mod maintenance;
mod memory;
mod options;
mod pacing;
mod pending;
mod period;
mod pins;
mod plans;
mod prepared;
mod quiesce;
mod read;
mod recovery;
mod relocate;
mod replay;
mod replay_room;
mod salvage;
mod sample;
mod single;
mod split;
mod stats;
mod strata;
mod stretch;
mod sums;
mod survey;
mod throttle;
mod transaction;
mod tree;
mod two_phase;
mod verify;
mod voids;
mod work;

pub use batch::Batch;
pub use bulk::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates,
};
pub use cursor::{Cursor, CursorOptions};
pub use engine::{Engine, LOG_DIR, TreeInfo};
pub use env::Env;
pub use estimate::{RangeEstimate, RangeMessages};
pub use files::{FileInfo, FileKind};
pub use frondb_locks::{
    Canceller, DeadlockInfo, LockInfo, LockMode, Locked, WaitHook, WaitInfo, WaitNotice,
};
pub use frondb_manifest::SUPER_FILE;
pub use frondb_records::TreeOptions;
pub use hook::{CommitHook, CommitInfo};
pub use options::{Durability, EngineOptions, UpdateFns};
pub use read::Snapshot;
pub use recovery::{Damage, Recovery};
pub use salvage::DamagedRange;
pub use sample::FirstEntries;
pub use stats::{EngineStats, TreeStats};
pub use transaction::{
    Committing, Isolation, ReadLock, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions, TransactionInfo, TransactionOptions, Wait,
};
pub use tree::Tree;
pub use verify::VerifyReport;

#[doc(hidden)]
pub mod private;
