//! Bulk load: several threads add entries in any order to one or several trees, and one atomic
//! commit makes all of them visible.
//!
//! ```text
//!  writer --> sort buffers --> full: the largest is sorted and written as a spool
//!  writer --> ...                 |
//!  finish: all spools and buffers of a tree --merge--> base runs, one a leaf, written once
//!          --> one commit attaches the runs of all trees (rules 18 and 19)
//! ```
//!
//! The manifest contains nothing of a load before the commit of the load. So after a crash, a
//! cancellation or a drop, the trees are as before and the space is free. During the load, other
//! transactions read and write the trees; the commit locks whole trees for a moment. A bulk
//! statement of a transaction (`transaction/bulk.rs`) uses the same code, except for the commit.
//!
//! | file | role |
//! |---|---|
//! | `options.rs` | options, progress and results |
//! | `load.rs` | [`BulkLoad`]: begin, cancel, finish |
//! | `writer.rs` | [`BulkWriter`]: buffers the entries of one thread, writes spools |
//! | `shared.rs` | the state that a load and its writers share |
//! | `merging.rs` | the merges of `finish` |
//! | `commit.rs` | locks the trees and attaches all runs |
//! | `new_trees.rs` | trees that the load creates |

mod commit;
mod load;
mod merging;
mod new_trees;
mod options;
mod shared;
mod writer;

pub use load::BulkLoad;
pub(crate) use merging::Merging;
pub use options::{BulkOptions, BulkProgress, BulkReport, Duplicate, Duplicates};
pub(crate) use shared::LoadShared;
pub use writer::BulkWriter;
