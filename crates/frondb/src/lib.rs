//! FronDB: a fractal-tree (B-epsilon-tree) storage engine as a library.
//!
//! It is made for data much larger than memory with several indexes. An insert costs a small
//! fraction of an I/O, because messages are buffered high in a tree and move down in large sorted
//! batches. Data is compressed and checksummed, a commit is as durable as its caller asks, and
//! readers and writers do not block each other.
//!
//! ```
//! use frondb::{Batch, Db, Durability, Options, TreeOptions};
//!
//! # fn main() -> frondb::Result<()> {
//! # let dir = frondb_testkit::TempDir::new("doc");
//! # example(dir.path())?;
//! # example(dir.path()) // A program is started more than once.
//! # }
//! # fn example(path: &std::path::Path) -> frondb::Result<()> {
//! let db = Db::open(path, Options::default())?;
//! let users = db.open_or_create_tree("users", TreeOptions::default())?;
//! let by_name = db.open_or_create_tree("users-by-name", TreeOptions::secondary())?;
//!
//! // A row and its index entry, committed together and durable when `write` returns.
//! let mut batch = Batch::new();
//! batch.put(&users, "1", "Ada");
//! batch.put(&by_name, "Ada\x001", "");
//! db.write(&batch, Durability::Sync)?;
//!
//! assert_eq!(users.get("1")?.as_deref(), Some(&b"Ada"[..]));
//! for entry in by_name.range("A".."B")? {
//!     let (key, _) = entry?;
//!     assert_eq!(key, b"Ada\x001");
//! }
//! db.close()
//! # }
//! ```
//!
//! [`mod@tuple`] makes compound keys that sort as their parts do. [`mod@device`] measures a disk.
//!
//! # Threads
//! [`Db`], [`Tree`] and [`Snapshot`] are `Send + Sync` and cheap to clone. A [`Cursor`] or a
//! [`Batch`] belongs to one thread at a time.

mod attachment;
mod backup;
mod bulk;
mod cursor;
mod db;
pub mod device;
mod directory;
mod ends;
mod files;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
mod key_range;
mod open;
mod opening;
mod optimize;
mod options;
mod range;
mod salvage;
mod stats;
mod target;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod testing;
mod transaction;
mod tree;
mod verify;

#[cfg(all(test, not(shuttle)))]
mod tests;

pub use crate::backup::make::BackupReport;
pub use crate::backup::restore::RestoreReport;
pub use crate::backup::verify::BackupContents;
pub use crate::files::{FileInfo, FileKind};
pub use crate::open::recovery::Recovery;
pub use crate::stats::{EngineStats as Stats, Latencies, TreeStats};
pub use attachment::{AttachedStats, AttachedTree, Attachment};
pub use backup::{Backup, BackupOptions};
pub use bulk::{
    BulkLoad, BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates,
};
pub use cursor::{Cursor, CursorOptions};
pub use db::Db;
pub use frondb_background::{FailedLeaf, OptimizeReport};
pub use frondb_block::Codec;
/// ```
/// # use frondb::{Batch, Db, Durability, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// let mut batch = Batch::new();
/// for i in 0..1000u32 {
///     batch.put(&tree, i.to_be_bytes(), "value");
/// }
/// batch.delete_range(&tree, 10u32.to_be_bytes(), Some(&20u32.to_be_bytes()));
/// db.write(&batch, Durability::NoSync)?;
/// assert!(!tree.exists(15u32.to_be_bytes())?);
/// # db.close()
/// # }
/// ```
pub use frondb_commit::Batch;
pub use frondb_commit::{CommitHook, CommitInfo, Durability};
pub use frondb_core::TreeId;
pub use frondb_core::chunk::Entries;
pub use frondb_core::error::{CorruptionPlace, Error, ErrorKind, Result};
pub use frondb_core::events::{Event, EventListener, StallReason};
pub use frondb_core::latency::LatencyStats;
pub use frondb_core::limits;
pub use frondb_core::message::UpdateFn;
pub use frondb_core::profile::ReadProfile;
pub use frondb_core::tuple;
pub use frondb_core::wear::{
    Lifetimes, Wear, WearPage, WriteCause, WriteSums, Writes, Written, lifetime,
};
pub use frondb_locks::{
    Canceller, DeadlockInfo, LockInfo, LockMode, Locked, WaitHook, WaitInfo, WaitNotice,
};
pub use frondb_tree::estimate::{FirstEntries, RangeEstimate, RangeMessages};
pub use frondb_tree::{AsTree, Snapshot, VerifyReport};
pub use frondb_trunk::{FilterPolicy, TrunkOptions};
pub use frondb_txn::{Committing, Isolation, Savepoint, TransactionInfo, Wait};
pub use frondb_wal::SyncMode;
pub use key_range::KeyRange;
pub use optimize::OptimizeOptions;
pub use options::{Options, TreeOptions};
pub use range::Range;
pub use salvage::{DamagedRange, SalvageReport, SalvagedTree};
pub use transaction::{
    BulkStatement, Transaction, TransactionCursor, TransactionCursorOptions, TransactionOptions,
    TransactionRange,
};
pub use tree::Tree;
