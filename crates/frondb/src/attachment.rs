//! Asking the process that has a database open for statistics and backups, over a socket in the
//! directory of the database.
//!
//! ```text
//!   frondb stats DIR                        the owner: a program, or mariadbd
//!   client.rs: Attachment --- DIR/SOCKET ---> owner.rs: a thread that waits, one for each question
//!              |                                |
//!              |                                v
//!              |                              answers.rs: Db::stats, Db::prometheus, Db::backup
//!              +--------- format.rs: the bytes ------+
//! ```
//! `owner.rs` does not depend on the database: [`Db`](crate::Db) holds an `Owner`, and `answers.rs`
//! connects the two. Only the owner can answer: the counters are in its memory, and only it can
//! keep space and log files until a backup has read them.

pub(crate) mod answers;
mod client;
pub(crate) mod format;
pub(crate) mod owner;

pub use client::{AttachedStats, AttachedTree, Attachment};
