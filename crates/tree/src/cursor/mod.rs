//! Ordered reading of a tree.
//!
//! ```text
//!  cursor.rs   the cursor and its current entry
//!  options.rs  the key range (key_range.rs) and the snapshot that a cursor shows
//!  range.rs    an iterator over the entries of a cursor
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
mod key_range;
mod leaves;
mod moves;
mod options;
mod range;
mod rest;
mod scope;
mod walk;

pub use cursor::Cursor;
pub use key_range::KeyRange;
pub use options::CursorOptions;
pub use range::{Moves, Range};
pub use rest::Resting;
