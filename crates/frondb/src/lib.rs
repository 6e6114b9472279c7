//! FronDB: a fractal-tree (B-epsilon-tree) storage engine as a library.
//!
//! FronDB is made for data that is much larger than memory and has several indexes. An insert costs
//! a small fraction of an I/O, because messages are buffered high in a tree and move down in large
//! sorted batches. Data is compressed and checksummed, a commit is as durable as its caller asks,
//! and readers and writers do not block each other.
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
//! [`Batch`] belongs to one thread at a time. A task that must not wait for the device calls
//! [`Tree::get_async`], [`Tree::range_async`] or [`Db::sync_async`], under any runtime.

mod async_calls;
mod async_range;
mod attachment;
mod backup;
mod bulk;
mod db;
pub mod device;
mod directory;
mod files;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
mod open;
mod opening;
mod optimize;
mod options;
mod pending;
mod readers;
mod salvage;
#[cfg(doctest)]
mod serde_examples;
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
pub use async_range::AsyncRange;
pub use attachment::{AttachedStats, AttachedTree, Attachment};
pub use backup::{Backup, BackupOptions};
pub use bulk::BulkLoad;
pub use db::Db;
/// How much of a tree [`Tree::optimize`] works on, and how fast.
///
/// ```
/// let half_at_night = frondb::OptimizeOptions::new().fraction(0.5).leaves_per_second(10);
/// # let _ = half_at_night;
/// ```
#[doc(inline)]
pub use frondb_background::OptimizeOptions;
#[doc(inline)]
pub use frondb_background::{FailedLeaf, OptimizeReport};
#[doc(inline)]
pub use frondb_block::Codec;
/// A group of writes for [`Db::write`].
///
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
#[doc(inline)]
pub use frondb_commit::Batch;
#[doc(inline)]
pub use frondb_commit::{CommitHook, CommitInfo, Durability};
#[doc(inline)]
pub use frondb_core::TreeId;
#[doc(inline)]
pub use frondb_core::chunk::Entries;
#[doc(inline)]
pub use frondb_core::error::{CorruptionPlace, Error, ErrorKind, Result};
#[doc(inline)]
pub use frondb_core::events::{Event, EventListener, StallReason};
#[doc(inline)]
pub use frondb_core::latency::LatencyStats;
#[doc(inline)]
pub use frondb_core::limits;
#[doc(inline)]
pub use frondb_core::message::UpdateFn;
#[doc(inline)]
pub use frondb_core::profile::ReadProfile;
#[doc(inline)]
pub use frondb_core::tuple;
#[doc(inline)]
pub use frondb_core::wear::{
    Lifetimes, Wear, WearPage, WriteCause, WriteSums, Writes, Written, lifetime,
};
#[doc(inline)]
pub use frondb_locks::{
    Canceller, DeadlockInfo, LockInfo, LockMode, Locked, WaitHook, WaitInfo, WaitNotice,
};
/// An ordered reader of a tree; [`Tree::cursor`] makes one.
///
/// ```
/// # use frondb::{Cursor, CursorOptions, Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let tree = db.create_tree("t", TreeOptions::default())?;
/// for key in ["a1", "a2", "b1"] {
///     tree.put(key, "x")?;
/// }
/// let mut cursor = tree.cursor_with(CursorOptions::new().prefix("a"))?;
/// let mut keys = Vec::new();
/// while cursor.next()? {
///     keys.push(cursor.key().to_vec());
/// }
/// assert_eq!(keys, [b"a1", b"a2"]);
/// # drop(cursor);
/// # db.close()
/// # }
/// ```
#[doc(inline)]
pub use frondb_tree::Cursor;
#[doc(inline)]
pub use frondb_tree::estimate::{FirstEntries, RangeEstimate, RangeMessages};
#[doc(inline)]
pub use frondb_tree::{AsTree, CursorOptions, KeyRange, Range, Snapshot, VerifyReport};
#[doc(inline)]
pub use frondb_trunk::{FilterPolicy, TrunkOptions};
#[doc(inline)]
pub use frondb_txn::{BulkOptions, BulkProgress, BulkReport, BulkWriter, Duplicate, Duplicates};
#[doc(inline)]
pub use frondb_wal::SyncMode;
pub use options::{Options, TreeOptions};
pub use pending::Pending;
pub use salvage::{DamagedRange, SalvageReport, SalvagedTree};
pub use transaction::{
    BulkStatement, Committing, Isolation, Savepoint, Transaction, TransactionCursor,
    TransactionCursorOptions, TransactionInfo, TransactionOptions, TransactionRange, Wait,
};
pub use tree::Tree;
