//! Layer 7: commits. This crate writes a batch or a transaction to the log and the memtables.
//! The private runs of a large transaction are on disk before its commit; the manifest records
//! them.
//!
//! ```text
//!  Batch, Messages, Attachment --> Committer --> log, memtables, visible
//!                  PendingParts --> Edits --> manifest
//! ```
//!
//! | file | role |
//! |---|---|
//! | `batch.rs`, `messages.rs` | messages that commit together; inserting them into a memtable |
//! | `large_values.rs` | writes large values to extents of their own, before the commit |
//! | `attachment.rs`, `pending.rs`, `pending_parts.rs` | parts of large commits, on disk already |
//! | `commit.rs`, `committer.rs`, `under_lock.rs` | commits, and the work under the commit lock |
//! | `relog.rs` | logging a memtable again |
//! | `hook.rs` | the commit hook |
//! | `calls.rs` | keeps a database from being closed under a call |
//! | `log.rs`, `edits.rs`, `ids.rs` | the log, the manifest and the ids of an open database |
//! | `wear.rs` | what an open database writes to its files |
//!
//! A commit reads no block and starts no background work: it returns the trees that have changed to
//! its caller.

mod attachment;
mod batch;
mod calls;
mod commit;
mod committer;
mod edits;
mod hook;
mod ids;
mod large_values;
mod log;
mod messages;
mod pending;
mod pending_parts;
mod relog;
mod under_lock;
mod wear;

pub use attachment::{Attachment, parts_of};
pub use batch::{Batch, Durability, ENTRY_OVERHEAD_BYTES, Section};
pub use calls::{CallGuard, Calls};
pub use commit::{Commit, CommitValues, Committed};
pub use committer::{CommitLatch, Committer};
pub use edits::{EditLatch, Edits};
pub use hook::{CommitHook, CommitInfo, guarded};
pub use ids::{Ids, LargestIds};
pub use large_values::{Written, discard, write_value, write_values};
pub use log::Log;
pub use messages::{Messages, insert, sections_of};
pub use pending::{PendingState, PreparedInManifest, parts};
pub use pending_parts::{NewTree, PendingParts, check_trees, was_dropped};
pub use wear::WearMeter;
