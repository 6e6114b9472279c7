//! The jobs: what they do step by step, and how they change a tree.
//!
//! ```text
//!  flush.rs     a memtable becomes slices of nodes
//!  written.rs   its runs are made durable and installed
//!  attach.rs    the runs of a commit become views
//!  merge.rs     the runs of a node become fewer
//!  relocate.rs  a run moves forward in its file
//!  install.rs   the change of the trunk that each of them ends with
//!  running.rs   a flush or a merge between two steps
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
