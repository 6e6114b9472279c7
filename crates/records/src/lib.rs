//! Layer 5: the encoding of the records of the log and of the manifest.
//!
//! ```text
//!  log.rs       records of the write-ahead log: batches, commits, prepares
//!  edit.rs      edits of the manifest: trees, runs, nodes, pending parts
//!  options.rs   options of a tree, which an edit carries
//!  wear.rs      the bytes that the database has written, which the superblocks carry
//! ```
//!
//! The crates `wal` and `manifest` store these bytes and do not decode them. This crate does no
//! I/O. A decoder accepts any bytes: it never panics, and returns an error for bytes that it cannot
//! decode.

mod edit;
mod log;
mod options;
mod wear;

pub use edit::{Edit, EditFault, PendingPart, decode_edit, encode_edit};
pub use log::*;
pub use options::TreeOptions;
pub use wear::{decode_history, encode_history};

#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzz;
