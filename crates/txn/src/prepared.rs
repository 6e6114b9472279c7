//! Prepared transactions (rule 19). They survive a crash, and wait until their coordinator commits
//! them or rolls them back.
//!
//! ```text
//!  prepare ----> record 3: name, parts on disk, messages      the record pins the log
//!     |              `--- the log gets long: messages become private runs, one edit says pending
//!     |                   and prepared; the record is no longer needed
//!     |---------> commit: record 4, a few bytes; then as any commit
//!     '---------> rollback: record 5, or one edit if the manifest has the transaction
//! ```
//! The numbers are the kinds of the log records (`frondb_records`): 3 prepare, 4 commit prepared, 5
//! roll back prepared.
//!
//! # Order of durability
//! - A record 5 is durable before the parts are freed. Otherwise recovery would find the prepare
//!   but not its parts.
//! - The edit that ends a prepared transaction in the manifest names the log position of the
//!   prepare record, so that recovery skips that record if the log still has it.
//! - Record 4 has the SeqNos of a commit and record 3 its messages, so the memtables and runs of
//!   the commit need the log from record 3 on.
//! - Record 4 is durable before the drop of a tree to which the transaction has written, whatever
//!   the durability of the commit. Otherwise recovery would find the prepared transaction but not
//!   its tree.
//!
//! # Lock order
//! The lock of a transaction's writes (`PreparedTxn::writes`) comes before the commit latch, and is
//! held during I/O. Because of this lock, a commit, a rollback and a move into the manifest of one
//! transaction exclude each other. The lock of the map (`PreparedSet::by_xid`) is a leaf.

mod phases;
mod set;
mod to_manifest;
mod writes;

pub use phases::{commit, prepare, roll_back};
pub use set::{
    OwnedMessages, Prepared, PreparedSet, PreparedTxn, PreparedWrites, check_no_writer,
    keep_commits, list, names, number,
};
#[cfg(feature = "testing")]
pub use writes::extent_bytes;
pub use writes::{Written, for_each_write, values_of};
