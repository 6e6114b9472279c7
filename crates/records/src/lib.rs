//! Layer 5: the records of the log and of the manifest: what they say, as bytes.
//!
//! ```text
//!  log.rs       records of the write-ahead log: batches, commits, prepares
//!  edit.rs      edits of the manifest: trees, runs, nodes, what is pending
//!  options.rs   options of a tree, which an edit carries
//! ```
//!
//! The crates `wal` and `manifest` carry these bytes without knowing what they mean. Nothing here does
//! I/O. A decoder accepts any bytes and answers with an error, never a panic.

mod edit;
mod log;
mod options;

pub use edit::{Edit, PendingPart, decode_edit, encode_edit};
pub use log::*;
pub use options::TreeOptions;

#[doc(hidden)]
pub mod fuzz;
