//! The jobs: their steps, and the install that changes a tree.
//!
//! ```text
//!  flush.rs     a memtable becomes slices of nodes
//!  written.rs   the runs of a flushed memtable are made durable and installed
//!  attach.rs    the runs of a commit become views
//!  merge.rs     the runs of a node are merged, or flushed to its children
//!  relocate.rs  a run moves away from the end of its file
//!  install.rs   the change of the trunk with which each job ends
//!  running.rs   a flush or a merge between two steps
//!  notice.rs    reports jobs to the listener of the application
//! ```

pub mod attach;
pub mod flush;
pub mod install;
pub mod merge;
pub(crate) mod notice;
pub mod relocate;
mod running;
pub mod written;

pub use running::Running;
