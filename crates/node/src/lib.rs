//! FronDB for Node.js: the native addon, which `lib/` presents as the package `frondb`.
//!
//! The classes here are internal. They take and return what is cheap to convert, and
//! `lib/` makes of it promises, iterators and errors.
//!
//! # Rules
//! - No call on the thread of JavaScript waits for a lock of a transaction, for background work or
//!   for a latch that is held during one, except the calls whose names say so (`put`, `fill_here`).
//! - No memory of JavaScript is used after the call that passed it: calls copy what they keep.
//! - Engine objects are dropped before the handle of their database ([`shared::Handle`]).
//! - A call ends its ticket exactly once, also if it panics.
//!
//! ```text
//!  pool.rs      threads           shared.rs       databases of several threads of JavaScript
//!  runtime.rs   calls, inboxes    database.rs     NativeDb, open
//!  answer.rs    results           tree.rs         NativeTree
//!  failure.rs   errors            writes.rs       groups of writes
//!  columns.rs   many strings      transaction.rs  NativeTransaction, its calls in order
//!  arguments.rs others            rows.rs         iterators, on scan.rs
//!  options.rs   options by name   bulk.rs         bulk loads
//!  progress.rs  long calls        files.rs        backups, checks
//! ```

#![allow(missing_docs, unreachable_pub, reason = "the macros of napi-rs make public items")]
#![allow(
    clippy::too_many_arguments,
    reason = "a call has a runtime and a ticket, and what lib/ takes out of an object of options"
)]

mod answer;
mod arguments;
mod bulk;
mod columns;
mod counter;
mod database;
mod failure;
mod files;
mod options;
mod pool;
mod progress;
mod rows;
mod runtime;
mod scan;
mod shared;
mod snapshot;
mod transaction;
mod transaction_calls;
mod tree;
mod writes;

// What JavaScript calls without an object.
pub use database::open;
pub use files::{restore, verify_backup};
pub use runtime::threads;
