//! Ordered reading of a tree.
//!
//! ```text
//!  cursor.rs   the cursor, and the entry that it is at
//!  moves.rs    seeks and steps, and the errors of moves
//!  leaves.rs   from leaf to leaf
//!  scope.rs    what a cursor reads
//!  around.rs   what is known to be empty is skipped
//!  empty.rs    what is found to be empty is reported
//!  rest.rs     what a cursor leaves to the next one of its transaction
//!  walk.rs     the merge over one leaf, and the scan debt that it adds
//! ```
//!
//! What a cursor pins is in [`crate::pins`], where a flush can unpin it.

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
