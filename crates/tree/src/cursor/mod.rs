//! Ordered reading of a tree.
//!
//! ```text
//!  cursor.rs   the cursor and its current entry
//!  moves.rs    seeks and steps, and the errors of moves
//!  leaves.rs   moves between leaves
//!  scope.rs    the part of the tree that a cursor reads
//!  around.rs   skips known-empty ranges
//!  empty.rs    reports ranges that a walk found empty
//!  rest.rs     the walk that a cursor leaves to the next cursor of its transaction
//!  walk.rs     the merge over one leaf, and the scan debt that it adds
//! ```
//!
//! The versions that cursors pin are in [`crate::pins`], where a flush can unpin them.

mod around;
#[expect(clippy::module_inception, reason = "the cursor itself, beside its parts")]
mod cursor;
mod empty;
mod leaves;
mod moves;
mod rest;
mod scope;
mod walk;

pub use cursor::{Cursor, CursorOptions};
pub use rest::Resting;
